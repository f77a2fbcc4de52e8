//! Creating trees of one size: cold, from the donor, from a spare; memory; and removing what was made.

use std::io;

use super::ground::Ground;
use super::memory;
use super::repository;
use super::rivals::{Field, Made, Tools};
use super::table::{Goal, Row, Table, Unit};
use super::{Samples, Size, middle};
use crate::bench::say;

/// Measures everything that depends on the size of the repository alone.
pub fn measure(table: &mut Table, tools: &Tools, size: &Size) -> io::Result<()> {
    let names = Names::of(size.label);
    if !table.wants(&names.all()) {
        return Ok(());
    }
    let ground = Ground::usual(tools.lab.path(), size.gigabytes)?;
    let field = Field::new(tools, &ground, size.files)?;
    let rounds = Rounds::run(&field, size.rounds)?;
    rounds.tell(table, &names, size);
    if size.files >= 10_000 {
        moved(table, &field, &names, size.rounds);
        memory_of(table, &field, &names, &rounds);
    }
    // Last, because nothing may be created after so many deletions.
    remove(table, &field, &names, &rounds)
}

/// What the rows are called.
struct Names {
    checkout: String,
    donor: String,
    spare: String,
    status: String,
    moved: String,
    memory: String,
    remove: String,
}

impl Names {
    fn of(label: &str) -> Self {
        let create = format!("create, {label} files");
        Self {
            checkout: format!("{create}, checkout"),
            donor: format!("{create}, from the donor"),
            spare: format!("{create}, from a spare"),
            status: format!("create + first status, {label} files"),
            moved: format!("{create}, from a spare, base moved"),
            memory: format!("peak memory, create, {label} files"),
            remove: format!("remove, {label} files"),
        }
    }

    fn all(&self) -> [&str; 7] {
        [
            &self.checkout,
            &self.donor,
            &self.spare,
            &self.status,
            &self.moved,
            &self.memory,
            &self.remove,
        ]
    }
}

/// The interleaved rounds of one size.
struct Rounds {
    git: Vec<Made>,
    git_status: Vec<f64>,
    peer: Samples,
    checkout: Samples,
    donor: Samples,
    donor_status: Vec<f64>,
    spare: Samples,
}

impl Rounds {
    fn run(field: &Field<'_>, rounds: usize) -> io::Result<Self> {
        let mut done = Self {
            git: Vec::new(),
            git_status: Vec::new(),
            peer: Samples::default(),
            checkout: Samples::default(),
            donor: Samples::default(),
            donor_status: Vec::new(),
            spare: Samples::default(),
        };
        // Once before it counts: the page cache, weald's vault, and what the peer keeps in main's configuration.
        field.git_create()?;
        done.peer.take_if_any(|| field.peer_create());
        done.peer.made.clear();
        done.checkout.take(|| field.weald_create("checkout"));
        done.checkout.made.clear();
        done.donor.take_nothing(field.fill(0));
        for _ in 0..rounds {
            let made = field.git_create()?;
            done.git_status.push(field.status_in(&made)?);
            done.git.push(made);
            done.peer.take_if_any(|| field.peer_create());
            done.checkout.take(|| field.weald_create("checkout"));
            done.donor.take(|| field.weald_create("clone"));
            if let Some(made) = done.donor.made.last().filter(|_| done.donor.works()) {
                done.donor_status.push(field.status_in(made)?);
            }
            done.spare.take(|| {
                field.fill(1)?;
                field.weald_create("spare")
            });
        }
        Ok(done)
    }

    fn tell(&self, table: &mut Table, names: &Names, size: &Size) {
        let git = middle(self.git.iter().map(|made| made.wall));
        if let Some(failure) = &self.peer.failure {
            say(&format!("worktrunk stopped: {failure}"));
        }
        let row = |name: &str, samples: &Samples| {
            Row::new(name, samples.middle())
                .git(git)
                .peer(self.peer.middle().ok())
        };
        table.add(&row(&names.checkout, &self.checkout));
        table.add(&row(&names.donor, &self.donor).goals(&[Goal::Faster(size.cold)]));
        let mut goals = vec![Goal::AtMost(15.0)];
        goals.extend(size.warm.map(Goal::Faster));
        table.add(&row(&names.spare, &self.spare).goals(&goals));
        let both = |made: &[Made], status: &[f64]| {
            middle(
                made.iter()
                    .zip(status)
                    .map(|(made, status)| made.wall + status),
            )
        };
        let ours = self.donor.middle();
        let ours = ours.map(|_| both(&self.donor.made, &self.donor_status));
        let status = Row::new(&names.status, ours).git(both(&self.git, &self.git_status));
        let goal = [Goal::Faster(5.0)];
        table.add(&match size.label {
            "10k" => status.goals(&goal),
            _ => status,
        });
    }
}

/// A spare that was made before the base went on by 200 files.
fn moved(table: &mut Table, field: &Field<'_>, names: &Names, rounds: usize) {
    if !table.wants(&[&names.moved]) {
        return;
    }
    let mut theirs = Samples::default();
    let mut ours = Samples::default();
    for turn in 0..rounds {
        ours.take(|| {
            field.fill(1)?;
            repository::move_base(field.ground.path(), &field.repository, 200, turn)?;
            field.weald_create("spare")
        });
        theirs.take(|| field.git_create());
    }
    let row = Row::new(&names.moved, ours.middle()).git(theirs.middle().ok());
    table.add(&row.goals(&[Goal::Faster(10.0)]));
}

fn memory_of(table: &mut Table, field: &Field<'_>, names: &Names, rounds: &Rounds) {
    if !table.wants(&[&names.memory]) {
        return;
    }
    let git = memory::peak(&mut field.git_new().0).ok();
    for (population, how, before) in [
        ("checkout", "checkout", &rounds.checkout),
        ("clone", "from the donor", &rounds.donor),
    ] {
        let ours = before.middle().and_then(|_| {
            let peak = memory::peak(&mut field.weald_new(population).0);
            peak.map_err(|error| error.to_string())
        });
        let row = Row::new(format!("{}, {how}", names.memory), ours).git(git);
        table.add(&row.in_unit(Unit::Mb).goals(&[Goal::Share(1.0)]));
    }
}

fn remove(table: &mut Table, field: &Field<'_>, names: &Names, rounds: &Rounds) -> io::Result<()> {
    if !table.wants(&[&names.remove]) {
        return Ok(());
    }
    let (mut theirs, mut ours, mut looks) = (Vec::new(), Vec::new(), Vec::new());
    let our_trees = match rounds.donor.works() {
        true => &rounds.donor.made,
        false => &rounds.checkout.made,
    };
    for (their, our) in rounds.git.iter().zip(our_trees) {
        let mut remove = field.git(&["worktree", "remove"]);
        theirs.push(field.timed(remove.arg(&their.path))?.0);
        // The first look after a checkout reads every file; the check before a removal usually is a later one.
        field.status_in(our)?;
        looks.push(field.status_in(our)?);
        ours.push(
            field
                .timed(&mut field.weald(&["rm", &our.name, "--json"]))?
                .0,
        );
    }
    // Apart from the others, because it goes on deleting in the background.
    let mut peers = Samples::default();
    for made in &rounds.peer.made {
        let args = ["remove", &made.name, "--no-hooks", "-y", "-D"];
        peers.take_if_any(|| {
            let timed = field.peer(&args).map(|mut peer| field.timed(&mut peer));
            let wall = timed.transpose()?.map(|(wall, _)| wall);
            Ok(wall.map(|wall| Made {
                wall,
                ..made.clone()
            }))
        });
    }
    let look = middle(looks);
    let failure = rounds.checkout.failure.clone().unwrap_or_default();
    let done = Some(ours).filter(|ours| !ours.is_empty());
    let row = Row::new(&names.remove, done.map(middle).ok_or(failure))
        .git(middle(theirs))
        .peer(peers.middle().ok());
    table.add(&row.goals(&[Goal::AtMost(15.0 + look)]));
    Ok(())
}
