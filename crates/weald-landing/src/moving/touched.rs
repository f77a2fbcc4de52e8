//! What a landing touches, and what of the user's is in its way.
//!
//! A touched path that the user changed, staged or not, refuses; so does anything that git does not know at a place where
//! the landing puts something, ignored or not: git's own update would write over ignored files. Everything else of the
//! user's stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use weald_git::GitError;

use super::folder::{Folder, Stamp, ancestors};

/// The mode of a submodule's commit.
const GITLINK: &str = "160000";

/// How many paths in the way are looked for.
const NAMED: usize = 50;

/// A side of a change: mode and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    /// As git writes it.
    pub mode: String,
    pub id: String,
}

impl Side {
    pub(super) fn is_gitlink(&self) -> bool {
        self.mode == GITLINK
    }
}

/// One path that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touched {
    pub path: Vec<u8>,
    /// Before; `None` if it is added.
    pub old: Option<Side>,
    /// After; `None` if it is deleted.
    pub new: Option<Side>,
}

impl Touched {
    /// Whether files of the checkout are there before.
    fn had_file(&self) -> bool {
        self.old.as_ref().is_some_and(|side| !side.is_gitlink())
    }

    /// Whether it puts a file where none was.
    fn adds(&self) -> bool {
        self.new.is_some() && !self.had_file()
    }

    /// Whether its file goes.
    fn takes_away(&self) -> bool {
        self.had_file() && self.new.as_ref().is_none_or(Side::is_gitlink)
    }
}

/// Reads raw differences (`diff-tree -r -z --raw --no-abbrev`).
pub(super) fn parse(raw: &[u8]) -> Result<Vec<(char, Touched)>, GitError> {
    let odd = |what: &[u8]| GitError::Unexpected {
        command: "diff-tree".to_owned(),
        answer: String::from_utf8_lossy(what).chars().take(200).collect(),
    };
    let mut fields = raw.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let Some(header) = fields.next().filter(|field| !field.is_empty()) {
        let text = std::str::from_utf8(header).map_err(|_| odd(header))?;
        let words: Vec<_> = text.trim_start_matches(':').split(' ').collect();
        let ([old_mode, new_mode, old, new, status], Some(path)) = (&words[..], fields.next())
        else {
            return Err(odd(header));
        };
        let side = |mode: &str, id: &str| {
            let there = mode.bytes().any(|byte| byte != b'0');
            there.then(|| Side {
                mode: mode.to_owned(),
                id: id.to_owned(),
            })
        };
        found.push((
            status.chars().next().unwrap_or(' '),
            Touched {
                path: path.to_vec(),
                old: side(old_mode, old),
                new: side(new_mode, new),
            },
        ));
    }
    Ok(found)
}

/// Those of `changed` that a landing can't pass by: the same paths, and files where it needs folders or the other way
/// round.
pub(super) fn overlap(touched: &[Touched], changed: &BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    let paths: BTreeSet<&[u8]> = touched.iter().map(|one| one.path.as_slice()).collect();
    let is_in = |path: &[u8]| {
        let mut below = path.to_vec();
        below.push(b'/');
        let next = paths.range(below.as_slice()..).next();
        paths.contains(path)
            || ancestors(path).any(|above| paths.contains(above))
            || next.is_some_and(|next| next.starts_with(&below))
    };
    changed.iter().filter(|path| is_in(path)).cloned().collect()
}

/// What the checkout's files are before anybody compares them with the index.
pub(super) fn stamps(
    checkout: &Folder,
    touched: &[Touched],
) -> io::Result<BTreeMap<Vec<u8>, Stamp>> {
    let mut seen = BTreeMap::new();
    for one in touched.iter().filter(|one| one.had_file()) {
        if let Some(stamp) = checkout.stamp(&one.path)? {
            seen.insert(one.path.clone(), stamp);
        }
    }
    Ok(seen)
}

/// What lies where the landing puts something, and is not git's.
pub(super) fn in_the_way(checkout: &Folder, touched: &[Touched]) -> io::Result<Vec<Vec<u8>>> {
    let going: BTreeSet<&[u8]> = touched
        .iter()
        .filter(|one| one.takes_away())
        .map(|one| one.path.as_slice())
        .collect();
    let mut found = BTreeSet::new();
    for one in touched.iter().filter(|one| one.adds()) {
        let blocked = ancestors(&one.path).find_map(|above| match checkout.stamp(above) {
            Ok(Some(stamp)) if stamp.is_directory() => None,
            Ok(Some(_)) if going.contains(above) => None,
            Ok(Some(_)) => Some(Ok(above.to_vec())),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        });
        if let Some(blocked) = blocked {
            found.insert(blocked?);
            continue;
        }
        let is_gitlink = one.new.as_ref().is_some_and(Side::is_gitlink);
        match checkout.stamp(&one.path)? {
            None => {}
            Some(stamp) if stamp.is_directory() && is_gitlink => {
                let names = checkout.names(&one.path)?;
                let is_fine = names.is_empty() || names.iter().any(|name| name == b".git");
                if !is_fine && !only_going(checkout, &one.path, &going)? {
                    found.insert(one.path.clone());
                }
            }
            Some(stamp) if stamp.is_directory() => {
                others_below(checkout, &one.path, &going, &mut found)?;
            }
            Some(_) if going.contains(one.path.as_slice()) => {}
            Some(_) => {
                found.insert(one.path.clone());
            }
        }
        if found.len() > NAMED {
            break;
        }
    }
    Ok(found.into_iter().collect())
}

fn only_going(checkout: &Folder, path: &[u8], going: &BTreeSet<&[u8]>) -> io::Result<bool> {
    let mut others = BTreeSet::new();
    others_below(checkout, path, going, &mut others)?;
    Ok(others.is_empty())
}

/// Files below a folder that the landing does not take away itself.
fn others_below(
    checkout: &Folder,
    path: &[u8],
    going: &BTreeSet<&[u8]>,
    found: &mut BTreeSet<Vec<u8>>,
) -> io::Result<()> {
    let mut open = vec![path.to_vec()];
    while let Some(folder) = open.pop() {
        for name in checkout.names(&folder)? {
            let below = [folder.as_slice(), b"/", &name].concat();
            match checkout.stamp(&below)? {
                Some(stamp) if stamp.is_directory() => open.push(below),
                Some(_) if !going.contains(below.as_slice()) => {
                    found.insert(below);
                }
                _ => {}
            }
        }
        if found.len() > NAMED {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn side(mode: &str) -> Option<Side> {
        Some(Side {
            mode: mode.to_owned(),
            id: "1".repeat(40),
        })
    }

    fn touched(path: &str, old: Option<Side>, new: Option<Side>) -> Touched {
        Touched {
            path: path.into(),
            old,
            new,
        }
    }

    #[test]
    fn raw_differences_are_read() {
        let one = "1".repeat(40);
        let raw = format!(
            ":000000 100644 {0} {one} A\0a b\0:100644 000000 {one} {0} D\0d/\u{e9}\0",
            "0".repeat(40)
        );
        let found = parse(raw.as_bytes()).unwrap();
        assert_eq!(found[0], ('A', touched("a b", None, side("100644"))));
        assert_eq!(found[1], ('D', touched("d/\u{e9}", side("100644"), None)));
        assert!(parse(b"nonsense\0x\0").is_err());
    }

    #[test]
    fn m7_paths_overlap_by_name_and_by_folder() {
        let file = side("100644");
        let landing = [
            touched("a", file.clone(), file.clone()),
            touched("d/x", None, file.clone()),
            touched("f", None, file),
        ];
        let changed = ["a", "b", "d", "d/y", "f/g", "fa"];
        let changed = changed
            .iter()
            .map(|path| path.as_bytes().to_vec())
            .collect();
        let found = overlap(&landing, &changed);
        assert_eq!(found, [&b"a"[..], b"d", b"f/g"]);
    }

    #[test]
    fn m7_what_git_does_not_know_is_in_the_way() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for folder in ["was/deep", "full", "empty/er"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["new", "was/deep/a", "full/a", "full/mine", "file"] {
            fs::write(at(file), "x").unwrap();
        }
        let checkout = Folder::open(home.path()).unwrap();
        let file = side("100644");
        let add = |path: &str| touched(path, None, side("100644"));
        let gone = |path: &str| touched(path, file.clone(), None);
        let check = |landing: &[Touched]| -> Vec<String> {
            let found = in_the_way(&checkout, landing).unwrap();
            let text = |path: Vec<u8>| String::from_utf8(path).unwrap();
            found.into_iter().map(text).collect()
        };
        assert_eq!(check(&[add("new")]), ["new"]);
        assert_eq!(check(&[add("free"), add("none/x")]), [""; 0]);
        assert_eq!(check(&[add("file/x")]), ["file"]);
        assert_eq!(check(&[gone("file"), add("file/x")]), [""; 0]);
        assert_eq!(check(&[gone("was/deep/a"), add("was")]), [""; 0]);
        assert_eq!(check(&[gone("full/a"), add("full")]), ["full/mine"]);
        assert_eq!(check(&[add("empty")]), [""; 0]);
        let link = touched("full", None, side(GITLINK));
        assert_eq!(check(&[link]), ["full"]);
    }
}
