//! `weald init`

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use weald_app::operations::configuration::ChooseProfile;
use weald_app::{Failure, SHARED_FILE};
use weald_core::config::PROFILES;

use crate::context::Context;

/// Choose the conventions for this repository
///
/// Optional: weald works without it.
#[derive(Args)]
pub struct Init {
    /// Conventions to start from (default: the current ones)
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(PROFILES))]
    profile: Option<String>,
    /// Write weald.toml for everyone instead of your private file
    #[arg(long)]
    shared: bool,
}

impl Init {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ChooseProfile {
            profile: self.profile,
            shared: self.shared,
        })?;
        let init = &answer.init;
        context.ui.show(&answer, |out| {
            writeln!(out, "profile {} in {}", init.profile, init.file)?;
            if let Some(command) = &init.reveal {
                let because = &init.because;
                writeln!(out, "runs can't see what this project seems to use: {because}")?;
                writeln!(out, "to show it to them: {command}")?;
            }
            match init.shared {
                true => {
                    let target = init.target.as_deref().unwrap_or("the target");
                    writeln!(out, "it takes effect once it is committed on {target}: git add {SHARED_FILE} && git commit")
                }
                false => writeln!(out, "next: weald task add \"what to do\""),
            }
        })
    }
}
