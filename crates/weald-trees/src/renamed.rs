//! A target that was renamed on the host is followed: git's own log of the branch says what it was called before.

use weald_core::store::Durability;
use weald_core::tree::Tree;
use weald_core::tree_rules::TreeInput;
use weald_git::{Git, RefName, list_tips};

use super::{TreeError, Trees};
use weald_control::files::read_small;

/// The largest log of a branch that is read.
const LOG_LIMIT: u64 = 16 << 20;

impl Trees<'_> {
    /// The tree with a target that exists: its own, the branch that this was renamed to, or the one that the user set since
    /// if it holds what the tree began with. A branch that is merely gone is not guessed at.
    pub fn with_target(&self, tree: Tree) -> Result<Tree, TreeError> {
        let repository = self.repository();
        if repository.target(&tree.target)?.is_some() {
            return Ok(tree);
        }
        let chosen = match self.renamed(&tree.target)? {
            Some(renamed) => Some(renamed),
            None => self.chosen_instead(&tree)?,
        };
        let Some(target) = chosen else {
            let (name, target, base) = (tree.name, tree.target, tree.base.commit);
            return Err(TreeError::TargetGone { name, target, base });
        };
        self.engine.notice(format!(
            "{} is now called {target}; {} lands there",
            tree.target, tree.name
        ));
        self.decide(&tree, Durability::Process, TreeInput::Retargeted(target))
    }

    /// Makes a target here that only its remote has, as `git switch` would: landings move a branch of this repository.
    pub fn require_local_target(&self, target: &str) -> Result<(), TreeError> {
        let repository = self.repository();
        let is_here = repository.resolve(&format!("refs/heads/{target}"))?;
        let remote = format!("refs/remotes/origin/{target}");
        if is_here.is_some() || repository.resolve(&remote)?.is_none() {
            return Ok(());
        }
        let made = Git::new(repository.common_dir(), "branch")
            .args(["-q", "--track", "--end-of-options", target])
            .args([format!("origin/{target}")])
            .run();
        match made {
            Ok(_) => self.engine.notice(format!(
                "branch {target} was created from origin/{target}, which it tracks"
            )),
            // Another landing may have made it meanwhile.
            Err(error) => {
                let is_here = repository.resolve(&format!("refs/heads/{target}"))?;
                is_here.ok_or(error)?;
            }
        }
        Ok(())
    }

    /// What a branch is called now, if exactly one has its log.
    fn renamed(&self, old: &str) -> Result<Option<String>, TreeError> {
        let common_dir = self.common_dir();
        if self.repository().has_reftable() {
            return self.renamed_in_tables(old);
        }
        let said = format!("\tBranch: renamed refs/heads/{old} to refs/heads/");
        let was = |name: &RefName| {
            let log = read_small(&name.log_in(common_dir), LOG_LIMIT);
            log.ok().flatten().is_some_and(|log| log.contains(&said))
        };
        let branches = list_tips(common_dir, &["refs/heads/"])?;
        let names = branches.iter().filter_map(|one| RefName::parse(&one.name));
        let found: Vec<_> = names.filter(was).collect();
        Ok(match &found[..] {
            [one] => one.as_str().strip_prefix("refs/heads/").map(str::to_owned),
            _ => None,
        })
    }

    /// The same where logs are in tables, which git alone reads.
    fn renamed_in_tables(&self, old: &str) -> Result<Option<String>, TreeError> {
        let common_dir = self.common_dir();
        let told = Git::new(common_dir, "log")
            .args(["--walk-reflogs", "--branches", "--format=%gD %gs", "--"])
            .output()?;
        let text = String::from_utf8_lossy(&told.stdout);
        let said = format!(" Branch: renamed refs/heads/{old} to refs/heads/");
        let lines = text.lines().filter(|line| line.contains(&said));
        let names = lines.filter_map(|line| line.split_once("@{"));
        let mut found: Vec<_> = names
            .map(|(name, _)| name.strip_prefix("refs/heads/").unwrap_or(name))
            .collect();
        found.dedup();
        Ok(match found[..] {
            [one] => Some(one.to_owned()),
            _ => None,
        })
    }

    /// The target that the user set, if it holds what the tree began with.
    fn chosen_instead(&self, tree: &Tree) -> Result<Option<String>, TreeError> {
        let Some((branch, tip)) = &self.target else {
            return Ok(None);
        };
        if self.config.target != *branch || tree.scratch_for.is_some() {
            return Ok(None);
        }
        self.vault().require(&self.main_refs()?, &[tip])?;
        let holds = self.contains(tip, &tree.base.commit)?;
        Ok(holds.then(|| branch.clone()))
    }
}
