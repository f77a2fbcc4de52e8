//! Who the user is, by the system's own records.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{mem, ptr};

/// Room for the longest record.
const ROOM: usize = 1 << 16;

/// The home of the user that this process runs as, whatever the environment says.
pub fn home_of_user() -> Option<PathBuf> {
    let mut room: Vec<libc::c_char> = vec![0; ROOM];
    let mut found = ptr::null_mut();
    // SAFETY: the record is plain data; it and the room outlive the call and the use of what it points to.
    let home = unsafe {
        let mut record: libc::passwd = mem::zeroed();
        let user = libc::geteuid();
        let code = libc::getpwuid_r(user, &mut record, room.as_mut_ptr(), ROOM, &mut found);
        if code != 0 || found.is_null() || record.pw_dir.is_null() {
            return None;
        }
        CStr::from_ptr(record.pw_dir).to_bytes().to_vec()
    };
    let home = PathBuf::from(OsStr::from_bytes(&home));
    home.is_absolute().then_some(home)
}
