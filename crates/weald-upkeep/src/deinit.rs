//! Taking weald out of a repository: what speaks against it, and the steps.
//!
//! The records go last, and in one step: the folder of weald's state is renamed while no process can write to it, and only
//! if nothing came up since. Before that a killed deinit leaves records that name all that is left, so that any command works
//! as before; after it, a folder that the next deinit deletes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Upkeep;
use serde::{Deserialize, Serialize};
use weald_control::marker::TreeNote;
use weald_control::place::Place;
use weald_core::SignedDuration;
use weald_core::objections::Objection;
use weald_core::store::{AgentFilter, StoreError, TaskFilter};
use weald_core::task::{Task, TaskStatus};
use weald_core::tree::{Tree, TreeStatus};
use weald_git::Registrations;
use weald_landing::LandError;
use weald_trees::{PurgeRequest, RemoveRequest, TreeError, at, delete};

/// What the folder of weald's state is called while it is being deleted.
const DEPARTED: &str = "weald-removed";

/// Something that keeps weald in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InTheWay {
    /// In one sentence.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// What a deinit would take away, and what is in the way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// What goes.
    pub removes: Vec<String>,
    /// What stays.
    pub keeps: Vec<String>,
    /// With anything in the way nothing goes.
    pub in_the_way: Vec<InTheWay>,
}

impl Upkeep<'_> {
    /// Looks at everything that a deinit would take away.
    pub fn departure(&self, discard: bool) -> Result<Departure, TreeError> {
        let mut found = Departure::default();
        self.agents_and_landings(&mut found)?;
        let trees = self.trees.records()?;
        for tree in trees.iter().filter(|tree| tree.is_wanted()) {
            let (name, path) = (&tree.name, tree.path.display());
            match tree.adopted {
                true => found
                    .keeps
                    .push(format!("worktree {name}, which git made: {path}")),
                false => found.removes.push(format!("worktree {name}: {path}")),
            }
            for objection in self.trees.objections_to_leaving(tree, discard)? {
                found.in_the_way.push(in_the_way(tree, objection));
            }
        }
        let trashed = trees
            .iter()
            .filter(|tree| tree.status == TreeStatus::Trashed);
        for tree in trashed {
            found
                .removes
                .push(format!("worktree {} in the trash", tree.name));
            let was_discarded = tree.trash.as_ref().is_some_and(|it| it.snapshot.is_some());
            if was_discarded && !discard && self.trees.is_in_trash(tree) {
                found.in_the_way.push(InTheWay {
                    what: format!(
                        "the trash has uncommitted changes of worktree {}",
                        tree.name
                    ),
                    hint: format!("weald restore {}, or: {EMPTY_TRASH}", tree.id),
                });
            }
        }
        if !discard {
            for (tree, count) in self.trees.unlanded_of_removed()? {
                found.in_the_way.push(unlanded_of_removed(&tree, count));
            }
        }
        let (open, all) = self.trees.engine.look(|tx| {
            let tasks = tx.tasks(&TaskFilter::default())?;
            let is_open = |task: &&Task| {
                !matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled)
            };
            let open = tasks.iter().filter(is_open).count();
            Ok::<_, StoreError>((open, tasks.len()))
        })?;
        if all > 0 {
            found.removes.push(format!(
                "{all} tasks ({open} open) and the history (to keep the tasks: weald task export > tasks.jsonl)"
            ));
        }
        let home = self.trees.place.private().with_file_name("");
        found
            .removes
            .push(format!("weald's state: {}", home.display()));
        Ok(found)
    }

    fn agents_and_landings(&self, found: &mut Departure) -> Result<(), TreeError> {
        let (agents, landings) = self.trees.engine.look(|tx| {
            Ok::<_, StoreError>((tx.agents(&AgentFilter::OPEN)?, tx.open_landings()?))
        })?;
        found.in_the_way.extend(agents.iter().map(|agent| InTheWay {
            what: format!("agent {} is working on task {}", agent.id, agent.task),
            hint: format!("weald agent stop {}", agent.id),
        }));
        found
            .in_the_way
            .extend(landings.iter().map(|landing| InTheWay {
                what: format!(
                    "landing {} of {} is {}",
                    landing.id, landing.tree, landing.status
                ),
                hint: format!("weald queue, or: weald queue drop {}", landing.id),
            }));
        Ok(())
    }

    /// Takes away everything but the records; answers what stays. Nothing may be in the way any more. What an error stops is
    /// done up to there, and it can be begun again.
    pub fn clear_out(&self, discard: bool) -> Result<Vec<String>, LandError> {
        for tree in self.trees.records()? {
            match (tree.is_wanted(), tree.adopted) {
                (false, _) => {}
                (true, true) => self.trees.disown(&tree)?,
                (true, false) => {
                    let request = RemoveRequest {
                        discard,
                        force: 1,
                        reason: Some("weald deinit".to_owned()),
                        ..RemoveRequest::default()
                    };
                    self.trees.remove(Some(tree.name.as_str()), &request)?;
                }
            }
        }
        let purged = self.trees.purge(&PurgeRequest {
            older_than: SignedDuration::ZERO,
            apply: true,
            discard,
        })?;
        if let Some((_, error)) = purged.failed.into_iter().next() {
            return Err(error.into());
        }
        self.trees.drain_pool()?;
        let branches = self.trees.delete_own_branches()?;
        self.landings.delete_fence()?;
        if let Some(views) = &self.trees.engine.views {
            views.take_away(self.trees.engine.store())?;
        }
        self.trees.clear_surroundings()?;
        let kept = branches.into_iter().map(|(branch, count)| {
            format!("branch {branch}: {count} commits that no target has (git branch -D {branch})")
        });
        Ok(kept.collect())
    }

    /// Whether the records name nothing any more that would be lost with them.
    pub fn is_cleared(&self) -> Result<bool, StoreError> {
        self.trees.engine.look(|tx| {
            let mut trees = tx.trees()?.into_iter();
            let is_left = trees.any(|tree| {
                (tree.is_wanted() && !tree.adopted) || tree.status == TreeStatus::Trashed
            });
            let at_work =
                !tx.agents(&AgentFilter::OPEN)?.is_empty() || !tx.open_landings()?.is_empty();
            Ok(!is_left && !at_work)
        })
    }
}

const EMPTY_TRASH: &str = "weald clean --trash --older-than 0 --apply";

fn in_the_way(tree: &Tree, objection: Objection) -> InTheWay {
    let (name, target) = (&tree.name, &tree.target);
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let (what, hint) = match objection {
        Objection::Running(running) => (
            format!("{} is running in {name}", running.join(", ")),
            "end it, then: weald deinit".to_owned(),
        ),
        Objection::Locked(lock) => (
            format!("{name} is locked by {}: {}", lock.owner, lock.reason),
            format!("weald unlock {name}"),
        ),
        Objection::Referenced(others) => (
            format!("{} refers to {name}", others.join(", ")),
            format!("weald show {name}"),
        ),
        Objection::Unknown(why) => (
            format!("{name} can't be inspected: {why}"),
            "weald doctor".to_owned(),
        ),
        Objection::Dirty {
            staged,
            unstaged,
            untracked,
        } => {
            let count = staged + unstaged + untracked;
            (
                format!("{name} has {count} uncommitted change{}", plural(count)),
                format!("weald land {name} --commit=all -m MESSAGE, or: weald rm {name} --discard"),
            )
        }
        Objection::Unlanded { commits, .. } => (
            format!(
                "{name} has {commits} commit{} that {target} lacks",
                plural(commits)
            ),
            format!("weald land {name}, or: weald rm {name} --discard"),
        ),
    };
    InTheWay { what, hint }
}

fn unlanded_of_removed(tree: &Tree, count: usize) -> InTheWay {
    let (name, target, id) = (&tree.name, &tree.target, tree.id);
    let plural = if count == 1 { "" } else { "s" };
    let commits =
        format!("{count} commit{plural} of the removed worktree {name} that {target} lacks");
    match tree.status {
        TreeStatus::Trashed => InTheWay {
            what: format!("the trash has {commits}"),
            hint: format!("weald restore {id}, or: weald deinit --discard"),
        },
        _ => InTheWay {
            what: format!("weald keeps {commits}"),
            hint: format!("weald restore {id} --purged, or: weald deinit --discard"),
        },
    }
}

/// Where weald's state is once nothing of it is needed.
pub fn departed_folder(place: &Place) -> PathBuf {
    place.repository().common_dir().join(DEPARTED)
}

/// Deletes what a deinit, perhaps one that was killed, put aside, and what the user's folder has about it; whether there was
/// anything.
pub fn delete_departed(place: &Place, state: Option<&Path>) -> Result<bool, TreeError> {
    let folder = departed_folder(place);
    if folder.symlink_metadata().is_err() {
        return Ok(false);
    }
    let traces = state.map(|state| place.user_traces(&folder.join("private"), state));
    // The folder with the id goes last.
    for path in traces.into_iter().flatten().chain([folder]) {
        match path.symlink_metadata() {
            Err(_) => {}
            Ok(found) if found.is_dir() => delete(&path).map_err(at(&path))?,
            Ok(_) => fs::remove_file(&path).map_err(at(&path))?,
        }
    }
    Ok(true)
}

/// Takes weald out of a copy of a repository: its own folder of state, and the registrations that were copied along. Worktrees,
/// branches and what the user's folder says are the original's.
pub fn depart_copy(place: &Place) -> Result<(), TreeError> {
    let common = place.repository().common_dir();
    let registrations = Registrations::new(common, &place.private().join("workshop"));
    for known in registrations
        .list()
        .map_err(at(&registrations.directory("")))?
    {
        if TreeNote::of(&known).is_some() {
            registrations
                .remove(&known.name)
                .map_err(at(&registrations.directory(&known.name)))?;
        }
    }
    registrations.remove_if_empty();
    weald_control::excludes::take_out(common, place.private())
        .map_err(at(&common.join("info/exclude")))?;
    let fence = common.join(weald_landing::FENCE);
    if fence.is_file() {
        fs::remove_file(&fence).map_err(at(&fence))?;
    }
    let (home, away) = (common.join("weald"), departed_folder(place));
    fs::rename(&home, &away).map_err(at(&home))?;
    delete_departed(place, None).map(drop)
}
