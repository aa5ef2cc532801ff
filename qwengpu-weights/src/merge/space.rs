//! Whether a checkpoint fits on the disk.

use std::path::{Path, PathBuf};

use super::error::MergeError;
use crate::error::EmitError;

/// Bytes for everything but weights: tokenizer, manifest, configuration.
const OTHER_FILES: u64 = 64 << 20;

/// Checks that there is room for `weights` bytes at `target`, which need not exist.
///
/// A disk that can't be asked is taken to be large enough; then the writing itself finds out.
pub(crate) fn check_space(target: &Path, weights: u64) -> Result<(), MergeError> {
    let absolute = std::path::absolute(target).map_err(|source| EmitError::io("look at", target, source))?;
    let place = absolute.ancestors().skip(1).find(|place| place.is_dir()).map_or_else(PathBuf::new, Path::to_owned);
    let available = fs4::available_space(&place).unwrap_or(u64::MAX);
    compare(place, weights + OTHER_FILES, available)
}

fn compare(path: PathBuf, needed: u64, available: u64) -> Result<(), MergeError> {
    if needed > available { Err(MergeError::Space { path, needed, available }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_small_is_refused() {
        let error = compare("disk".into(), 11, 10).expect_err("too small");
        assert_eq!(
            error.to_string(),
            "disk: the merged checkpoint needs about 11 bytes, 10 are free; make room or choose another place"
        );
        assert!(compare("disk".into(), 10, 10).is_ok());
        let parent = tempfile::TempDir::new().expect("a directory");
        let target = parent.path().join("missing/x");
        assert!(matches!(check_space(&target, u64::MAX / 2), Err(MergeError::Space { .. })));
        assert!(check_space(&target, 0).is_ok());
    }
}
