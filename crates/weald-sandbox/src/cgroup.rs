//! A control group for a run without a pid namespace: the kernel ends everybody in it at once, also those who fork faster
//! than anybody could look them up. It can be made by root and where a group was delegated to the user; elsewhere there is
//! none. Nobody in the run can leave it: its files are not writable for them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is tried to remove a group whose last process has just gone.
const TRIES: usize = 200;

pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    /// Makes the group of the run that `helper` reaps, if that can be had here.
    pub(crate) fn make(helper: u32) -> Option<Self> {
        let path = place_of(helper)?;
        // What a killed run of the same number left goes first, if nobody is in it.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        match group.path.join("cgroup.kill").exists() {
            true => Some(group),
            false => {
                group.remove();
                None
            }
        }
    }

    /// The group of the run that `helper` reaped, if it is still there.
    pub(crate) fn left_by(helper: u32) -> Option<Self> {
        let path = place_of(helper)?;
        path.is_dir().then_some(Self { path })
    }

    /// This process, and what it starts from now on, belongs to the group.
    pub(crate) fn join(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Kills everybody in it.
    pub(crate) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Removes it, when the last one is gone; false if somebody stays.
    pub(crate) fn remove(&self) -> bool {
        (0..TRIES).any(|_| match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(5));
                false
            }
            _ => true,
        })
    }
}

/// Where the group of a helper is: below the one that this process is in.
fn place_of(helper: u32) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    // A number means a process of one namespace only.
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let namespace: String = namespace
        .to_str()?
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    Some(own_directory(&own, &mounts)?.join(format!("weald-{namespace}-{helper}")))
}

/// The directory of this process's group in the unified hierarchy.
fn own_directory(own: &str, mounts: &str) -> Option<PathBuf> {
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find_map(|line| {
        let (place, system) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        system.starts_with("cgroup2 ").then_some((root, point))
    });
    let (root, point) = mount?;
    let below = Path::new(group).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_where_it_is_mounted() {
        let found = |own: &str, mounts: &str| own_directory(own, mounts);
        let unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            found("0::/user.slice/a.scope\n", unified),
            Some("/sys/fs/cgroup/user.slice/a.scope".into())
        );
        let mixed = "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                     32 25 0:28 /box /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            found("4:cpu:/x\n0::/box/in\n", mixed),
            Some("/sys/fs/cgroup/unified/in".into())
        );
        assert_eq!(found("0::/other\n", mixed), None);
        assert_eq!(found("4:cpu:/x\n", unified), None);
    }
}
