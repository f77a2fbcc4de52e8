//! The pool of spare worktrees.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::{Call, Failure, Patience, PoolStatus};

entries!(ShowPool, FillPool, DrainPool);

/// The pool as it is now.
#[derive(Debug, Serialize)]
pub struct ShownPool {
    /// How many are ready.
    pub pool: PoolStatus,
}

/// Shows which worktrees are ready to be taken.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowPool {}

impl Operation for ShowPool {
    const NAME: &'static str = "pool_status";
    const READS: bool = true;
    type Output = ShownPool;

    fn run(self, call: &Call<'_>) -> Result<ShownPool, Failure> {
        let ground = call.ground()?;
        let pool = ground.trees(call)?.pool_status()?;
        Ok(ShownPool { pool })
    }
}

/// Makes the donor and the spares now.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillPool {
    /// How many spares; as configured unless given.
    pub count: Option<u64>,
    /// Do nothing while another process fills it.
    pub unless_busy: bool,
}

impl Operation for FillPool {
    const NAME: &'static str = "pool_fill";
    type Output = ShownPool;

    fn run(self, call: &Call<'_>) -> Result<ShownPool, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let patience = match self.unless_busy {
            true => Patience::LeaveIt,
            false => Patience::Wait,
        };
        let _progress = call.stage("filling the pool");
        let pool = trees.fill_pool(self.count, patience)?;
        Ok(ShownPool { pool })
    }
}

/// Deletes the spares and the donor, but no worktree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainPool {}

impl Operation for DrainPool {
    const NAME: &'static str = "pool_drain";
    type Output = ShownPool;

    fn run(self, call: &Call<'_>) -> Result<ShownPool, Failure> {
        let ground = call.ground()?;
        let pool = ground.trees(call)?.drain_pool()?;
        Ok(ShownPool { pool })
    }
}
