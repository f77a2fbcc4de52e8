//! Finding what does not fit and repairing it, also where the records can't be opened.

mod opening;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use weald_core::config::SandboxLevel;
use weald_core::store::{Durability, Store};
use weald_sandbox::{Level, Network, SandboxError, require_level};
use weald_store::{Rebuilding, SqliteStore};

use self::opening::Patient;
use super::Operation;
use crate::failure::{ACCEPT, user_namespace_switch};
use crate::{
    AdoptedCopy, Call, Checkup, Code, Failure, Finding, Ground, Landings, Present, Rebuilt,
    Severity, Standing, SystemClock, TreeView, Upkeep, exit, succeed,
};

entries!(Examine, AdoptRestored, AdoptCopy, RebuildRegistry);

/// Checks everything, and repairs where nothing can be lost.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Examine {
    /// Repair what can be repaired without losing anything.
    pub fix: bool,
    /// New locations of moved worktrees.
    pub places: Vec<PathBuf>,
}

/// What does not fit.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Each with what repairs it.
    pub findings: Vec<Finding>,
}

impl Operation for Examine {
    const NAME: &'static str = "doctor";
    type Output = Findings;

    fn run(self, call: &Call<'_>) -> Result<Findings, Failure> {
        let places = resolved(&self.places)?;
        let patient = Patient::find(call)?;
        let _progress = call.stage("looking");
        let mut findings = vec![sandbox(call)?];
        findings.extend(self.examined(call, patient, &places));
        Ok(Findings { findings })
    }

    fn exit(found: &Findings) -> u8 {
        match found.findings.iter().any(Finding::is_open) {
            false => exit::DONE,
            true => exit::REFUSED,
        }
    }
}

impl Examine {
    /// What could not be opened, then everything else.
    fn examined(&self, call: &Call<'_>, mut patient: Patient, places: &[PathBuf]) -> Vec<Finding> {
        let mut findings = std::mem::take(&mut patient.findings);
        let is_copy = findings.iter().any(|one| one.code == Code::RepositoryCopy);
        let ground = patient.ground;
        let trees = match ground
            .as_ref()
            .map(|ground| ground.trees_with_any_git(call))
        {
            Some(Err(failure)) => {
                let what = format!("records could not be checked: {}", failure.message);
                let would = failure.hint.unwrap_or_default();
                findings.push(Finding::new(Code::CheckFailed, what, would));
                None
            }
            trees => trees.and_then(Result::ok),
        };
        let fix = self.fix && patient.is_safe;
        let checkup = Checkup {
            place: &patient.place,
            is_copy,
            trees: trees.as_ref(),
            min_free: patient.min_free,
            places,
            fix,
            fix_records: fix && patient.is_understood,
        };
        findings.extend(checkup.run());
        if let Some(ground) = &ground {
            call.tell(&ground.engine);
        }
        findings
    }
}

fn resolved(places: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let resolve = |path: &PathBuf| {
        path.canonicalize()
            .map_err(|error| Failure::file(path, &error))
    };
    places.iter().map(resolve).collect()
}

/// The strongest level at which runs can be sandboxed here, and what it does not cover.
fn sandbox(call: &Call<'_>) -> Result<Finding, Failure> {
    let helper = call.helper()?;
    let works = |level: Level| -> Result<bool, Failure> {
        match require_level(level, Network::On, &helper) {
            Ok(()) => Ok(true),
            Err(SandboxError::Unavailable { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    };
    let config = call.sandbox_config(&[]);
    let is_chosen = config.is_ok_and(|config| config.sandbox_level == SandboxLevel::Landlock);
    let not_covered = |level: Level| format!("does not cover: {}", level.not_covered().join("; "));
    let (severity, what, would) = match (works(Level::Full)?, works(Level::Landlock)?) {
        (_, true) if is_chosen => (
            Severity::Info,
            "the sandbox works at level landlock, as configured".to_owned(),
            not_covered(Level::Landlock),
        ),
        (true, _) => (
            Severity::Info,
            "the sandbox works at level full".to_owned(),
            not_covered(Level::Full),
        ),
        (false, true) => (
            Severity::Warn,
            format!(
                "the sandbox works only at level landlock; for level full: {}; to accept this one: {ACCEPT}",
                user_namespace_switch()
            ),
            not_covered(Level::Landlock),
        ),
        (false, false) => (
            Severity::Error,
            "the sandbox does not work here: worktrees can't be inspected".to_owned(),
            "weald sandbox explain".to_owned(),
        ),
    };
    Ok(Finding::new(Code::SandboxLevel, what, would).rated(severity))
}

/// Takes over worktrees that were restored from elsewhere. For persons only.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptRestored {
    /// The directories.
    pub places: Vec<PathBuf>,
}

/// The worktrees that have records now.
#[derive(Debug, Serialize)]
pub struct AdoptedTrees {
    /// Each as it is now.
    pub trees: Vec<TreeView>,
}

impl Operation for AdoptRestored {
    const NAME: &'static str = "doctor_adopt";
    type Output = AdoptedTrees;

    fn run(self, call: &Call<'_>) -> Result<AdoptedTrees, Failure> {
        let places = resolved(&self.places)?;
        let ground = call.ground()?;
        let trees = ground.trees(call)?;
        Landings::new(&trees).refuse_agents()?;
        let upkeep = Upkeep::new(&trees);
        let adopted: Vec<_> = places
            .iter()
            .map(|place| upkeep.adopt_tree(place))
            .collect::<Result<_, _>>()?;
        call.tell(&ground.engine);
        let trees = adopted.into_iter().map(|tree| trees.view(tree)).collect();
        Ok(AdoptedTrees { trees })
    }
}

/// Makes a copy of a repository a repository of its own. For persons only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptCopy {}

/// A copy that is a repository of its own now.
#[derive(Debug, Serialize)]
pub struct Adopted {
    /// What was found in it.
    pub adopted: AdoptedCopy,
}

impl Operation for AdoptCopy {
    const NAME: &'static str = "doctor_adopt_copy";
    type Output = Adopted;

    fn run(self, call: &Call<'_>) -> Result<Adopted, Failure> {
        let place = call.place()?;
        let Standing::Copy(copy) = place.standing(call.environment.state().as_deref()) else {
            let message = "this repository is not a copy, so there is nothing to take over";
            return Err(
                Failure::new("not_a_copy", exit::REFUSED, message.to_owned())
                    .hint("name a restored worktree: weald doctor --adopt PATH"),
            );
        };
        let loaded = call.config(&place)?;
        let store = SqliteStore::open(place.private(), Arc::new(SystemClock))?;
        let ground = Ground::of_store(place, loaded, store)?;
        let trees = ground.trees(call)?;
        Landings::new(&trees).refuse_agents()?;
        let adopted = Upkeep::new(&trees).adopt_copy(&copy)?;
        call.tell(&ground.engine);
        Ok(Adopted { adopted })
    }
}

/// Rebuilds the registry next to the old one, then replaces the old one with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildRegistry {
    /// Put it in place, instead of only saying what it would be.
    pub apply: bool,
}

/// What the records are, or would be.
#[derive(Debug, Serialize)]
pub struct RebuiltRegistry {
    /// What was found for them.
    pub rebuild: Rebuilt,
    /// Whether they are in place.
    pub applied: bool,
    /// Where the old one is now.
    pub kept: Option<PathBuf>,
}

impl Operation for RebuildRegistry {
    const NAME: &'static str = "doctor_rebuild";
    type Output = RebuiltRegistry;

    fn run(self, call: &Call<'_>) -> Result<RebuiltRegistry, Failure> {
        let place = call.place()?;
        if place.private().exists() {
            call.require_original(&place)?;
        }
        let progress = call.stage("looking");
        let clock = Arc::new(SystemClock);
        let (rebuilding, store) = Rebuilding::begin(place.private(), clock.clone())?;
        let remains = rebuilding.remains(clock);
        let ground = call.ground_on(place, Box::new(store))?;
        let present = Present {
            store: remains.store.as_ref().map(|store| store as &dyn Store),
            events: remains.events.clone(),
            problem: remains.problem.clone(),
        };
        let rebuild = Upkeep::new(&ground.trees(call)?).rebuild(present)?;
        drop((ground, remains, progress));
        let applied = self.apply && !rebuild.agrees;
        if applied && !rebuild.at_work.is_empty() {
            return Err(at_work(&rebuild));
        }
        let kept = match applied {
            true => succeed(Box::new(rebuilding))?,
            false => None,
        };
        if applied {
            // Agents whose supervisor is gone are noticed, and the journal goes on, as after a crash.
            let engine = call.engine()?;
            engine.catch_up(Durability::Power);
            call.tell(&engine);
        }
        Ok(RebuiltRegistry {
            rebuild,
            applied,
            kept,
        })
    }

    fn exit(rebuilt: &RebuiltRegistry) -> u8 {
        match rebuilt.rebuild.agrees || rebuilt.applied {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}

fn at_work(rebuilt: &Rebuilt) -> Failure {
    let who = rebuilt.at_work.join(", ");
    let message = format!("the registry is in use by {who}; nothing was changed");
    Failure::new("busy", exit::BUSY, message)
        .hint("let them end, or stop them (weald agent stop), then run it again")
        .details(json!({"at_work": rebuilt.at_work}))
}
