//! The view of the file system inside: everything as the host has it, read-only; a few private directories; the
//! writable ones as they are.
//!
//! Order matters. Copies of what stays writable are taken before everything is made read-only, and put on top at the end,
//! so no mount ever has to be made writable again. What is revealed comes last, on top of the masks.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;

use crate::home::{self, Home};
use crate::listing;
use crate::mounted::mounts_of;
use crate::policy::{Network, Policy, Revealed};
use crate::sys;

/// Directories that a run has for itself.
pub(crate) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// What of /run programs can't do without: their own files, on systems that keep them there.
const KEPT_OF_RUN: [&str; 3] = [
    "/run/current-system",
    "/run/opengl-driver",
    "/run/systemd/resolve",
];

/// Devices that are no way out.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The message queues of the run's own ipc namespace.
const QUEUES: &str = "/dev/mqueue";

/// What failed, for the message.
pub type Problem = (&'static str, io::Error);

/// Builds the view; answers which directories besides the policy's are writable in it.
pub fn build(policy: &Policy) -> Result<Vec<PathBuf>, Problem> {
    sys::make_mounts_private().map_err(|error| ("mounts", error))?;
    cover_mounts(policy).map_err(|error| ("processes and queues of the host", error))?;
    let home = match home::of(policy) {
        Some(path) => home::mount(policy, path).map_err(|error| ("the home", error))?,
        None => None,
    };
    let mut inner = home.as_ref().map_or_else(Vec::new, home::inner_mounts);
    // What is mounted below the home comes back on top of it, but for what is hidden.
    inner.retain(|path| {
        !path
            .ancestors()
            .any(|it| policy.hidden.iter().any(|hidden| hidden == it))
    });
    let inner_mounts = inner.clone();
    let inner = copies(&inner).map_err(|error| ("the home", error))?;
    let shown = copies(&shown(policy)).map_err(|error| ("the directories shown", error))?;
    let on_top = copies(&policy.write).map_err(|error| ("the writable directories", error))?;
    let revealed = copies(&paths(&policy.reveal)).map_err(|error| ("what is revealed", error))?;
    let devices = copies(&devices(policy)).map_err(|error| ("/dev", error))?;
    sys::set_mount_attributes(Path::new("/"), sys::READ_ONLY, true)
        .map_err(|error| ("the read-only view", error))?;
    mount_proc().map_err(|error| ("/proc", error))?;
    mount_devices(policy, &devices).map_err(|error| ("/dev", error))?;
    let mut writable: Vec<PathBuf> = vec!["/dev/shm".into(), QUEUES.into()];
    for path in PRIVATE {
        if Path::new(path).is_dir() && !Path::new(path).is_symlink() {
            mount_private(Path::new(path), policy)
                .map_err(|error| ("private directories", error))?;
            writable.push(path.into());
        }
    }
    // What holds the home comes before it, and what lies in it on top.
    let (around, within): (Vec<_>, Vec<_>) = shown.iter().partition(|(path, _)| {
        let is_around = |home: &Home| home.path().starts_with(path);
        home.as_ref().is_some_and(is_around)
    });
    for (path, mount) in around {
        put_on_top(path, mount, Access::Read).map_err(|error| ("the directories shown", error))?;
    }
    if let Some(home) = &home {
        home.attach().map_err(|error| ("the home", error))?;
        writable.extend(home.writable());
    }
    for (path, mount) in inner.iter().chain(within) {
        put_on_top(path, mount, Access::Read).map_err(|error| ("the directories shown", error))?;
    }
    let access = if policy.read_only {
        Access::Read
    } else {
        Access::Write
    };
    for (path, mount) in &on_top {
        put_on_top(path, mount, access).map_err(|error| ("the writable directories", error))?;
    }
    listing::hide(policy, home.as_ref(), &inner_mounts)
        .map_err(|error| ("what is hidden", error))?;
    // Late, so that nothing is put on top of a mask but what this run alone may see.
    for path in outermost(&policy.mask) {
        pin_ancestors(path, policy).map_err(|error| ("masks", error))?;
        mask(path, policy, &policy.reveal).map_err(|error| ("masks", error))?;
    }
    for (path, mount) in &revealed {
        let writes = policy
            .reveal
            .iter()
            .any(|it| it.path == *path && it.writable);
        let access = if writes { Access::Write } else { Access::Read };
        put_on_top(path, mount, access).map_err(|error| ("what is revealed", error))?;
    }
    if policy.network == Network::Allow {
        mount_names().map_err(|error| ("the network by name", error))?;
    }
    Ok(writable)
}

/// What a mount on top is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// What stays visible below directories that are private inside.
fn shown(policy: &Policy) -> Vec<PathBuf> {
    let kept = KEPT_OF_RUN
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.exists());
    kept.chain(policy.show.iter().cloned()).collect()
}

fn paths(revealed: &[Revealed]) -> Vec<PathBuf> {
    revealed.iter().map(|it| it.path.clone()).collect()
}

/// Masks that no other mask covers.
fn outermost(masks: &[PathBuf]) -> Vec<&PathBuf> {
    let covered = |path: &&PathBuf| {
        masks
            .iter()
            .any(|other| other != *path && path.starts_with(other) && other.is_dir())
    };
    masks.iter().filter(|path| !covered(path)).collect()
}

/// Copies of mounts with where they belong; outer directories come first.
fn copies(paths: &[PathBuf]) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let mut paths = paths.to_vec();
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .map(|path| sys::clone_mount(&path).map(|copy| (path, copy)))
        .collect()
}

fn put_on_top(path: &Path, mount: &OwnedFd, access: Access) -> io::Result<()> {
    // Below a private directory its place has to be made first.
    if !path.exists() {
        make_place(path, mount)?;
    }
    sys::attach_mount(mount, path)?;
    match access {
        Access::Read => sys::set_mount_attributes(path, sys::READ_ONLY, true),
        Access::Write => sys::set_mount_attributes(path, sys::PRIVILEGE_FREE, true),
    }
}

fn make_place(path: &Path, mount: &OwnedFd) -> io::Result<()> {
    if fs::File::from(mount.try_clone()?).metadata()?.is_dir() {
        return fs::create_dir_all(path);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, "")
}

/// Hides queues and processes of the host wherever they are mounted: taking a message needs no more than reading, and a
/// second /proc, as chroots have it, lists every process. The run gets a /proc of its own in the usual place.
fn cover_mounts(policy: &Policy) -> io::Result<()> {
    const QUEUES_MAGIC: i64 = 0x1980_0202;
    const PROCESSES_MAGIC: i64 = 0x9fa0;
    for path in mounts_of(&["mqueue", "proc"]) {
        // Something else may be mounted on top.
        let found = rustix::fs::statfs(&path).map_or(0, |found| found.f_type);
        let is_own = path.starts_with("/proc");
        if found == QUEUES_MAGIC || (found == PROCESSES_MAGIC && !is_own) {
            mask(&path, policy, &[])?;
        }
    }
    Ok(())
}

fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    sys::mount("proc", Path::new("/proc"), flags, "")?;
    // Not even /proc/sys of a root's run can be written.
    sys::set_mount_attributes(Path::new("/proc"), sys::READ_ONLY, false)
}

/// The devices that a run has.
fn devices(policy: &Policy) -> Vec<PathBuf> {
    let usual = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    usual.chain(policy.devices.iter().cloned()).collect()
}

fn mount_devices(policy: &Policy, devices: &[(PathBuf, OwnedFd)]) -> io::Result<()> {
    sys::mount(
        "tmpfs",
        Path::new("/dev"),
        MountFlags::NOSUID | MountFlags::NOEXEC,
        "mode=755,size=64k",
    )?;
    for (path, device) in devices {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, "")?;
        sys::attach_mount(device, path)?;
        sys::set_mount_attributes(path, sys::DEVICE, false)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, Path::new("/dev").join(name))?;
    }
    fs::create_dir("/dev/pts")?;
    sys::mount(
        "devpts",
        Path::new("/dev/pts"),
        MountFlags::NOSUID | MountFlags::NOEXEC,
        "newinstance,ptmxmode=0666,mode=620",
    )?;
    // Kernels without message queues have no such file system.
    let queues = Path::new(QUEUES);
    fs::create_dir(queues)?;
    let _ = sys::mount(
        "mqueue",
        queues,
        MountFlags::NOSUID | MountFlags::NOEXEC,
        "",
    );
    fs::create_dir("/dev/shm")?;
    mount_private(Path::new("/dev/shm"), policy)
}

/// Has programs ask the run's own resolver, and for nothing in the host's list of names: its addresses are not reached.
fn mount_names() -> io::Result<()> {
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let hosts = format!(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.0.1 {}\n",
        own.trim()
    );
    let resolver = "nameserver 127.0.0.1\n".to_owned();
    for (path, text) in [("/etc/resolv.conf", resolver), ("/etc/hosts", hosts)] {
        // Without such a file programs ask this machine anyway.
        let Ok(place) = Path::new(path).canonicalize() else {
            continue;
        };
        let file = Path::new("/dev/shm/.names");
        fs::write(file, text)?;
        let mount = sys::clone_mount(file)?;
        sys::attach_mount(&mount, &place)?;
        sys::set_mount_attributes(&place, sys::READ_ONLY, false)?;
        fs::remove_file(file)?;
    }
    Ok(())
}

fn mount_private(path: &Path, policy: &Policy) -> io::Result<()> {
    let size = policy
        .limits
        .tmp
        .map_or_else(String::new, |size| format!(",size={size}"));
    sys::mount(
        "tmpfs",
        path,
        MountFlags::NOSUID | MountFlags::NODEV,
        &format!("mode=1777{size}"),
    )
}

/// Makes the way to a mask inside a writable directory a chain of mounts: a mount point can't be renamed, so the mask can't
/// be moved out of its place for the next run.
pub(crate) fn pin_ancestors(path: &Path, policy: &Policy) -> io::Result<()> {
    let Some(root) = policy.write.iter().find(|root| path.starts_with(root)) else {
        return Ok(());
    };
    let mut between: Vec<_> = path
        .ancestors()
        .skip(1)
        .take_while(|ancestor| ancestor != root && ancestor.starts_with(root))
        .collect();
    between.reverse();
    for ancestor in between {
        if ancestor.is_dir() && !ancestor.is_symlink() {
            sys::attach_mount(&sys::clone_mount(ancestor)?, ancestor)?;
        }
    }
    Ok(())
}

/// Whether something that an earlier run left in its layer of the home stands in the way of a path: what the host has behind
/// that name is not seen then. The path is one without links on the host.
fn is_shadowed(path: &Path, policy: &Policy) -> bool {
    let in_layer = policy.home_layer.is_some()
        && home::of(policy).is_some_and(|home| path.starts_with(home))
        && !policy.write.iter().any(|write| path.starts_with(write));
    let leads_elsewhere = || path.canonicalize().is_ok_and(|real| real != path);
    in_layer && (path.is_symlink() || leads_elsewhere())
}

/// Hides what is at a path. Below a mask there is nothing but the places of what is revealed, and those can't be listed.
pub(crate) fn mask(path: &Path, policy: &Policy, revealed: &[Revealed]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) if is_shadowed(path, policy) => Ok(()),
        Ok(found) if found.is_dir() => {
            let below: Vec<_> = revealed
                .iter()
                .filter(|it| it.path.starts_with(path))
                .collect();
            let mode = if below.is_empty() { "000" } else { "111" };
            sys::mount(
                "tmpfs",
                path,
                MountFlags::NOSUID | MountFlags::NODEV,
                &format!("mode={mode},size=4k"),
            )?;
            for it in below {
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o111)
                    .create(&it.path)?;
            }
            sys::set_mount_attributes(path, sys::READ_ONLY, false)
        }
        Ok(found) if !found.is_symlink() => {
            sys::attach_mount(&sys::clone_mount(Path::new("/dev/null"))?, path)
        }
        Ok(_) => Err(io::Error::other(format!("{} is a link", path.display()))),
        // What is not there, in a folder that this user may not enter, or below a file can't be seen either.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}
