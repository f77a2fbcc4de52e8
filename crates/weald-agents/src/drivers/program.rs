//! Which program a typed word stands for, and whether an agent's login may go to it.
//!
//! A program that a repository brings, or that a run could have written, gets no login: whoever wrote it could read that.
//! So every folder and link on the way to it has to lie outside all worktrees and everything that runs may write.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{BUILT_IN, DriverError, Variable, make};
use weald_control::files::is_program;

/// How many links lead to a program at most.
const LINKS: usize = 40;

/// What a typed command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// An agent that weald has this driver for.
    Agent(&'static str),
    /// Any command; with what its user should know if it looks like an agent.
    Command(Option<String>),
}

/// What `command` is: an agent by its program's name, if that program can be trusted with a login. `search` is the search
/// path, `untrusted` what repositories and runs write.
pub fn meant_by(command: &[OsString], search: Option<&OsStr>, untrusted: &[PathBuf]) -> Meant {
    let Some(first) = command.first() else {
        return Meant::Command(None);
    };
    let name = Path::new(first).file_name().and_then(OsStr::to_str);
    let known = BUILT_IN.iter().find(|(known, _)| Some(*known) == name);
    let Some((name, _)) = known else {
        return Meant::Command(wrapped(command));
    };
    let shown = Path::new(first).display();
    if let Err(why) = require_trusted(first, search, untrusted) {
        return Meant::Command(Some(format!(
            "`{shown}` runs as a plain command, without a login or a private home: {why}"
        )));
    }
    if !make(name, command).is_some_and(|driver| driver.converses()) {
        return Meant::Command(Some(format!(
            "running as a plain command: this use of `{name}` does not start a conversation"
        )));
    }
    Meant::Agent(name)
}

/// Errors with the reason when a repository or a run could have put the program there. One that is nowhere is no danger.
pub(crate) fn require_trusted(
    program: &OsStr,
    search: Option<&OsStr>,
    untrusted: &[PathBuf],
) -> Result<(), String> {
    let path = match program.as_bytes().contains(&b'/') {
        true if Path::new(program).is_relative() => {
            return Err("its path is relative, so its contents depend on the worktree".to_owned());
        }
        true => PathBuf::from(program),
        false => match found(program, search)? {
            Some(path) => path,
            None => return Ok(()),
        },
    };
    require_outside(&path, untrusted)
}

/// Errors when any step of the way to a path, through folders and links, lies where a repository or a run can write.
/// `untrusted` are real paths. What is nowhere is no danger.
fn require_outside(path: &Path, untrusted: &[PathBuf]) -> Result<(), String> {
    let steps = |path: &Path| {
        let steps = path.components().rev();
        steps
            .map(|step| step.as_os_str().to_owned())
            .collect::<Vec<_>>()
    };
    // Always real, so that `..` and a link's target mean what they mean to the kernel.
    let mut at = PathBuf::from("/");
    let mut ahead = steps(path);
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            at.pop();
            continue;
        }
        let here = at.join(&step);
        if untrusted.iter().any(|place| here.starts_with(place)) {
            return Err(format!(
                "{} lies where a repository or a run can write",
                here.display()
            ));
        }
        if here.starts_with("/proc") {
            return Err("its path through /proc means another file to each process".to_owned());
        }
        let found = match here.symlink_metadata() {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(()),
            Err(error) => return Err(format!("{} can't be checked: {error}", here.display())),
        };
        if !found.is_symlink() {
            at = here;
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err("it is a link that leads nowhere".to_owned());
        }
        let target = here.read_link();
        let target =
            target.map_err(|error| format!("{} can't be read: {error}", here.display()))?;
        ahead.extend(steps(&target));
    }
    Ok(())
}

/// Takes relative folders, and those where a repository or a run can write, off the search path of a program that gets a
/// login: its interpreter is looked for there, too. Answers what its user should know.
pub(crate) fn keep_trusted(
    environment: &mut Vec<(OsString, OsString)>,
    untrusted: &[PathBuf],
) -> Option<String> {
    let mut dropped = Vec::new();
    for (_, search) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
        let (kept, others): (Vec<_>, Vec<_>) = std::env::split_paths(search)
            .partition(|folder| folder.is_absolute() && require_outside(folder, untrusted).is_ok());
        dropped.extend(others);
        // No folder has a colon in it: it came out of such a list.
        *search = std::env::join_paths(kept).unwrap_or_default();
    }
    // An empty one would mean the worktree.
    environment.retain(|(name, value)| name != "PATH" || !value.is_empty());
    let dropped: Vec<_> = dropped
        .iter()
        .map(|folder| format!("`{}`", folder.display()))
        .collect();
    (!dropped.is_empty()).then(|| {
        format!(
            "the agent's search path is without {}: a repository or a run could put programs there",
            dropped.join(", ")
        )
    })
}

/// The first program of this name on the search path.
fn found(program: &OsStr, search: Option<&OsStr>) -> Result<Option<PathBuf>, String> {
    for folder in std::env::split_paths(search.unwrap_or_default()) {
        if folder.is_relative() {
            return Err(format!(
                "the search path has the relative entry `{}` before it, so its contents depend on the worktree",
                folder.display()
            ));
        }
        let path = folder.join(program);
        if is_program(&path) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The words of a command line that needs no shell.
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    let is_for_a_shell = |c: char| "|&;<>$`()*?~#\n".contains(c);
    let words = shlex::split(line).filter(|_| !line.contains(is_for_a_shell));
    words.filter(|words| !words.is_empty())
}

/// Programs that start others.
const STARTERS: [&str; 15] = [
    "npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "env", "nice", "timeout", "sh", "bash",
    "dash", "zsh", "fish",
];

/// Packages by which agents are started.
const PACKAGES: [(&str, &str); 2] = [
    ("@anthropic-ai/claude-code", "claude"),
    ("@openai/codex", "codex"),
];

/// An agent that is started by another program can't be recognised: its words are that program's.
fn wrapped(command: &[OsString]) -> Option<String> {
    let starter = Path::new(command.first()?).file_name()?.to_str()?;
    if !STARTERS.contains(&starter) {
        return None;
    }
    let words = command.iter().skip(1).filter_map(|word| word.to_str());
    let mut words = words.flat_map(|word| word.split(|c: char| c.is_whitespace() || c == ';'));
    let agent = words.find_map(|word| {
        let packages = PACKAGES.iter().copied();
        let package = packages.clone().find(|(name, _)| word.starts_with(name));
        let name = Path::new(word).file_name()?.to_str()?;
        let known = packages.clone().find(|(_, agent)| *agent == name);
        package.or(known).map(|(_, agent)| agent)
    })?;
    Some(format!(
        "`{starter}` runs as a plain command; run `{agent}` directly to get a private home, its login and conversation"
    ))
}

/// Errors when no folder of the search path has the program, or nothing is where its path leads.
pub(super) fn require(
    driver: &str,
    program: &str,
    variable: &Variable<'_>,
) -> Result<(), DriverError> {
    let path = variable("PATH").unwrap_or_default();
    // A folder that is not absolute is one in the worktree.
    let has_it = |folder: &str| {
        let folder = Path::new(folder);
        folder.is_relative() || is_program(&folder.join(program))
    };
    let is_there = match program.contains('/') {
        true => is_program(Path::new(program)),
        false => !path.is_empty() && path.to_string_lossy().split(':').any(has_it),
    };
    match is_there {
        true => Ok(()),
        false => Err(DriverError::NotInstalled {
            driver: driver.to_owned(),
            program: program.to_owned(),
        }),
    }
}
