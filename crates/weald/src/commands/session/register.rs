//! `weald session register`

use clap::Args;
use weald_core::name::SessionName;

use super::print_session;
use crate::cli::SessionArg;
use crate::context::Context;
use crate::errors::Failure;

/// Register a session
///
/// Register a session, or register it again.
#[derive(Args)]
pub struct Register {
    /// Its name (default: who you are)
    #[arg(value_name = "NAME")]
    name: Option<SessionName>,
    /// The process that is the session: it lives as long as that one (in a shell: --pid $$)
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    session: SessionArg,
}

impl Register {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = context.session(
            &engine,
            self.name.as_ref().or(self.session.session.as_ref()),
        )?;
        let view = engine.register(&name, self.pid)?;
        context.tell(&engine);
        print_session(context, &view)
    }
}
