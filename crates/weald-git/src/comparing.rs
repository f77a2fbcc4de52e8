//! Comparing many commits with few processes: their trees, their history, what differs between them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::merge_batch::passing;
use crate::process::{Git, GitError};
use crate::reference::Commit;

/// How long one process may take.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A commit and its parents.
pub type Parents = (String, Vec<String>);

/// A path that differs between two trees, as git reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeDifference {
    pub path: Vec<u8>,
    /// True for a folder.
    pub is_folder: bool,
    /// `A`, `M`, `D` or `T`.
    pub status: u8,
}

/// Whether `tip` contains `commit`; false where either is not there.
pub fn is_ancestor(git_dir: &Path, commit: &str, tip: &str) -> Result<bool, GitError> {
    let asked = Git::new(git_dir, "merge-base").args(["--is-ancestor", commit, tip]);
    Ok(asked.output()?.status.success())
}

/// The commits that these lead to, down to those that all of them have (these come last, without parents). `None` if
/// there are more than `limit`.
pub fn history_between(
    git_dir: &Path,
    tips: &BTreeSet<&str>,
    limit: usize,
) -> Result<Option<Vec<Parents>>, GitError> {
    let asked = passing(git_dir, "merge-base")
        .args(["--all", "--octopus"])
        .args(tips)
        .limit(TIME_LIMIT)
        .output()?;
    let text = String::from_utf8_lossy(&asked.stdout);
    let shared: Vec<&str> = text
        .lines()
        .filter(|id| Commit::parse(id).is_some())
        .collect();
    let mut input = String::new();
    for tip in tips {
        input.push_str(&format!("{tip}\n"));
    }
    for base in &shared {
        input.push_str(&format!("^{base}\n"));
    }
    let answer = passing(git_dir, "rev-list")
        .args([
            "--parents",
            &format!("--max-count={}", limit + 1),
            "--stdin",
        ])
        .input(input)
        .limit(TIME_LIMIT)
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    let mut commits: Vec<Parents> = text
        .lines()
        .filter_map(|line| {
            let mut ids = line.split(' ').map(str::to_owned);
            Some((ids.next()?, ids.collect()))
        })
        .collect();
    if commits.len() > limit {
        return Ok(None);
    }
    let last = shared.into_iter().map(|id| (id.to_owned(), Vec::new()));
    commits.extend(last);
    Ok(Some(commits))
}

/// The trees of commits; one that is not there is left out.
pub fn trees_of(
    git_dir: &Path,
    commits: &BTreeSet<&str>,
) -> Result<BTreeMap<String, String>, GitError> {
    let list: String = commits
        .iter()
        .map(|id| format!("{id}^{{tree}}\n"))
        .collect();
    let answer = passing(git_dir, "cat-file")
        .args(["--batch-check=%(objectname)"])
        .input(list)
        .limit(TIME_LIMIT)
        .run()?;
    let text = String::from_utf8_lossy(&answer);
    let pairs = commits.iter().zip(text.lines());
    let found = pairs.filter(|(_, tree)| Commit::parse(tree).is_some());
    Ok(found
        .map(|(commit, tree)| ((*commit).to_owned(), tree.to_owned()))
        .collect())
}

/// What differs between pairs of trees. A rename is one that is gone and one that is new; folders that came or went are
/// reported in addition to the files in them.
pub fn tree_differences(
    git_dir: &Path,
    pairs: &BTreeSet<(&str, &str)>,
) -> Result<BTreeMap<(String, String), Vec<TreeDifference>>, GitError> {
    let list: String = pairs
        .iter()
        .map(|(from, to)| format!("{from} {to}\n"))
        .collect();
    let answer = passing(git_dir, "diff-tree")
        .args(["--stdin", "-r", "-t", "-z", "--raw", "--no-renames"])
        .input(list)
        .limit(TIME_LIMIT)
        .run()?;
    let start = String::from_utf8_lossy(&answer[..answer.len().min(200)]);
    parse(&answer).ok_or_else(|| GitError::unexpected("diff-tree", start))
}

/// `<from> <to>` and the end of the line, then `:<modes> <ids> <status>` and a path, each ended by NUL.
fn parse(answer: &[u8]) -> Option<BTreeMap<(String, String), Vec<TreeDifference>>> {
    let mut found = BTreeMap::new();
    let mut rest = answer;
    while !rest.is_empty() {
        let (head, after) = split(rest, b'\n')?;
        let head = String::from_utf8_lossy(head);
        let (from, to) = head.split_once(' ')?;
        let pair = (from.to_owned(), to.to_owned());
        rest = after;
        let mut differences = Vec::new();
        while rest.first() == Some(&b':') {
            let (entry, after) = split(rest, 0)?;
            let (path, after) = split(after, 0)?;
            rest = after;
            let fields: Vec<_> = entry.split(|byte| *byte == b' ').collect();
            let [old, new, _, _, status] = fields[..] else {
                return None;
            };
            differences.push(TreeDifference {
                path: path.to_vec(),
                is_folder: old == b":040000" || new == b"040000",
                status: *status.first()?,
            });
        }
        found.insert(pair, differences);
    }
    Some(found)
}

fn split(bytes: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == end)?;
    Some((&bytes[..place], &bytes[place + 1..]))
}
