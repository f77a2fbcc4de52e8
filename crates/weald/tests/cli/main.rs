//! The binary as people and programs use it: real processes, real repositories.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

mod agent_board;
mod agent_landing;
mod agent_orders;
mod agent_silence;
mod agent_storm;
mod agent_views;
mod agents_dying;
mod agents_ends;
mod agents_takeover;
mod agents_workers;
mod broker;
mod broker_hostile;
mod broker_view;
mod claims;
mod classroom;
mod config;
mod crash;
mod drivers;
mod events;
mod faces;
mod landing;
mod landing_again;
mod landing_approval;
mod landing_conflicts;
mod landing_crash;
mod landing_dirty;
mod landing_fetch;
mod landing_gate;
mod landing_gate_cache;
mod landing_gate_trust;
mod landing_gitlinks;
mod landing_interrupt;
mod landing_leftovers;
mod landing_merged;
mod landing_moving;
mod landing_queue;
mod landing_races;
mod landing_ready;
mod landing_source;
mod landing_storm;
mod landing_takeover;
mod landing_undone;
mod landing_verify;
mod malformed;
mod messages;
mod no_worktree;
mod phases;
mod profiles;
mod race;
mod real_agents;
mod rescue;
mod run_ends;
mod sandbox;
mod sandbox_hardening;
mod sandbox_tools;
mod session_place;
mod sessions;
mod tasks;
mod trees_adopt;
mod trees_aside;
mod trees_control;
mod trees_crash;
mod trees_create;
mod trees_edges;
mod trees_fetch;
mod trees_found;
mod trees_gc;
mod trees_hostile;
mod trees_import;
mod trees_leftovers;
mod trees_levels;
mod trees_look;
mod trees_many;
mod trees_odd_files;
mod trees_parallel;
mod trees_partial;
mod trees_population;
mod trees_population_moved;
mod trees_population_random;
mod trees_ports;
mod trees_races;
mod trees_refuse;
mod trees_remove;
mod trees_sealed;
mod trees_setup;
mod trees_setup_builds;
mod trees_setup_commands;
mod trees_snapshots;
mod trees_states;
mod trees_submodules;
mod trees_trash;
mod trees_vectors;
mod trees_work;
mod views;
mod views_mended;
mod work;
mod work_report;

use weald_testkit::TestEnv;

/// A fresh repository.
fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_weald"))
}
