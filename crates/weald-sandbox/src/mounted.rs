//! What is mounted where.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A line of the table of mounts: where it is, and what of which file system is there.
struct Mounted {
    point: PathBuf,
    root: PathBuf,
    device: Vec<u8>,
    kind: Vec<u8>,
}

/// The table of mounts.
fn mounted() -> Vec<Mounted> {
    let table = fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let [_, _, device, root, point] = [(); 5].map(|()| fields.next());
        let (device, root, point) = (device?, root?, point?);
        // Fields that may be missing end with a dash.
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        Some(Mounted {
            point: unescaped(point),
            root: unescaped(root),
            device: device.to_owned(),
            kind: kind.to_owned(),
        })
    });
    lines.collect()
}

/// Where something is mounted.
pub fn mount_points() -> impl Iterator<Item = PathBuf> {
    mounted().into_iter().map(|it| it.point)
}

/// Where file systems of these kinds are mounted.
pub fn mounts_of(kinds: &[&str]) -> impl Iterator<Item = PathBuf> {
    let is_one = |it: &Mounted| kinds.iter().any(|kind| it.kind == kind.as_bytes());
    mounted().into_iter().filter(is_one).map(|it| it.point)
}

/// A path of the table, in which spaces and the like are written as octal numbers.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((first, more)) = rest.split_first() {
        let number = more.get(..3).filter(|_| *first == b'\\');
        let number = number.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Other paths that lead to the same files and directories, or to something in them, because their file system is mounted
/// elsewhere, too, whole or in part.
pub fn other_ways(paths: &[PathBuf]) -> Vec<PathBuf> {
    let table = mounted();
    let ways = paths.iter().flat_map(|path| ways_to(path, &table));
    let is_there = |way: &PathBuf| {
        let found = way.symlink_metadata();
        found.is_ok_and(|found| found.is_dir() || found.is_file())
    };
    ways.filter(is_there).collect()
}

fn ways_to<'t>(path: &'t Path, table: &'t [Mounted]) -> impl Iterator<Item = PathBuf> + 't {
    // The last of several at the same place is the one that is seen.
    let around = table.iter().filter(|it| path.starts_with(&it.point));
    let own = around.max_by_key(|it| it.point.as_os_str().len());
    let place = own.and_then(|own| Some((own, own.root.join(path.strip_prefix(&own.point).ok()?))));
    place.into_iter().flat_map(move |(own, place)| {
        let others = table.iter().filter(|it| it.device == own.device);
        let ways = others.filter_map(move |it| {
            let way = match place.strip_prefix(&it.root) {
                // As it is, without a slash at the end: a mount of a file.
                Ok(rest) if rest.as_os_str().is_empty() => it.point.clone(),
                Ok(rest) => it.point.join(rest),
                Err(_) if it.root.starts_with(&place) => it.point.clone(),
                Err(_) => return None,
            };
            (!way.starts_with(path)).then_some(way)
        });
        ways.collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x16_every_mount_of_a_file_system_is_another_way_to_what_is_on_it() {
        let line = |device: &str, root: &str, point: &str| Mounted {
            point: point.into(),
            root: root.into(),
            device: device.into(),
            kind: b"ext4".into(),
        };
        let table = [
            line("8:1", "/", "/"),
            line("8:2", "/", "/home"),
            line("8:2", "/ann", "/srv/alias"),
            line("8:2", "/bob", "/srv/other"),
            line("8:3", "/", "/home/ann/disk"),
            line("8:2", "/ann/.ssh/keys", "/srv/keys"),
            line("8:2", "/ann/.ssh/id", "/srv/id"),
            line("8:2", "/ann/.sshd", "/srv/sshd"),
            line("8:2", "/ann/.ssh/keys", "/home/ann/.ssh/again"),
        ];
        let ways = |path: &str| ways_to(Path::new(path), &table).collect::<Vec<_>>();
        let others = |first: &str| [first, "/srv/keys", "/srv/id"].map(PathBuf::from);
        assert_eq!(ways("/home/ann/.ssh"), others("/srv/alias/.ssh"));
        let mut others = others("/home/ann/.ssh").to_vec();
        others.push("/home/ann/.ssh/again".into());
        assert_eq!(ways("/srv/alias/.ssh"), others);
        let others = ["/srv/alias/.ssh/id", "/srv/id"].map(PathBuf::from);
        assert_eq!(ways("/home/ann/.ssh/id"), others);
        assert_eq!(ways("/home/ann/disk/key"), Vec::<PathBuf>::new());
        assert_eq!(ways("/etc/key"), Vec::<PathBuf>::new());
        assert_eq!(unescaped(b"/a\\040b\\"), Path::new("/a b\\"));
    }
}
