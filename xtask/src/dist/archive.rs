//! Archives as packages need them: `tar` in the plain form that every version reads, and `ar`.
//!
//! The same files give the same bytes: owner root, one time for all, and the order in which they were added.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// A tape archive in the making.
pub struct Tar {
    bytes: Vec<u8>,
    seconds: u64,
}

/// What an entry is.
enum Kind<'a> {
    File(&'a [u8]),
    Folder,
    Link(&'a str),
}

impl Tar {
    /// An empty one whose entries were all changed at that time.
    pub fn at(seconds: u64) -> Self {
        Self {
            bytes: Vec::new(),
            seconds,
        }
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(path, mode, &Kind::File(content))
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: &str) -> io::Result<()> {
        self.entry(path, 0o755, &Kind::Folder)
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.entry(path, 0o777, &Kind::Link(target))
    }

    /// The archive, compressed.
    pub fn gzip(mut self) -> io::Result<Vec<u8>> {
        self.bytes.extend([0; 1024]);
        gzip(&self.bytes)
    }

    fn entry(&mut self, path: &str, mode: u32, kind: &Kind<'_>) -> io::Result<()> {
        let (sign, content, target) = match kind {
            Kind::File(content) => (b'0', *content, ""),
            Kind::Folder => (b'5', &[][..], ""),
            Kind::Link(target) => (b'2', &[][..], *target),
        };
        if path.len() >= 100 || target.len() >= 100 {
            return Err(io::Error::other(format!("{path} is too long for tar")));
        }
        let mut header = [0u8; 512];
        let mut put = |at: usize, text: &str| {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, path);
        put(100, &format!("{mode:07o}"));
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{:011o}", content.len()));
        put(136, &format!("{:011o}", self.seconds));
        // The sum counts its own field as spaces.
        put(148, "        ");
        put(157, target);
        put(257, "ustar\x0000root");
        put(297, "root");
        header[156] = sign;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(header);
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        Ok(())
    }
}

/// An `ar` archive, as a `.deb` is one.
pub fn ar(seconds: u64, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let size = content.len();
        bytes.extend(
            format!(
                "{name:<16}{seconds:<12}{0:<6}{0:<6}100644  {size:<10}`\n",
                0
            )
            .bytes(),
        );
        bytes.extend(*content);
        if !size.is_multiple_of(2) {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Compresses with the system's gzip, without name and time.
pub fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a library for this alone would be one more to build"
    )]
    let mut gzip = Command::new("gzip");
    gzip.arg("-9n").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut gzip = gzip
        .spawn()
        .map_err(|error| io::Error::other(format!("gzip: {error}")))?;
    let mut stdin = gzip.stdin.take().expect("it is a pipe");
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || stdin.write_all(bytes));
        let output = gzip.wait_with_output();
        writer.join().expect("writing does not panic")?;
        output
    })?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other("gzip failed")),
    }
}
