//! `weald doctor --adopt`

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use weald_app::{AdoptedCopy, App, Failure, Ground, Landings, Standing, SystemClock, Upkeep, exit};
use weald_store::SqliteStore;

use crate::context::Context;
use crate::ui::{Fields, Out, clean};

/// Takes over the worktrees at `places`; without any, makes a copy a repository of its own. For persons only.
pub fn run(context: &Context<'_>, places: &[PathBuf]) -> Result<u8, Failure> {
    if places.is_empty() {
        return adopt_copy(context);
    }
    let ground = context.ground()?;
    let trees = ground.trees(context)?;
    Landings::new(&trees).refuse_agents()?;
    let mut adopted = Vec::new();
    for place in places {
        adopted.push(Upkeep::new(&trees).adopt_tree(place)?);
    }
    context.tell(&ground.engine);
    let views: Vec<_> = adopted
        .iter()
        .map(|tree| trees.view(tree.clone()))
        .collect();
    context.ui.answer(
        || Fields::new().with("trees", &views),
        |out| {
            adopted.iter().try_for_each(|tree| {
                let path = tree.path.display().to_string();
                writeln!(out, "took over worktree {} at {}", tree.name, clean(&path))
            })
        },
    )
}

fn adopt_copy(context: &Context<'_>) -> Result<u8, Failure> {
    let place = context.place()?;
    let state = context.environment.state();
    let Standing::Copy(copy) = place.standing(state.as_deref()) else {
        let message = "this repository is not a copy, so there is nothing to take over";
        return Err(
            Failure::new("not_a_copy", exit::REFUSED, message.to_owned())
                .hint("name a restored worktree: weald doctor --adopt PATH"),
        );
    };
    let loaded = context.config(&place)?;
    let store = SqliteStore::open(place.private(), Arc::new(SystemClock))?;
    let ground: Ground = App::ground_of(place, loaded, store)?;
    let trees = ground.trees(context)?;
    Landings::new(&trees).refuse_agents()?;
    let adopted = Upkeep::new(&trees).adopt_copy(&copy)?;
    context.tell(&ground.engine);
    context.ui.answer(
        || Fields::new().with("adopted", &adopted),
        |out| render(out, &adopted),
    )
}

fn render(out: &mut Out, adopted: &AdoptedCopy) -> io::Result<()> {
    writeln!(
        out,
        "this repository has its own id now and is no longer a copy"
    )?;
    let lists = [
        ("took over", &adopted.taken),
        ("left to the original", &adopted.forgotten),
    ];
    for (what, paths) in lists {
        for path in paths {
            writeln!(out, "  {what}: {}", clean(&path.display().to_string()))?;
        }
    }
    writeln!(out, "next: weald doctor --fix")
}
