//! The home inside: the user's own, through an overlay. What is written stays in a private layer, and what is hidden is not
//! there.
//!
//! Two things hide a path. By name: a small layer above the user's home has a whiteout for it, so nothing that the host puts
//! there later shows through. By file: the overlay reads the user's home with the rights of the thread that made it, and that
//! thread confined itself by Landlock to everything *but* the hidden paths. So a hidden folder that the host moves or renames
//! while a run goes on stays unreadable. The price: an entry that the host adds next to a hidden one is unreadable until the
//! next run. Small files next to a hidden one (`~/.gitconfig`) are copied into the layer, so that programs which replace
//! them on the host do not break the run.
//!
//! One mount serves any home; a mount for each entry would cost 0.3 ms each. Main and the worktree are real mounts on
//! top, because an overlay shows a stale main.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags};

use crate::landlock;
use crate::mounted::{mount_points, other_ways};
use crate::policy::{Level, Policy};
use crate::sys::{self, OverlayLayers};

/// Where the small layer is put together. The overlay keeps it; the place is free again when it is made.
const WORKBENCH: &str = "/dev";

/// The largest file that is copied instead of shown, and how much is copied in all: it takes memory for each run.
const COPIED: u64 = 1 << 20;
const ALL_COPIED: u64 = 8 << 20;

/// How many entries of a folder are looked at, how many folders of each hidden path and how deep, and how many links in all
/// are followed.
const ENTRIES: usize = 1024;
const FOLDERS: usize = 128;
const LEVELS: usize = 4;
const LINKS: usize = 256;

/// Folders of the system, in which nobody keeps secrets behind links.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/gnu", "/lib", "/lib64", "/nix", "/opt", "/proc", "/sbin",
    "/sys", "/usr",
];

/// Homes that are directories of the system: those stay as they are, read-only.
const NOT_HOMES: [&str; 12] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/sbin", "/sys", "/usr", "/var",
];

/// The home as a run sees it.
pub struct Home {
    path: PathBuf,
    mount: OwnedFd,
    is_writable: bool,
}

impl Home {
    /// Puts it in its place.
    pub fn attach(&self) -> io::Result<()> {
        // Below a private directory (a home in /tmp) its place has to be made first.
        fs::create_dir_all(&self.path)?;
        sys::attach_mount(&self.mount, &self.path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is, if it can be written.
    pub fn writable(&self) -> Option<PathBuf> {
        self.is_writable.then(|| self.path.clone())
    }

    /// Whether it hides a path by itself.
    pub fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.path) && path != self.path
    }
}

/// A file system that is mounted below the home of a run at level full. Then the home is read-only inside: a mount covers
/// what is below it, and the kernel makes no overlay through which an ordinary user could see that.
pub fn mount_below_home(policy: &Policy) -> Option<PathBuf> {
    let home = policy.home.as_ref()?.canonicalize().ok()?;
    let found = mount_points().find(|point| point.starts_with(&home) && *point != home);
    found.filter(|_| policy.level == Level::Full)
}

/// File systems that are mounted below the home: an overlay does not show them.
pub fn inner_mounts(home: &Home) -> Vec<PathBuf> {
    mount_points().filter(|point| home.holds(point)).collect()
}

/// What the launcher finds out about hidden paths and the layer, before anything is confined.
pub fn resolve(policy: &mut Policy) {
    // Both by the name that was given and by where it leads: either could be replaced.
    let named = policy.hidden.iter().map(|path| in_real_folder(path));
    let leads_to = policy
        .hidden
        .iter()
        .filter_map(|path| path.canonicalize().ok());
    let mut hidden: Vec<_> = named.chain(leads_to).collect();
    hidden.extend(behind_links(policy, &hidden));
    // What holds a directory to be written can't be meant.
    let is_written = |way: &PathBuf| policy.write.iter().any(|path| path.starts_with(way));
    let mut ways = other_ways(&hidden);
    ways.retain(|way| !is_written(way));
    hidden.extend(ways);
    let mut ways = other_ways(&policy.mask);
    ways.retain(|way| !is_written(way));
    policy.mask.extend(ways);
    policy.hidden = hidden;
    policy.hidden.sort();
    policy.hidden.dedup();
    // Where none can be made (a service without a home of its own) the home can be read, and nothing more.
    policy.home_layer = policy
        .home_layer
        .as_deref()
        .and_then(|layer| made_layer(layer).ok());
}

/// Where links in hidden folders lead: programs that manage settings keep the files themselves elsewhere. What the run needs
/// or the system owns stays.
fn behind_links(policy: &Policy, hidden: &[PathBuf]) -> Vec<PathBuf> {
    // In weald's own folders lies what runs wrote, who must not choose what others don't see.
    let own = hidden.iter().filter(|path| is_welds(path));
    let own: BTreeSet<_> = own.filter_map(|path| path.canonicalize().ok()).collect();
    let links = hidden.iter().flat_map(|path| links_in(path, &own));
    let targets = links.filter_map(|link| link.canonicalize().ok());
    let needed = policy.write.iter().chain(&policy.show).chain(&policy.home);
    let needed: Vec<_> = needed.collect();
    let wanted = targets.filter(|target| {
        let is_systems = SYSTEM.iter().any(|folder| target.starts_with(folder));
        !is_systems && !needed.iter().any(|path| path.starts_with(target))
    });
    wanted.take(LINKS).collect()
}

/// The state folder, or that of the layers.
fn is_welds(path: &Path) -> bool {
    path.ends_with("weald") || path.ends_with("weald/layers")
}

/// Links in a folder and in the folders in it, the nearest first. What lies in folders of `own` is not gone into.
fn links_in(top: &Path, own: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let (mut links, mut open) = (Vec::new(), VecDeque::from([(top.to_owned(), 1)]));
    let mut room = FOLDERS;
    while let Some((folder, level)) = open.pop_front() {
        let real = folder.canonicalize();
        let is_own = real.is_ok_and(|real| own.iter().any(|it| real.starts_with(it)));
        if is_own && level > 1 {
            continue;
        }
        let entries = fs::read_dir(&folder).into_iter().flatten();
        for entry in entries.take(ENTRIES).flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => links.push(entry.path()),
                Ok(kind) if kind.is_dir() && !is_own && level < LEVELS && room > 0 => {
                    room -= 1;
                    open.push_back((entry.path(), level + 1));
                }
                _ => {}
            }
        }
    }
    links
}

/// A path whose folder is as the kernel names it; the last part may be a link, or missing.
fn in_real_folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute
        .parent()
        .and_then(|folder| folder.canonicalize().ok());
    match (folder, absolute.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => absolute,
    }
}

/// The folder that keeps what is written to a home, with its parts.
fn made_layer(layer: &Path) -> io::Result<PathBuf> {
    for part in ["upper", "work"] {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(layer.join(part))?;
    }
    layer.canonicalize()
}

/// The user's home, if a run sees it through a layer.
pub fn of(policy: &Policy) -> Option<&Path> {
    let home = policy.home.as_deref()?;
    let is_usable = home.is_dir() && !NOT_HOMES.iter().any(|other| Path::new(other) == home);
    is_usable.then_some(home)
}

/// The home as a detached mount. `None` where the kernel can't make one: then the home stays as it is, read-only.
pub fn mount(policy: &Policy, home: &Path) -> io::Result<Option<Home>> {
    sys::mount(
        "tmpfs",
        Path::new(WORKBENCH),
        MountFlags::NOSUID | MountFlags::NODEV,
        "mode=700",
    )?;
    let made = assemble(policy, home);
    rustix::mount::unmount(WORKBENCH, UnmountFlags::DETACH)?;
    made
}

fn assemble(policy: &Policy, home: &Path) -> io::Result<Option<Home>> {
    let above = Path::new(WORKBENCH).join("above");
    let readable = hide(policy, home, &above)?;
    let mut attempts = Vec::new();
    if let Some(layer) = &policy.home_layer {
        attempts.push(Some((layer.join("upper"), own_work_folder(layer)?)));
        // The disk of the layer may not be able to hold one (a network's, another overlay): then it goes with the run.
        let memory = Path::new(WORKBENCH);
        let (upper, work) = (memory.join("upper"), memory.join("work"));
        fs::create_dir(&upper)?;
        fs::create_dir(&work)?;
        attempts.push(Some((upper, work)));
    }
    attempts.push(None);
    for upper in attempts {
        let layers = OverlayLayers {
            lower: vec![above.clone(), home.to_owned()],
            upper,
        };
        if let Ok(mount) = mounted_with_few_rights(policy, home, &layers, &readable) {
            return Ok(Some(Home {
                path: home.to_owned(),
                mount,
                is_writable: layers.upper.is_some(),
            }));
        }
    }
    Ok(None)
}

/// A folder for the kernel's scratch space that no other run uses. It is held by a lock for as long as this process lives;
/// the layer is hidden inside, so nobody else takes it.
fn own_work_folder(layer: &Path) -> io::Result<PathBuf> {
    for number in 0..1_000 {
        let path = layer.join("work").join(number.to_string());
        fs::create_dir_all(&path)?;
        let folder = fs::File::open(&path)?;
        if folder.try_lock().is_ok() {
            std::mem::forget(folder);
            return Ok(path);
        }
    }
    Err(io::Error::other("too many runs use this home"))
}

/// Makes the overlay in a thread that may read `readable` and the layers, and nothing else: the kernel reads on its behalf.
fn mounted_with_few_rights(
    policy: &Policy,
    home: &Path,
    layers: &OverlayLayers,
    readable: &[PathBuf],
) -> io::Result<OwnedFd> {
    let mut own = vec![layers.lower[0].clone()];
    own.extend(
        layers
            .upper
            .iter()
            .flat_map(|(upper, work)| [upper.clone(), work.clone()]),
    );
    let confined = || -> io::Result<OwnedFd> {
        landlock::read_only_these(policy, home, readable.iter().chain(&own))?;
        sys::overlay(layers)
    };
    // Landlock holds the thread, not the process.
    std::thread::scope(|scope| scope.spawn(confined).join())
        .unwrap_or_else(|_| Err(io::Error::other("the home could not be made")))
}

/// Fills the layer above: a whiteout for everything hidden, and copies of the small files next to it. Answers what the
/// overlay may read of the user's home.
fn hide(policy: &Policy, home: &Path, above: &Path) -> io::Result<Vec<PathBuf>> {
    fs::DirBuilder::new().mode(0o700).create(above)?;
    fs::set_permissions(above, home.metadata()?.permissions())?;
    let hidden: BTreeSet<&Path> = policy
        .hidden
        .iter()
        .map(PathBuf::as_path)
        .filter(|path| path.starts_with(home) && *path != home)
        .collect();
    if hidden.is_empty() {
        return Ok(vec![home.to_owned()]);
    }
    let mut on_the_way: BTreeSet<&Path> = BTreeSet::from([home]);
    for path in &hidden {
        let ancestors = path.ancestors().skip(1);
        on_the_way.extend(ancestors.take_while(|ancestor| *ancestor != home));
    }
    let mut readable = Vec::new();
    let mut room = ALL_COPIED;
    for directory in &on_the_way {
        let is_hidden = directory.ancestors().any(|it| hidden.contains(it));
        let found = fs::symlink_metadata(directory);
        if is_hidden || !found.is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let place = place_of(home, above, directory);
        if *directory != home {
            fs::DirBuilder::new().mode(0o700).create(&place)?;
            fs::set_permissions(&place, directory.metadata()?.permissions())?;
        }
        let inside = hidden
            .iter()
            .filter(|path| path.parent() == Some(directory));
        for path in inside {
            take_away(policy, path, &|path| place_of(home, above, path))?;
        }
        readable.extend(show_siblings(
            directory,
            &hidden,
            &on_the_way,
            (&place, &mut room),
        ));
    }
    Ok(readable)
}

/// Hides one path. Where something real is put on top later, below it, its place is all that is there; a mask that lies on
/// it needs a place, too.
fn take_away(policy: &Policy, path: &Path, place_of: &dyn Fn(&Path) -> PathBuf) -> io::Result<()> {
    let masked = policy.mask.iter().filter(|it| *it == path && it.is_dir());
    let on_top = policy.write.iter().chain(&policy.show).chain(masked);
    let below: Vec<_> = on_top.filter(|it| it.starts_with(path)).collect();
    if below.is_empty() {
        return sys::make_whiteout(&place_of(path));
    }
    for it in below {
        fs::create_dir_all(place_of(it))?;
    }
    sys::make_opaque(&place_of(path))
}

fn place_of(home: &Path, above: &Path, path: &Path) -> PathBuf {
    above.join(path.strip_prefix(home).unwrap_or(Path::new("")))
}

/// What else is in a directory on the way to something hidden: copied to `place` if it is a small file, else answered.
fn show_siblings(
    directory: &Path,
    hidden: &BTreeSet<&Path>,
    on_the_way: &BTreeSet<&Path>,
    (place, room): (&Path, &mut u64),
) -> Vec<PathBuf> {
    // A directory that can't be listed shows nothing.
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut readable = Vec::new();
    for entry in entries {
        let path = entry.path();
        if hidden.contains(path.as_path()) || on_the_way.contains(path.as_path()) {
            continue;
        }
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        let is_small = found.is_file() && found.len() <= COPIED.min(*room);
        if is_small && copy(&path, &found, &place.join(entry.file_name())).is_ok() {
            *room -= found.len();
            continue;
        }
        if found.is_dir() || found.is_file() {
            readable.push(path);
        }
    }
    readable
}

fn copy(from: &Path, found: &fs::Metadata, to: &Path) -> io::Result<()> {
    let mut source = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(from)?;
    let mut target = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(found.mode() & 0o777)
        .open(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(fs::Permissions::from_mode(found.mode() & 0o777))?;
    target.set_modified(found.modified()?)
}
