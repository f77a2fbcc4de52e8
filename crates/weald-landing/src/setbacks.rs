//! What kept a worktree's work from landing, put together for the agent that continues.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use weald_core::landing::{Landing, LandingStatus};
use weald_core::setback::{LISTED, Setback};
use weald_core::tree::Tree;
use weald_git::Git;

use super::LandError;
use crate::Landings;

/// How much of the beginning and the end of a log is read.
const HEAD: usize = 4 << 10;
const TAIL: u64 = 256 << 10;

impl Landings<'_> {
    /// What kept the work in a tree from landing; `None` if its newest landing landed, or never ended.
    pub fn setback(&self, tree: &Tree) -> Result<Option<Setback>, LandError> {
        let landings = self.trees.engine.look(|tx| tx.landings_of(&tree.name))?;
        let mut newest_first = landings.into_iter().rev();
        let Some(landing) =
            newest_first.find(|one| one.tree_id == tree.id && one.reverts.is_none())
        else {
            return Ok(None);
        };
        Ok(match landing.status {
            LandingStatus::Red => Some(tests(&landing)),
            LandingStatus::Conflict => Some(self.conflict(tree, &landing)?),
            LandingStatus::Refused => landing.reason.map(|reason| Setback::Refused {
                reason: reason.message,
                paths: reason.paths,
            }),
            _ => None,
        })
    }

    fn conflict(&self, tree: &Tree, landing: &Landing) -> Result<Setback, LandError> {
        let sides = |from: &str, to: &str| self.commits_on(tree, from, to, &landing.conflicts);
        let (ours, theirs) = match self.trees.target_tip(tree)? {
            Some(tip) => (sides(&tip, &landing.head)?, sides(&landing.head, &tip)?),
            None => (Vec::new(), Vec::new()),
        };
        Ok(Setback::Conflict {
            paths: landing.conflicts.clone(),
            ours,
            theirs,
            target: landing.target.clone(),
            strategy: landing.strategy,
        })
    }

    /// Commits of `to` that `from` lacks and that touch one of these paths, newest first: short id and subject.
    fn commits_on(
        &self,
        tree: &Tree,
        from: &str,
        to: &str,
        paths: &[String],
    ) -> Result<Vec<String>, LandError> {
        let log = Git::new(&self.trees.comparing(tree), "log")
            .args(["--format=%h %s", "--no-show-signature", "--no-color"])
            .args([format!("--max-count={}", LISTED + 1)])
            .args([to.to_owned(), format!("^{from}"), "--".to_owned()])
            .args(paths.iter().take(LISTED))
            .env("GIT_LITERAL_PATHSPECS", "1");
        let said = log.run()?;
        let text = String::from_utf8_lossy(&said);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn tests(landing: &Landing) -> Setback {
    let log = landing.log.as_deref();
    let (command, output) = log.and_then(|log| read(log).ok()).unwrap_or_default();
    let reason = landing.reason.as_ref();
    Setback::Tests {
        command,
        ended: reason.map_or_else(String::new, |reason| reason.message.clone()),
        output,
    }
}

/// The last lines of what a gate's command printed, by its log; of a failed set-up, with the command that failed.
pub fn last_output(log: &Path, count: usize) -> Vec<String> {
    let (command, output) = read(log).unwrap_or_default();
    let output = output
        .rsplit_once("\nended:")
        .map_or(&*output, |(output, _)| output);
    let of_gate = output.rsplit_once(&format!("$ {command}\n"));
    let output = of_gate.map_or(output, |(_, output)| output).trim_end();
    let mut lines: Vec<_> = output
        .lines()
        .rev()
        .take(count)
        .map(str::to_owned)
        .collect();
    lines.reverse();
    lines
}

/// The command at the head of a gate's log, and the end of what follows the head.
fn read(path: &Path) -> std::io::Result<(String, String)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut start = Vec::new();
    file.by_ref().take(HEAD as u64).read_to_end(&mut start)?;
    let start = String::from_utf8_lossy(&start).into_owned();
    let (head, _) = start.split_once("\n\n").unwrap_or((&start, ""));
    let command = head
        .split_once("\ncommand:")
        .and_then(|(_, rest)| rest.split_once("\ncandidate:"))
        .map_or("", |(command, _)| command.trim());
    let from = (head.len() as u64).max(length.saturating_sub(TAIL));
    file.seek(SeekFrom::Start(from.min(length)))?;
    let mut rest = Vec::new();
    file.take(TAIL).read_to_end(&mut rest)?;
    let output = String::from_utf8_lossy(&rest);
    Ok((command.to_owned(), output.trim_start().to_owned()))
}
