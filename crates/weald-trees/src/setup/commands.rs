//! Running what sets a tree up: in the tree, in its sandbox, at the configured level and no weaker one.

use std::ffi::OsString;
use std::io::Write;
use std::process::Stdio;

use weald_core::setup::{Proposal, SetupOutcome, expand};
use weald_core::tree::Tree;
use weald_sandbox::{Budget, Ended, Invocation, SandboxError, launch, pass_on};

use super::Setup;
use crate::interruption::wait_or_interrupt;
use crate::run::{RunRequest, overlaid};
use crate::setup_report::CommandResult;
use crate::{TreeError, Trees};

/// How much output of a set-up is passed on.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// The file whose commands have `{{ variables }}`.
const TEMPLATES_FILE: &str = ".config/wt.toml";

/// One thing to run.
pub struct Step {
    /// What people call it.
    pub told: String,
    pub words: Vec<OsString>,
    /// A hook that fails is told; a command that fails ends the set-up.
    pub is_hook: bool,
}

impl Trees<'_> {
    /// The commands of a proposal as steps, or why one can't be.
    pub(super) fn command_steps(
        &self,
        tree: &Tree,
        proposal: &Proposal,
    ) -> Result<Vec<Step>, String> {
        let step = |command: &String| {
            let text = match proposal.from.as_str() {
                TEMPLATES_FILE => expand(command, |name| self.template_value(tree, name))?,
                _ => command.to_owned(),
            };
            Ok(Step {
                told: command.to_owned(),
                words: ["sh", "-c", &text].iter().map(OsString::from).collect(),
                is_hook: false,
            })
        };
        proposal.commands.iter().map(step).collect()
    }

    /// Runs all of them, between two records.
    pub(super) fn run_steps(
        &self,
        tree: Tree,
        steps: &[Step],
        setup: &mut Setup,
    ) -> Result<Tree, TreeError> {
        let request = RunRequest {
            policy: Some(self.run_policy(&tree)),
            directory: tree.path.clone(),
            environment: self.setup_environment(&tree),
            notes: Vec::new(),
            tree,
        };
        let tree = self.begin_run(&request, "set-up")?;
        let budget = Budget::new(OUTPUT_LIMIT);
        let mut last = None;
        for step in steps {
            let ended = self.run_step(&request, step, &budget);
            last = ended.as_ref().ok().copied();
            if !setup.accepts(step, ended) {
                break;
            }
        }
        if budget.was_cut() {
            setup
                .notes
                .push("the set-up printed more than 1 MiB; the rest was dropped".to_owned());
        }
        self.end_run(&tree, last)
    }

    fn run_step(
        &self,
        request: &RunRequest,
        step: &Step,
        budget: &std::sync::Arc<Budget>,
    ) -> Result<Ended, SandboxError> {
        let policy = request.policy.as_ref().expect("made with one");
        let mut narration = (self.host.narration)();
        let _ = writeln!(narration, "{}: {}", request.tree.name, step.told.trim_end());
        let invocation = Invocation {
            helper: self.host.helper.clone(),
            command: step.words.clone(),
            directory: request.directory.clone(),
            environment: request.environment.clone(),
            streams: [Stdio::null(), Stdio::piped(), Stdio::piped()],
        };
        let mut running = launch(policy, invocation)?;
        let (_, stdout, stderr) = running.streams();
        let out = stdout.map(|stream| pass_on(stream, (self.host.narration)(), budget));
        let err = stderr.map(|stream| pass_on(stream, (self.host.narration)(), budget));
        let limit = self.config.setup_timeout.unsigned_abs();
        let ended = wait_or_interrupt(running, limit, &self.host.cancel)?;
        for thread in out.into_iter().chain(err) {
            // Nobody may be left to read it.
            let _ = thread.join();
        }
        Ok(ended)
    }

    /// What commands in the tree see, and the names that other tools have for it.
    pub fn setup_environment(&self, tree: &Tree) -> Vec<(OsString, OsString)> {
        let main = self.place.root();
        let port = tree.ports.map(|block| block.first.to_string());
        let others: [(&str, OsString); 8] = [
            ("CODEX_WORKTREE_PATH", tree.path.clone().into()),
            ("CODEX_SOURCE_TREE_PATH", main.clone().into()),
            ("ROOT_WORKTREE_PATH", main.clone().into()),
            ("CONDUCTOR_ROOT_PATH", main.into()),
            ("CONDUCTOR_WORKSPACE_PATH", tree.path.clone().into()),
            ("CONDUCTOR_WORKSPACE_NAME", tree.name.as_str().into()),
            ("CONDUCTOR_DEFAULT_BRANCH", tree.target.clone().into()),
            ("CONDUCTOR_PORT", port.unwrap_or_default().into()),
        ];
        overlaid(self.run_environment(tree), others)
    }

    /// What worktrunk's variables stand for.
    fn template_value(&self, tree: &Tree, name: &str) -> Option<String> {
        let main = self.place.root();
        let last = |path: &std::path::Path| {
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        match name {
            "branch" => Some(tree.branch.clone()),
            "worktree_path" | "worktree" => Some(tree.path.display().to_string()),
            "worktree_name" => last(&tree.path),
            "repo" | "main_worktree" => last(&main),
            "repo_path" | "repo_root" | "primary_worktree_path" => Some(main.display().to_string()),
            "default_branch" | "target" => Some(tree.target.clone()),
            "base" => Some(tree.base.reference.clone()),
            "commit" => Some(tree.base.commit.clone()),
            "short_commit" => tree.base.commit.get(..7).map(str::to_owned),
            _ => None,
        }
    }
}

impl Setup {
    /// Notes how a step ended; false when nothing may follow it.
    fn accepts(&mut self, step: &Step, ended: Result<Ended, SandboxError>) -> bool {
        let exit = match &ended {
            Ok(ended) => ended.code(),
            Err(_) => None,
        };
        let why = match ended {
            Ok(Ended::Code(0)) => None,
            Ok(Ended::Code(code)) => Some(format!("exit code {code}")),
            Ok(Ended::Signal(signal)) => Some(format!("ended by signal {signal}")),
            Ok(Ended::TimedOut) => Some("it took longer than setup.timeout".to_owned()),
            Err(error @ SandboxError::Unavailable { .. }) if !step.is_hook => {
                let why = format!("`{}` did not run: {error}", step.told);
                self.fails(SetupOutcome::Unavailable, why);
                self.unavailable = Some(error);
                return false;
            }
            Err(error) => Some(format!("it did not run: {error}")),
        };
        if step.is_hook {
            let note = |why| format!("the {} failed: {why}", step.told);
            self.notes.extend(why.map(note));
            return true;
        }
        self.report.commands.push(CommandResult {
            command: step.told.clone(),
            exit,
        });
        match why {
            None => true,
            Some(why) => {
                self.fails(
                    SetupOutcome::Failed,
                    format!("`{}` failed: {why}", step.told.trim_end()),
                );
                false
            }
        }
    }
}
