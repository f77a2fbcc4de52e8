//! What a repository's own files propose for its settings, and which of that is of use here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_control::files::read_small;
use weald_core::config::{Config, Origin};
use weald_core::project::{DEPENDENCIES, Files, Project};
use weald_core::setup::SETTINGS_FILES;

use crate::{Failure, Trees};

/// The longest file of a project that is read.
const LONGEST: u64 = 1 << 20;

/// How many folders are looked at.
const FOLDERS: usize = 200;

/// The file that lists what is copied, for everyone who has the repository.
pub const INCLUDE_FILE: &str = ".worktreeinclude";

/// What was detected, and the settings that follow from it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProjectProposal {
    /// Each tool with the file that shows it.
    pub detected: Vec<DetectedTool>,
    /// Those that nobody has set yet.
    pub settings: Vec<ProposedSetting>,
    /// What a person should know in addition.
    pub notes: Vec<String>,
}

/// A tool that the project uses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DetectedTool {
    /// Its name, such as `npm`.
    pub tool: String,
    /// The file that shows it, relative to the repository.
    pub file: String,
}

/// A setting that somebody may want.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProposedSetting {
    /// A key, or [`INCLUDE_FILE`].
    pub key: String,
    /// As `weald config set` takes it; the lines of a list are separated by commas.
    pub value: String,
    /// What it does, in a few words.
    pub about: String,
}

/// The main checkout.
struct Checkout<'a>(&'a Path);

impl Files for Checkout<'_> {
    fn folders(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
        names.take(FOLDERS).collect()
    }

    fn has(&self, path: &str) -> bool {
        self.0.join(path).is_file()
    }

    fn text(&self, path: &str) -> Option<String> {
        read_small(&self.0.join(path), LONGEST).ok()?
    }
}

/// Whether nobody has chosen a value.
fn is_open(config: &Config, key: &str) -> bool {
    matches!(config.get(key).1, Origin::Default | Origin::Profile(_))
}

impl ProjectProposal {
    /// Looks at the files of a checkout. `shared` settings are for everyone, so local files are listed where everyone reads it.
    pub fn of(
        trees: &Trees<'_>,
        config: &Config,
        checkout: &Path,
        shared: bool,
    ) -> Result<Self, Failure> {
        let files = Checkout(checkout);
        let project = Project::detect(&files);
        let detected = project.tools.iter().map(|(tool, file)| DetectedTool {
            tool: (*tool).to_owned(),
            file: file.clone(),
        });
        let mut proposal = Self {
            detected: detected.collect(),
            ..Self::default()
        };
        if let Some(test) = &project.test
            && is_open(config, "gate.command")
        {
            proposal.add("gate.command", test, "tests what lands");
        }
        let has_tool_file = || SETTINGS_FILES.iter().any(|file| files.has(file.path));
        if !project.setup.is_empty() && is_open(config, "setup.commands") && !has_tool_file() {
            let commands = project.setup.join(",");
            proposal.add("setup.commands", &commands, "runs in each new worktree");
        }
        // A rule that ends with a slash is for directories, also for those that are not there yet.
        let asked = project.folders.iter().map(|folder| format!("{folder}/"));
        let asked = asked.chain(project.local_files.iter().cloned());
        let asked: Vec<_> = asked.map(PathBuf::from).collect();
        let ignored = match asked.is_empty() {
            true => Vec::new(),
            false => trees.ignored(checkout, &asked)?,
        };
        let is_ignored = |path: &String| ignored.iter().any(|one| one == Path::new(path));
        let folders: Vec<_> = project.folders.into_iter().filter(&is_ignored).collect();
        let local: Vec<_> = project
            .local_files
            .into_iter()
            .filter(&is_ignored)
            .collect();
        let is_included = files.has(INCLUDE_FILE);
        let mut shares = folders;
        if !shared && !is_included {
            shares.extend(local.iter().cloned());
        }
        if !shares.is_empty() && is_open(config, "tree.share_paths") {
            let about = "copied from main into each new worktree";
            proposal.add("tree.share_paths", &shares.join(","), about);
        }
        if shared && !is_included && !local.is_empty() {
            let about = "files that are copied into each new worktree";
            proposal.add(INCLUDE_FILE, &local.join(","), about);
        }
        if !project.ports.is_empty() {
            let count = project.ports.len();
            if count > usize::from(config.ports_count) && is_open(config, "ports.count") {
                let about = "ports that each worktree has for itself";
                proposal.add("ports.count", &count.to_string(), about);
            }
            let ports = project.ports.iter();
            let ports = ports.map(|(file, port)| format!("{port} ({file})"));
            let ports = ports.collect::<Vec<_>>().join(", ");
            proposal.notes.push(format!(
                "fixed ports would collide between worktrees: {ports}; commands in a worktree see free ones in WEALD_PORT and WEALD_PORTS"
            ));
        }
        Ok(proposal)
    }

    fn add(&mut self, key: &str, value: &str, about: &str) {
        self.settings.push(ProposedSetting {
            key: key.to_owned(),
            value: value.to_owned(),
            about: about.to_owned(),
        });
    }
}

/// A folder of dependencies that main has, and a new worktree lacks for want of any set-up.
pub(crate) fn missing_dependency(
    config: &Config,
    checkout: &Path,
    worktree: &Path,
) -> Option<&'static str> {
    let is_set_up = !config.setup_commands.is_empty() || !config.tree_share_paths.is_empty();
    if is_set_up {
        return None;
    }
    let lacks = |name: &&str| {
        checkout.join(name).is_dir() && worktree.join(name).symlink_metadata().is_err()
    };
    DEPENDENCIES.into_iter().find(lacks)
}
