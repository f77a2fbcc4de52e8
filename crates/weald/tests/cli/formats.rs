//! The main stories on the formats of other repositories: refs as reftable and ids by SHA-256, as git 3 makes them.
//!
//! A story is told again by this very test program, as a process of its own in which `TestEnv` makes such repositories.

use std::process::Command;

use weald_testkit::{FORMATS, full_scale};

/// Tells stories again on other formats, each by its full name; a name that is of no test would be passed over.
fn tell_again(formats: [&str; 2], stories: &[&str]) {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "--test-threads", "2"]).args(stories);
    let output = again
        .envs(FORMATS.into_iter().zip(formats))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed = format!("test result: ok. {} passed", stories.len());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains(&passed), "{formats:?}: {told}\n{errors}");
}

const GIT_3: [&str; 2] = ["reftable", "sha256"];

#[test]
fn y32_landings_on_reftable_with_sha256() {
    tell_again(
        GIT_3,
        &[
            "landing::m4_a_conflict_changes_nothing_and_says_what_to_do",
            "landing_autostash::y2_changes_that_fit_are_back_in_the_checkout",
            "landing_conflicts::m4_conflicts_are_seen_before_anyone_lands_committed_or_not",
            "landing_gate::gate_that_is_red_runs_again_in_a_fresh_tree",
            "landing_moving::m12_a_linked_worktree_that_holds_the_target_moves_with_it",
            "undo::undo_takes_a_landing_back_with_its_tree_and_task",
        ],
    );
}

#[test]
fn y32_agents_and_submodules_on_reftable_with_sha256() {
    tell_again(
        GIT_3,
        &[
            "agents_workers::s6_two_workers_do_three_tasks_each_once",
            "lfs::y1_a_landed_lfs_file_survives_the_purge_of_its_worktree",
            "race::s16_two_entries_run_side_by_side_and_the_pick_lands",
            "trees_submodules::k1_a_submodule_is_filled_without_the_network",
            "trees_work::s21_two_writers_share_a_task_by_scratch_trees",
            "work::p1_work_lands_what_an_agent_edited_and_added_without_committing",
        ],
    );
}

#[test]
fn y32_main_stories_on_refs_in_files_with_sha256() {
    tell_again(
        ["files", "sha256"],
        &[
            "landing::m4_a_conflict_changes_nothing_and_says_what_to_do",
            "trees_submodules::k1_a_submodule_is_filled_without_the_network",
            "undo::undo_takes_a_landing_back_with_its_tree_and_task",
            "work::p1_work_lands_what_an_agent_edited_and_added_without_committing",
        ],
    );
}

/// What takes minutes comes with the long versions of the suites: the whole storm, takeovers, and further stories.
#[test]
fn y32_further_stories_and_the_whole_storm_on_reftable_with_sha256() {
    let stories = [
        "landing_takeover::t14_a_lander_stopped_past_its_lease_cannot_land",
        "landing_undone::m19_what_was_undone_comes_again_with_every_strategy",
        "storm::z1_a_clean_a_sweep_or_a_rebuild_killed_at_any_step",
        "storm::z1_a_create_killed_at_any_step",
        "storm::z1_a_landing_killed_at_any_step",
        "storm::z1_a_purge_killed_at_any_step",
        "storm::z1_a_recreation_or_adoption_killed_at_any_step",
        "storm::z1_a_removal_killed_at_any_step",
        "storm::z1_a_repair_killed_at_any_step",
        "storm::z1_a_restore_killed_at_any_step",
        "storm::z1_a_snapshot_killed_at_any_step",
        "storm::z1_an_import_killed_at_any_step",
        "storm::z1_an_undo_killed_at_any_step",
        "storm::z1_random_kills_of_many_at_once",
        "trees_adopt::k5_every_command_works_on_an_adopted_worktree",
        "trees_remove::d4_a_damaged_tree_is_unknown_and_refused",
        "trees_snapshots::z4_the_difference_to_a_snapshot_and_between_two",
        "trees_trash::d12_restore_brings_back_files_branch_index_and_registration",
        "trees_work::w3_status_counts_what_changed",
    ];
    let short = [
        "trees_adopt::k5_every_command_works_on_an_adopted_worktree",
        "trees_remove::d4_a_damaged_tree_is_unknown_and_refused",
    ];
    tell_again(GIT_3, if full_scale() { &stories } else { &short });
}
