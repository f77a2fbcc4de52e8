//! The context of a hook: where an agent is, in its name.

use std::path::PathBuf;

use weald_core::name::SessionName;

use super::Context;
use crate::ui::Ui;

impl Context<'_> {
    /// The same for a hook of an agent: elsewhere, with further settings, and in the agent's name unless a variable has one.
    pub fn for_hook<'b>(
        &self,
        ui: &'b Ui,
        directory: PathBuf,
        settings: Vec<(String, String)>,
        session: Option<SessionName>,
    ) -> Context<'b> {
        let named = self.environment.get("WEALD_SESSION");
        Context {
            ui,
            environment: self.environment.clone(),
            directory,
            overrides: [self.overrides.clone(), settings].concat(),
            agent: session.filter(|_| named.is_none_or(|name| name.is_empty())),
            only_reads: false,
            news: self.news.for_another(),
        }
    }
}
