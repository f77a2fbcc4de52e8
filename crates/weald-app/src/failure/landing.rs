//! Errors of landings.

use crate::LandError;
use serde_json::json;
use weald_core::error_code::ErrorCode;
use weald_core::kept_change::quoted;
use weald_core::landing::{Landing, Reason};
use weald_core::queue::QueueRefusal;

use super::Failure;
use crate::exit;

impl From<LandError> for Failure {
    fn from(error: LandError) -> Self {
        let message = error.to_string();
        match error {
            LandError::Tree(error) => error.into(),
            LandError::Store(error) => error.into(),
            LandError::Git(error) => error.into(),
            LandError::Vault(error) => error.into(),
            LandError::Sandbox(error) => error.into(),
            LandError::Message(error) => error.into(),
            LandError::Queue(QueueRefusal::Held { holder }) => {
                Self::new("queue_held", exit::BUSY, message)
                    .hint("weald queue")
                    .details(json!({"holder": holder}))
            }
            LandError::Queue(QueueRefusal::Stale { .. }) => {
                Self::new("queue_lost", exit::BUSY, message).hint("weald queue")
            }
            LandError::Rule(refusal) => {
                Self::new("landing_ended", exit::REFUSED, rule_text(&refusal))
                    .hint("weald queue status --all")
                    .details(json!({"landing": refusal.id, "status": refusal.from}))
            }
            LandError::Refused(refusal) => Self::refusal((*refusal).into()),
            LandError::Outrun(target) => Self::new("target_moved", exit::BUSY, message)
                .hint("try again")
                .details(json!({"target": target})),
            LandError::Interrupted(_) => {
                Self::new("interrupted", exit::INTERRUPTED, message).hint("weald queue")
            }
            LandError::NoLanding(id) => Self::new("landing_not_found", exit::NOT_FOUND, message)
                .hint("weald queue status --all")
                .details(json!({"landing": id})),
        }
    }
}

fn rule_text(refusal: &weald_core::landing::LandingRefusal) -> String {
    format!(
        "landing {} is {} already",
        refusal.id,
        refusal.from.as_str()
    )
}

impl Failure {
    /// An agent would loosen what guards landings.
    pub fn agent_loosens(key: &str, why: &str) -> Self {
        Self::new(
            "agent_session",
            exit::REFUSED,
            format!("only a person can loosen {key}, which guards what lands; this is an agent's session: {why}"),
        )
        .hint("run it in a terminal outside the agent's session")
        .details(json!({"key": key}))
    }

    /// A flag of a command that only queues.
    pub fn setting_lost(key: &str, value: &str) -> Self {
        let message = format!(
            "--set {key} would be lost: a landing that waits in the queue is tested with the settings of the process that lands it"
        );
        Self::new("setting_lost", exit::USAGE, message)
            .hint(format!(
                "leave out --no-wait, or change the setting first: weald config set {key} {}",
                quoted(std::path::Path::new(value))
            ))
            .details(json!({"key": key}))
    }

    /// A flag of a command that would wait while another process works the queue.
    pub fn queue_of_others(key: &str) -> Self {
        let message = format!(
            "another process works the queue and would test this landing with its own settings, without --set {key}"
        );
        Self::new("setting_lost", exit::BUSY, message)
            .hint("wait until it has finished, then try again: weald queue")
            .details(json!({"key": key}))
    }

    /// An agent asks for what only a person may.
    pub fn agent_asks(what: &str, why: &str) -> Self {
        let message =
            format!("{what} is reserved for people, and this is an agent's session: {why}");
        Self::new("agent_session", exit::REFUSED, message)
            .hint("run it in a terminal outside the agent's session")
    }

    /// A landing that nothing was tested for, at least not yet; of no landing, if none was ever tested.
    pub fn no_log(landing: Option<&Landing>) -> Self {
        let message = match landing {
            None => "no landing was tested yet".to_owned(),
            Some(landing) if landing.status.is_open() => format!(
                "the tests of landing {} have not started: it is {}",
                landing.id,
                landing.status.as_str()
            ),
            Some(landing) => format!("no test command ran for landing {}", landing.id),
        };
        Self::new("no_log", exit::NOT_FOUND, message).hint("weald queue status --all")
    }

    /// A refusal as the landing itself would say it.
    pub fn refusal(reason: Reason) -> Self {
        let exit = refusal_exit(&reason);
        let failure = Self::new(reason.code, exit, reason.message);
        let failure = match reason.paths.is_empty() {
            true => failure,
            false => failure.details(json!({"paths": reason.paths})),
        };
        match reason.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The exit code of a refusal.
pub fn refusal_exit(reason: &Reason) -> u8 {
    match reason.code {
        ErrorCode::SandboxUnavailable => exit::NO_SANDBOX,
        ErrorCode::TargetBusy | ErrorCode::LandingBusy => exit::BUSY,
        _ => exit::REFUSED,
    }
}
