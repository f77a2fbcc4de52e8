//! The call of a hook: where an agent is, in its name.

use std::path::PathBuf;

use weald_core::name::SessionName;

use super::App;
use crate::progress::Progress;

impl App<'_> {
    /// The same for a hook of an agent: elsewhere, with further settings, and in the agent's name unless a variable has one.
    pub fn for_hook<'b>(
        &self,
        progress: &'b dyn Progress,
        directory: PathBuf,
        settings: Vec<(String, String)>,
        session: Option<SessionName>,
    ) -> App<'b> {
        let named = self.environment.get("WEALD_SESSION");
        App {
            progress,
            narration: self.narration,
            environment: self.environment.clone(),
            directory,
            overrides: [self.overrides.clone(), settings].concat(),
            agent: session.filter(|_| named.is_none_or(|name| name.is_empty())),
            only_reads: false,
            news: self.news.for_another(),
        }
    }
}
