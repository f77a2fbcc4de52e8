//! A provider that does not serve an agent: a usage limit until some time, a login that is good no more.

use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::answers::Api;
use super::http;

/// What is in the way of a turn.
#[derive(Debug, Clone)]
pub struct Outage(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    /// For so long after the first request.
    Limit(Duration, OnceLock<(Instant, u64)>),
    /// Until the agent logs in with this.
    Login(String),
}

impl Outage {
    /// A usage limit that is reset so long after the first request that meets it.
    pub fn limit(length: Duration) -> Self {
        Self(Arc::new(Kind::Limit(length, OnceLock::new())))
    }

    /// A login that is refused unless it has this token.
    pub fn login(token: &str) -> Self {
        Self(Arc::new(Kind::Login(token.to_owned())))
    }

    pub(super) fn refuses(&self, token: &str) -> bool {
        match &*self.0 {
            Kind::Limit(length, reset) => {
                let (until, _) = reset.get_or_init(|| {
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "agents compare it with their clock"
                    )]
                    let now = SystemTime::now().duration_since(UNIX_EPOCH);
                    let now = now.expect("the clock is right").as_secs();
                    (Instant::now() + *length, now + length.as_secs())
                });
                Instant::now() < *until
            }
            Kind::Login(good) => token != good,
        }
    }

    /// Answers as the provider of an API does.
    pub(super) fn write(&self, stream: &TcpStream, api: Api) -> Option<()> {
        let of_anthropic = |kind: &str, text: &str| -> Value {
            json!({"type": "error", "error": {"type": kind, "message": text}})
        };
        match (&*self.0, api) {
            (Kind::Limit(_, reset), api) => {
                let (_, at) = reset.get()?;
                let unified = |name: &str| format!("anthropic-ratelimit-unified-{name}");
                let (status, at_header, claim) = (
                    unified("status"),
                    unified("reset"),
                    unified("representative-claim"),
                );
                let headers = [
                    (status.as_str(), "rejected".to_owned()),
                    (at_header.as_str(), at.to_string()),
                    (claim.as_str(), "five_hour".to_owned()),
                    ("x-should-retry", "false".to_owned()),
                    ("retry-after", "3600".to_owned()),
                ];
                let answer = match api {
                    Api::Messages => of_anthropic("rate_limit_error", "over your rate limit"),
                    Api::Responses => json!({"error": {
                        "type": "usage_limit_reached", "message": "The usage limit has been reached",
                        "plan_type": "plus", "resets_at": at, "resets_in_seconds": 3600,
                    }}),
                };
                http::write_refusal(stream, "429 Too Many Requests", &headers, &answer)
            }
            (Kind::Login(_), api) => {
                let answer = match api {
                    Api::Messages => {
                        of_anthropic("authentication_error", "OAuth token has expired.")
                    }
                    Api::Responses => json!({"error": {"message": "The token has expired."}}),
                };
                http::write_refusal(stream, "401 Unauthorized", &[], &answer)
            }
        }
    }
}
