//! Settings that are one of a few words: each word is written once, here, and nothing else compares texts.

use crate::choice::choice;

choice! {
    /// What is committed of what an agent leaves.
    pub enum Leftovers {
        All = "all",
        /// Changes of files that git knows.
        Tracked = "tracked",
        Nothing = "refuse",
    }

    /// How a terminal is told that something needs its user.
    pub enum NotifyBy {
        Off = "off",
        Bell = "bell",
        /// The sequence that terminals turn into a notification.
        Osc9 = "osc9",
    }

    /// What becomes of `a/b` as the name of a worktree.
    pub enum Slashes {
        Refuse = "refuse",
        Plus = "plus",
    }

    /// What a new worktree starts from.
    pub enum BasePolicy {
        Target = "target",
        Head = "head",
        Main = "main",
        RemoteDefault = "remote_default",
        Task = "task",
    }

    /// Whether a branch is fetched before it is used.
    pub enum Fetch {
        Try = "try",
        Require = "require",
        Never = "never",
    }

    /// What uncommitted changes of main mean for a new worktree.
    pub enum DirtyPolicy {
        Warn = "warn",
        Refuse = "refuse",
        Ignore = "ignore",
    }

    /// When a worktree is locked for git.
    pub enum LockWhen {
        Never = "never",
        Create = "create",
        Run = "run",
    }

    /// How shared folders come into a worktree.
    pub enum ShareBy {
        Copy = "copy",
        Symlink = "symlink",
        None = "none",
    }

    /// What becomes of a worktree whose set-up fails.
    pub enum OnFailure {
        Keep = "keep",
        Rollback = "rollback",
    }

    /// What a new worktree has of Git LFS files.
    pub enum LargeFilesPolicy {
        Skip = "skip",
        Smudge = "smudge",
    }

    /// What becomes of the task of an agent that did nothing.
    pub enum OnEmpty {
        Park = "park",
        Complete = "complete",
    }

    /// What happens to a stalled agent.
    pub enum OnStall {
        Tell = "tell",
        Stop = "stop",
    }

    /// How a command line without a placeholder gets the prompt.
    pub enum PromptBy {
        Argument = "argument",
        File = "file",
        Stdin = "stdin",
    }

    /// What becomes of an edit that an agent's hook can't judge.
    pub enum OnError {
        Allow = "allow",
        Block = "block",
    }

    /// What becomes of a worktree that landed.
    pub enum AfterLanding {
        Trash = "trash",
        Keep = "keep",
    }

    /// Whether the repository's hooks run when the target moves.
    pub enum HooksPolicy {
        Run = "run",
        Off = "off",
    }

    /// Whether landings are signed.
    pub enum Sign {
        Never = "never",
        Auto = "auto",
        Require = "require",
    }

    /// What must agree before a landing; the later, the stricter.
    pub enum Gate {
        None = "none",
        Tests = "tests",
        Human = "human",
    }

    /// How strongly runs are confined.
    pub enum SandboxLevel {
        Landlock = "landlock",
        Full = "full",
    }

    /// Whether runs reach the network.
    pub enum NetworkPolicy {
        On = "on",
        /// Listed hosts alone.
        Allow = "allow",
        Off = "off",
    }

    /// What becomes of a removed worktree's branch.
    pub enum BranchPolicy {
        IfLanded = "if_landed",
        Always = "always",
        Keep = "keep",
        WithTree = "with_tree",
        IfUnchanged = "if_unchanged",
    }

    /// Further names of MCP tools.
    pub enum Aliases {
        None = "none",
        Classroom = "classroom",
    }
}
