//! The crash storm in small: every labelled step once, and a few random kills. `xtask storm` is the large one.

use weald_testkit::STEPS;
use weald_testkit::full_scale;
use weald_testkit::storm::{RandomKills, World, kill_at, kinds_of};

/// Kills these operations once at each of their steps, in one world; at full size in trees of every kind.
fn every_step_of(operations: &[&str]) {
    let world = World::new(env!("CARGO_BIN_EXE_weald"));
    let is_meant = |label: &&&str| {
        let operation = label.split('.').next().unwrap();
        operations.contains(&operation)
    };
    for (number, label) in STEPS.iter().filter(is_meant).enumerate() {
        let kinds = kinds_of(label);
        for (place, kind) in kinds.iter().enumerate() {
            if full_scale() || place == number % kinds.len() {
                kill_at(&world, label, kind, &format!("{}{number}", &kind[..1]));
            }
        }
    }
}

#[test]
fn z1_a_create_killed_at_any_step() {
    every_step_of(&["create"]);
}

#[test]
fn z1_an_import_killed_at_any_step() {
    every_step_of(&["visit", "import", "sync"]);
}

#[test]
fn z1_a_removal_killed_at_any_step() {
    every_step_of(&["remove"]);
}

#[test]
fn z1_a_restore_killed_at_any_step() {
    every_step_of(&["restore"]);
}

#[test]
fn z1_a_purge_killed_at_any_step() {
    every_step_of(&["purge"]);
}

#[test]
fn z1_a_snapshot_killed_at_any_step() {
    every_step_of(&["snapshot"]);
}

#[test]
fn z1_a_recreation_or_adoption_killed_at_any_step() {
    every_step_of(&["recreate", "adopt"]);
}

#[test]
fn z1_the_vault_and_the_pool_killed_at_any_step() {
    every_step_of(&["vault", "pool"]);
}

#[test]
fn z1_an_agent_s_start_killed_at_any_step() {
    every_step_of(&["agent"]);
}

#[test]
fn z1_a_repair_killed_at_any_step() {
    every_step_of(&["repair"]);
}

#[test]
fn z1_a_clean_a_sweep_or_a_rebuild_killed_at_any_step() {
    every_step_of(&["clean", "sweep", "evict", "rebuild"]);
}

#[test]
fn z1_an_undo_killed_at_any_step() {
    every_step_of(&["undo"]);
}

#[test]
fn z1_a_landing_killed_at_any_step() {
    every_step_of(&["land", "stash", "gate"]);
}

#[test]
fn z1_random_kills_of_many_at_once() {
    let world = World::new(env!("CARGO_BIN_EXE_weald"));
    let kills = if full_scale() { 200 } else { 15 };
    let storm = RandomKills {
        kills,
        seed: 5,
        workers: 3,
        deadline: None,
    };
    let tally = storm.run(&world, &mut |_| {});
    assert!(tally.values().map(|(_, killed)| killed).sum::<usize>() >= kills);
}
