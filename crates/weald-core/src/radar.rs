//! Which of many states may clash, by the paths that each of them changed: only those have to be merged to know.
//!
//! Nothing is lost by it. A merge can only conflict where both sides touched the same path (a rename touches both names),
//! where one has a file and the other a folder, or where one put something into a folder that the other moved away. Whoever
//! asks must take the paths against the one merge base of both; where there are several, there is no short way.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// It was not there before.
    Added,
    /// It was there, and is something else now.
    Changed,
    Removed,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    pub path: Vec<u8>,
    /// True for a folder.
    pub is_folder: bool,
    pub touch: Touch,
}

/// Everything that one side changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    files: Vec<Vec<u8>>,
    added: Vec<Vec<u8>>,
    folders: Vec<Vec<u8>>,
    removed_folders: Vec<Vec<u8>>,
}

impl Footprint {
    /// From the paths that differ, in any order; a folder that is still there says nothing.
    pub fn new(changes: impl IntoIterator<Item = PathChange>) -> Self {
        let mut found = Self::default();
        for change in changes {
            match (change.is_folder, change.touch) {
                (true, Touch::Changed) => {}
                (true, touch) => {
                    if touch == Touch::Removed {
                        found.removed_folders.push(change.path.clone());
                    }
                    found.folders.push(change.path);
                }
                (false, touch) => {
                    if touch == Touch::Added {
                        found.added.push(change.path.clone());
                    }
                    found.files.push(change.path);
                }
            }
        }
        for list in [
            &mut found.files,
            &mut found.folders,
            &mut found.removed_folders,
        ] {
            list.sort_unstable();
            list.dedup();
        }
        found
    }

    /// The files that differ, sorted.
    pub fn files(&self) -> &[Vec<u8>] {
        &self.files
    }

    /// False only if a merge of both can't conflict.
    pub fn may_clash(&self, other: &Self) -> bool {
        have_common(&self.files, &other.files)
            || have_common(&self.files, &other.folders)
            || have_common(&self.folders, &other.files)
            || self.puts_into_removed(other)
            || other.puts_into_removed(self)
    }

    /// Whether something of ours is new in a folder that is gone on the other side, perhaps under another name.
    fn puts_into_removed(&self, other: &Self) -> bool {
        let is_gone = |folder: &[u8]| {
            let found = other
                .removed_folders
                .binary_search_by(|known| known.as_slice().cmp(folder));
            found.is_ok()
        };
        !other.removed_folders.is_empty()
            && self.added.iter().any(|path| {
                let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
                ends.into_iter().any(|(end, _)| is_gone(&path[..end]))
            })
    }
}

/// Whether two sorted lists have something in common.
fn have_common(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> bool {
    let (mut ours, mut theirs) = (ours.iter(), theirs.iter());
    let (mut our, mut their) = (ours.next(), theirs.next());
    while let (Some(left), Some(right)) = (our, their) {
        match left.cmp(right) {
            Ordering::Equal => return true,
            Ordering::Less => our = ours.next(),
            Ordering::Greater => their = theirs.next(),
        }
    }
    false
}

/// Commits and their parents, down to one that everybody has.
#[derive(Debug, Clone, Default)]
pub struct Ancestry {
    places: HashMap<String, usize>,
    names: Vec<String>,
    parents: Vec<Vec<usize>>,
}

impl Ancestry {
    /// From commits with their parents, in any order. Parents that are not among them lie below what everybody has.
    pub fn new(commits: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        let listed: Vec<_> = commits.into_iter().collect();
        let mut ancestry = Self::default();
        for (name, _) in &listed {
            let place = ancestry.names.len();
            if let Entry::Vacant(free) = ancestry.places.entry(name.clone()) {
                free.insert(place);
                ancestry.names.push(name.clone());
            }
        }
        ancestry.parents = vec![Vec::new(); ancestry.names.len()];
        for (name, parents) in listed {
            let known = parents
                .iter()
                .filter_map(|parent| ancestry.places.get(parent));
            let known: Vec<usize> = known.copied().collect();
            if let Some(place) = ancestry.places.get(&name) {
                ancestry.parents[*place].extend(known);
            }
        }
        ancestry
    }

    /// Everything that a commit leads to, itself included; `None` if it is not known.
    pub fn reach(&self, tip: &str) -> Option<Reach> {
        let mut reached = vec![false; self.names.len()];
        let mut open = vec![*self.places.get(tip)?];
        while let Some(place) = open.pop() {
            if !std::mem::replace(&mut reached[place], true) {
                open.extend(&self.parents[place]);
            }
        }
        Some(Reach(reached))
    }

    /// The best common ancestors of two commits.
    pub fn merge_bases(&self, ours: &Reach, theirs: &Reach) -> Vec<&str> {
        let common: Vec<usize> = (0..self.names.len())
            .filter(|place| ours.0[*place] && theirs.0[*place])
            .collect();
        // One that another common one leads to is not a best one; its child on that way is common, too.
        let mut below = vec![false; self.names.len()];
        for place in &common {
            for parent in &self.parents[*place] {
                below[*parent] = true;
            }
        }
        let best = common.into_iter().filter(|place| !below[*place]);
        best.map(|place| self.names[place].as_str()).collect()
    }
}

/// What a commit leads to.
#[derive(Debug, Clone)]
pub struct Reach(Vec<bool>);

#[cfg(test)]
mod tests {
    use super::*;

    /// `+a` is new, `-a` is gone, `~a` changed; with a slash at the end it is a folder.
    fn footprint(text: &str) -> Footprint {
        Footprint::new(text.split_whitespace().map(|word| {
            let (sign, path) = word.split_at(1);
            let (path, is_folder) = match path.strip_suffix('/') {
                Some(path) => (path, true),
                None => (path, false),
            };
            let touch = match sign {
                "+" => Touch::Added,
                "-" => Touch::Removed,
                _ => Touch::Changed,
            };
            PathChange {
                path: path.as_bytes().to_vec(),
                is_folder,
                touch,
            }
        }))
    }

    #[test]
    fn only_what_can_conflict_is_merged() {
        for (ours, theirs, clash) in [
            ("~a", "~b", false),
            ("~a", "~a", true),
            ("-a +b", "~a", true),
            ("-a +b", "+b", true),
            ("-a +b", "+c ~d", false),
            // Both go into the same folder, new or not.
            ("+new/ +new/x", "+new/ +new/y", false),
            ("~src/ ~src/a", "~src/ ~src/b", false),
            // A file here, a folder there.
            ("+p", "+p/ +p/q/ +p/q/r", true),
            ("-p/ -p/q +p", "~p/ +p/new", true),
            // A folder moved away, something new in it, at any depth.
            ("-d/ -d/f +e/ +e/f", "~d/ +d/new", true),
            ("-d/ -d/f +e/ +e/f", "~d/ +d/sub/ +d/sub/new", true),
            ("-d/ -d/f +e/ +e/f", "+dd/ +dd/new", false),
            // Some of it stayed, so it was not moved.
            ("~d/ -d/f +e/ +e/f", "~d/ +d/new", false),
        ] {
            let (left, right) = (footprint(ours), footprint(theirs));
            assert_eq!(left.may_clash(&right), clash, "{ours} | {theirs}");
            assert_eq!(right.may_clash(&left), clash, "{theirs} | {ours}");
        }
    }

    #[test]
    fn merge_bases_are_the_best_common_ancestors() {
        let commits = [
            ("root", ""),
            ("m1", "root"),
            ("m2", "m1"),
            ("a", "m1"),
            ("b", "m2"),
            // A criss-cross of a and b, and one that is ahead of both.
            ("x", "a b"),
            ("y", "b a"),
            ("old", "gone"),
        ];
        let ancestry = Ancestry::new(commits.map(|(name, parents)| {
            let parents = parents.split_whitespace().map(str::to_owned).collect();
            (name.to_owned(), parents)
        }));
        let bases = |ours: &str, theirs: &str| {
            let reach = |tip: &str| ancestry.reach(tip).unwrap();
            let mut found = ancestry.merge_bases(&reach(ours), &reach(theirs));
            found.sort_unstable();
            found.join(" ")
        };
        for (ours, theirs, expected) in [
            ("a", "b", "m1"),
            ("a", "a", "a"),
            ("m1", "b", "m1"),
            ("x", "b", "b"),
            ("x", "y", "a b"),
            ("x", "old", ""),
        ] {
            assert_eq!(bases(ours, theirs), expected, "{ours} {theirs}");
        }
        assert!(ancestry.reach("unknown").is_none());
    }
}
