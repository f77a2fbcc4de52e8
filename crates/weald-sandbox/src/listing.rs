//! Hiding what lies outside of the home: the directories on the way to it get a fixed list of entries.
//!
//! A mount over the hidden path alone would not do: when the host replaces the file, or makes it later, the new one would be
//! seen. So every directory on the way becomes a list that holds each entry of now but the hidden one. What the host adds to
//! such a directory while a run goes on is not seen, and what it replaces there is seen as it was.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;

use crate::home::Home;
use crate::policy::Policy;
use crate::sys;
use crate::view;

/// Directories with more entries can't be listed: the kernel has a bound on mounts, too.
const MANY: usize = 20_000;

/// Where a list is put together. The run's own directory there is free again when it is moved.
const WORKBENCH: &str = "/dev/shm";

/// Places that the kernel fills.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Hides everything that the home does not hide by itself.
/// `inner` are mounts that lie in the home, on top of its layer.
pub fn hide(policy: &Policy, home: Option<&Home>, inner: &[PathBuf]) -> io::Result<()> {
    // Every entry of a listed directory is looked up.
    let hidden: HashSet<&Path> = policy.hidden.iter().map(PathBuf::as_path).collect();
    let mut lists: BTreeSet<&Path> = BTreeSet::new();
    let mut covered = Vec::new();
    for path in &policy.hidden {
        match way_to(path, policy, home, inner) {
            Way::Unseen => {}
            Way::Covered => covered.push(path),
            Way::Listed(way) => lists.extend(way),
        }
    }
    // Outer ones come first.
    for directory in lists {
        if !fix(directory, policy, &hidden)? {
            let below = policy.hidden.iter();
            covered.extend(below.filter(|path| path.parent() == Some(directory)));
        }
    }
    for path in covered {
        view::pin_ancestors(path, policy)?;
        view::mask(path, policy, &[])?;
    }
    Ok(())
}

/// How a path is hidden.
enum Way<'p> {
    /// It can't be seen anyway.
    Unseen,
    /// By a mask on it: what is around it can be written, or is the kernel's.
    Covered,
    /// By fixed lists of these directories.
    Listed(Vec<&'p Path>),
}

fn way_to<'p>(path: &'p Path, policy: &Policy, home: Option<&Home>, inner: &[PathBuf]) -> Way<'p> {
    let holds = |it: &&PathBuf| path.starts_with(it);
    if policy.write.iter().any(|it| holds(&it)) || KERNEL.iter().any(|it| path.starts_with(it)) {
        return Way::Covered;
    }
    let shown = policy.show.iter().chain(inner);
    let top = shown.filter(holds).max_by_key(|it| it.as_os_str().len());
    let is_private = view::PRIVATE.iter().any(|it| path.starts_with(it));
    let in_home = home.is_some_and(|home| home.holds(path));
    match top {
        None if is_private || in_home => Way::Unseen,
        Some(top) if in_home && !home.is_some_and(|home| home.holds(top)) => Way::Unseen,
        _ => {
            let ancestors = path.ancestors().skip(1);
            let lowest = top.map_or(Path::new("/"), PathBuf::as_path);
            let inside = ancestors
                .take_while(|it| it.starts_with(lowest) && it.parent().is_some())
                .filter(|it| it.is_dir() && !it.is_symlink());
            let inside: Vec<_> = inside.collect();
            match inside.is_empty() {
                // An entry of the root directory itself.
                true => Way::Covered,
                false => Way::Listed(inside),
            }
        }
    }
}

fn too_many(directory: &Path, policy: &Policy) -> io::Error {
    let mut hidden = policy.hidden.iter();
    let hidden = hidden.find(|path| path.starts_with(directory));
    io::Error::other(format!(
        "{} can't be hidden, because {} has more than {MANY} entries; move it into a folder of its own",
        hidden.map_or(directory, PathBuf::as_path).display(),
        directory.display()
    ))
}

/// Gives a directory a fixed list of its entries; false where it can't be listed. One with too many is an error: a cover
/// alone would not hold when the host replaces what it hides.
fn fix(directory: &Path, policy: &Policy, hidden: &HashSet<&Path>) -> io::Result<bool> {
    let Ok(found) = fs::read_dir(directory) else {
        return Ok(false);
    };
    let mut entries = Vec::new();
    for entry in found {
        let path = entry?.path();
        // A mask lies on some, on which lies what the run may see of it.
        let is_masked = || policy.mask.contains(&path) && path.is_dir();
        if !hidden.contains(path.as_path()) {
            entries.push((path, false));
        } else if is_masked() {
            entries.push((path, true));
        }
        if entries.len() > MANY {
            return Err(too_many(directory, policy));
        }
    }
    // Put together elsewhere, one entry at a time: there may be more of them than files that this process may open.
    let mode = directory.metadata()?.mode() & 0o7777;
    let (bench, flags) = (Path::new(WORKBENCH), MountFlags::NOSUID | MountFlags::NODEV);
    sys::mount("tmpfs", bench, flags, &format!("mode={mode:o}"))?;
    for (path, is_masked) in entries {
        let place = bench.join(path.file_name().unwrap_or_default());
        match is_masked {
            true => fs::create_dir(place)?,
            false => show(&path, &place)?,
        }
    }
    sys::set_mount_attributes(bench, sys::READ_ONLY, false)?;
    rustix::mount::mount_move(WORKBENCH, directory)?;
    Ok(true)
}

/// Puts what is at a path in another place, unless it has gone meanwhile.
fn show(path: &Path, place: &Path) -> io::Result<()> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if found.is_symlink() {
        return match fs::read_link(path) {
            Err(error) if is_gone(&error) => Ok(()),
            target => symlink(target?, place),
        };
    }
    let mount = match sys::clone_mount(path) {
        Err(error) if is_gone(&error) => return Ok(()),
        mount => mount?,
    };
    match found.is_dir() {
        true => fs::create_dir(place)?,
        false => fs::write(place, "")?,
    }
    sys::attach_mount(&mount, place)
}
