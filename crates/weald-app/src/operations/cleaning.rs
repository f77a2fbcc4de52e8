//! Finding what can go: finished worktrees, what the dead left behind, and what fills the disk.

use serde::{Deserialize, Serialize};
use weald_core::SignedDuration;
use weald_core::kill_switch::{CLEAN, SWEEP};
use weald_core::meant::Word;
use weald_core::name::TreeName;

use super::Operation;
use crate::{
    Call, CleanReport, CleanRequest, Failure, Freeing, Ground, RoomMode, SweepMode, SweepReport,
    Upkeep, UsageReport, exit,
};

entries!(CleanTrees, Sweep, MeasureUsage);

/// Finds worktrees that are finished, and moves them to the trash.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CleanTrees {
    /// Do it, instead of only listing them.
    pub apply: bool,
    /// For how long a worktree must be unused; as configured unless given.
    pub min_age: Option<SignedDuration>,
    /// Only worktrees of these tasks, unless empty.
    pub tasks: Vec<Word>,
    /// Only this worktree.
    pub tree: Option<String>,
    /// With `apply`: act on orphans, too.
    pub orphans: bool,
    /// Fetch the targets' remotes first.
    pub fetch: bool,
}

/// What was removed, or would be, and what stays.
#[derive(Debug, Serialize)]
pub struct Cleaned {
    /// What was found, and what became of it.
    #[serde(flatten)]
    pub report: CleanReport,
    /// The variable that switches it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
}

impl Call<'_> {
    /// The variable that switches clean-up off, if one does; a note says so.
    pub fn clean_is_off(&self) -> Result<Option<String>, Failure> {
        let ground = self.ground()?;
        Ok(self.switched_off("clean", CLEAN, &ground.config().clean_kill_switches))
    }

    /// The worktree that a clean-up with this name is for.
    pub fn tree_to_clean(&self, name: &str) -> Result<TreeName, Failure> {
        Ok(self.ground()?.tree(self, name)?.name)
    }
}

impl Operation for CleanTrees {
    const NAME: &'static str = "clean";
    type Output = Cleaned;

    fn run(self, call: &Call<'_>) -> Result<Cleaned, Failure> {
        let ground = call.ground()?;
        let disabled = call.switched_off("clean", CLEAN, &ground.config().clean_kill_switches);
        if disabled.is_some() {
            return Ok(Cleaned {
                report: CleanReport::default(),
                disabled,
            });
        }
        let tasks = self.tasks.iter().map(|word| ground.task_by_id(call, word));
        let tasks = tasks.collect::<Result<_, _>>()?;
        let tree = self.tree.as_deref();
        let tree = tree.map(|word| ground.tree(call, word)).transpose()?;
        let trees = ground.trees(call)?;
        let request = CleanRequest {
            apply: self.apply,
            min_age: self.min_age,
            tasks,
            tree: tree.map(|tree| tree.name),
            orphans: self.orphans,
            fetch: self.fetch,
        };
        let progress = call.stage("looking");
        let report = Upkeep::new(&trees).clean(&request)?;
        drop(progress);
        for warning in &report.warnings {
            call.warn(warning);
        }
        call.tell(&ground.engine);
        Ok(Cleaned { report, disabled })
    }

    fn exit(cleaned: &Cleaned) -> u8 {
        match cleaned.report.failed.is_empty() && !cleaned.report.has_odd_record {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}

/// Releases stale locks and leases, and removes leftovers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What a sweep freed.
#[derive(Debug, Serialize)]
pub struct Swept {
    /// All of it, as one object.
    pub sweep: SweepCycle,
}

/// One round over the whole repository.
#[derive(Debug, Serialize)]
pub struct SweepCycle {
    /// What was found, and what became of it.
    #[serde(flatten)]
    pub report: SweepReport,
    /// The variable that switches it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
}

impl Operation for Sweep {
    const NAME: &'static str = "sweep";
    type Output = Swept;

    fn run(self, call: &Call<'_>) -> Result<Swept, Failure> {
        let ground = call.ground()?;
        let disabled = call.switched_off("sweep", SWEEP, &ground.config().sweep_kill_switches);
        let report = match disabled {
            Some(_) => SweepReport::default(),
            None => self.swept(call, &ground)?,
        };
        let sweep = SweepCycle { report, disabled };
        Ok(Swept { sweep })
    }

    fn exit(swept: &Swept) -> u8 {
        match swept.sweep.report.failed.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}

impl Sweep {
    fn swept(&self, call: &Call<'_>, ground: &Ground) -> Result<SweepReport, Failure> {
        let mode = match self.dry_run {
            true => SweepMode::DryRun,
            false => SweepMode::Apply,
        };
        let trees = ground.trees(call)?;
        let progress = call.stage("sweeping");
        let report = Upkeep::new(&trees).sweep(mode)?;
        drop(progress);
        call.tell(&ground.engine);
        Ok(report)
    }
}

/// Measures what worktrees and everything else of weald take on disk, and frees space.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureUsage {
    /// All of them if empty.
    pub trees: Vec<String>,
    /// How many bytes should be free; directories that builds make again are chosen until they are.
    pub free: Option<u64>,
    /// Delete the chosen directories, instead of only listing them.
    pub apply: bool,
}

/// Where the disk space goes.
#[derive(Debug, Serialize)]
pub struct MeasuredUsage {
    /// By worktree and store.
    pub usage: UsageReport,
}

impl Operation for MeasureUsage {
    const NAME: &'static str = "usage";
    type Output = MeasuredUsage;

    fn run(self, call: &Call<'_>) -> Result<MeasuredUsage, Failure> {
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        let progress = call.stage("measuring");
        let mode = match self.apply {
            true => RoomMode::Apply,
            false => RoomMode::DryRun,
        };
        let room = self.free.map(|wanted| (wanted, mode));
        let named = self.trees.iter();
        let named = named.map(|word| Ok(ground.tree(call, word)?.name.to_string()));
        let named = named.collect::<Result<Vec<_>, Failure>>()?;
        let usage = Upkeep::new(&trees).usage(&named, room)?;
        drop(progress);
        call.tell(&ground.engine);
        Ok(MeasuredUsage { usage })
    }

    fn exit(measured: &MeasuredUsage) -> u8 {
        let fell_short = |done: &Freeing| done.applied && done.short > 0;
        match measured.usage.freeing.as_ref().is_some_and(fell_short) {
            true => exit::REFUSED,
            false => exit::DONE,
        }
    }
}
