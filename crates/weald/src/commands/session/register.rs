//! `weald session register`

use clap::Args;
use weald_engine::IdentitySource;

use super::{Which, print_session};
use crate::context::Context;
use crate::errors::Failure;

/// Register a session
///
/// Register a session, or register it again.
#[derive(Args)]
pub struct Register {
    #[command(flatten)]
    which: Which,
    /// The process that is the session: it lives as long as that one (in a shell: --pid $$)
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

impl Register {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = self.which.resolve(context, &engine)?;
        let view = match context.identity(&engine, self.which.given())?.source {
            IdentitySource::Flag | IdentitySource::Variable => engine.register(&name, self.pid)?,
            _ => engine.register_given(&name, self.pid)?,
        };
        context.tell(&engine);
        print_session(context, &view)
    }
}
