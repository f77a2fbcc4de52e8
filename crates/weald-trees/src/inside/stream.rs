//! What fast-import reads: the files of a snapshot, up to its limits.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{SnapshotLimits, read_capped};

/// A stream for fast-import in the making.
pub(super) struct Stream {
    pub text: Vec<u8>,
    limits: SnapshotLimits,
    pub left_out: Vec<String>,
}

impl Stream {
    pub fn new(limits: SnapshotLimits) -> Self {
        Self {
            text: Vec::new(),
            limits,
            left_out: Vec::new(),
        }
    }

    /// Takes a path that differs from HEAD, as it is now.
    pub fn take(&mut self, root: &Path, path: &[u8]) -> io::Result<()> {
        let full = root.join(OsStr::from_bytes(path));
        let name = [b"files/", path].concat();
        let name = name.strip_suffix(b"/").unwrap_or(&name).to_vec();
        let Ok(found) = full.symlink_metadata() else {
            self.text.extend_from_slice(b"D ");
            quoted(&mut self.text, &name);
            self.text.push(b'\n');
            return Ok(());
        };
        if found.is_dir() {
            return Ok(());
        }
        let room = self.limits.all.saturating_sub(self.text.len() as u64);
        if found.is_symlink() {
            return self.inline(
                "120000",
                &name,
                fs::read_link(&full)?.as_os_str().as_bytes(),
            );
        }
        if !found.is_file() || found.len() > self.limits.file.min(room) {
            return self.leave_out(path);
        }
        let mode = if found.permissions().mode() & 0o111 != 0 {
            "100755"
        } else {
            "100644"
        };
        match read_capped(&full, self.limits.file) {
            Some(content) => self.inline(mode, &name, &content),
            None => self.leave_out(path),
        }
    }

    fn leave_out(&mut self, path: &[u8]) -> io::Result<()> {
        self.left_out
            .push(String::from_utf8_lossy(path).into_owned());
        Ok(())
    }

    /// A file with this content.
    pub fn inline(&mut self, mode: &str, name: &[u8], content: &[u8]) -> io::Result<()> {
        write!(self.text, "M {mode} inline ")?;
        quoted(&mut self.text, name);
        write!(self.text, "\ndata {}\n", content.len())?;
        self.text.extend_from_slice(content);
        self.text.push(b'\n');
        Ok(())
    }
}

/// A path in quotes, as git reads them.
pub fn quoted(text: &mut Vec<u8>, path: &[u8]) {
    text.push(b'"');
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => text.push(*byte),
            other => text.extend_from_slice(format!("\\{other:03o}").as_bytes()),
        }
    }
    text.push(b'"');
}
