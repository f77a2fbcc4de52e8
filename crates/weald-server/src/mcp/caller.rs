//! Who calls, and where it works: the session of a server, its task and its tree.
//!
//! A session is `--session`, `$WEALD_SESSION`, the agent that the server runs in, or one of the server's own that ends with
//! its process. Inside a sandbox the broker knows, and nothing is asked here.

use rmcp::model::JsonObject;
use serde_json::Value;
use weald_app::operations::Caller;
use weald_app::operations::looking::ShowTree;
use weald_app::operations::sessions::{RegisterSession, ShowSession};
use weald_app::operations::tasks::ShowTask;
use weald_core::error_code::ErrorCode;
use weald_core::id::Token;
use weald_core::meant::Word;

use super::arguments::TaskRef;
use super::tool::Audience;
use super::weald::{Call, Known};
use crate::broker::Fault;

impl Call<'_> {
    /// Finds out who calls, once, and registers a session that is not known yet; calls that come at the same time wait
    /// for it. What is wrong with the repository, the call itself will say.
    pub async fn introduce(&self) {
        if self.is_confined() {
            return;
        }
        let _ = self.weald.known.get_or_try_init(|| self.register()).await;
    }

    async fn register(&self) -> Result<Known, Fault> {
        let request = RegisterSession {
            name: None,
            pid: Some(std::process::id()),
            unless_alive: true,
        };
        let answer = self.perform(request).await?;
        let name = answer["session"]["name"].as_str();
        Ok(match (answer["known_by"].as_str(), name) {
            (Some("nobody"), Some(name)) => Known::Own(name.to_owned()),
            _ => Known::ByItself,
        })
    }

    /// Whether a sandbox holds the caller: then the broker knows its task and its tree.
    pub fn is_confined(&self) -> bool {
        self.weald.audience == Audience::Confined
    }

    /// The caller's session as it is recorded.
    pub async fn session(&self) -> Result<JsonObject, Fault> {
        let mut answer = self.perform(ShowSession { name: None }).await?;
        match answer.remove("session") {
            Some(Value::Object(session)) => Ok(session),
            _ => Ok(JsonObject::new()),
        }
    }

    /// The tree that is meant: the one given, the session's, or the one that the server was started in. Never main.
    pub async fn tree(&self, given: Option<String>) -> Result<Option<String>, Fault> {
        if given.is_some() || self.is_confined() {
            return Ok(given);
        }
        let session = self.session().await.unwrap_or_default();
        if let Some(Value::String(name)) = session.get("tree") {
            return Ok(Some(name.clone()));
        }
        let answer = self.perform(ShowTree::default()).await.map_err(no_tree)?;
        Ok(answer["tree"]["name"].as_str().map(str::to_owned))
    }

    /// The task that is meant, and the caller's own token for it, if it has one.
    pub async fn held(
        &self,
        given: Option<TaskRef>,
        token: Option<u64>,
    ) -> Result<(Option<Word>, Caller), Fault> {
        let given = given.map(|task| task.word()).transpose()?;
        let under = |token: Option<u64>| Caller {
            token: token.map(Token),
            ..Caller::default()
        };
        if self.is_confined() {
            return Ok((given, under(token)));
        }
        let session = self.session().await.unwrap_or_default();
        let own = session.get("task").and_then(TaskRef::of);
        let own = own.and_then(|task| Some(Word::from(&task.id().ok()?)));
        let id = given.or(own).ok_or_else(no_task)?;
        if token.is_some() {
            return Ok((Some(id), under(token)));
        }
        let id = Some(id);
        let shown = self.perform(ShowTask { id: id.clone() }).await?;
        let lease = &shown["task"]["lease"];
        let is_own = lease["session"].is_string() && lease.get("session") == session.get("name");
        let token = lease["token"].as_u64().filter(|_| is_own);
        let found = TaskRef::of(&shown["task"]["id"]).and_then(|task| task.id().ok());
        Ok((found.as_ref().map(Word::from).or(id), under(token)))
    }
}

fn no_tree(fault: Fault) -> Fault {
    match fault.code {
        ErrorCode::NoTree => Fault::new(
            ErrorCode::NoTree,
            fault.exit,
            "no worktree is given, and your session has none",
        )
        .hint("call task_claim to get one, or give its name (worktree_list has them)"),
        _ => fault,
    }
}

fn no_task() -> Fault {
    Fault::new("no_task", 2, "no task is given, and your session has none")
        .hint("call task_claim to get one, or give task_id")
}
