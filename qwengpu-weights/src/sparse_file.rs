//! A writer that leaves runs of zeros out, so that they become holes.

use std::io::{self, Seek, SeekFrom, Write};

/// The unit of holes.
pub(crate) const PAGE: usize = 4096;
/// Bytes gathered before pages are looked at; a multiple of [`PAGE`].
const BUFFER: usize = 256 * PAGE;

static ZERO_PAGE: [u8; PAGE] = [0; PAGE];

/// How many pages values need that begin at these bytes, in ascending order; one more, since the first byte may stand
/// anywhere in a page.
pub(crate) fn pages_of(bytes: impl Iterator<Item = usize>) -> usize {
    let mut last = None;
    1 + bytes.filter(|byte| last.replace(byte / PAGE) != Some(byte / PAGE)).count()
}

/// Writes a file from its start, without the pages that are all zero.
///
/// The file must be set to its full length before or after: nothing is written for zeros at its end.
#[derive(Debug)]
pub(crate) struct SparseWriter<W> {
    inner: W,
    buffer: Vec<u8>,
    /// Offset of the buffer in the file; a multiple of [`PAGE`].
    start: u64,
}

impl<W: Write + Seek> SparseWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, buffer: Vec::with_capacity(BUFFER), start: 0 }
    }

    /// Bytes so far.
    pub(crate) fn position(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            self.flush_if_full()?;
            bytes = later;
        }
        Ok(())
    }

    /// Appends zeros.
    pub(crate) fn write_zeros(&mut self, mut count: u64) -> io::Result<()> {
        while count > 0 {
            if self.buffer.is_empty() && count >= PAGE as u64 {
                let whole = count - count % PAGE as u64;
                self.start += whole;
                count -= whole;
                continue;
            }
            let room = BUFFER - self.buffer.len();
            let now = usize::try_from(count).map_or(room, |count| count.min(room));
            self.buffer.resize(self.buffer.len() + now, 0);
            self.flush_if_full()?;
            count -= now as u64;
        }
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() == BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut offset = 0;
        let same_kind = |a: &&[u8], b: &&[u8]| is_zero(a) == is_zero(b);
        let pages: Vec<&[u8]> = self.buffer.chunks(PAGE).collect();
        for run in pages.chunk_by(same_kind) {
            let length = run.iter().map(|page| page.len()).sum::<usize>();
            if run.first().is_some_and(|page| !is_zero(page)) {
                self.inner.seek(SeekFrom::Start(self.start + offset as u64))?;
                self.inner.write_all(&self.buffer[offset..offset + length])?;
            }
            offset += length;
        }
        self.start += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

fn is_zero(page: &[u8]) -> bool {
    page == &ZERO_PAGE[..page.len()]
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Counts the bytes that are written.
    struct Counter {
        file: Cursor<Vec<u8>>,
        written: usize,
    }

    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written += bytes.len();
            self.file.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Counter {
        fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
            self.file.seek(position)
        }
    }

    #[test]
    fn values_of_one_page_share_it() {
        assert_eq!(pages_of([0, 8, PAGE - 2, PAGE, 3 * PAGE, 3 * PAGE + 2].into_iter()), 1 + 3);
        assert_eq!(pages_of(std::iter::empty()), 1);
    }

    /// Writes pieces (zeros up to a length, then bytes) both ways and compares.
    fn check(pieces: &[(usize, &[u8])]) -> usize {
        let mut expected = Vec::new();
        let counter = Counter { file: Cursor::new(Vec::new()), written: 0 };
        let mut writer = SparseWriter::new(counter);
        for &(zeros, bytes) in pieces {
            expected.resize(expected.len() + zeros, 0);
            expected.extend_from_slice(bytes);
            writer.write_zeros(zeros as u64).expect("a write");
            writer.write(bytes).expect("a write");
            assert_eq!(writer.position(), expected.len() as u64);
        }
        let Counter { file, written } = writer.finish().expect("a write");
        let mut got = file.into_inner();
        got.resize(expected.len(), 0);
        assert!(got == expected, "{pieces:?}");
        written
    }

    #[test]
    fn zeros_are_left_out() {
        assert_eq!(check(&[]), 0);
        assert_eq!(check(&[(10 * BUFFER + 5, &[])]), 0);
        assert_eq!(check(&[(0, b"header"), (7, b"x")]), 14);
        assert_eq!(check(&[(0, b"header"), (PAGE, b"x"), (3 * BUFFER + 1, b"y"), (1, &[])]), 3 * PAGE - (PAGE - 10));
        assert_eq!(check(&[(BUFFER - 1, b"ab"), (BUFFER - 2, b"cd")]), 2 * PAGE + PAGE + 1);
        assert_eq!(check(&[(0, &vec![1; 3 * BUFFER + 17])]), 3 * BUFFER + 17);
        assert_eq!(check(&[(0, &vec![0; 2 * BUFFER + 17])]), 0);
    }

    #[test]
    fn odd_pieces() {
        let mut size = 1;
        let bytes = vec![7; 1 << 16];
        let pieces: Vec<(usize, &[u8])> = (0..300)
            .map(|_| {
                size = size * 75 % 65537;
                (size, &bytes[..size % 977])
            })
            .collect();
        check(&pieces);
    }

    #[test]
    fn errors_are_passed_on() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Seek for Full {
            fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
                Ok(0)
            }
        }
        let mut writer = SparseWriter::new(Full);
        writer.write(b"x").expect("still in the buffer");
        assert_eq!(writer.finish().err().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
        let error = SparseWriter::new(Full).write(&vec![1; BUFFER]).expect_err("a full disk");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
