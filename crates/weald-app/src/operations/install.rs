//! Connecting weald to a coding agent or to git.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::called_as::CalledAs;
use crate::failure::installing_profile;
use crate::{
    AppArmorProfile, Call, ChangedConfig, Client, Direction, Failure, FileOutcome, GitLink, Homes,
    Installation, KeptBecause, exit,
};

entries!(ConnectProgram);

/// A program that weald can be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// Claude Code: hooks, an MCP server and a skill.
    Claude,
    /// Codex: an MCP server, hooks and instructions.
    Codex,
    /// Gemini CLI: an MCP server.
    Gemini,
    /// opencode: an MCP server.
    Opencode,
    /// git, which then runs weald as `git weald`. Never for one project alone.
    Git,
    /// AppArmor, which then lets weald create user namespaces. Never for one project alone; needs root.
    Apparmor,
}

impl Program {
    fn client(self) -> Option<Client> {
        match self {
            Self::Claude => Some(Client::Claude),
            Self::Codex => Some(Client::Codex),
            Self::Gemini => Some(Client::Gemini),
            Self::Opencode => Some(Client::Opencode),
            Self::Git | Self::Apparmor => None,
        }
    }

    /// The name in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Git => "git",
            Self::Apparmor => "apparmor",
        }
    }
}

/// Puts weald's entries into the settings of a program, or takes them out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectProgram {
    /// The program whose settings are edited.
    pub program: Program,
    /// In this repository's files, for everyone who works on it.
    pub project: bool,
    /// Take the entries out instead.
    pub remove: bool,
    /// Change no file; the answer shows what would change.
    pub dry_run: bool,
}

/// The connection, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct InstalledWeald {
    /// What was changed, or would be.
    pub install: Connection,
}

/// How weald and a program are connected now.
#[derive(Debug, Serialize, Deserialize)]
pub struct Connection {
    /// The program whose settings were edited.
    pub program: Program,
    /// What was done; after a dry run, what would have been done.
    pub outcome: Connected,
    /// Whether no file was changed.
    pub dry_run: bool,
    /// How the entries call weald.
    pub command: String,
    /// Every file that can hold entries of weald, with its change, if it has one.
    pub files: Vec<ChangedConfig>,
    /// What a person has to know or do as well. Printed as notes while the operation runs.
    pub notes: Vec<String>,
    /// The command that takes it back.
    #[serde(skip)]
    pub way_out: String,
}

/// What was done to connect or disconnect a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connected {
    /// At least one file got entries.
    Installed,
    /// All entries were there; nothing changed.
    AlreadyInstalled,
    /// At least one file lost entries.
    Removed,
    /// No entries were there; nothing changed.
    NotInstalled,
}

impl Operation for ConnectProgram {
    const NAME: &'static str = "install";
    type Output = InstalledWeald;

    fn run(self, call: &Call<'_>) -> Result<InstalledWeald, Failure> {
        // These files decide what runs on the host later.
        call.refuse_agent_anywhere("installing weald in other programs")?;
        let own = CalledAs::find(call)?;
        let direction = match self.remove {
            true => Direction::Out,
            false => Direction::In,
        };
        let files = match self.program.client() {
            Some(client) => self.edit(call, client, &own, direction)?,
            None if self.program == Program::Git => vec![self.link(&own, direction)?],
            None => vec![self.profile(&own, direction)?],
        };
        let changed = files
            .iter()
            .any(|file| file.outcome != FileOutcome::Unchanged);
        let outcome = match (direction, changed) {
            (Direction::In, true) => Connected::Installed,
            (Direction::In, false) => Connected::AlreadyInstalled,
            (Direction::Out, true) => Connected::Removed,
            (Direction::Out, false) => Connected::NotInstalled,
        };
        let install = Connection {
            program: self.program,
            outcome,
            dry_run: self.dry_run,
            notes: self.notes(&own, outcome, &files),
            command: own.word,
            files,
            way_out: self.way_out(),
        };
        for note in &install.notes {
            call.note(note);
        }
        Ok(InstalledWeald { install })
    }
}

impl ConnectProgram {
    fn edit(
        &self,
        call: &Call<'_>,
        client: Client,
        own: &CalledAs,
        direction: Direction,
    ) -> Result<Vec<ChangedConfig>, Failure> {
        let homes = homes(call)?;
        let root = match self.project {
            true => Some(call.place()?.root()),
            false => None,
        };
        let worktrees = match (client, direction) {
            (Client::Codex, Direction::In) if !self.project => worktree_folders(call)?,
            _ => Vec::new(),
        };
        let installation = Installation {
            worktrees: &worktrees,
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

    fn link(&self, own: &CalledAs, direction: Direction) -> Result<ChangedConfig, Failure> {
        if self.project {
            let message = "`git weald` can't be installed for one project";
            return Err(Failure::new("usage", exit::USAGE, message).hint("weald install git"));
        }
        let link = GitLink::next_to(&own.program);
        Ok(match self.dry_run {
            true => link.look(direction)?,
            false => link.perform(direction)?,
        })
    }

    fn profile(&self, own: &CalledAs, direction: Direction) -> Result<ChangedConfig, Failure> {
        if self.project {
            let message = "an AppArmor profile can't be installed for one project";
            return Err(
                Failure::new("usage", exit::USAGE, message).hint(installing_profile(&own.program))
            );
        }
        // AppArmor compares the path that remains when all links are followed.
        let program = own.program.canonicalize()?;
        let profile = AppArmorProfile::of(&program)?;
        if self.dry_run {
            return Ok(profile.look(direction)?);
        }
        if !rustix::process::geteuid().is_root() {
            let message = "AppArmor profiles are root's; nothing was changed";
            return Err(Failure::new("root_needed", exit::REFUSED, message)
                .hint(installing_profile(&program)));
        }
        Ok(profile.perform(direction)?)
    }

    /// What a person has to know or to do besides.
    fn notes(&self, own: &CalledAs, outcome: Connected, files: &[ChangedConfig]) -> Vec<String> {
        if self.remove {
            return files.iter().flat_map(|file| self.kept(file)).collect();
        }
        let mut notes = Vec::new();
        if !own.is_on_path && self.program != Program::Apparmor {
            let program = own.program.display();
            notes.push(match self.program {
                Program::Git => format!("git finds it once the folder of {program} is in PATH"),
                _ => format!("`weald` in PATH is not this program, so {program} is named"),
            });
        }
        if outcome == Connected::Installed {
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

    /// The command that takes out what this one puts in.
    fn way_out(&self) -> String {
        let place = if self.project { " --project" } else { "" };
        let root = match self.program {
            Program::Apparmor => "sudo ",
            _ => "",
        };
        format!(
            "{root}weald install {}{place} --remove",
            self.program.as_str()
        )
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

/// Where worktrees of this repository lie, if the caller is in one; nothing above the repository itself.
fn worktree_folders(call: &Call<'_>) -> Result<Vec<PathBuf>, Failure> {
    if call.place().is_err() {
        call.warn(
            "not in a repository: Codex's sandbox keeps worktrees read-only until you run this command in each repository",
        );
        return Ok(Vec::new());
    }
    let ground = call.ground()?;
    let main = ground.place.root();
    let folder = ground.trees(call)?.tree_roots()?.into_iter().next();
    let usable = folder.filter(|folder| folder.is_absolute() && !main.starts_with(folder));
    if usable.is_none() {
        call.warn(
            "worktrees lie next to the repository itself (tree.path), so Codex's sandbox keeps them read-only: start Codex in a worktree with `codex --add-dir .git`",
        );
    }
    Ok(usable.into_iter().collect())
}

fn homes(call: &Call<'_>) -> Result<Homes, Failure> {
    let environment = &call.environment;
    let none = || {
        Failure::new("no_home", exit::NOT_FOUND, "HOME is not set")
            .hint("set HOME to your home directory")
    };
    let home = environment.home().ok_or_else(none)?;
    if !home.is_absolute() {
        let message = format!("HOME is {}, which is not an absolute path", home.display());
        let failure = Failure::new("no_home", exit::REFUSED, message);
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
