//! Writes a random checkpoint with the sizes of a released Qwen3.5: `random_base 0.8B|2B|4B|9B|tiny|small DIR`.
//!
//! Its weights mean nothing; it shows how long a merge takes, and what it needs. `tiny` takes 1 MB, `small` 10 MB.

#[path = "../qwengpu-weights/tests/common/random_base.rs"]
#[allow(unreachable_pub, reason = "shared with tests of another crate")]
mod random_base;

use std::path::Path;

use random_base::{RandomBase, Storage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, dir] = &arguments[..] else {
        return Err("usage: random_base 0.8B|2B|4B|9B|tiny|small DIR".into());
    };
    let tiny = RandomBase::tiny();
    let base = match name.as_str() {
        "tiny" => tiny,
        "small" => {
            RandomBase { hidden: 192, intermediate: 512, layers: 8, sharpness: 3.0, storage: Storage::Bf16, ..tiny }
        }
        _ => RandomBase::released(name).ok_or_else(|| format!("no model of {name} is known"))?,
    };
    base.write(Path::new(dir))?;
    Ok(())
}
