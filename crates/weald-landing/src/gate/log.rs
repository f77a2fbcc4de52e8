//! The log of a gate's run: a head, the output, an end. A bound keeps its beginning and its last part.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weald_core::id::LandingId;

/// How much is kept from the beginning, and how much from the end.
const FIRST: u64 = 12 << 20;
const LAST: usize = 4 << 20;

/// How many logs are kept, and as many receipts.
const KEPT: usize = 1000;

/// Deletes the oldest files of a folder that only grows.
pub(super) fn keep_newest(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let aged = entries.filter_map(|entry| {
        let found = entry.metadata().ok().filter(Metadata::is_file)?;
        Some((found.modified().ok()?, entry.path()))
    });
    let mut aged: Vec<_> = aged.collect();
    aged.sort();
    let over = aged.len().saturating_sub(KEPT);
    for (_, file) in aged.drain(..over) {
        let _ = fs::remove_file(file);
    }
}

/// The log of a landing's newest gate.
pub(super) fn newest(folder: &Path, landing: LandingId) -> Option<PathBuf> {
    let logs = (1..).map(|number| folder.join(format!("{landing}-{number}.log")));
    logs.take_while(|log| log.is_file()).last()
}

/// A log in the making.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    /// Which run of the landing it is.
    number: u32,
    room: u64,
    most: usize,
    last: VecDeque<u8>,
    dropped: u64,
}

impl Log {
    /// A new log, numbered after those that are there.
    pub(super) fn begin(folder: &Path, name: &str, head: &str) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        keep_newest(folder);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        for number in 1..100_000 {
            let path = folder.join(format!("{name}-{number}.log"));
            match options.open(&path) {
                Ok(mut file) => {
                    file.write_all(head.as_bytes())?;
                    file.write_all(b"\n")?;
                    return Ok(Self {
                        path,
                        file,
                        number,
                        room: FIRST,
                        most: LAST,
                        last: VecDeque::new(),
                        dropped: 0,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("there are too many logs of this landing"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Which run of the landing it is of.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// A line of weald's own.
    pub(super) fn say(&mut self, line: &str) -> io::Result<()> {
        self.take(line.as_bytes())?;
        self.take(b"\n")
    }

    /// Everything that comes out of `from`.
    pub(super) fn take_all(&mut self, mut from: impl Read) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(()),
                read => {
                    // A disk that is full must not block the run.
                    let _ = self.take(&buffer[..read]);
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let now = usize::try_from(self.room).map_or(bytes.len(), |room| room.min(bytes.len()));
        self.room -= now as u64;
        self.last.extend(&bytes[now..]);
        let over = self.last.len().saturating_sub(self.most);
        self.last.drain(..over);
        self.dropped += over as u64;
        self.file.write_all(&bytes[..now])
    }

    /// The end, with what was held back.
    pub(super) fn end(mut self, line: &str) -> io::Result<PathBuf> {
        if self.dropped > 0 {
            let note = format!("\n[weald: {} bytes are left out here]\n", self.dropped);
            self.file.write_all(note.as_bytes())?;
        }
        let (front, back) = self.last.as_slices();
        self.file.write_all(front)?;
        self.file.write_all(back)?;
        self.file.write_all(format!("\n{line}\n").as_bytes())?;
        Ok(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_beginning_and_its_end() {
        let folder = tempfile::tempdir().unwrap();
        for (length, expected) in [
            (10, "head\n\n0123456789\nend\n"),
            (16, "head\n\n0123456789012345\nend\n"),
            (
                30,
                "head\n\n0123456789\n[weald: 14 bytes are left out here]\n456789\nend\n",
            ),
        ] {
            let mut log = Log::begin(folder.path(), "3", "head\n").unwrap();
            (log.room, log.most) = (10, 6);
            let text: String = (0..length).map(|n| char::from(b'0' + n % 10)).collect();
            log.take_all(text.as_bytes()).unwrap();
            let path = log.end("end").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), expected);
        }
        let names = fs::read_dir(folder.path()).unwrap();
        assert_eq!(names.count(), 3, "none is written over");
    }
}
