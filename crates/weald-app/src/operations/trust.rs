//! Commands and hosts that the repository proposes, and whether a person approved them.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::{Call, Failure, Landings, Trees, Trust};

entries!(ListTrust, ApproveCommands, RevokeTrust);

/// Which commands of the repository may run.
#[derive(Debug, Serialize)]
pub struct ShownTrust {
    /// What it proposes, and what was approved.
    pub trust: Trust,
}

/// Shows which commands of the repository may run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListTrust {}

impl Operation for ListTrust {
    const NAME: &'static str = "trust_list";
    type Output = ShownTrust;

    fn run(self, call: &Call<'_>) -> Result<ShownTrust, Failure> {
        shown(call, |trees| Ok(trees.trust()?))
    }
}

/// Approves what is proposed now. No agent may.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproveCommands {}

impl Operation for ApproveCommands {
    const NAME: &'static str = "trust";
    type Output = ShownTrust;

    fn run(self, call: &Call<'_>) -> Result<ShownTrust, Failure> {
        shown(call, |trees| {
            Landings::new(trees).refuse_agents()?;
            Ok(trees.approve()?)
        })
    }
}

/// Takes every approval back.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeTrust {}

impl Operation for RevokeTrust {
    const NAME: &'static str = "trust_revoke";
    type Output = ShownTrust;

    fn run(self, call: &Call<'_>) -> Result<ShownTrust, Failure> {
        shown(call, |trees| Ok(trees.revoke()?))
    }
}

fn shown(
    call: &Call<'_>,
    done: impl FnOnce(&Trees<'_>) -> Result<Trust, Failure>,
) -> Result<ShownTrust, Failure> {
    let ground = call.ground()?;
    ground.warn_of_settings(call);
    let trust = done(&ground.trees(call)?)?;
    call.tell(&ground.engine);
    for note in &trust.notes {
        call.warn(note);
    }
    Ok(ShownTrust { trust })
}
