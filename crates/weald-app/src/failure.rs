//! Every error as people and programs see it: code, message, hint, details, exit code. One place, so that they agree.
//!
//! Codes are stable. A hint is a command that can be run, or what to do if no command helps.

mod agents;
mod config;
mod drivers;
mod hooks;
mod install;
pub mod landing;
mod lookup;
mod moves;
mod place;
mod sources;
mod starts;
mod sweep;
mod trees;
mod undo;

use std::io;
use std::path::Path;

use crate::{Contest, CopyOf, IdentityError, MessageError, SessionError, TaskError};
use serde_json::{Value, json};
use weald_core::error_code::ErrorCode;
use weald_core::message::MessageRefusal;
use weald_core::name::SessionName;
use weald_core::session::{Liveness, SessionTaken};
use weald_core::store::StoreError;
use weald_core::task_rules::TaskRefusal;
use weald_git::{DiscoverError, GitError};
use weald_sandbox::{Level, SandboxError};

use crate::exit;

/// An error, ready to be printed.
#[derive(Debug)]
pub struct Failure {
    /// For programs; never changes its meaning.
    pub code: ErrorCode,
    /// What happened, in one sentence.
    pub message: String,
    /// What to do: a command, where one helps.
    pub hint: Option<String>,
    /// What the message is about, for programs.
    pub details: Box<Value>,
    /// The exit code of the command.
    pub exit: u8,
}

impl Failure {
    /// A failure with nothing but words.
    pub fn new(code: impl Into<ErrorCode>, exit: u8, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            hint: None,
            details: Box::new(json!({})),
            exit,
        }
    }

    /// The same with what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with facts.
    pub fn details(mut self, details: Value) -> Self {
        self.details = Box::new(details);
        self
    }

    /// Something that can't happen did.
    pub fn bug() -> Self {
        Self::new(
            "bug",
            exit::BUG,
            "internal error in weald; everything recorded before it is safe",
        )
        .hint("please report the lines above; `weald events` shows what was done")
    }

    /// The current directory is gone.
    pub fn no_directory(source: &io::Error) -> Self {
        Self::new(
            "no_directory",
            exit::NOT_FOUND,
            format!("the current directory can't be read: {source}"),
        )
        .hint("cd to the repository, or name it with -C")
    }

    /// A command inside a sandbox, where the control plane is hidden.
    pub fn inside_sandbox() -> Self {
        Self::new(
            "inside_sandbox",
            exit::REFUSED,
            "weald's state is not visible inside a sandbox",
        )
        .hint("run weald outside the sandbox")
    }

    /// A command that is not for the inside of a tree.
    pub fn not_allowed_inside() -> Self {
        Self::new(
            "not_allowed_inside",
            exit::REFUSED,
            "not allowed inside a sandboxed run",
        )
        .hint("run `weald` to list what is allowed here; run everything else on the host")
    }

    /// An answer of the broker that is none.
    pub fn broker_answer(error: &serde_json::Error) -> Self {
        Self::new(
            "broker_answer",
            exit::BUG,
            format!("the broker's answer could not be parsed: {error}"),
        )
        .hint("this weald and the one outside are different versions; use the same one")
    }

    /// A request that no face of this version makes.
    pub fn bad_request(operation: &str, error: &serde_json::Error) -> Self {
        Self::new(
            "bad_request",
            exit::USAGE,
            format!("{operation}: invalid request: {error}"),
        )
    }

    /// A word that is none of those that an argument takes.
    pub fn no_word(argument: &str, word: &str, known: &[&str]) -> Self {
        let message = format!("invalid value '{word:.100}' for '{argument}'");
        Self::new("invalid_value", exit::USAGE, message)
            .hint(format!("known are {}", known.join(", ")))
    }

    /// A person was asked, and did not say yes.
    pub fn declined(kept: &str) -> Self {
        Self::new("declined", exit::REFUSED, format!("not confirmed; {kept}"))
    }

    /// A dry run queues nothing and reports nothing.
    pub fn dry_run_alone() -> Self {
        let message = "a dry run can't be combined with no_wait or a report";
        Self::new("usage", exit::USAGE, message).hint("leave one of them out")
    }

    /// A message that can't be that of a landing.
    pub fn bad_message(what: &str) -> Self {
        let message = format!("{what}; nothing was done");
        Self::new("usage", exit::USAGE, message).hint("weald land NAME -m MESSAGE")
    }

    /// A length of time that no clock can be moved by.
    pub fn not_a_time(argument: &str) -> Self {
        let message = format!("invalid value for {argument}: a duration is below ten years");
        Self::new("invalid_value", exit::USAGE, message).hint("write it as 90s, 15m, 2h 30m or 7d")
    }

    /// A server asked for what this binary does not have.
    pub fn no_operation(name: &str) -> Self {
        let message = format!("there is no operation {name}");
        Self::new("no_operation", exit::NOT_FOUND, message)
    }

    /// The same as a mistake on the command line.
    pub fn into_usage(mut self) -> Self {
        self.exit = exit::USAGE;
        self
    }

    /// A file that can't be read or written.
    pub fn file(path: &Path, source: &io::Error) -> Self {
        let exit = if source.kind() == io::ErrorKind::NotFound {
            exit::NOT_FOUND
        } else {
            exit::REFUSED
        };
        Self::new("file", exit, format!("{}: {source}", path.display()))
    }
}

impl From<DiscoverError> for Failure {
    fn from(error: DiscoverError) -> Self {
        let message = error.to_string();
        match error {
            DiscoverError::NotARepository { .. } => {
                Self::new("not_a_repository", exit::NOT_FOUND, message)
                    .hint("cd into a git repository, or create one: git init")
            }
            DiscoverError::Broken { .. } => {
                Self::new("broken_repository", exit::REFUSED, message).hint("git worktree repair")
            }
            DiscoverError::Embedded { outer, .. } => {
                Self::new("embedded_repository", exit::REFUSED, message)
                    .hint(format!("nothing was changed; cd {}", outer.display()))
            }
            DiscoverError::ForeignOwner { path } => {
                Self::new("foreign_owner", exit::REFUSED, message).hint(format!(
                    "if you trust it: git config --global --add safe.directory {}",
                    path.display()
                ))
            }
        }
    }
}

/// What to do about a copy.
const COPY: &str = "nothing was changed; to make it a repository of its own: weald doctor --adopt";

impl Failure {
    /// The repository is a copy.
    pub fn copy(copy: &CopyOf) -> Self {
        Self::new("repository_copy", exit::REFUSED, copy.to_string())
            .hint(COPY)
            .details(json!({"original": copy.original}))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (message, is_full) = (error.to_string(), error.is_full());
        match error {
            StoreError::Busy { holder, .. } => {
                let holder = holder.map_or("pgrep -a weald".to_owned(), |pid| format!("ps -fp {pid}"));
                Self::new("store_busy", exit::BUSY, message).hint(format!(
                    "a stopped weald process or a sandboxed run may be holding it: {holder}"
                ))
            }
            StoreError::NewerSchema { .. } => {
                Self::new("newer_schema", exit::REFUSED, message).hint("update weald")
            }
            StoreError::NetworkFileSystem { .. } => {
                Self::new("network_file_system", exit::REFUSED, message)
                    .hint("clone the repository to a local disk and work there")
            }
            StoreError::Damaged { .. } => Self::new("store_damaged", exit::REFUSED, message).hint(
                "to rebuild it from events.jsonl, git and the worktrees (the old file is kept): weald doctor --rebuild --fix",
            ),
            StoreError::Lost { .. } | StoreError::Behind { .. } => {
                Self::new("registry_lost", exit::REFUSED, message)
                    .hint("weald doctor --rebuild --fix")
            }
            StoreError::Replaced { .. } => Self::new("store_replaced", exit::BUSY, message)
                .hint("nothing was changed; run the command again"),
            StoreError::ReadOnly { .. } => Self::new("read_only", exit::REFUSED, message)
                .hint("reading commands work: weald list, weald status, weald task list, weald events"),
            StoreError::Copy(_) => Self::new("repository_copy", exit::REFUSED, message).hint(COPY),
            StoreError::File { .. } => Self::new("file", exit::REFUSED, message)
                .hint("weald must be able to write its folder in the repository; check who owns it"),
            StoreError::Backend(_) if is_full => {
                Self::new("store_failed", exit::REFUSED, message)
                    .hint("free some space: weald pool drain, weald clean --trash --apply")
            }
            StoreError::Backend(_) => Self::new("store_failed", exit::REFUSED, message),
        }
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Self {
        let message = error.to_string();
        match error {
            TaskError::Store(error) => error.into(),
            TaskError::Refused(refusal) => refusal.into(),
            TaskError::NotFound { id } => Self::new("task_not_found", exit::NOT_FOUND, message)
                .hint("weald task list")
                .details(json!({"task": id})),
            TaskError::Exists { id } => Self::new("task_exists", exit::REFUSED, message)
                .hint(format!("weald task show {id}"))
                .details(json!({"task": id})),
            TaskError::Cycle { round } => Self::new("dependency_cycle", exit::REFUSED, message)
                .hint(format!("weald task show {}", round[0]))
                .details(json!({"cycle": round})),
            TaskError::BadLines { errors } => Self::bad_lines(message, &errors),
            TaskError::NothingReady {
                waiting,
                in_progress,
            } => {
                let failure = Self::new("nothing_ready", exit::NOT_FOUND, message)
                    .details(json!({"waiting": waiting, "in_progress": in_progress}));
                match waiting + in_progress {
                    0 => failure.hint("weald task add \"what to do\""),
                    _ => failure.hint("weald task list"),
                }
            }
        }
    }
}

impl From<TaskRefusal> for Failure {
    fn from(refusal: TaskRefusal) -> Self {
        let message = refusal.to_string();
        let refused = |code| Self::new(code, exit::REFUSED, message.clone());
        match refusal {
            TaskRefusal::IllegalMove {
                task,
                from,
                to,
                legal,
            } => {
                let names: Vec<_> = legal.iter().map(|status| status.as_str()).collect();
                let hint = moves::hint(&task, from, to);
                Self::new(
                    "illegal_move",
                    exit::REFUSED,
                    format!("{message}; allowed from there: {}", names.join(", ")),
                )
                .hint(hint)
                .details(json!({"task": task, "from": from, "to": to, "legal": legal}))
            }
            TaskRefusal::StaleToken {
                task,
                given,
                holder,
                ..
            } => refused("stale_token")
                .hint(format!("weald task show {task}"))
                .details(json!({"task": task, "given": given, "holder": holder})),
            TaskRefusal::TokenRequired { task, holder } => refused("token_required")
                .hint("if that is you, add --token N with the token printed by weald task claim")
                .details(json!({"task": task, "holder": holder})),
            TaskRefusal::NotYours { task, holder } => refused("not_yours")
                .hint(format!(
                    "message {holder} or your lead (message_send), or claim another task (task_claim)"
                ))
                .details(json!({"task": task, "holder": holder})),
            TaskRefusal::Held {
                task,
                holder,
                until,
            } => Self::new("task_held", exit::BUSY, message.clone())
                .hint(moves::held(&task, &holder))
                .details(json!({"task": task, "holder": holder, "until": until})),
            TaskRefusal::Owned { task, owner } => {
                Self::new("task_held", exit::BUSY, message.clone())
                    .hint(format!("if {owner} is gone: weald task release {task}"))
                    .details(json!({"task": task, "holder": owner}))
            }
            TaskRefusal::NotHeld { task } => refused("not_held")
                .hint(format!("weald task claim {task}"))
                .details(json!({"task": task})),
            TaskRefusal::Waiting { task, blockers } => refused("task_waiting")
                .hint("weald task ready")
                .details(json!({"task": task, "open": blockers.open, "missing": blockers.missing})),
            TaskRefusal::PlanNotApproved { task, plan } => refused("plan_not_approved")
                .hint(format!(
                    "weald msg send LEAD \"the plan\" --type plan --task {task}"
                ))
                .details(json!({"task": task, "plan": plan})),
            TaskRefusal::BadSubject => Self::new("bad_subject", exit::USAGE, message.clone()),
            TaskRefusal::BadLabel => Self::new("bad_label", exit::USAGE, message.clone()),
        }
    }
}

impl Failure {
    /// Another session, which may be alive, holds a task.
    pub fn task_contested(contest: &Contest, owner: &SessionName) -> Self {
        let liveness = contest.liveness.map_or("unknown", Liveness::as_str);
        let message = format!("task {} is held by {owner} ({liveness})", contest.task);
        Self::new("task_contested", exit::REFUSED, message)
            .hint("weald task ready")
            .details(json!({"contest": contest}))
    }

    /// A session that left none.
    pub fn no_note(name: &SessionName) -> Self {
        Self::new("no_note", exit::NOT_FOUND, format!("{name} left no note")).hint(format!(
            "weald session note \"what is next\" --session {name}"
        ))
    }
}

/// How a session begins; one that weald named is nobody's to choose.
fn registering(name: &SessionName) -> String {
    match name.require_free() {
        Ok(()) => format!("weald session register {name}"),
        Err(_) => "weald session register NAME, with a name of your own".to_owned(),
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::Task(error) => error.into(),
            SessionError::NotFound { name } => {
                Self::new("session_not_found", exit::NOT_FOUND, message)
                    .hint(registering(&name))
                    .details(json!({"session": name}))
            }
            SessionError::Ended { name } => Self::new("session_ended", exit::REFUSED, message)
                .hint(registering(&name))
                .details(json!({"session": name})),
            SessionError::Taken(SessionTaken { name, pid }) => {
                Self::new("session_taken", exit::BUSY, message)
                    .hint("choose another name")
                    .details(json!({"session": name, "pid": pid}))
            }
            SessionError::Name(_) => Self::new("name_reserved", exit::USAGE, message)
                .hint("choose another name, such as alice"),
            SessionError::NoProcess { pid } => {
                Self::new("no_process", exit::NOT_FOUND, message).details(json!({"pid": pid}))
            }
        }
    }
}

impl From<MessageError> for Failure {
    fn from(error: MessageError) -> Self {
        let message = error.to_string();
        match error {
            MessageError::Store(error) => error.into(),
            MessageError::Task(error) => error.into(),
            MessageError::Refused(refusal) => refusal.into(),
            MessageError::NotFound { id } => {
                Self::new("message_not_found", exit::NOT_FOUND, message)
                    .hint("weald msg inbox --all")
                    .details(json!({"message": id}))
            }
            MessageError::NoAnswer { id, .. } => Self::new("no_answer", exit::REFUSED, message)
                .hint("the question stays open; check for the answer with `weald msg inbox`")
                .details(json!({"message": id})),
        }
    }
}

impl From<MessageRefusal> for Failure {
    fn from(refusal: MessageRefusal) -> Self {
        let (code, hint) = match &refusal {
            MessageRefusal::NeedsRequest { .. } => ("needs_request", "weald msg inbox".to_owned()),
            MessageRefusal::NotARequest { .. } => ("not_a_request", "weald msg inbox".to_owned()),
            MessageRefusal::WrongType { id, .. } => {
                ("wrong_type", format!("weald msg reply {id} \"…\""))
            }
            MessageRefusal::VerdictMissing { id, .. } => (
                "verdict_missing",
                format!("weald msg reply {id} --approve \"…\" (or --reject)"),
            ),
            MessageRefusal::NotYours { to, .. } => {
                ("not_yours", format!("if you are {to}: --session {to}"))
            }
            MessageRefusal::OwnRequest { .. } => ("own_request", "weald msg inbox".to_owned()),
            MessageRefusal::TooLong { .. } => {
                ("message_too_long", "send the path of a file".to_owned())
            }
        };
        Self::new(code, exit::REFUSED, refusal.to_string()).hint(hint)
    }
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::Registry(error) => error.into(),
            IdentityError::Store(error) => error.into(),
            IdentityError::Weald => Self::new("name_reserved", exit::USAGE, error.to_string())
                .hint("choose another name: --session alice"),
            error => Self::new("invalid_value", exit::USAGE, error.to_string())
                .hint("export WEALD_SESSION=alice"),
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let code = match error {
            GitError::TooOld { .. } => "git_old",
            _ => "git_failed",
        };
        let failure = Self::new(code, exit::REFUSED, error.to_string());
        match error {
            GitError::NotStarted { .. } => failure.hint("install git 2.40 or newer"),
            GitError::TooOld { needed, .. } => {
                failure.hint(format!("install git {needed} or newer"))
            }
            error if error.says_locked() => {
                failure.hint("run it again; weald doctor reports a lock left behind")
            }
            _ => failure,
        }
    }
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        let message = error.to_string();
        match error {
            SandboxError::Unavailable { level, step, .. } => {
                let failure = Self::new("sandbox_unavailable", exit::NO_SANDBOX, message)
                    .details(json!({"level": level, "step": step}));
                failure.hint(enabling(&step, level, user_namespace_switch))
            }
            SandboxError::NotPrepared { level, step, .. } => {
                Self::new("sandbox_not_prepared", exit::REFUSED, message)
                    .details(json!({"level": level, "step": step}))
                    .hint("nothing was started; check permissions and free space, then try again")
            }
            SandboxError::Exposed { .. } => Self::new("sandbox_exposes", exit::REFUSED, message)
                .hint("use a sealed worktree (`weald new NAME`), or level full"),
            SandboxError::NotExecutable { source, .. } => {
                let missing = source.kind() == io::ErrorKind::NotFound;
                let exit = if missing {
                    exit::NO_COMMAND
                } else {
                    exit::NOT_EXECUTABLE
                };
                Self::new("not_executable", exit, message)
            }
            SandboxError::Directory { .. } => Self::new("bad_directory", exit::USAGE, message),
            SandboxError::Launcher(_) => Self::new("launcher_failed", exit::REFUSED, message),
        }
    }
}

/// Accepts a weaker sandbox, where no flag of the command does.
pub(crate) const ACCEPT: &str = "weald config set sandbox.level landlock";

/// What makes a missing layer available.
fn enabling(step: &str, level: Level, namespaces: impl FnOnce() -> String) -> String {
    let command = match step {
        "Landlock" => {
            "needs Linux 6.12 or newer with Landlock in the `lsm=` boot parameter".to_owned()
        }
        "user namespaces" => namespaces(),
        _ => "to see why: weald sandbox explain".to_owned(),
    };
    match level {
        Level::Full => format!(
            "{command}; or accept a weaker sandbox, which confines writes, but not modes of files outside, and shows other processes and weald's records: {ACCEPT}"
        ),
        Level::Landlock => command,
    }
}

impl Failure {
    /// The same for a command that can accept a weaker sandbox by a flag of its own.
    pub(crate) fn accepting_by(mut self, flag: &str) -> Self {
        let hint = self.hint.take();
        self.hint = hint.map(|hint| hint.replace(ACCEPT, flag));
        self
    }
}

/// The command that makes this system allow user namespaces.
pub(crate) fn user_namespace_switch() -> String {
    let weald = std::env::current_exe().unwrap_or_else(|_| "weald".into());
    allowing_namespaces(&weald, |file| std::fs::read_to_string(file).ok())
}

/// That command for a program, on a system whose files `read` returns.
fn allowing_namespaces(weald: &Path, read: impl Fn(&Path) -> Option<String>) -> String {
    let is = |name: &str, value: &str| {
        let file = Path::new("/proc/sys").join(name.replace('.', "/"));
        read(&file).is_some_and(|text| text.trim() == value)
    };
    if is("kernel.apparmor_restrict_unprivileged_userns", "1") {
        return installing_profile(weald);
    }
    let switches = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "10000"),
    ];
    let found = switches.iter().find(|(name, value, _)| is(name, value));
    match found {
        Some((name, _, value)) => format!("sudo sysctl -w {name}={value}"),
        None => {
            "a container or a filter of system calls denies user namespaces here: allow them there"
                .to_owned()
        }
    }
}

/// The command that installs the AppArmor profile of a program. sudo searches other folders than the caller does.
pub(crate) fn installing_profile(weald: &Path) -> String {
    let weald = weald.display().to_string();
    let weald = shlex::try_quote(&weald).unwrap_or_default();
    format!("sudo {weald} install apparmor")
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Whoever read our output has seen enough.
            io::ErrorKind::BrokenPipe => Self::new("output_closed", exit::DONE, ""),
            _ => Self::new("io", exit::REFUSED, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system on which one file of `/proc/sys` has this text.
    fn system(name: &str, text: &str) -> impl Fn(&Path) -> Option<String> {
        let file = Path::new("/proc/sys").join(name);
        move |asked| (asked == file).then(|| format!("{text}\n"))
    }

    #[test]
    fn u20_the_first_refusal_names_the_command_that_installs_the_profile() {
        let weald = Path::new("/home/me/.cargo/bin/weald");
        let apparmor = "kernel/apparmor_restrict_unprivileged_userns";
        let hint = |read: &dyn Fn(&Path) -> Option<String>, level| {
            enabling("user namespaces", level, || {
                allowing_namespaces(weald, read)
            })
        };
        let full = hint(&system(apparmor, "1"), Level::Full);
        let command = "sudo /home/me/.cargo/bin/weald install apparmor";
        assert_eq!(
            full,
            format!(
                "{command}; or accept a weaker sandbox, which confines writes, but not modes of files outside, and shows other processes and weald's records: weald config set sandbox.level landlock"
            )
        );
        // Level landlock needs no namespace: nothing weaker is left to accept.
        assert_eq!(hint(&system(apparmor, "1"), Level::Landlock), command);
        for (name, text, wanted) in [
            (apparmor, "0", "a container or a filter"),
            (
                "user/max_user_namespaces",
                "0",
                "sudo sysctl -w user.max_user_namespaces=10000;",
            ),
        ] {
            let hint = hint(&system(name, text), Level::Full);
            assert!(hint.starts_with(wanted), "{hint}");
        }
        let spaced = installing_profile(Path::new("/home/a b/weald"));
        assert_eq!(spaced, "sudo '/home/a b/weald' install apparmor");
    }
}
