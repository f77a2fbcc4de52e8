//! Which file system a directory is on, and whether several machines may share it.
//!
//! WAL needs shared memory between all processes that open the file, and locks that hold. A network file system gives
//! neither, and loses data silently, so the database refuses to live there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Kinds that hold files of another machine, as the mount table calls them.
const NETWORK: [&str; 21] = [
    "9p",
    "afs",
    "afpfs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "prl_fs",
    "smb3",
    "smbfs",
    "vboxsf",
];

/// User-space file systems that reach another machine.
const NETWORK_FUSE: [&str; 9] = [
    "ceph",
    "davfs2",
    "gcsfuse",
    "glusterfs",
    "goofys",
    "juicefs",
    "rclone",
    "s3fs",
    "sshfs",
];

/// The kind of a network file system that holds `directory`, or `None` for a local one (or an unknown one).
pub fn network_kind(directory: &Path) -> Option<String> {
    let device = fs::metadata(directory).ok()?.dev();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = kind_of_device(
        &mounts,
        rustix::fs::major(device),
        rustix::fs::minor(device),
    )?;
    is_network(&kind).then_some(kind)
}

fn is_network(kind: &str) -> bool {
    let fuse = kind.strip_prefix("fuse.").unwrap_or_default();
    NETWORK.contains(&kind) || NETWORK_FUSE.iter().any(|name| fuse.starts_with(name))
}

/// Finds the kind of a device in the text of a mount table.
fn kind_of_device(mounts: &str, major: u32, minor: u32) -> Option<String> {
    let device = format!("{major}:{minor}");
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let found = mount.split(' ').nth(2)? == device;
        found.then(|| file_system.split(' ').next().unwrap_or_default().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        let mounts = "\
36 35 98:0 / / rw,noatime master:1 - ext4 /dev/root rw\n\
37 35 0:52 / /home/a rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2\n\
38 35 0:53 / /mnt/s rw - fuse.sshfs user@host:/ rw\n\
39 35 0:54 / /mnt/win rw - 9p drvfs rw\n\
40 35 0:55 / /mnt/n rw - fuseblk /dev/sdb1 rw\n";
        for (minor, network) in [(52, true), (53, true), (54, true), (55, false)] {
            let kind = kind_of_device(mounts, 0, minor).unwrap();
            assert_eq!(is_network(&kind), network, "{kind}");
        }
        assert_eq!(kind_of_device(mounts, 98, 0).as_deref(), Some("ext4"));
        assert_eq!(kind_of_device(mounts, 1, 1), None);
    }

    #[test]
    fn a_temporary_directory_here_is_local() {
        assert_eq!(network_kind(&std::env::temp_dir()), None);
    }
}
