//! The stable words of findings, how bad each is, and what it means for the user. `docs/doctor.md` has the same list, with what `--fix`
//! does; a test compares the two.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    /// Something does not fit, nothing is at risk.
    Warn,
    /// Something can't be used.
    Error,
}

macro_rules! codes {
    ($($name:ident $text:literal $severity:ident $means:literal,)*) => {
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

            /// How bad it usually is.
            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$name => Severity::$severity,)*
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
    SandboxLevel "sandbox_level" Info "How well this machine can sandbox runs.",
    CheckFailed "check_failed" Error "One part could not be checked; everything else was.",

    GitMissing "git_missing" Error "Without a working git, weald can't create, import or land anything.",
    GitOld "git_old" Error "This git lacks what weald needs.",
    DiskLow "disk_low" Warn "The disk is almost full; existing data stays readable.",
    InodesLow "inodes_low" Warn "The file system is almost out of inodes; no new files can be created then.",
    ReadOnly "read_only" Error "Nothing can be written, so no command that changes anything works.",

    RepositoryCopy "repository_copy" Error "This repository is a copy of another one, and its records name the original's worktrees; weald does not touch those.",
    StateLinked "state_linked" Error "weald does not keep its state behind a symbolic link: the owner of the link could read and change everything.",
    PrivateOpen "private_open" Warn "Others on this machine can read weald's state.",
    PrivateForeign "private_foreign" Error "weald's state belongs to another user, who can change it.",
    DatabaseMissing "database_missing" Error "The records are gone; worktrees, branches and the vault are still there.",
    DatabaseBroken "database_broken" Error "The records can't be read, so nothing that needs them was checked.",
    DatabaseBehind "database_behind" Error "Some records were lost; worktrees, branches and the vault were not.",
    DatabaseNewer "database_newer" Error "A newer weald wrote the records; this one leaves them alone.",
    DatabaseBusy "database_busy" Error "Another process holds the database, so nothing can be changed.",
    ConfigBroken "config_broken" Error "Commands refuse to work until the file can be read.",
    ConfigSharedBroken "config_shared_broken" Warn "Keys that the repository's file can guard take their strictest value.",
    JournalBehind "journal_behind" Warn "Programs that read events.jsonl miss the last events; the records have them.",
    JournalTorn "journal_torn" Warn "The last line of events.jsonl is incomplete.",
    JournalForeign "journal_foreign" Warn "events.jsonl continues beyond what these records contain.",
    JournalBroken "journal_broken" Error "Events are recorded, but not copied to events.jsonl.",

    HeadBroken "head_broken" Error "git does not recognize this as a repository, or finds no current branch.",
    PackedRefsBroken "packed_refs_broken" Error "git can't list branches and tags.",
    ReftableBroken "reftable_broken" Error "git can't read branches and tags.",
    RefBroken "ref_broken" Error "A branch or tag points to no commit; its commits may still exist.",
    LockStale "lock_stale" Warn "git refuses to change what the lock protects.",
    BranchLost "branch_lost" Warn "A worktree's branch is gone from main; the vault has its commits.",

    VaultMissing "vault_missing" Error "Worktrees have no vault to borrow objects from.",
    VaultBroken "vault_broken" Error "git does not recognize the vault as a repository.",
    VaultPack "vault_pack" Error "Objects that worktrees borrow may be unreadable.",
    VaultRefBroken "vault_ref_broken" Warn "The vault no longer knows which commits a worktree had.",
    PinDangling "pin_dangling" Error "The vault claims to hold a commit that it does not have.",
    VaultLarge "vault_large" Info "The vault takes much more room than the repository.",

    RegistrationLost "registration_lost" Warn "git does not know the worktree, and commands inside it don't find the repository.",
    RegistrationBroken "registration_broken" Error "git can't read its entry for one of weald's worktrees.",
    RegistrationStale "registration_stale" Info "git lists a worktree that is gone.",
    RegistrationUnknown "registration_unknown" Warn "A worktree that weald created is missing from its records.",
    ForeignBroken "foreign_broken" Warn "An entry in worktrees/ that weald did not create is broken; git may fail in the whole repository.",
    ForeignLock "foreign_lock" Warn "The worktree was locked or unlocked with git.",

    CreateUnfinished "create_unfinished" Warn "Creating a worktree was interrupted.",
    RemoveUnfinished "remove_unfinished" Warn "Removing a worktree was interrupted; nothing was lost.",
    PurgeUnfinished "purge_unfinished" Warn "Purging a worktree from the trash was interrupted.",
    RestoreUnfinished "restore_unfinished" Warn "A worktree is back from the trash, but the records don't say so.",
    RunUnfinished "run_unfinished" Info "A command in a worktree was killed together with its weald process.",
    TreeMissing "tree_missing" Warn "A worktree's directory is gone; its imported commits are in the vault.",
    TreeMoved "tree_moved" Warn "A worktree's directory was moved.",
    TreeReplaced "tree_replaced" Error "Something else is where a worktree was; no command touches it.",
    TreeDamaged "tree_damaged" Warn "The repository in a worktree can't be used; its files are still there.",
    TreeLock "tree_lock" Warn "git in the worktree refuses to change what the lock protects.",
    TreeOwner "tree_owner" Warn "Files of a worktree belong to another user.",
    PathTwice "path_twice" Error "Two recorded worktrees claim the same directory.",
    PointerWrong "pointer_wrong" Warn "The .git file of a linked worktree points elsewhere.",
    AlternatesBroken "alternates_broken" Warn "A worktree can't find the objects that it borrows.",
    MarkerLost "marker_lost" Warn "Commands inside the worktree don't find the repository.",
    TrashMissing "trash_missing" Info "A removed worktree can't be restored with its files.",
    TrashOutside "trash_outside" Warn "A record places a removed worktree outside this repository's trash.",
    TrashUnknown "trash_unknown" Info "A directory in the trash has no record.",

    BindingDangling "binding_dangling" Warn "A task and a worktree disagree about being bound to each other.",
    SessionDangling "session_dangling" Info "A session is recorded in a worktree that is gone.",
    AgentOrphaned "agent_orphaned" Warn "An agent's supervisor is gone; its task is held for nothing.",
    HolderStopped "holder_stopped" Warn "A stopped process is blocking others.",
    PortsStale "ports_stale" Info "Ports are reserved for a worktree that is gone.",
    PortsLost "ports_lost" Warn "Another worktree may get the same ports.",

    LandingUnfinished "landing_unfinished" Error "The target or its checkout may be part-way between two commits.",
    LandingUnsettled "landing_unsettled" Warn "The work landed, but its task and worktree are not updated yet.",
    LandingLeftover "landing_leftover" Warn "Files are left over from a landing that has ended.",
    LandingStash "landing_stash" Info "The stash has changes of yours.",

    Leftover "leftover" Info "A leftover of weald's that nothing uses.",
    ViewBehind "view_behind" Warn "File views lack the last changes.",
    ViewMissing "view_missing" Warn "A file view was deleted.",
    ViewEdited "view_edited" Warn "A file view differs from the records.",
    ViewBlocked "view_blocked" Warn "A file of yours is where a view belongs.",
    ViewsOld "views_old" Info "Files of disabled views are out of date.",
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let mut known = Self::ALL.iter().copied();
        known
            .find(|code| code.as_str() == word)
            .ok_or_else(|| D::Error::custom(format_args!("unknown code {word}")))
    }
}
