//! Which parts of a file hold data: the rest are holes, which read as zeros and need not be read.
//!
//! A compiled checkpoint is mostly zeros and is written with holes; a copy may have lost them, which only costs time.

use std::fs::File;
use std::ops::Range;

/// The stretches of a file that may hold something else than zeros, ascending; all of it where the file system does not
/// say.
pub(crate) fn data_extents(file: &File, len: usize) -> Vec<Range<usize>> {
    let whole = 0..len;
    if len == 0 {
        return Vec::new();
    }
    #[cfg(target_os = "linux")]
    if let Some(extents) = seek_extents(file, len) {
        return extents;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    vec![whole]
}

#[cfg(target_os = "linux")]
fn seek_extents(file: &File, len: usize) -> Option<Vec<Range<usize>>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    let mut extents = Vec::new();
    let mut position = 0;
    while position < len {
        let offset = u64::try_from(position).ok()?;
        let start = match seek(file, SeekFrom::Data(offset)) {
            Ok(start) => usize::try_from(start).ok()?,
            Err(Errno::NXIO) => break, // nothing but a hole
            Err(_) => return None,
        };
        let end = seek(file, SeekFrom::Hole(u64::try_from(start).ok()?)).ok()?;
        let end = usize::try_from(end).ok()?.min(len);
        if start < position || end <= start {
            return None;
        }
        extents.push(start..end);
        position = end;
    }
    Some(extents)
}

/// What the parts of `bytes` are that lie in one of these extents: ranges counted from its beginning, widened to
/// multiples of `unit`, ascending and apart.
pub(crate) fn parts_within(
    extents: &[Range<usize>],
    bytes: Range<usize>,
    unit: usize,
) -> impl Iterator<Item = Range<usize>> {
    let first = extents.partition_point(|extent| extent.end <= bytes.start);
    let mut done = 0;
    let overlapping = extents[first..].iter().cloned().take_while({
        let end = bytes.end;
        move |extent| extent.start < end
    });
    overlapping.filter_map(move |extent| {
        let start = (extent.start.max(bytes.start) - bytes.start) / unit * unit;
        let end = (extent.end.min(bytes.end) - bytes.start).next_multiple_of(unit).min(bytes.len());
        let part = start.max(done)..end;
        done = done.max(end);
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every byte of an extent is in exactly one part, and parts begin at multiples of the unit.
        #[test]
        fn parts_hold_what_extents_hold(
            lens in prop::collection::vec((0..40_usize, 1..40_usize), 0..8),
            bytes in (0..200_usize, 0..200_usize),
            unit in 1..70_usize,
        ) {
            let mut position = 0;
            let extents: Vec<_> = lens.into_iter().map(|(gap, len)| {
                let start = position + gap;
                position = start + len;
                start..position
            }).collect();
            let bytes = bytes.0..bytes.0 + bytes.1;
            let mut seen = vec![0; bytes.len()];
            for part in parts_within(&extents, bytes.clone(), unit) {
                prop_assert!(part.start % unit == 0 && part.end <= bytes.len());
                part.for_each(|i| seen[i] += 1);
            }
            for (i, &times) in seen.iter().enumerate() {
                let is_data = extents.iter().any(|extent| extent.contains(&(bytes.start + i)));
                prop_assert!(times <= 1 && (times == 1 || !is_data), "byte {i} {times} times");
            }
        }
    }

    #[test]
    fn what_is_outside_is_zero() {
        const LEN: usize = 3 << 20;
        let mut file = tempfile::tempfile().expect("a file");
        file.set_len(LEN as u64).expect("a hole");
        for (at, text) in [(5_u64, "near the beginning"), (1 << 20, "in the middle"), (LEN as u64 - 3, "end")] {
            file.seek(std::io::SeekFrom::Start(at)).expect("a place");
            file.write_all(text.as_bytes()).expect("text");
        }
        let extents = data_extents(&file, LEN);
        let mut bytes = Vec::new();
        file.rewind().expect("the beginning");
        file.read_to_end(&mut bytes).expect("bytes");
        for (i, &byte) in bytes.iter().enumerate() {
            assert!(byte == 0 || extents.iter().any(|extent| extent.contains(&i)), "byte {i} is lost");
        }
    }
}
