//! Which worktrees would conflict with their targets and with each other.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::{Call, Failure, Landings, Radar, Told};

entries!(FindConflicts);

/// Compares worktrees before they land.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindConflicts {
    /// Only what concerns these worktrees or tasks.
    pub names: Vec<String>,
    /// Notify the owners, once per conflict.
    pub tell: bool,
}

/// Which worktrees would conflict, and where.
#[derive(Debug, Serialize)]
pub struct FoundConflicts {
    /// What was compared, and what clashes.
    #[serde(flatten)]
    pub radar: Radar,
    /// The sessions that got a message about it.
    pub told: Vec<Told>,
}

impl Operation for FindConflicts {
    const NAME: &'static str = "conflicts";
    type Output = FoundConflicts;

    fn run(self, call: &Call<'_>) -> Result<FoundConflicts, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let landings = Landings::new(&trees);
        let progress = call.stage("comparing worktrees");
        let named = self.names.iter();
        let named = named.map(|word| Ok(ground.tree(call, word)?.id));
        let radar = landings.conflicts(&named.collect::<Result<_, Failure>>()?)?;
        drop(progress);
        let told = match self.tell {
            true => landings.tell_conflicts(&radar)?,
            false => Vec::new(),
        };
        call.tell(&ground.engine);
        Ok(FoundConflicts { radar, told })
    }
}
