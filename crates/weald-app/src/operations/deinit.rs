//! Taking weald out of a repository.

use serde::{Deserialize, Serialize};
use weald_git::Git;
use weald_store::Rebuilding;

use super::Operation;
use super::doctor::Examine;
use super::install::{ConnectProgram, Connected, Program};
use crate::{
    Call, Departure, Failure, FileOutcome, Ground, InTheWay, Place, SHARED_FILE, Standing,
    TreeError, Upkeep, delete_departed, depart_copy, departed_folder, exit,
};

entries!(RemoveWeald);

/// Programs that weald can be connected to for one project.
const PROGRAMS: [Program; 4] = [
    Program::Claude,
    Program::Codex,
    Program::Gemini,
    Program::Opencode,
];

/// Takes everything of weald out of a repository. For persons only.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveWeald {
    /// Do it, instead of only listing what goes.
    pub apply: bool,
    /// Ask the caller at a terminal before it is done.
    pub ask: bool,
    /// Also with work that no target has.
    pub discard: bool,
}

/// The removal, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct RemovedWeald {
    /// What was done, or would be.
    pub deinit: Deinit,
}

/// What a removal of weald did, or would do.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Deinit {
    /// Whether it was done.
    pub applied: bool,
    /// Whether this repository is a copy, whose worktrees are the original's.
    pub copy: bool,
    /// What goes, or went.
    pub removes: Vec<String>,
    /// What stays.
    pub keeps: Vec<String>,
    /// With anything in the way nothing goes.
    pub in_the_way: Vec<InTheWay>,
}

impl Operation for RemoveWeald {
    const NAME: &'static str = "deinit";
    type Output = RemovedWeald;

    fn run(self, call: &Call<'_>) -> Result<RemovedWeald, Failure> {
        let place = call.place()?;
        let is_used = place.private().with_file_name("").is_dir();
        let standing = is_used.then(|| place.standing(call.environment.state().as_deref()));
        if self.apply || self.ask {
            // Who calls in a copy is looked up without its records.
            match standing {
                Some(Standing::Copy(_)) => call.refuse_agent_around("weald deinit")?,
                _ => call.refuse_agent_anywhere("weald deinit")?,
            }
        }
        let deinit = match standing {
            None => self.finish(call, &place)?,
            Some(Standing::Copy(_)) => self.leave_copy(call, &place)?,
            Some(Standing::Original) => self.leave(call)?,
        };
        Ok(RemovedWeald { deinit })
    }

    fn exit(removed: &RemovedWeald) -> u8 {
        match removed.deinit.in_the_way.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}

impl RemoveWeald {
    /// Whether to do it, once everything is known.
    fn is_agreed(&self, call: &Call<'_>, deinit: &Deinit) -> Result<bool, Failure> {
        if self.apply || !self.ask {
            return Ok(self.apply);
        }
        deinit
            .removes
            .iter()
            .for_each(|what| call.note(&format!("remove: {what}")));
        deinit
            .keeps
            .iter()
            .for_each(|what| call.note(&format!("keep: {what}")));
        match call
            .progress
            .confirm("Remove weald from this repository?")?
        {
            true => Ok(true),
            false => Err(Failure::declined("nothing was removed")),
        }
    }

    /// What a deinit that was killed left.
    fn finish(&self, call: &Call<'_>, place: &Place) -> Result<Deinit, Failure> {
        let folder = departed_folder(place);
        let is_there = folder.symlink_metadata().is_ok();
        let removes =
            is_there.then(|| format!("the rest of an earlier deinit: {}", folder.display()));
        if is_there && (self.apply || self.ask) {
            delete_departed(place, call.environment.state().as_deref())?;
        }
        Ok(Deinit {
            applied: is_there && (self.apply || self.ask),
            removes: removes.into_iter().collect(),
            ..Deinit::default()
        })
    }

    fn leave_copy(&self, call: &Call<'_>, place: &Place) -> Result<Deinit, Failure> {
        let home = place.private().with_file_name("");
        let mut deinit = Deinit {
            copy: true,
            removes: vec![
                format!("weald's state in this copy: {}", home.display()),
                "registrations of worktrees that were copied along".to_owned(),
            ],
            keeps: vec![
                "worktrees and branches: they are the original's, or copies of them".to_owned(),
            ],
            ..Deinit::default()
        };
        if self.is_agreed(call, &deinit)? {
            depart_copy(place)?;
            deinit.applied = true;
        }
        Ok(deinit)
    }

    fn leave(&self, call: &Call<'_>) -> Result<Deinit, Failure> {
        let ground = call.ground()?;
        let mut deinit = self.planned(call, &ground)?;
        if !deinit.in_the_way.is_empty() || !self.is_agreed(call, &deinit)? {
            return Ok(deinit);
        }
        let progress = call.stage("removing");
        // What a killed process left is put in order first, and then it counts.
        let examine = Examine {
            fix: true,
            places: Vec::new(),
        };
        examine.run(call)?;
        let again = self.planned(call, &ground)?;
        if !again.in_the_way.is_empty() {
            return Ok(again);
        }
        for program in PROGRAMS {
            if is_own(call, &ground, program)? == Some(true) {
                connection(program, false).run(call)?;
            }
        }
        // What it began in the background has ended when these trees are dropped.
        let stays = Upkeep::new(&ground.trees(call)?).clear_out(self.discard)?;
        deinit.keeps.extend(stays);
        let (place, state) = (&ground.place, call.environment.state());
        delete_departed(place, state.as_deref())?;
        let trees = ground.trees(call)?;
        let is_cleared = || Upkeep::new(&trees).is_cleared();
        if !Rebuilding::retire(place.private(), &departed_folder(place), is_cleared)? {
            let message = "another process used weald meanwhile, so its records are kept";
            return Err(Failure::new("stirred", exit::BUSY, message).hint("weald deinit"));
        }
        delete_departed(place, state.as_deref())?;
        drop(progress);
        deinit.applied = true;
        Ok(deinit)
    }

    /// Everything that goes, stays or is in the way.
    fn planned(&self, call: &Call<'_>, ground: &Ground) -> Result<Deinit, Failure> {
        let trees = ground.trees(call)?;
        let progress = call.stage("looking");
        let found = Upkeep::new(&trees).departure(self.discard)?;
        drop(progress);
        let Departure {
            mut removes,
            mut keeps,
            mut in_the_way,
        } = found;
        if let Some(tree) = ground.place.inside() {
            in_the_way.push(InTheWay {
                what: format!("the current directory is in a worktree: {}", tree.display()),
                hint: format!("cd {}", ground.place.root().display()),
            });
        }
        for program in PROGRAMS {
            let name = program.as_str();
            match is_own(call, ground, program)? {
                None => {}
                Some(true) => removes.push(format!("entries for {name} in this project")),
                Some(false) => keeps.push(format!(
                    "committed entries for {name} (weald install {name} --project --remove)"
                )),
            }
        }
        if ground.place.root().join(SHARED_FILE).exists() {
            keeps.push(format!("{SHARED_FILE}, which is yours"));
        }
        Ok(Deinit {
            removes,
            keeps,
            in_the_way,
            ..Deinit::default()
        })
    }
}

/// Whether entries for a program in this project are the user's alone, if there are any: committed ones are everybody's.
fn is_own(call: &Call<'_>, ground: &Ground, program: Program) -> Result<Option<bool>, Failure> {
    let installed = connection(program, true).run(call)?.install;
    if installed.outcome != Connected::Removed {
        return Ok(None);
    }
    let root = ground.place.root();
    let changed = installed
        .files
        .iter()
        .filter(|file| file.outcome != FileOutcome::Unchanged);
    let paths = changed.filter_map(|file| file.path.strip_prefix(&root).ok());
    let listed = Git::new(ground.place.repository().common_dir(), "ls-tree")
        .args(["--name-only", "HEAD", "--"])
        .args(paths)
        .output()
        .map_err(TreeError::from)?;
    Ok(Some(listed.stdout.is_empty()))
}

fn connection(program: Program, dry_run: bool) -> ConnectProgram {
    ConnectProgram {
        program,
        project: true,
        remove: true,
        dry_run,
    }
}
