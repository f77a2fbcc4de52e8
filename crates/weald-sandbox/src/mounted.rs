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
}

/// The table of mounts.
fn mounted() -> Vec<Mounted> {
    let table = fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n').filter_map(|line| {
        let fields: Vec<_> = line.split(|byte| *byte == b' ').take(5).collect();
        let [_, _, device, root, point] = fields[..] else {
            return None;
        };
        Some(Mounted {
            point: unescaped(point),
            root: unescaped(root),
            device: device.to_owned(),
        })
    });
    lines.collect()
}

/// Where something is mounted.
pub fn mount_points() -> impl Iterator<Item = PathBuf> {
    mounted().into_iter().map(|it| it.point)
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

/// Other paths that lead to the same files and directories, because their file system is mounted elsewhere, too, whole or in
/// part.
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
            let way = it.point.join(place.strip_prefix(&it.root).ok()?);
            (way != path).then_some(way)
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
        };
        let table = [
            line("8:1", "/", "/"),
            line("8:2", "/", "/home"),
            line("8:2", "/ann", "/srv/alias"),
            line("8:2", "/bob", "/srv/other"),
            line("8:3", "/", "/home/ann/disk"),
        ];
        let ways = |path: &str| ways_to(Path::new(path), &table).collect::<Vec<_>>();
        assert_eq!(ways("/home/ann/.ssh"), [Path::new("/srv/alias/.ssh")]);
        assert_eq!(ways("/srv/alias/.ssh"), [Path::new("/home/ann/.ssh")]);
        assert_eq!(ways("/home/ann/disk/key"), Vec::<PathBuf>::new());
        assert_eq!(ways("/etc/key"), Vec::<PathBuf>::new());
        assert_eq!(unescaped(b"/a\\040b\\"), Path::new("/a b\\"));
    }
}
