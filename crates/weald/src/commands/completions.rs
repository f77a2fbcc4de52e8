//! `weald completions`

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;

use weald_app::{Failure, exit};

use crate::context::Context;

/// The shells clap knows.
const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Print a shell completion script
///
/// Completes commands, task IDs and names. For bash: source <(weald completions bash)
#[derive(Args)]
pub struct Completions {
    /// Shell to print the script for
    #[arg(value_parser = PossibleValuesParser::new(SHELLS))]
    shell: String,
}

impl Completions {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let script = script(&self.shell, "weald")?;
        context.ui.out().write_all(script.as_bytes())?;
        Ok(exit::DONE)
    }
}

/// The script of a shell, which asks `program` for what fits.
pub fn script(shell: &str, program: &str) -> Result<String, Failure> {
    let shells = Shells::builtins();
    let shell = shells.completer(shell).expect("the list above is clap's");
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "weald", "weald", program, &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}
