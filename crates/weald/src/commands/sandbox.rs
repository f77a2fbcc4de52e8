//! `weald sandbox …`

mod exec;
mod explain;
mod test;

use clap::Subcommand;

use weald_app::Failure;

use crate::context::Context;

/// Run sandboxed commands and check the sandbox.
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Sandbox {
    Exec(exec::Exec),
    Explain(explain::Explain),
    Test(test::Test),
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::Explain(explain::Explain::default())
    }
}

impl Sandbox {
    /// Does what was asked.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        match self {
            Self::Exec(command) => command.run(context),
            Self::Explain(command) => command.run(context),
            Self::Test(command) => command.run(context),
        }
    }
}
