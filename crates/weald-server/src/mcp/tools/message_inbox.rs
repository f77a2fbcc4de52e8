//! `message_inbox`

use schemars::JsonSchema;
use serde::Deserialize;
use weald_app::operations::messages::ReadInbox;

use super::{Audience, Call, Effect, Fault, JsonObject, Lasts, Tool, answers, waiting};

pub struct MessageInbox;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only look; take nothing out.
    peek: Option<bool>,
    /// Also those that were taken out before; nothing is taken out.
    all: Option<bool>,
    /// Wait so long for the first one; 0 is not at all.
    #[serde(default)]
    #[schemars(range(max = 1800))]
    wait_seconds: u64,
    /// At most so many.
    limit: Option<u64>,
}

impl Tool for MessageInbox {
    const NAME: &'static str = "message_inbox";
    const TITLE: &'static str = "Read your inbox";
    const DESCRIPTION: &'static str = "Your messages, urgent ones first. Reading takes them out, each for exactly one reader, unless peek is true. Questions, plans and shutdowns need a reply.";
    const EFFECT: Effect = Effect::Writes;
    const AUDIENCE: Audience = Audience::Confined;
    type Input = Input;
    type Output = answers::messages::Messages;

    fn lasts(input: &Input) -> Lasts {
        Lasts::waiting(input.wait_seconds)
    }

    async fn call(input: Input, call: &Call<'_>) -> Result<JsonObject, Fault> {
        let all = input.all == Some(true);
        let request = ReadInbox {
            consume: input.peek != Some(true) && !all,
            all,
            limit: input.limit,
            wait: waiting(input.wait_seconds),
        };
        call.perform(request).await
    }
}
