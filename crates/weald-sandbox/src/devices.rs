//! Devices of the host that a user lets runs use.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::{SandboxError, refused};

/// Where the memory, the log and the terminals of the host are.
const NEVER: [&str; 8] = [
    "mem", "kmem", "port", "kmsg", "console", "ptmx", "pts", "shm",
];

/// The listed devices that this machine has. What is no character device, or leads out of every sandbox, is refused.
pub fn usable(listed: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
    let mut found = Vec::new();
    for path in listed {
        let Ok(path) = path.canonicalize() else {
            continue;
        };
        let Ok(name) = path.strip_prefix("/dev") else {
            return refused(&path, "a device lies below /dev");
        };
        let first = name.iter().next().and_then(|name| name.to_str());
        if first.is_none_or(|name| NEVER.contains(&name) || name.starts_with("tty")) {
            return refused(
                &path,
                "runs never get the memory, the log or a terminal of the host",
            );
        }
        if !is_character_device(&path) {
            return refused(
                &path,
                "only a character device can be listed in sandbox.devices",
            );
        }
        found.push(path);
    }
    Ok(found)
}

fn is_character_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::usable;

    #[test]
    fn only_character_devices_that_are_no_way_out_are_usable() {
        let of = |path: &str| usable(&[PathBuf::from(path)]);
        assert_eq!(of("/dev/null").unwrap(), [PathBuf::from("/dev/null")]);
        assert!(of("/dev/nosuch").unwrap().is_empty());
        for path in ["/etc/passwd", "/dev/tty", "/dev/ptmx", "/dev/shm", "/dev"] {
            assert!(of(path).is_err(), "{path}");
        }
    }
}
