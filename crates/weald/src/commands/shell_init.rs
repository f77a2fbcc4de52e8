//! `weald shell-init`
//!
//! The scripts are in `shell_init/`. A command that moves the shell writes where to go into a file that the script made
//! ([`Moves`]): standard output stays the answer's, and the shell runs nothing that a program printed.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use rustix::fs::OFlags;

use weald_app::called_as::CalledAs;
use weald_app::{Failure, exit};

use super::completions;
use super::enter::quoted;
use crate::context::Context;

/// The variable in which the script names its file.
pub const CD_FILE: &str = "WEALD_CD_FILE";

/// Print shell functions for enter, exit and completions
///
/// In ~/.bashrc: eval "$(weald shell-init bash)"; in ~/.zshrc: eval "$(weald shell-init zsh)"; in config.fish: weald
/// shell-init fish | source
#[derive(Args)]
pub struct ShellInit {
    /// Shell to print the code for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

const POSIX: &str = include_str!("shell_init/posix.sh");
const BASH: &str = include_str!("shell_init/completing.bash");
const FISH: &str = include_str!("shell_init/weald.fish");

/// What stands for the program in the scripts.
const PROGRAM: &str = "command WEALD";

impl ShellInit {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let own = CalledAs::find(context)?;
        let (program, completer) = match own.is_on_path {
            true => ("command weald".to_owned(), "weald".to_owned()),
            false => (quoted(&own.word), own.word),
        };
        let named = |script: &str| script.replace(PROGRAM, &program);
        let text = match self.shell {
            Shell::Bash => {
                let script = completions::script("bash", &completer)?;
                format!("{}{script}{}", named(POSIX), named(BASH))
            }
            Shell::Zsh => {
                let script = completions::script("zsh", &completer)?;
                // A shell without completions has nothing to register them with.
                let guarded = format!("if (( $+functions[compdef] )); then\n{script}\nfi\n");
                format!("{}{guarded}", named(POSIX))
            }
            Shell::Fish => {
                let script = completions::script("fish", &completer)?;
                format!("{}{script}", named(FISH))
            }
        };
        context.ui.out().write_all(text.as_bytes())?;
        Ok(exit::DONE)
    }
}

/// What a command wants of the shell that called it.
pub struct Moves<'a> {
    pub to: &'a Path,
    pub set: &'a [(&'static str, String)],
    pub unset: &'a [&'static str],
}

impl Moves<'_> {
    /// Whether the caller's shell has the script, so that it can be moved.
    pub fn is_possible(context: &Context<'_>) -> bool {
        file_of(context).is_some()
    }

    /// Tells the shell, if it has the script; false if it has not.
    pub fn tell(&self, context: &Context<'_>) -> Result<bool, Failure> {
        let Some(path) = file_of(context) else {
            return Ok(false);
        };
        let mut entries = vec![format!("cd={}", self.to.display())];
        entries.extend(
            self.set
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        entries.extend(self.unset.iter().map(|name| (*name).to_owned()));
        let text: String = entries.iter().map(|entry| format!("{entry}\0")).collect();
        // The script's own file: it is there, and no link.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut options = OpenOptions::new();
        let opened = options
            .write(true)
            .truncate(true)
            .custom_flags(flags)
            .open(&path);
        opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| Failure::file(&path, &source))?;
        Ok(true)
    }
}

/// The file that the script made.
fn file_of(context: &Context<'_>) -> Option<PathBuf> {
    let named = context.environment.get(CD_FILE).map(PathBuf::from);
    named.filter(|path| path.is_absolute())
}
