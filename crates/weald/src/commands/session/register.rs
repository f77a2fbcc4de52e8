//! `weald session register`

use clap::Args;
use weald_app::{Failure, IdentitySource};
use weald_core::session::Liveness;

use super::{Which, print_line};
use crate::context::Context;
use crate::ui::Fields;

/// Register a session
///
/// An existing session is registered again.
#[derive(Args)]
pub struct Register {
    #[command(flatten)]
    which: Which,
    /// Process whose life is that of the session (in a shell: --pid $$)
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Do nothing if it is registered and not known to be dead
    #[arg(long)]
    unless_alive: bool,
}

impl Register {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let name = self.which.resolve(context, &engine)?;
        let source = context.identity(&engine, self.which.given())?.source;
        let known = engine
            .session(&name)
            .ok()
            .filter(|view| view.session.ended_at.is_none() && view.liveness != Liveness::Dead);
        let view = match (known.filter(|_| self.unless_alive), source) {
            (Some(view), _) => view,
            (None, IdentitySource::Flag | IdentitySource::Variable) => {
                engine.register(&name, self.pid)?
            }
            (None, _) => engine.register_given(&name, self.pid)?,
        };
        context.tell(&engine);
        let now = context.now();
        context.ui.answer(
            || {
                Fields::new()
                    .with("session", &view)
                    .with("known_by", &known_by(source))
            },
            |out| print_line(out, &view, now),
        )
    }
}

/// How the caller was recognised, in JSON.
fn known_by(source: IdentitySource) -> &'static str {
    match source {
        IdentitySource::Flag => "flag",
        IdentitySource::Variable => "variable",
        IdentitySource::Agent => "agent",
        IdentitySource::Ancestor => "ancestor",
        IdentitySource::Anonymous => "nobody",
    }
}
