//! Landlock, capabilities, seccomp.

use std::io;
use std::mem::size_of;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::{check, check_int};

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

/// Gives up every capability, in every set.
pub fn drop_capabilities() -> io::Result<()> {
    drop_bounding_set()?;
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, none)?)
}

/// Takes every capability out of the bounding set. Who may not do that has none, and can't gain any: no new privileges
/// were given up before.
fn drop_bounding_set() -> io::Result<()> {
    let held = rustix::thread::capabilities(None)?.effective;
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::capability_is_in_bounding_set(capability) {
            Ok(false) => continue,
            Ok(true) => {}
            // Above the last one that the kernel knows.
            Err(Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Err(error) if held.contains(CapabilitySet::SETPCAP) => return Err(error.into()),
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
    let mut request = interface_request("lo");
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request outlives the call.
    check_int(unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as libc::Ioctl,
            &request,
        )
    })
    .map(drop)
}

/// Gives the loopback interface one more address. All of its network is local then.
pub fn add_loopback_address(address: Ipv4Addr, mask: Ipv4Addr) -> io::Result<()> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    for (call, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        // Beside the first one, not in its place.
        let mut request = interface_request("lo:1");
        let mut bytes = [0; 14];
        bytes[2..6].copy_from_slice(&value.octets().map(|byte| byte as libc::c_char));
        request.ifr_ifru.ifru_addr = libc::sockaddr {
            sa_family: libc::AF_INET as libc::sa_family_t,
            sa_data: bytes,
        };
        // SAFETY: the request outlives the call.
        check_int(unsafe { libc::ioctl(socket.as_raw_fd(), call as libc::Ioctl, &request) })?;
    }
    Ok(())
}

fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: all of it are plain numbers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}
