//! The GPU in front of a base runs kernels, record for record as the interpreter.

use std::fmt::Write as _;
use std::path::Path;

use qwengpu::{Argument, Check, Dim3, EngineKind, Gpu, GpuOptions, Kernel, Launch, Precision};
use qwengpu_weights::Manifest;

use crate::random_base::{RandomBase, Storage};
use crate::{command::qwengpu, folder, text};

/// Stores the thread's number and 5 in one word.
const SHORT: &str = ".kernel k\n.param pointer offset 0 size 8 align 8 data\n\
                     s2r r1, tid\niadd r1, r1, 5\nst.b32 [c[0]], r1\nexit\n";

fn gpu(checkpoint: &Path, engine: EngineKind, precision: Precision) -> Gpu {
    let options = GpuOptions { precision, checkpoint: Some(checkpoint.to_owned()), ..GpuOptions::new(engine) };
    Gpu::with_options(&options).expect("a merged checkpoint")
}

fn check(gpu: &mut Gpu, kernel: &Kernel, launch: Launch) -> Vec<qwengpu::Buffer> {
    let result = gpu.launch(kernel, &Launch { check: true, ..launch }).expect("a launch");
    assert_eq!(result.check, Some(Check::Equal), "{result:?}");
    result.buffers
}

#[test]
fn the_gpu_runs_in_front_of_a_base() {
    let folder = folder();
    let (base, out) = (folder.path().join("base"), folder.path().join("merged"));
    let sizes = RandomBase { key_heads: 2, value_heads: 4, storage: Storage::Bf16, ..RandomBase::tiny() };
    sizes.write(&base).expect("a base");
    let merge = ["merge", "--base", &text(&base), "--out", &text(&out), "--layout", "portable"];
    let said = qwengpu(&merge).expect("a merge");
    for part in ["base: base, hidden 64", "(portable)", "language 0 to 63", "halt"] {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
    let info = qwengpu(&["info", &text(&out)]).expect("facts");
    assert!(info.contains("base: base, hidden 64") && info.contains("memory/global/byte0"), "{info}");

    let manifest = Manifest::read(&out).expect("a manifest");
    let facts = manifest.merge.as_ref().expect("a base");
    assert_eq!(manifest.geometry.value_heads, 2 * manifest.geometry.key_heads);
    assert!(manifest.states.iter().all(|state| facts.compiled_layers.contains(&state.layer)));

    let mut sparse = gpu(&out, EngineKind::Sparse, Precision::F32);
    let kernel = Kernel::from_ptx(sparse.spec(), include_str!("../../kernels/vector_add.ptx"), None).expect("a kernel");
    let launch = Launch::new(Dim3::linear(2), Dim3::linear(4))
        .argument(Argument::buffer(&[1_i32, -2, 3, 400, 5]))
        .argument(Argument::buffer(&[10_i32, 20, 30, 40, 50]))
        .argument(Argument::zeros::<i32>(5))
        .argument(5_i32);
    let buffers = check(&mut sparse, &kernel, launch.clone());
    assert_eq!(buffers[2].to_vec::<i32>(), Some(vec![11, 18, 33, 440, 55]));
    drop(sparse);
    let buffers = check(&mut gpu(&out, EngineKind::Sparse, Precision::Bf16), &kernel, launch);
    assert_eq!(buffers[2].to_vec::<i32>(), Some(vec![11, 18, 33, 440, 55]));

    let mut dense = gpu(&out, EngineKind::Dense, Precision::Bf16);
    let kernel = Kernel::from_assembly(dense.spec(), SHORT).expect("a kernel");
    let launch = Launch::new(Dim3::linear(1), Dim3::linear(2)).argument(Argument::zeros::<i32>(1));
    assert_eq!(check(&mut dense, &kernel, launch)[0].to_vec::<i32>(), Some(vec![6]));
    drop(dense);

    // Token ids are those of the merged vocabulary.
    let mut path = String::new();
    write!(path, "{}/kernels/vector_add.ptx", env!("CARGO_MANIFEST_DIR")).expect("a text");
    let launch = "--grid 1 --block 4 --arg buf:i32:1,2 --arg buf:i32:3,4 --arg zeros:i32:2 --arg i32:2";
    let mut arguments = vec!["tokens", &path, "--engine", "sparse", "--model"];
    let out = text(&out);
    arguments.push(&out);
    arguments.extend(launch.split(' '));
    let stream: serde_json::Value = serde_json::from_str(&qwengpu(&arguments).expect("tokens")).expect("JSON");
    let records = stream["records"].as_array().expect("a list");
    assert_eq!(records.last(), Some(&manifest.halt_token_id.into()));
}
