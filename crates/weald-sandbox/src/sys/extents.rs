//! Where a file's bytes lie on its disk, and which of them other files have, too.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check_int;

const GET: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
const LAST: u32 = 0x1;
const SHARED: u32 = 0x2000;

/// How many extents one call lists.
const BATCH: usize = 64;

/// How many are asked for; a file in more pieces is counted as far as that.
const MOST: usize = 16_384;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more: [u32; 3],
}

#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// The parts of the disk that a file shares with others, as place and length; an error where the file system does not say.
pub fn shared_extents(file: BorrowedFd<'_>) -> io::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let (mut start, mut seen) = (0, 0);
    while seen < MOST {
        let mut map = Map {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            count: BATCH as u32,
            reserved: 0,
            extents: [Extent::default(); BATCH],
        };
        // SAFETY: the kernel writes at most `count` extents into the structure, which has room for them and outlives the call.
        check_int(unsafe { libc::ioctl(file.as_raw_fd(), GET, &raw mut map) })?;
        let mapped = (map.mapped as usize).min(BATCH);
        let Some(last) = mapped.checked_sub(1).map(|last| map.extents[last]) else {
            break;
        };
        let shared = map.extents[..mapped].iter();
        let shared = shared.filter(|extent| extent.flags & SHARED != 0);
        found.extend(shared.map(|extent| (extent.physical, extent.length)));
        seen += mapped;
        start = last.logical.saturating_add(last.length.max(1));
        if last.flags & LAST != 0 {
            break;
        }
    }
    Ok(found)
}
