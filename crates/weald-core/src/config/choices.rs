//! Settings that are one of a few words: each word is written once, here, and nothing else compares texts.

/// An enum whose variants have words: the only ones that its key takes. For a guarded key, loosest first.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$note])* $variant,)*
        }

        impl $name {
            pub const WORDS: &[&str] = &[$($word),*];
            /// The same for a key that may be unset.
            pub const NONE_OR_WORDS: &[&str] = &["none", $($word),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl $crate::config::FromValue for $name {
            fn from_value(value: &$crate::config::Value) -> Option<Self> {
                Self::of(value.as_text()?)
            }
        }
    };
}

/// A choice that may also be `none`.
macro_rules! or_none {
    ($name:ident) => {
        impl $crate::config::FromValue for Option<$name> {
            fn from_value(value: &$crate::config::Value) -> Option<Self> {
                match value.as_text()? {
                    "none" => Some(None),
                    word => $name::of(word).map(Some),
                }
            }
        }
    };
}

pub(crate) use {choice, or_none};

choice! {
    /// What becomes of `a/b` as the name of a worktree.
    pub enum Slashes {
        Refuse = "refuse",
        Plus = "plus",
    }
}

choice! {
    /// What a new worktree starts from.
    pub enum BasePolicy {
        Target = "target",
        Head = "head",
        Main = "main",
        RemoteDefault = "remote_default",
        Task = "task",
    }
}

choice! {
    /// Whether a branch is fetched before it is used.
    pub enum Fetch {
        Try = "try",
        Require = "require",
        Never = "never",
    }
}

choice! {
    /// What uncommitted changes of main mean for a new worktree.
    pub enum DirtyPolicy {
        Warn = "warn",
        Refuse = "refuse",
        Ignore = "ignore",
    }
}

choice! {
    /// When a worktree is locked for git.
    pub enum LockWhen {
        Never = "never",
        Create = "create",
        Run = "run",
    }
}

choice! {
    /// How shared folders come into a worktree.
    pub enum ShareBy {
        Copy = "copy",
        Symlink = "symlink",
        None = "none",
    }
}

choice! {
    /// What becomes of a worktree whose set-up fails.
    pub enum OnFailure {
        Keep = "keep",
        Rollback = "rollback",
    }
}

choice! {
    /// What a new worktree has of Git LFS files.
    pub enum LargeFilesPolicy {
        Skip = "skip",
        Smudge = "smudge",
    }
}

choice! {
    /// What becomes of the task of an agent that did nothing.
    pub enum OnEmpty {
        Park = "park",
        Complete = "complete",
    }
}

choice! {
    /// What happens to a stalled agent.
    pub enum OnStall {
        Tell = "tell",
        Stop = "stop",
    }
}

choice! {
    /// How a command line without a placeholder gets the prompt.
    pub enum PromptBy {
        Argument = "argument",
        File = "file",
        Stdin = "stdin",
    }
}

choice! {
    /// What becomes of an edit that an agent's hook can't judge.
    pub enum OnError {
        Allow = "allow",
        Block = "block",
    }
}

choice! {
    /// What becomes of a worktree that landed.
    pub enum AfterLanding {
        Trash = "trash",
        Keep = "keep",
    }
}

choice! {
    /// Whether the repository's hooks run when the target moves.
    pub enum HooksPolicy {
        Run = "run",
        Off = "off",
    }
}

choice! {
    /// Whether landings are signed.
    pub enum Sign {
        Never = "never",
        Auto = "auto",
        Require = "require",
    }
}

choice! {
    /// What must agree before a landing; the later, the stricter.
    pub enum Gate {
        None = "none",
        Tests = "tests",
        Human = "human",
    }
}

choice! {
    /// How strongly runs are confined.
    pub enum SandboxLevel {
        Landlock = "landlock",
        Full = "full",
    }
}

choice! {
    /// Whether runs reach the network.
    pub enum NetworkPolicy {
        On = "on",
        Off = "off",
    }
}

choice! {
    /// What becomes of a removed worktree's branch.
    pub enum BranchPolicy {
        IfLanded = "if_landed",
        Always = "always",
        Keep = "keep",
        WithTree = "with_tree",
        IfUnchanged = "if_unchanged",
    }
}

choice! {
    /// Further names of MCP tools.
    pub enum Aliases {
        None = "none",
        Classroom = "classroom",
    }
}
