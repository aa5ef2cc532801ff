//! A directory that appears complete or not at all.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::EmitError;
use crate::names::MANIFEST_FILE;

/// A directory under a hidden name beside its target; it is removed unless [`PendingDirectory::commit`] renames it.
#[derive(Debug)]
pub(crate) struct PendingDirectory {
    target: PathBuf,
    temporary: PathBuf,
    overwrite: bool,
}

impl PendingDirectory {
    /// Makes the directory. Something that exists at `target` is an error, unless `overwrite` is set and it is empty or
    /// holds a manifest.
    pub(crate) fn create(target: &Path, overwrite: bool) -> Result<Self, EmitError> {
        check_target(target, overwrite)?;
        let temporary = create_sibling(target, "tmp")?;
        Ok(Self { target: target.to_owned(), temporary, overwrite })
    }

    /// Where to write.
    pub(crate) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Puts the directory in its place.
    pub(crate) fn commit(self) -> Result<(), EmitError> {
        check_target(&self.target, self.overwrite)?;
        let place = || {
            fs::rename(&self.temporary, &self.target).map_err(|source| EmitError::io("create", &self.target, source))
        };
        if !exists(&self.target)? {
            return place();
        }
        let old = create_sibling(&self.target, "old")?;
        let retired = old.join("replaced");
        let replaced = fs::rename(&self.target, &retired)
            .map_err(|source| EmitError::io("replace", &self.target, source))
            .and_then(|()| {
                place().inspect_err(|_| {
                    // Best effort: the error that is reported is the first one.
                    let _ = fs::rename(&retired, &self.target);
                })
            });
        if replaced.is_ok() || !retired.exists() {
            let _ = fs::remove_dir_all(&old);
        }
        replaced
    }
}

impl Drop for PendingDirectory {
    fn drop(&mut self) {
        // After a commit there is nothing of that name.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

fn exists(path: &Path) -> Result<bool, EmitError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(EmitError::io("look at", path, source)),
    }
}

fn check_target(target: &Path, overwrite: bool) -> Result<(), EmitError> {
    if !exists(target)? {
        return Ok(());
    }
    let path = target.to_owned();
    if !overwrite {
        return Err(EmitError::Exists { path });
    }
    let is_directory = fs::symlink_metadata(target).is_ok_and(|metadata| metadata.is_dir());
    let is_empty = || fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    if is_directory && (target.join(MANIFEST_FILE).is_file() || is_empty()) {
        Ok(())
    } else {
        Err(EmitError::NotReplaceable { path })
    }
}

/// Makes a new directory beside `target`.
fn create_sibling(target: &Path, suffix: &str) -> Result<PathBuf, EmitError> {
    let name = target.file_name().ok_or_else(|| EmitError::Target { path: target.to_owned() })?;
    let mut attempt = 0_u32;
    loop {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{suffix}-{}-{attempt}", std::process::id()));
        let path = target.with_file_name(hidden);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
            Err(source) => return Err(EmitError::io("create", target, source)),
        }
    }
}
