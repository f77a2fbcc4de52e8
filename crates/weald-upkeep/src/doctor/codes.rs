//! The stable words of findings, and what each means for the user. `docs/doctor.md` has the same list, with what `--fix`
//! does; a test compares the two.

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($name:ident $text:literal $means:literal,)*) => {
        /// What a finding is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $means] $name,)*
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word that programs go by; it never changes.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// What it means for the user, in a sentence.
            pub fn means(self) -> &'static str {
                match self {
                    $(Self::$name => $means,)*
                }
            }
        }
    };
}

codes! {
    SandboxLevel "sandbox_level" "How well this machine can sandbox runs.",
    CheckFailed "check_failed" "One part could not be checked; everything else was.",

    GitMissing "git_missing" "Without a working git, weald can't create, import or land anything.",
    GitOld "git_old" "This git lacks what weald needs.",
    DiskLow "disk_low" "The disk is almost full; existing data stays readable.",
    InodesLow "inodes_low" "The file system is almost out of inodes; no new files can be created then.",
    ReadOnly "read_only" "Nothing can be written, so no command that changes anything works.",

    RepositoryCopy "repository_copy" "This repository is a copy of another one, and its records name the original's worktrees; weald does not touch those.",
    StateLinked "state_linked" "weald does not keep its state behind a symbolic link: the owner of the link could read and change everything.",
    PrivateOpen "private_open" "Others on this machine can read weald's state.",
    PrivateForeign "private_foreign" "weald's state belongs to another user, who can change it.",
    DatabaseMissing "database_missing" "The records are gone; worktrees, branches and the vault are still there.",
    DatabaseBroken "database_broken" "The records can't be read, so nothing that needs them was checked.",
    DatabaseBehind "database_behind" "Some records were lost; worktrees, branches and the vault were not.",
    DatabaseNewer "database_newer" "A newer weald wrote the records; this one leaves them alone.",
    DatabaseBusy "database_busy" "Another process holds the database, so nothing can be changed.",
    ConfigBroken "config_broken" "Commands refuse to work until the file can be read.",
    ConfigSharedBroken "config_shared_broken" "Keys that the repository's file can guard take their strictest value.",
    JournalBehind "journal_behind" "Programs that read events.jsonl miss the last events; the records have them.",
    JournalTorn "journal_torn" "The last line of events.jsonl is incomplete.",
    JournalForeign "journal_foreign" "events.jsonl continues beyond what these records contain.",
    JournalBroken "journal_broken" "Events are recorded, but not copied to events.jsonl.",

    HeadBroken "head_broken" "git does not recognize this as a repository, or finds no current branch.",
    PackedRefsBroken "packed_refs_broken" "git can't list branches and tags.",
    ReftableBroken "reftable_broken" "git can't read branches and tags.",
    RefBroken "ref_broken" "A branch or tag points to no commit; its commits may still exist.",
    LockStale "lock_stale" "git refuses to change what the lock protects.",
    BranchLost "branch_lost" "A worktree's branch is gone from main; the vault has its commits.",

    VaultMissing "vault_missing" "Worktrees have no vault to borrow objects from.",
    VaultBroken "vault_broken" "git does not recognize the vault as a repository.",
    VaultPack "vault_pack" "Objects that worktrees borrow may be unreadable.",
    VaultRefBroken "vault_ref_broken" "The vault no longer knows which commits a worktree had.",
    PinDangling "pin_dangling" "The vault claims to hold a commit that it does not have.",
    VaultLarge "vault_large" "The vault takes much more room than the repository.",

    RegistrationLost "registration_lost" "git does not know the worktree, and commands inside it don't find the repository.",
    RegistrationBroken "registration_broken" "git can't read its entry for one of weald's worktrees.",
    RegistrationStale "registration_stale" "git lists a worktree that is gone.",
    RegistrationUnknown "registration_unknown" "A worktree that weald created is missing from its records.",
    ForeignBroken "foreign_broken" "An entry in worktrees/ that weald did not create is broken; git may fail in the whole repository.",
    ForeignLock "foreign_lock" "The worktree was locked or unlocked with git.",

    CreateUnfinished "create_unfinished" "Creating a worktree was interrupted.",
    RemoveUnfinished "remove_unfinished" "Removing a worktree was interrupted; nothing was lost.",
    PurgeUnfinished "purge_unfinished" "Purging a worktree from the trash was interrupted.",
    RestoreUnfinished "restore_unfinished" "A worktree is back from the trash, but the records don't say so.",
    RunUnfinished "run_unfinished" "A command in a worktree was killed together with its weald process.",
    TreeMissing "tree_missing" "A worktree's directory is gone; its imported commits are in the vault.",
    TreeMoved "tree_moved" "A worktree's directory was moved.",
    TreeReplaced "tree_replaced" "Something else is where a worktree was; no command touches it.",
    TreeDamaged "tree_damaged" "The repository in a worktree can't be used; its files are still there.",
    TreeLock "tree_lock" "git in the worktree refuses to change what the lock protects.",
    TreeOwner "tree_owner" "Files of a worktree belong to another user.",
    PathTwice "path_twice" "Two recorded worktrees claim the same directory.",
    PointerWrong "pointer_wrong" "The .git file of a linked worktree points elsewhere.",
    AlternatesBroken "alternates_broken" "A worktree can't find the objects that it borrows.",
    MarkerLost "marker_lost" "Commands inside the worktree don't find the repository.",
    TrashMissing "trash_missing" "A removed worktree can't be restored with its files.",
    TrashOutside "trash_outside" "A record places a removed worktree outside this repository's trash.",
    TrashUnknown "trash_unknown" "A directory in the trash has no record.",

    BindingDangling "binding_dangling" "A task and a worktree disagree about being bound to each other.",
    SessionDangling "session_dangling" "A session is recorded in a worktree that is gone.",
    AgentOrphaned "agent_orphaned" "An agent's supervisor is gone; its task is held for nothing.",
    HolderStopped "holder_stopped" "A stopped process is blocking others.",
    PortsStale "ports_stale" "Ports are reserved for a worktree that is gone.",
    PortsLost "ports_lost" "Another worktree may get the same ports.",

    LandingUnfinished "landing_unfinished" "The target or its checkout may be part-way between two commits.",
    LandingUnsettled "landing_unsettled" "The work landed, but its task and worktree are not updated yet.",
    LandingLeftover "landing_leftover" "Files are left over from a landing that has ended.",
    LandingStash "landing_stash" "The stash has changes of yours.",

    Leftover "leftover" "A leftover of weald's that nothing uses.",
    ViewBehind "view_behind" "File views lack the last changes.",
    ViewMissing "view_missing" "A file view was deleted.",
    ViewEdited "view_edited" "A file view differs from the records.",
    ViewBlocked "view_blocked" "A file of yours is where a view belongs.",
    ViewsOld "views_old" "Files of disabled views are out of date.",
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
