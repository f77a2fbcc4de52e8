//! git: the process, the worktree registration, the vault, and what can be read of a repository without a process.
//!
//! Knows object ids and refs, not tasks. [`Git`] is the one builder and runner of git processes: scrubbed environment,
//! closed standard input, fixed configuration, a time limit. [`Repository`] finds the common directory and reads refs by
//! itself, because a process costs more than a whole command may; whatever it does not understand it asks git.
//! [`Registrations`] reads and writes `worktrees/` without git, [`Vault`] is the repository that trees borrow from,
//! [`Door`] opens single files in a directory that somebody else may write.

mod checkout_copy;
mod checkout_index;
mod checkout_walk;
mod comparing;
mod diff_config;
mod digest;
mod door;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod git_files;
mod git_user;
mod index_copy;
mod large_files;
mod merge;
mod merge_batch;
mod object_stores;
mod packs;
mod partial_clone;
mod process;
mod ref_faults;
mod ref_files;
mod ref_name;
mod ref_tables;
mod ref_transaction;
mod reference;
mod refs;
mod registration;
mod registration_faults;
mod registration_tables;
mod repository;
mod signing;
mod small_packs;
mod steps;
mod vault;
mod vault_faults;
mod vault_lock;
mod vault_loose;
mod vault_pins;
mod vault_upkeep;
mod version;

pub use checkout_copy::{copy_checkout, set_times, stats_of};
pub use checkout_index::{CheckoutIndex, EntryKind, FileStat, IndexEntry, NewEntry};
pub use comparing::{
    Parents, TreeDifference, history_between, is_ancestor, tree_differences, trees_of,
};
pub use diff_config::{UserSetting, color_sequence, diff_settings};
pub use digest::{Digest, blob_id};
pub use door::{Door, DoorError, FileTrace, born, device};
pub use git_user::GitUser;
pub use index_copy::{copy_index, keep_index_time};
pub use large_files::{LargeFile, LargeFileError, LargeFileStore, POINTER_LIMIT, list_pointers};
pub use merge::{MergeRequest, Merged, NewCommit, Person, commit_tree, merge_trees};
pub use merge_batch::{MergePair, PairMerged, merge_pairs};
pub use packs::{Transfer, is_stale_keep, receive_checked, send, transfer};
pub use partial_clone::AsUser;
pub use process::{Git, GitError, Output};
pub use ref_faults::{
    BrokenRef, LockFile, RefSurvey, head_fault, last_logged, lock_at, locks_in, packed_refs_fault,
    survey_refs,
};
pub use ref_name::RefName;
pub use ref_tables::tabled_ref;
pub use ref_transaction::{Hooks, OF_MAIN, RefStep, RefTransaction};
pub use reference::{Commit, MainRef, Reference};
pub use refs::{
    Expected, RefChange, Target, create_branch, delete_branch, list_plain_tips, list_refs,
    list_tips, update_refs,
};
pub use registration::{NewRegistration, Registration, Registrations};
pub use registration_faults::EntryFault;
pub use repository::{Blob, DiscoverError, Repository};
pub use signing::{NotSigned, SIGNING_LIMIT, Signer, SigningConfig, reparented};
pub use steps::{between_steps, step, step_of};
pub use vault::{Vault, VaultError};
pub use vault_faults::{VaultFault, set_aside};
pub use vault_lock::Keeper;
pub use vault_upkeep::{GRACE, VaultStatus, VaultUpkeep};
pub use version::{
    MINIMUM_VERSION, counted, require_known_version, require_version, require_version_for,
};
