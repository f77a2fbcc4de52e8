//! Many merges with few processes: `merge-tree --stdin`, a few at a time.
//!
//! The repository is one that may be thrown away: what is merged here is looked at, never kept, so nothing is synced. One
//! merge that git can't do is an answer for that pair; the others go on.
//!
//! git can end in the middle (2.47 has assertions that some histories break) and lose answers that it had not flushed.
//! Then the rest is tried in halves.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::process::{Git, GitError};
use crate::reference::Commit;

/// How many processes merge at the same time.
const AT_ONCE: usize = 2;

/// Fewer merges than this are not worth a second process.
const WORTH: usize = 8;

/// How long one process may take.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Two commits to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergePair {
    pub ours: String,
    pub theirs: String,
    /// Where both started; `None` lets git find out.
    pub base: Option<String>,
}

/// What merging a pair came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairMerged {
    Clean,
    Conflict {
        /// The tree with conflict markers in it.
        tree: String,
        /// Which paths, and what git calls each conflict (`CONFLICT (contents)` …).
        paths: BTreeMap<Vec<u8>, Vec<String>>,
    },
    /// git can't merge these, and says why.
    Failed(String),
}

/// Merges pairs in a repository that may be thrown away; attributes come from one commit. The answers keep their order.
pub fn merge_pairs(git_dir: &Path, attributes: &str, pairs: &[MergePair]) -> Vec<PairMerged> {
    let processes = if pairs.len() < WORTH { 1 } else { AT_ONCE };
    let portion = pairs.len().div_ceil(processes).max(1);
    thread::scope(|scope| {
        let workers: Vec<_> = pairs
            .chunks(portion)
            .map(|some| scope.spawn(move || merge_portion(git_dir, attributes, some)))
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Vec<PairMerged>>| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    })
}

/// One process for all of them; after a merge that ends it, others for the rest.
fn merge_portion(git_dir: &Path, attributes: &str, pairs: &[MergePair]) -> Vec<PairMerged> {
    let mut answers = Vec::new();
    while answers.len() < pairs.len() {
        let rest = &pairs[answers.len()..];
        let (done, end) = match merge_some(git_dir, attributes, rest) {
            Ok(answer) => answer,
            Err(error) => (Vec::new(), End::Refused(error.to_string())),
        };
        let left = &rest[done.len()..];
        answers.extend(done);
        match (end, left.len()) {
            (_, 0) => {}
            // Answers before the fall may be lost, so it need not be the first that is left.
            (End::Fell(_), 2..) => {
                let (first, second) = left.split_at(left.len() / 2);
                for half in [first, second] {
                    answers.extend(merge_portion(git_dir, attributes, half));
                }
            }
            (End::Fell(why) | End::Refused(why), _) => answers.push(PairMerged::Failed(why)),
        }
    }
    answers
}

/// How a process ended that did not do everything.
enum End {
    /// It said why it does not go on.
    Refused(String),
    /// A signal ended it.
    Fell(String),
}

fn merge_some(
    git_dir: &Path,
    attributes: &str,
    pairs: &[MergePair],
) -> Result<(Vec<PairMerged>, End), GitError> {
    let mut input = String::new();
    for pair in pairs {
        if let Some(base) = &pair.base {
            input.push_str(&format!("{base} -- "));
        }
        input.push_str(&format!("{} {}\n", pair.ours, pair.theirs));
    }
    let output = passing(git_dir, "merge-tree")
        .env("GIT_ATTR_SOURCE", attributes)
        .args(["--stdin", "-z"])
        .input(input)
        .limit(TIME_LIMIT)
        .output()?;
    let mut done = parse(&output.stdout);
    done.truncate(pairs.len());
    let why = match output.stderr.is_empty() {
        true => "git gave no answer".to_owned(),
        false => output.stderr,
    };
    let end = match output.status.code() {
        Some(_) => End::Refused(why),
        None => End::Fell(why),
    };
    Ok((done, end))
}

/// A git command on a repository whose content nobody misses after a crash.
pub(crate) fn passing(git_dir: &Path, name: &str) -> Git {
    Git::with_own_config(git_dir, name)
        .config("core.fsync", "none")
        .config("gc.auto", "0")
}

/// For each merge: `1` and a tree, or `0`, a tree, the paths by stage, and messages; an empty field ends each part.
fn parse(answer: &[u8]) -> Vec<PairMerged> {
    let mut fields = answer.split(|byte| *byte == 0);
    let mut merges = Vec::new();
    loop {
        let merged = match fields.next() {
            Some(b"1") => parse_clean(&mut fields),
            Some(b"0") => parse_conflict(&mut fields),
            _ => return merges,
        };
        // What breaks off in the middle is no answer.
        let Some(merged) = merged else { return merges };
        merges.push(merged);
    }
}

fn parse_clean<'f>(fields: &mut impl Iterator<Item = &'f [u8]>) -> Option<PairMerged> {
    fields.next()?;
    (fields.next()?.is_empty()).then_some(PairMerged::Clean)
}

fn parse_conflict<'f>(fields: &mut impl Iterator<Item = &'f [u8]>) -> Option<PairMerged> {
    let tree = Commit::parse(&String::from_utf8_lossy(fields.next()?))?;
    let mut paths: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    loop {
        let field = fields.next()?;
        if field.is_empty() {
            break;
        }
        // `<mode> <object> <stage>`, a tab, the path.
        let tab = field.iter().position(|byte| *byte == b'\t')?;
        paths.entry(field[tab + 1..].to_vec()).or_default();
    }
    loop {
        let count = fields.next()?;
        if count.is_empty() {
            break;
        }
        let count: usize = String::from_utf8_lossy(count).parse().ok()?;
        let about: Vec<_> = (0..count).map_while(|_| fields.next()).collect();
        let kind = String::from_utf8_lossy(fields.next()?).into_owned();
        fields.next()?;
        if let Some(kind) = kind.strip_prefix("CONFLICT ") {
            let kind = kind.trim_matches(['(', ')']).to_owned();
            for path in about {
                let kinds = paths.entry(path.to_vec()).or_default();
                if !kinds.contains(&kind) {
                    kinds.push(kind.clone());
                }
            }
        }
    }
    Some(PairMerged::Conflict {
        tree: tree.as_str().to_owned(),
        paths,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_merge_tree_are_read_as_documented() {
        let tree = "4".repeat(40);
        let text = format!(
            "1@{tree}@@0@{tree}@100644 {tree} 1\tx@100644 {tree} 2\tx@@1@x@Auto-merging@Auto-merging x\n@\
             2@e/new@d/new@CONFLICT (directory rename suggested)@long words\n@1@x@CONFLICT (contents)@words\n@@1@{tree}@@0@{tree}@100"
        );
        let merges = parse(text.replace('@', "\0").as_bytes());
        let kinds = |kind: &str| vec![kind.to_owned()];
        let paths = BTreeMap::from([
            (b"d/new".to_vec(), kinds("directory rename suggested")),
            (b"e/new".to_vec(), kinds("directory rename suggested")),
            (b"x".to_vec(), kinds("contents")),
        ]);
        let conflict = PairMerged::Conflict { tree, paths };
        assert_eq!(merges, [PairMerged::Clean, conflict, PairMerged::Clean]);
    }

    #[test]
    fn a_pair_that_git_can_not_merge_does_not_hide_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let git_dir = directory.path();
        Git::outside(git_dir, "init")
            .args(["-q", "--bare", "."])
            .run()
            .unwrap();
        let id = |git: Git| {
            String::from_utf8(git.run().unwrap())
                .unwrap()
                .trim()
                .to_owned()
        };
        let commit = |name: &str, text: &str, parents: &[&str]| {
            let blob = id(passing(git_dir, "hash-object")
                .args(["-w", "--stdin"])
                .input(text));
            let tree =
                id(passing(git_dir, "mktree").input(format!("100644 blob {blob}\t{name}\n")));
            let mut git = passing(git_dir, "commit-tree").args([&tree]).input("m\n");
            for parent in parents {
                git = git.args(["-p", parent]);
            }
            for who in ["AUTHOR", "COMMITTER"] {
                git = git
                    .env(format!("GIT_{who}_NAME"), "a")
                    .env(format!("GIT_{who}_EMAIL"), "a@b");
            }
            id(git)
        };
        let root = commit("f", "1\n", &[]);
        let (left, right) = (commit("f", "2\n", &[&root]), commit("f", "3\n", &[&root]));
        let stranger = commit("f", "4\n", &[]);
        let pair = |ours: &str, theirs: &str| MergePair {
            ours: ours.to_owned(),
            theirs: theirs.to_owned(),
            base: None,
        };
        let missing = "1".repeat(40);
        let merged = merge_pairs(
            git_dir,
            &root,
            &[
                pair(&left, &stranger),
                pair(&left, &right),
                pair(&missing, &left),
                pair(&root, &right),
            ],
        );
        assert!(matches!(&merged[0], PairMerged::Failed(why) if why.contains("unrelated")));
        assert!(matches!(&merged[1], PairMerged::Conflict { paths, .. } if paths.len() == 1));
        assert!(matches!(&merged[2], PairMerged::Failed(_)));
        assert_eq!(merged[3], PairMerged::Clean);
        assert_eq!(merged.len(), 4);
    }
}
