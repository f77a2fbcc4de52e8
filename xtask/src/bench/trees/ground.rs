//! Where a measurement happens: a fresh file system in a file, so that nothing that was deleted before slows it down.
//!
//! The image's file has no name once it is mounted, and the mount goes with the value (and with the process's mount
//! namespace), so nothing is left, whatever happens.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::rivals::{command, run};
use crate::bench::say;

const GIB: u64 = 1 << 30;

/// What an image is formatted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The usual one, with a journal.
    Ext4,
    /// Shares blocks between copies.
    Xfs,
    /// Shares blocks, and takes snapshots.
    Btrfs,
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Format::Ext4 => "ext4",
            Format::Xfs => "xfs",
            Format::Btrfs => "btrfs",
        })
    }
}

/// A directory on a file system of its own where one can be made.
pub struct Ground {
    directory: PathBuf,
    mounted: bool,
}

impl Ground {
    /// A fresh file system of this format, at most so large; `Err` says why there is none.
    pub fn image(lab: &Path, format: Format, gigabytes: u64) -> Result<Self, String> {
        let maker = format!("mkfs.{format}");
        if !rustix::process::geteuid().is_root() {
            return Err("mounting an image needs root".to_owned());
        }
        if !installed(&maker) {
            return Err(format!("no {maker}"));
        }
        Self::make(lab, &maker, gigabytes).map_err(|error| format!("no {format} image: {error}"))
    }

    /// An ext4 image; else a tmpfs; else the temporary directory itself. Says which.
    pub fn usual(lab: &Path, gigabytes: u64) -> io::Result<Self> {
        let reason = match Self::image(lab, Format::Ext4, gigabytes) {
            Ok(ground) => return Ok(ground),
            Err(reason) => reason,
        };
        let mut ground = Self::plain(lab)?;
        let mut mount = command("mount");
        mount.args(["-t", "tmpfs", "tmpfs"]).arg(ground.path());
        ground.mounted = rustix::process::geteuid().is_root() && run(&mut mount).is_ok();
        say(&match ground.mounted {
            true => format!("{reason}: on a tmpfs instead"),
            false => format!(
                "{reason}: in {} instead, where earlier deletions may slow creating down",
                ground.path().display()
            ),
        });
        Ok(ground)
    }

    /// A folder that stays until the laboratory goes: deleting it now would slow down what comes next.
    fn plain(lab: &Path) -> io::Result<Self> {
        Ok(Self {
            directory: TempDir::new_in(lab)?.keep(),
            mounted: false,
        })
    }

    fn make(lab: &Path, maker: &str, gigabytes: u64) -> io::Result<Self> {
        let mut ground = Self::plain(lab)?;
        let image = ground.path().with_extension("img");
        let made = ground.mount(maker, &image, gigabytes);
        // The mount holds it open: without a name it can't be left behind.
        let _ = fs::remove_file(&image);
        made.map(|()| ground)
    }

    fn mount(&mut self, maker: &str, image: &Path, gigabytes: u64) -> io::Result<()> {
        let free = free_bytes(self.path())?;
        let size = (gigabytes * GIB).min(free / 10 * 9);
        File::create_new(image)?.set_len(size)?;
        let mut format = command(maker);
        match maker {
            // Otherwise the kernel writes inode tables while we measure.
            "mkfs.ext4" => {
                format.args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
            }
            _ => format.args(["-q", "-f"]),
        };
        run(format.arg(image))?;
        let mut mount = command("mount");
        run(mount.args(["-o", "loop"]).arg(image).arg(self.path()))?;
        self.mounted = true;
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Writes everything to the device, so that nobody pays for another's work.
    pub fn settle(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(self.path())?)?)
    }

    /// Bytes in use, everything written.
    pub fn used(&self) -> io::Result<u64> {
        self.settle()?;
        let found = rustix::fs::statvfs(self.path())?;
        Ok((found.f_blocks - found.f_bfree) * found.f_frsize)
    }

    /// Bytes that are free.
    pub fn free(&self) -> io::Result<u64> {
        free_bytes(self.path())
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if self.mounted {
            let unmount = |args: &[&str]| run(command("umount").args(args).arg(self.path()));
            // A peer may still delete in the background: then it goes when that is done.
            if unmount(&[]).is_err() && unmount(&["-l"]).is_err() {
                say(&format!("still mounted: {}", self.path().display()));
            }
        }
    }
}

fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail * found.f_frsize)
}

/// True when a program is found.
fn installed(program: &str) -> bool {
    #[expect(clippy::disallowed_methods, reason = "programs have to be found")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .any(|directory| directory.join(program).is_file())
}
