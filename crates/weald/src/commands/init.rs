//! `weald init`

use std::io::{self, IsTerminal, Write};

use clap::Args;
use clap::builder::PossibleValuesParser;
use weald_app::operations::configuration::{ChooseProfile, Initialized};
use weald_app::{Failure, INCLUDE_FILE, SHARED_FILE};
use weald_core::config::PROFILES;

use crate::context::Context;
use crate::ui::{Out, clean_line, print_proposal};

/// Set weald up for this repository
///
/// Chooses the conventions, detects the project's tools, and proposes tests for landings, set-up for new worktrees and
/// files to copy. Asks on a terminal; elsewhere it only prints the proposal, unless --yes is given. Optional: weald works
/// without it.
#[derive(Args)]
pub struct Init {
    /// Conventions to start from (default: the current ones)
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(PROFILES))]
    profile: Option<String>,
    /// Write weald.toml for everyone instead of your private file
    #[arg(long)]
    shared: bool,
    /// Write everything that is proposed without asking
    #[arg(long, short)]
    yes: bool,
}

impl Init {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ask = !context.ui.is_json()
            && !self.yes
            && io::stdin().is_terminal()
            && io::stderr().is_terminal();
        let answer = context.perform(ChooseProfile {
            profile: self.profile,
            shared: self.shared,
            yes: self.yes,
            ask,
        })?;
        let init = &answer.init;
        context.ui.show(&answer, |out| {
            writeln!(out, "profile {} in {}", init.profile, init.file)?;
            print_project(out, init, ask)?;
            if let Some(command) = &init.reveal {
                let because = &init.because;
                writeln!(out, "runs can't see what this project seems to use: {because}")?;
                writeln!(out, "to show it to them: {command}")?;
            }
            match init.shared {
                true => {
                    let target = init.target.as_deref().unwrap_or("the target");
                    let also = match init.written.iter().any(|key| key == INCLUDE_FILE) {
                        true => format!(" {INCLUDE_FILE}"),
                        false => String::new(),
                    };
                    writeln!(out, "it takes effect once it is committed on {target}: git add {SHARED_FILE}{also} && git commit")?;
                    let commands = ["setup.commands", "gate.command"];
                    match init.written.iter().any(|key| commands.contains(&key.as_str())) {
                        true => writeln!(out, "then everyone approves its commands once: weald trust"),
                        false => Ok(()),
                    }
                }
                false => writeln!(out, "next: weald task add \"what to do\""),
            }
        })
    }
}

/// What was detected and what became of it.
fn print_project(out: &mut Out, init: &Initialized, was_asked: bool) -> io::Result<()> {
    let project = &init.project;
    // A person who was asked has just seen it.
    if !was_asked || project.settings.is_empty() {
        print_proposal(out, project)?;
    }
    match (init.written.is_empty(), project.settings.is_empty()) {
        (false, _) => {
            let keys = init.written.join(", ");
            writeln!(out, "set {} (to see them: weald config)", clean_line(&keys))
        }
        (true, false) => writeln!(out, "to set all of it: weald init --yes"),
        (true, true) => Ok(()),
    }
}
