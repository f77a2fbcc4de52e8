//! Whether an edit stays in a tree, decided on paths that were followed to where they lead.

use std::path::{Component, Path, PathBuf};

/// A path that a tool is about to write, in both ways in which it may be read: `link/..` need not be where it seems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings {
    /// Without `.` and `..`, as programs understand it, and not followed.
    pub plain: PathBuf,
    pub led: PathBuf,
    /// Where the kernel would end that is given the path as it is.
    pub followed: PathBuf,
}

/// Where an edit goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// Into the tree, or where edits are allowed besides.
    Inside,
    /// By a link in the tree to this path outside.
    ByLink(PathBuf),
    /// To this path outside.
    Elsewhere(PathBuf),
}

/// Decides it. `tree` and the folders `allowed` were followed, too. Both readings have to stay.
pub fn bound(path: &Readings, tree: &Path, allowed: &[PathBuf]) -> Bound {
    let stays = |path: &&PathBuf| {
        path.starts_with(tree) || allowed.iter().any(|folder| path.starts_with(folder))
    };
    let mut readings = [&path.led, &path.followed].into_iter();
    match readings.find(|reading| !stays(reading)) {
        None => Bound::Inside,
        Some(out) if path.plain.starts_with(tree) => Bound::ByLink(out.clone()),
        Some(out) => Bound::Elsewhere(out.clone()),
    }
}

/// A path without `.` and `..`, as programs understand it before the kernel sees it.
pub fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// A path below a tree's folder as git names it; `None` for what is no such path, or one that no list of names can hold.
pub fn name_in_git(below: &Path) -> Option<&str> {
    let mut parts = below.components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    let name = below.to_str().filter(|name| !name.contains('\n'));
    name.filter(|name| is_plain && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w8_dots_are_taken_out() {
        for (path, plain) in [
            ("/a/./b/../c", "/a/c"),
            ("/../a", "/a"),
            ("/a/b/../../..", "/"),
        ] {
            assert_eq!(normal(Path::new(path)), Path::new(plain), "{path}");
        }
    }

    #[test]
    fn w8_only_plain_paths_are_names_in_git() {
        for (path, is_name) in [
            ("a", true),
            ("a/b c", true),
            ("a/..b", true),
            ("", false),
            ("../a", false),
            ("a/../b", false),
            ("./a", false),
            ("/a", false),
            ("a\nb", false),
        ] {
            let name = name_in_git(Path::new(path));
            assert_eq!(name, is_name.then_some(path), "{path:?}");
        }
    }

    #[test]
    fn w8_what_counts_is_where_a_path_leads() {
        let tree = Path::new("/trees/fix");
        let allowed = [PathBuf::from("/home/u/plans")];
        let elsewhere = |path: &str| Bound::Elsewhere(path.into());
        let by_link = |path: &str| Bound::ByLink(path.into());
        for (plain, led, followed, expected) in [
            (
                "/trees/fix/a",
                "/trees/fix/a",
                "/trees/fix/a",
                Bound::Inside,
            ),
            ("/way-in/a", "/trees/fix/a", "/trees/fix/a", Bound::Inside),
            ("/trees/fix/out/a", "/app/a", "/app/a", by_link("/app/a")),
            // One reading is not enough.
            ("/trees/fix/a", "/trees/fix/a", "/app/a", by_link("/app/a")),
            ("/app/a", "/app/a", "/trees/fix/a", elsewhere("/app/a")),
            // A name that only begins alike.
            (
                "/trees/fix2/a",
                "/trees/fix2/a",
                "/trees/fix2/a",
                elsewhere("/trees/fix2/a"),
            ),
            (
                "/home/u/plans/p",
                "/home/u/plans/p",
                "/home/u/plans/p",
                Bound::Inside,
            ),
            (
                "/trees/fix/plans/p",
                "/home/u/plans/p",
                "/home/u/plans/p",
                Bound::Inside,
            ),
            (
                "/home/u/plans/out",
                "/etc/passwd",
                "/etc/passwd",
                elsewhere("/etc/passwd"),
            ),
        ] {
            let path = Readings {
                plain: plain.into(),
                led: led.into(),
                followed: followed.into(),
            };
            assert_eq!(bound(&path, tree, &allowed), expected, "{path:?}");
        }
    }
}
