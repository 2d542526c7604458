//! A file of records, one line of JSON each, that is only added to.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::Serialize;

/// Bytes that are searched at a time for the end of the last whole line.
const BLOCK: u64 = 1 << 16;

/// The file. Several programs may add to it at a time.
#[derive(Debug)]
pub(crate) struct Lines {
    file: File,
    bytes: u64,
    bound: u64,
}

/// A last line that has no end: a crash has cut it off, or the file is somebody else's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    start: u64,
    pub(crate) text: Vec<u8>,
}

impl Lines {
    /// Opens or makes a file that may have `bound` bytes. A larger one is emptied.
    pub(crate) fn open(path: &Path, bound: u64) -> io::Result<Self> {
        let file = File::options().create(true).append(true).read(true).open(path)?;
        let bytes = file.metadata()?.len();
        let mut lines = Self { file, bytes, bound };
        if bytes > bound {
            lines.clear()?;
        }
        Ok(lines)
    }

    /// Opens a file that is there, to read it only.
    pub(crate) fn read_only(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, bound: 0 })
    }

    /// The first line without its end, of at most so many bytes; `None` if it is longer or has no end.
    pub(crate) fn first(&mut self, bound: u64) -> io::Result<Option<Vec<u8>>> {
        let mut start = self.read_between(0, bound.min(self.bytes))?;
        let end = start.iter().position(|&byte| byte == b'\n');
        Ok(end.map(|end| {
            start.truncate(end);
            start
        }))
    }

    /// True if there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// It takes no more than so many bytes in all.
    pub(crate) fn limit(&mut self, bound: u64) {
        self.bound = bound;
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.cut(0)
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    /// The last line, if it has no end.
    pub(crate) fn tail(&mut self) -> io::Result<Option<Tail>> {
        let mut start = self.bytes;
        while start > 0 {
            let from = start.saturating_sub(BLOCK);
            let block = self.read_between(from, start)?;
            if let Some(end) = block.iter().rposition(|&byte| byte == b'\n') {
                start = from + end as u64 + 1;
                break;
            }
            start = from;
        }
        let text = self.read_between(start, self.bytes)?;
        Ok((!text.is_empty()).then_some(Tail { start, text }))
    }

    fn read_between(&mut self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&self.file).take(end.saturating_sub(start)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Removes a last line.
    pub(crate) fn remove(&mut self, tail: &Tail) -> io::Result<()> {
        self.cut(tail.start)
    }

    /// Ends the last line, so that it does not spoil the next.
    pub(crate) fn end_last(&mut self) -> io::Result<()> {
        self.write(b"\n")
    }

    /// Shows all lines, ended or not, until an error.
    pub(crate) fn try_each<E: From<io::Error>>(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.file.rewind()?;
        let mut reader = BufReader::new((&self.file).take(self.bytes));
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            each(&line)?;
            line.clear();
        }
        Ok(())
    }

    /// Adds a record.
    pub(crate) fn append(&mut self, record: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.write(&line)
    }

    /// One write, so that a line is whole or was cut off by a crash, and those of two programs do not mix.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = self.bytes + bytes.len() as u64;
        if length > self.bound {
            return Err(io::Error::other(format!("it would be larger than {} bytes", self.bound)));
        }
        self.bytes = length;
        self.file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(text: &[u8]) -> Option<Tail> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        Lines::open(&path, u64::MAX).unwrap().tail().unwrap()
    }

    #[test]
    fn the_tail_is_found_however_long_it_is() {
        assert_eq!((tail(b""), tail(b"{}\n")), (None, None));
        assert_eq!(tail(b"{}\n{").unwrap(), Tail { start: 3, text: b"{".to_vec() });
        assert_eq!(tail(b"abc").unwrap().start, 0);
        for length in [BLOCK as usize - 1, BLOCK as usize, BLOCK as usize + 1, 3 * BLOCK as usize] {
            let text = [b"{}\n".to_vec(), vec![b'x'; length]].concat();
            assert_eq!(tail(&text).unwrap(), Tail { start: 3, text: vec![b'x'; length] }, "{length}");
        }
    }

    #[test]
    fn a_file_is_bounded_and_one_that_is_too_large_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut lines = Lines::open(&path, 4).unwrap();
        lines.append(&12).unwrap();
        let error = lines.append(&3).unwrap_err().to_string();
        assert!(error.contains("larger than 4 bytes"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"12\n");
        Lines::open(&path, 2).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }
}
