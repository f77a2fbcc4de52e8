//! `weald mcp`

use std::sync::Arc;

use clap::{Args, ValueEnum};
use weald_app::Ask;
use weald_app::{Failure, LoadedConfig, SessionError, exit};
use weald_core::SignedDuration;
use weald_core::error_code::ErrorCode;
use weald_server::broker::Client;
use weald_server::mcp::{Audience, Host, Weald, serve};
use weald_store::DATABASE_FILE;

use crate::cli::{SessionArg, duration};
use crate::context::Context;

/// Serve weald's operations as MCP tools on stdin and stdout
///
/// Every call counts as made by an agent. Without a session, the server registers one that ends with it. The session's
/// claims stay valid while the server runs.
#[derive(Args)]
pub struct Mcp {
    /// Role whose tools are offered
    ///
    /// A teammate does tasks; a lead also assigns them. Inside a sandbox, offers only the tools that its agent may use.
    #[arg(long, value_name = "ROLE", default_value = "lead")]
    role: Role,
    #[command(flatten)]
    session: SessionArg,
    /// Time between heartbeats of the session
    #[arg(long, value_name = "2m", value_parser = duration, default_value = "2m", hide = true)]
    beat: SignedDuration,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    Lead,
    Teammate,
}

impl Mcp {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if let Some(name) = &self.session.session {
            name.require_free().map_err(SessionError::from)?;
        }
        let broker = context.broker();
        // Also in a sandbox whose broker can't be found, or whose variables are gone: nothing more would work there.
        let is_shut = || match context.place() {
            Ok(place) => place.is_shut(DATABASE_FILE),
            // A tree whose repository is out of sight.
            Err(failure) => failure.code == ErrorCode::TreeLost,
        };
        let is_inside = broker.is_some() || context.is_confined() || is_shut();
        let audience = match self.role {
            _ if is_inside => Audience::Confined,
            Role::Teammate => Audience::Teammate,
            Role::Lead => Audience::Lead,
        };
        let mut weald = Weald::new(context.helper()?, context.settings(), audience);
        weald.session = self.session.session.map(|name| name.to_string());
        weald.aliases = match &broker {
            Some(broker) => aliases_inside(broker),
            None => aliases(context),
        };
        if audience != Audience::Confined {
            weald.host = Some(Arc::new(Host::of(context)));
        }
        serve(weald, self.beat.unsigned_abs())?;
        Ok(exit::DONE)
    }
}

/// Whose names tools have, too. Outside of a repository, or with settings that can't be read, nobody's: calls say why.
fn aliases(context: &Context<'_>) -> String {
    let loaded = context.place().and_then(|place| context.config(&place));
    let name = |loaded: LoadedConfig| loaded.config.mcp_aliases.as_str().to_owned();
    loaded.map_or_else(|_| String::new(), name)
}

/// The same inside a tree, where the host knows.
fn aliases_inside(broker: &Client) -> String {
    let told = broker.ask(None, None, Ask::Overview {}).ok();
    let name = told.and_then(|reply| Some(reply.answer.get("mcp_aliases")?.as_str()?.to_owned()));
    name.unwrap_or_default()
}
