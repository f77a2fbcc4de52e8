//! What a native attempt finds around it, and what a field has to put there under the same names.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A name and what it tries.
pub type NativeAttempt = (&'static str, fn() -> io::Result<()>);

/// Where the inherited descriptors of an attempt are: a file outside, and a directory outside.
pub const INHERITED_FILE: i32 = 18;
pub const INHERITED_DIRECTORY: i32 = 19;

/// The name of the POSIX queue.
pub fn queue_name(key: i64) -> CString {
    CString::new(format!("/weald-field-{key}")).unwrap_or_default()
}

/// The name of the field's abstract socket.
pub fn abstract_name(root: &Path) -> Vec<u8> {
    format!("weald-field-{}", root.display()).into_bytes()
}

/// A new directory outside of what is private inside.
pub fn fresh_root() -> io::Result<PathBuf> {
    let base = std::env::current_exe()?
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let places = [base, PathBuf::from("/var/lib"), std::env::current_dir()?];
    for place in places {
        for number in 0..1_000 {
            let root = place.join(format!(".weald-field-{}-{number}", std::process::id()));
            match fs::create_dir(&root) {
                Ok(()) => return root.canonicalize(),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => break,
            }
        }
    }
    Err(io::Error::other(
        "no writable directory outside of /tmp for the field",
    ))
}

pub fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "the sandbox launcher starts processes"
    )]
    Command::new(program)
}

/// A variable of the field.
pub fn variable(name: &str) -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "an attempt is told where it is by variables"
    )]
    std::env::var_os(name)
        .map(PathBuf::from)
        .unwrap_or_default()
}

pub fn outside(name: &str) -> PathBuf {
    variable("OUT").join(name)
}

/// A file outside as the kernel takes its name.
pub fn outside_c(name: &str) -> CString {
    CString::new(outside(name).into_os_string().into_vec()).unwrap_or_default()
}

pub fn victim() -> libc::pid_t {
    variable("VICTIM").to_string_lossy().parse().unwrap_or(0)
}

/// The result of a call that answers -1 when it fails.
pub fn check(result: impl Into<i64>) -> io::Result<()> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A descriptor that a raw call answered.
pub fn opened(result: i64) -> io::Result<OwnedFd> {
    check(result)?;
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}
