//! `weald install`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use weald_app::{
    ChangedConfig, Client, Direction, Failure, FileOutcome, GitLink, Homes, Installation,
    KeptBecause,
};

use crate::context::Context;
use crate::own_program::OwnProgram;
use crate::ui::{DIM, Fields, Out, clean, paint};

/// Connect weald to a coding agent or to git
///
/// Edits only weald's own entries in that program's settings and shows every change. Running it again changes nothing;
/// `--remove` takes the entries out.
///
/// claude gets a plugin (hooks, MCP server, skill); codex an MCP server, hooks and instructions; gemini and opencode an MCP
/// server; git gets `git weald`.
#[derive(Args)]
pub struct Install {
    /// Program to connect
    #[arg(value_name = "PROGRAM")]
    program: Program,
    /// Install into this repository's files, for everyone who works on it
    #[arg(long)]
    project: bool,
    /// Remove weald's entries
    #[arg(long)]
    remove: bool,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Accepted for compatibility; weald never prompts
    #[arg(long, short, hide_short_help = true)]
    yes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// git, as `git weald`
    Git,
}

impl Program {
    fn client(self) -> Option<Client> {
        match self {
            Self::Claude => Some(Client::Claude),
            Self::Codex => Some(Client::Codex),
            Self::Gemini => Some(Client::Gemini),
            Self::Opencode => Some(Client::Opencode),
            Self::Git => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Git => "git",
        }
    }
}

/// What happened, for programs.
#[derive(Serialize)]
struct Report {
    program: &'static str,
    outcome: &'static str,
    dry_run: bool,
    /// How the entries call weald.
    command: String,
    files: Vec<ChangedConfig>,
    notes: Vec<String>,
    /// The command that takes it back.
    #[serde(skip)]
    way_out: String,
}

impl Install {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        // These files decide what runs on the host later.
        context.refuse_agent_anywhere("installing weald in other programs")?;
        let own = OwnProgram::find(context)?;
        let direction = match self.remove {
            true => Direction::Out,
            false => Direction::In,
        };
        let files = match self.program.client() {
            Some(client) => self.edit(context, client, &own, direction)?,
            None => vec![self.link(&own, direction)?],
        };
        let changed = files
            .iter()
            .any(|file| file.outcome != FileOutcome::Unchanged);
        let outcome = match (direction, changed) {
            (Direction::In, true) => "installed",
            (Direction::In, false) => "already_installed",
            (Direction::Out, true) => "removed",
            (Direction::Out, false) => "not_installed",
        };
        let report = Report {
            program: self.program.name(),
            outcome,
            dry_run: self.dry_run,
            notes: self.notes(&own, outcome, &files),
            command: own.word,
            files,
            way_out: self.way_out(),
        };
        for note in &report.notes {
            context.note(note);
        }
        context.ui.answer(
            || Fields::new().with("install", &report),
            |out| told(out, &report),
        )
    }

    fn edit(
        &self,
        context: &Context<'_>,
        client: Client,
        own: &OwnProgram,
        direction: Direction,
    ) -> Result<Vec<ChangedConfig>, Failure> {
        let homes = homes(context)?;
        let root = match self.project {
            true => Some(context.place()?.root()),
            false => None,
        };
        let installation = Installation {
            client,
            homes: &homes,
            project: root.as_deref(),
            weald: &own.word,
        };
        Ok(match self.dry_run {
            true => installation.look(direction)?,
            false => installation.perform(direction)?,
        })
    }

    fn link(&self, own: &OwnProgram, direction: Direction) -> Result<ChangedConfig, Failure> {
        if self.project {
            let message = "`git weald` can't be installed for one project";
            return Err(
                Failure::new("usage", weald_app::exit::USAGE, message).hint("weald install git")
            );
        }
        let link = GitLink::next_to(&own.program);
        Ok(match self.dry_run {
            true => link.look(direction)?,
            false => link.perform(direction)?,
        })
    }

    /// What somebody has to know or to do beside it.
    fn notes(&self, own: &OwnProgram, outcome: &str, files: &[ChangedConfig]) -> Vec<String> {
        if self.remove {
            return files.iter().flat_map(|file| self.kept(file)).collect();
        }
        let mut notes = Vec::new();
        if !own.is_on_path {
            let program = own.program.display();
            notes.push(match self.program {
                Program::Git => format!("git finds it once the folder of {program} is in PATH"),
                _ => format!("`weald` in PATH is not this program, so {program} is named"),
            });
        }
        if outcome == "installed" {
            notes.extend(match self.program {
                Program::Codex if !self.project => Some(
                    "Codex runs hooks once you trust them: type /hooks in it; tools work at once"
                        .to_owned(),
                ),
                Program::Codex => Some("Codex reads .codex/ in projects that you trust".to_owned()),
                Program::Claude if self.project => Some(
                    "Claude Code asks each of its users before it starts a project's server"
                        .to_owned(),
                ),
                _ => None,
            });
        }
        notes
    }
}

impl Install {
    /// The command that takes out what this one puts in.
    fn way_out(&self) -> String {
        let place = if self.project { " --project" } else { "" };
        format!("weald install {}{place} --remove", self.program.name())
    }

    /// What stays in a file, and why.
    fn kept(&self, file: &ChangedConfig) -> impl Iterator<Item = String> {
        let (path, way_out) = (file.path.display(), self.way_out());
        file.kept.iter().map(move |kept| {
            let entry = &kept.entry;
            match kept.why {
                KeptBecause::NotWealds => format!(
                    "{path}: {entry} stays: it does not start weald itself; if you don't want it, remove it by hand"
                ),
                KeptBecause::ThereBefore => format!(
                    "{path}: {entry} was there before weald was installed, and was left as it is; to remove it, run `{way_out}` again"
                ),
            }
        })
    }
}

fn homes(context: &Context<'_>) -> Result<Homes, Failure> {
    let environment = &context.environment;
    let none = || {
        Failure::new("no_home", weald_app::exit::NOT_FOUND, "HOME is not set")
            .hint("set HOME to your home directory")
    };
    let home = environment.home().ok_or_else(none)?;
    if !home.is_absolute() {
        let message = format!("HOME is {}, which is not an absolute path", home.display());
        let failure = Failure::new("no_home", weald_app::exit::REFUSED, message);
        return Err(failure.hint("set HOME to your home directory"));
    }
    let named = |variable: &str, below: &str| {
        let named = environment.get(variable).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute());
        named.unwrap_or_else(|| home.join(below))
    };
    Ok(Homes {
        claude: named("CLAUDE_CONFIG_DIR", ".claude"),
        codex: named("CODEX_HOME", ".codex"),
        config: named("XDG_CONFIG_HOME", ".config"),
        data: named("XDG_DATA_HOME", ".local/share").join("weald"),
        state: environment.state().ok_or_else(none)?,
        home,
    })
}

fn told(out: &mut Out, report: &Report) -> io::Result<()> {
    for file in &report.files {
        write!(out, "{}", clean(&file.diff.replace("\r\n", "\n")))?;
    }
    let Report {
        program, way_out, ..
    } = report;
    let would = if report.dry_run { "would be " } else { "" };
    let words = match report.outcome {
        "installed" => {
            format!("{would}installed in {program}; to remove it: {way_out}")
        }
        "already_installed" => format!("already installed in {program}"),
        "removed" => format!("{would}removed from {program}"),
        _ => format!("nothing of weald's is in {program}"),
    };
    for file in report
        .files
        .iter()
        .filter(|_| report.outcome == "already_installed")
    {
        writeln!(out, "  {}", paint(DIM, file.path.display().to_string()))?;
    }
    writeln!(out, "{words}")
}
