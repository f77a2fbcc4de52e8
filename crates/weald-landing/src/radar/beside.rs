//! Which other trees change a path, from what was last seen of them: imported commits, snapshots, and looks of the radar.
//!
//! Nothing is looked into for it: one process of git compares objects that are here. So it may be a little old.

use std::path::Path;

use weald_core::claude::name_in_git;
use weald_core::name::TreeName;
use weald_core::tree::Tree;
use weald_git::Git;

use super::memory::Memory;
use crate::Landings;
use weald_trees::TreeError;

impl Landings<'_> {
    /// The live trees besides this one whose last known state has another `path` than they started from. The path is relative
    /// to the tree; one that leaves it, or has dots in it, is nobody's.
    pub fn also_changed(
        &self,
        name: Option<&str>,
        path: &Path,
    ) -> Result<Vec<TreeName>, TreeError> {
        let tree = self.trees.named(name)?;
        // Git would take anything else for a path of its own making, or die of it.
        let Some(path) = name_in_git(path) else {
            return Ok(Vec::new());
        };
        let others = self.trees.records()?.into_iter();
        let others = others.filter(|other| other.is_live() && other.id != tree.id);
        let memory = Memory::load(&self.radar_file());
        let mut asked = Vec::new();
        for other in others {
            let mut states = Vec::new();
            let head = other.head.iter().filter(|head| **head != other.base.commit);
            states.extend(head.map(|head| format!("{head}:{path}")));
            let looked = memory.states.get(&other.id);
            states.extend(looked.map(|state| format!("{}:{path}", state.commit)));
            let kept = self.trees.numbered(&other)?.pop_last();
            states.extend(kept.map(|(_, commit)| format!("{commit}:files/{path}")));
            if !states.is_empty() {
                asked.push((other, states));
            }
        }
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.differing(asked, path)
    }

    /// Those of which a state differs from the base and from the target.
    fn differing(
        &self,
        asked: Vec<(Tree, Vec<String>)>,
        path: &str,
    ) -> Result<Vec<TreeName>, TreeError> {
        let mut lines = String::new();
        for (other, states) in &asked {
            lines.push_str(&format!("{}:{path}\n", other.base.commit));
            let target = self.trees.place.repository().target(&other.target)?;
            let tip = target.map(|target| target.tip.as_str().to_owned());
            let tip = tip.unwrap_or_else(|| other.base.commit.clone());
            lines.push_str(&format!("{tip}:{path}\n"));
            lines.extend(states.iter().map(|state| format!("{state}\n")));
        }
        let radar = self.trees.place.private().join("radar.git");
        let repository = match radar.is_dir() {
            true => radar,
            false => self.trees.vault().path().to_owned(),
        };
        let answer = Git::new(&repository, "cat-file")
            .args(["--batch-check=%(objectname)"])
            .input(lines)
            .run()?;
        let answer = String::from_utf8_lossy(&answer);
        let known = |line: &str| Some(line.to_owned()).filter(|line| !line.ends_with(" missing"));
        let mut answers = answer.lines().map(known);
        let mut found = Vec::new();
        for (other, states) in asked {
            let mut before = vec![answers.next().flatten()];
            before.push(answers.next().flatten());
            let now: Vec<_> = answers.by_ref().take(states.len()).collect();
            let is_new = |state: &Option<String>| state.is_some() && !before.contains(state);
            if now.iter().any(is_new) {
                found.push(other.name);
            }
        }
        Ok(found)
    }
}
