//! `weald completions`

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;

use crate::context::Context;
use crate::errors::Failure;
use crate::exit;

/// The shells clap knows.
const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Print the completion script of a shell
///
/// It asks weald for task ids and names: source <(weald completions bash)
#[derive(Args)]
pub struct Completions {
    /// The shell
    #[arg(value_parser = PossibleValuesParser::new(SHELLS))]
    shell: String,
}

impl Completions {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let shells = Shells::builtins();
        let shell = shells
            .completer(&self.shell)
            .expect("the list above is clap's");
        let mut script = Vec::new();
        shell.write_registration("COMPLETE", "weald", "weald", "weald", &mut script)?;
        context.ui.out().write_all(&script)?;
        Ok(exit::DONE)
    }
}
