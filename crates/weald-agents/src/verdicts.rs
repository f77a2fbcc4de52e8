//! The verdict of a phase.
//!
//! A verdict is a file in a folder of its own that only this agent's run sees and writes. The host reads it through the
//! door: bounded, and without following anything.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use weald_core::agent::Agent;
use weald_core::phases;
use weald_core::store::AgentFilter;
use weald_core::verdict::Verdict;
use weald_git::{Door, DoorError};
use weald_sandbox::Revealed;

use super::AgentError;
use super::Agents;
use super::error::at;
use weald_trees::RunRequest;

const FILE: &str = "verdict.json";

/// The largest verdict that is read.
const LIMIT: u64 = 256 * 1024;

impl Agents<'_> {
    /// The part that an agent plays, in words.
    pub(super) fn part_of(&self, agent: &Agent) -> Result<Option<String>, AgentError> {
        if agent.entry().is_some() {
            let text = "Several agents do this task at the same time, each in its own worktree. The best work lands.";
            return Ok(Some(text.to_owned()));
        }
        let Some(phase) = agent.phase() else {
            return Ok(None);
        };
        let before = self.trees.engine.agents(&AgentFilter {
            open: false,
            task: Some(agent.task.clone()),
        })?;
        let must_fix = phases::course(&self.trees.config.phase_list, &before).must_fix;
        let own = phases::entry(&self.trees.config.phase_prompts, phase);
        let file = self.verdict_folder(agent).join(FILE);
        Ok(Some(phases::part(
            phase,
            own,
            &must_fix,
            &file.display().to_string(),
        )))
    }

    fn verdict_folder(&self, agent: &Agent) -> PathBuf {
        let tree = agent.tree_id.unwrap_or_default();
        let folder = self.trees.place.home_of(tree).join("verdicts");
        folder.join(agent.id.to_string())
    }

    /// Gives a phase its place for a verdict, and tells its run about it.
    pub(super) fn expect_verdict(
        &self,
        agent: &Agent,
        request: &mut RunRequest,
    ) -> Result<(), AgentError> {
        let Some(role) = &agent.role else {
            return Ok(());
        };
        let environment = &mut request.environment;
        environment.push(("WEALD_ROLE".into(), role.into()));
        if agent.phase().is_none() {
            return Ok(());
        }
        let folder = self.verdict_folder(agent);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&folder).map_err(at(&folder))?;
        environment.push((
            OsString::from("WEALD_VERDICT_FILE"),
            folder.join(FILE).into(),
        ));
        if let Some(policy) = &mut request.policy {
            policy.reveal.push(Revealed {
                path: folder,
                writable: true,
            });
        }
        Ok(())
    }

    /// What a phase wrote, if it wrote anything; it is taken away, so that nobody reads it twice.
    pub fn written_verdict(&self, agent: &Agent) -> Option<Result<Verdict, String>> {
        let folder = self.verdict_folder(agent);
        let door = Door::open(&folder).ok()?;
        let written = match door.read(FILE, LIMIT) {
            Ok(bytes) => Verdict::parse(&bytes),
            Err(DoorError::Absent { .. }) => return None,
            Err(error) => Err(error.to_string()),
        };
        let _ = door.remove(FILE);
        Some(written)
    }
}
