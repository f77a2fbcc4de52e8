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
    SandboxLevel "sandbox_level" "How well runs can be kept in their trees on this machine.",
    CheckFailed "check_failed" "A part could not be looked at; everything else was.",

    GitMissing "git_missing" "Without a git that works nothing can be made, imported or landed.",
    GitOld "git_old" "This git lacks what weald needs.",
    DiskLow "disk_low" "Soon nothing can be written; what is there stays readable.",
    InodesLow "inodes_low" "Soon no file can be made, however small.",
    ReadOnly "read_only" "Nothing can be written, so no command that changes anything works.",

    RepositoryCopy "repository_copy" "This repository is a copy of another one, and its records name that one's worktrees; nothing of them is touched.",
    StateLinked "state_linked" "weald keeps no state behind a link: whoever set it could read and change everything.",
    PrivateOpen "private_open" "Others on this machine can read weald's state.",
    PrivateForeign "private_foreign" "weald's state belongs to another user, who can change it.",
    DatabaseMissing "database_missing" "The records are gone; trees, branches and the vault are not.",
    DatabaseBroken "database_broken" "The records can't be read, so nothing that needs them was checked.",
    DatabaseBehind "database_behind" "Some records were lost; trees, branches and the vault were not.",
    DatabaseNewer "database_newer" "A newer weald wrote the records; this one leaves them alone.",
    DatabaseBusy "database_busy" "Another process holds the records, so nothing can be changed.",
    ConfigBroken "config_broken" "Commands refuse to work until the file can be read.",
    ConfigSharedBroken "config_shared_broken" "What the repository's file could guard is taken as strict as can be.",
    JournalBehind "journal_behind" "Programs that read events.jsonl miss the last events; the records have them.",
    JournalTorn "journal_torn" "The last line of events.jsonl is half a line.",
    JournalForeign "journal_foreign" "events.jsonl goes on where these records never were.",
    JournalBroken "journal_broken" "Events are recorded, but not copied to events.jsonl.",

    HeadBroken "head_broken" "git does not take this for a repository, or knows no current branch.",
    PackedRefsBroken "packed_refs_broken" "git can't list branches and tags.",
    ReftableBroken "reftable_broken" "git can't read branches and tags.",
    RefBroken "ref_broken" "A branch or tag names no commit; its commits may still be there.",
    LockStale "lock_stale" "git refuses to change what the lock is for.",
    BranchLost "branch_lost" "Main's branch of a tree is gone; the vault has its commits.",

    VaultMissing "vault_missing" "Trees have nothing to borrow objects from.",
    VaultBroken "vault_broken" "git does not take the vault for a repository.",
    VaultPack "vault_pack" "Objects that trees borrow may be unreadable.",
    VaultRefBroken "vault_ref_broken" "The vault does not know any more what a tree held there.",
    PinDangling "pin_dangling" "The vault claims to hold a commit that it does not have.",
    VaultLarge "vault_large" "The vault takes much more room than the repository.",

    RegistrationLost "registration_lost" "git does not know the tree, and commands inside it don't find the repository.",
    RegistrationBroken "registration_broken" "git can't read its entry of one of weald's trees.",
    RegistrationStale "registration_stale" "git shows a tree that is gone.",
    RegistrationUnknown "registration_unknown" "A tree that weald made, and that its records don't know.",
    ForeignBroken "foreign_broken" "An entry in worktrees/ that weald did not make is broken; git may fail for everybody.",
    ForeignLock "foreign_lock" "Somebody locked or unlocked the tree by git.",

    CreateUnfinished "create_unfinished" "Making a tree was cut short.",
    RemoveUnfinished "remove_unfinished" "Removing a tree was cut short; nothing of it is lost.",
    PurgeUnfinished "purge_unfinished" "Deleting a tree from the trash was cut short.",
    RestoreUnfinished "restore_unfinished" "A tree is back from the trash, and the records don't say so.",
    RunUnfinished "run_unfinished" "A command in a tree was killed together with its weald.",
    TreeMissing "tree_missing" "The directory of a tree is gone; what it committed is in the vault.",
    TreeMoved "tree_moved" "The directory of a tree was moved.",
    TreeReplaced "tree_replaced" "Something else is where a tree was; no command touches it.",
    TreeDamaged "tree_damaged" "The repository in a tree can't be used; its files are there.",
    TreeLock "tree_lock" "git in the tree refuses to change what the lock is for.",
    TreeOwner "tree_owner" "Files of a tree belong to another user.",
    PathTwice "path_twice" "Two trees on record claim one directory.",
    PointerWrong "pointer_wrong" "The .git file of a linked tree leads to another place.",
    AlternatesBroken "alternates_broken" "A tree does not find the objects that it borrows.",
    MarkerLost "marker_lost" "Commands inside the tree don't find the repository.",
    TrashMissing "trash_missing" "A removed tree can't be restored with its files.",
    TrashOutside "trash_outside" "A record says that a removed tree lies where no trash of this repository is.",
    TrashUnknown "trash_unknown" "A directory in the trash that no record speaks of.",

    BindingDangling "binding_dangling" "A task and a tree don't agree that they belong together.",
    SessionDangling "session_dangling" "A session says that it works in a tree that is gone.",
    AgentOrphaned "agent_orphaned" "Nobody watches over an agent; its task waits for nothing.",
    HolderStopped "holder_stopped" "A stopped process keeps others waiting.",
    PortsStale "ports_stale" "Ports are held for a tree that is gone.",
    PortsLost "ports_lost" "Another tree may get the same ports.",

    LandingUnfinished "landing_unfinished" "The target or its checkout may be half-way between two commits.",
    LandingUnsettled "landing_unsettled" "The work landed; its task and its tree don't know yet.",
    LandingLeftover "landing_leftover" "Files of a landing that has ended.",
    LandingStash "landing_stash" "Changes of yours wait in the stash.",

    Leftover "leftover" "Something that weald made and nobody uses.",
    ViewBehind "view_behind" "File views lack the last changes.",
    ViewMissing "view_missing" "A file view was deleted.",
    ViewEdited "view_edited" "A file view says something that the records don't.",
    ViewBlocked "view_blocked" "A file of yours is where a view belongs.",
    ViewsOld "views_old" "Files of views that are switched off grow old.",
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
