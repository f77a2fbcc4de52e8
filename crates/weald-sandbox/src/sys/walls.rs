//! Landlock, capabilities, seccomp.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::{check, check_int, prctl};

/// The kernel's ABI of Landlock; 0 when it has none or it is switched off.
pub fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel takes no structure.
    let found = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0usize,
            VERSION,
        )
    };
    check(found).map_or(0, |abi| abi as u32)
}

/// What a ruleset handles. The kernel takes the fields its ABI knows.
#[repr(C)]
pub struct RulesetAttributes {
    pub handled_fs: u64,
    /// Rights on ports (ABI 4).
    pub handled_net: u64,
    /// What can't leave the domain (ABI 6).
    pub scoped: u64,
}

pub fn landlock_ruleset(attributes: &RulesetAttributes, abi: u32) -> io::Result<OwnedFd> {
    let size: usize = match abi {
        0..=3 => 8,
        4..=5 => 16,
        _ => size_of::<RulesetAttributes>(),
    };
    // SAFETY: the structure outlives the call, and `size` is not more than its size.
    unsafe {
        let fd = check(libc::syscall(
            libc::SYS_landlock_create_ruleset,
            attributes,
            size,
            0u32,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: RawFd,
}

/// Allows rights below a directory (or on a file).
pub fn landlock_allow(ruleset: &OwnedFd, path: &impl AsRawFd, allowed: u64) -> io::Result<()> {
    const PATH_BENEATH: libc::c_uint = 1;
    let rule = PathBeneath {
        allowed,
        parent: path.as_raw_fd(),
    };
    // SAFETY: the structure outlives the call and has the kernel's packed layout.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &rule,
            0u32,
        )
    })
    .map(drop)
}

/// Enters the domain of a ruleset, for ever.
pub fn landlock_restrict(ruleset: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) })
        .map(drop)
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// Gives up every capability, in every set.
pub fn drop_capabilities() -> io::Result<()> {
    drop_bounding_set()?;
    // SAFETY: the option takes numbers.
    check_int(unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        )
    })?;
    let header = capability_header();
    let none = [0u32; 6];
    // SAFETY: version 3 takes two sets of three words; both outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &header, none.as_ptr()) }).map(drop)
}

fn capability_header() -> CapabilityHeader {
    CapabilityHeader {
        version: 0x2008_0522,
        pid: 0,
    }
}

/// Takes every capability out of the bounding set. Who may not do that has none, and can't gain any: no new privileges
/// were given up before.
fn drop_bounding_set() -> io::Result<()> {
    const SETPCAP: u32 = 1 << 8;
    let header = capability_header();
    let mut held = [0u32; 6];
    // SAFETY: version 3 fills two sets of three words; both outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capget, &header, held.as_mut_ptr()) })?;
    for capability in 0..=u64::from(u32::MAX) {
        // SAFETY: the option takes numbers.
        match check_int(unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) }) {
            Ok(0) => continue,
            Ok(_) => {}
            // Above the last one that the kernel knows.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
            Err(error) => return Err(error),
        }
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Err(error) if held[0] & SETPCAP != 0 => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// One instruction of a filter.
pub type Instruction = libc::sock_filter;

/// Installs a filter; with `listen` the kernel asks the returned descriptor about calls that the filter passes on.
pub fn install_filter(program: &[Instruction], listen: bool) -> io::Result<Option<OwnedFd>> {
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // A signal (the Go runtime sends many) must not restart a connect that the launcher is making already.
    const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
    let flags = if listen {
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE
    } else {
        0
    };
    // SAFETY: the program outlives the call and its length is passed with it; the kernel only reads it.
    unsafe {
        let result = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &filter,
        );
        let fd = check(result)?;
        Ok(listen.then(|| OwnedFd::from_raw_fd(fd as RawFd)))
    }
}

/// Brings the loopback interface of a new network namespace up.
pub fn loopback_up() -> io::Result<()> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the request names the interface and is zeroed elsewhere; it outlives the call.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check_int(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &request,
        ))
        .map(drop)
    }
}
