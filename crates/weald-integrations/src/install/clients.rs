//! Which files of which program hold what of weald's.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::edit::{Edit, Folders, Hook, Member, Table, is_weald};
use super::{Client, Homes};
use weald_control::claude_plugin;
use weald_control::identity::KNOWN_BY;

/// Where the user's own settings and state are, if not in the usual places.
const FOLDERS: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// The instructions of agents without hooks.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// A file and what belongs in it.
pub(super) struct Wanted {
    pub path: PathBuf,
    pub edits: Vec<Edit>,
}

impl Wanted {
    /// Whether the file is weald's as a whole.
    pub(super) fn is_whole(&self) -> bool {
        let mut edits = self.edits.iter();
        edits.any(|edit| matches!(edit, Edit::Whole(_)))
    }

    /// A file of weald's that is not wanted any more.
    pub(super) fn dropped(path: PathBuf) -> Self {
        wanted(path, Edit::Whole(String::new()))
    }
}

/// The folder of a client's that is weald's own.
pub(super) fn own_folder(client: Client, homes: &Homes) -> Option<PathBuf> {
    (client == Client::Claude).then(|| homes.data.join("claude"))
}

/// What belongs where, in the user's own files.
pub(super) fn for_user(
    client: Client,
    homes: &Homes,
    weald: &str,
    worktrees: &[PathBuf],
) -> Vec<Wanted> {
    match client {
        Client::Claude => claude(&homes.claude.join("settings.json"), &homes.data, weald),
        Client::Codex => vec![
            Wanted {
                path: homes.codex.join("config.toml"),
                edits: vec![codex_server(weald), codex_folders(worktrees)],
            },
            wanted(homes.codex.join("hooks.json"), codex_hooks(weald)),
            wanted(homes.codex.join("AGENTS.md"), instructions()),
        ],
        Client::Gemini => vec![wanted(
            homes.home.join(".gemini/settings.json"),
            mcp_server(weald),
        )],
        Client::Opencode => vec![wanted(
            either(&homes.config.join("opencode")),
            opencode_server(weald),
        )],
    }
}

/// The same in the files of a project, which everybody who works on it has.
pub(super) fn for_project(client: Client, root: &Path, weald: &str) -> Vec<Wanted> {
    match client {
        Client::Claude => vec![wanted(root.join(".mcp.json"), mcp_server(weald))],
        Client::Codex => vec![
            wanted(root.join(".codex/config.toml"), codex_server(weald)),
            wanted(root.join("AGENTS.md"), instructions()),
        ],
        Client::Gemini => vec![wanted(
            root.join(".gemini/settings.json"),
            mcp_server(weald),
        )],
        Client::Opencode => vec![wanted(either(root), opencode_server(weald))],
    }
}

fn wanted(path: PathBuf, edit: Edit) -> Wanted {
    Wanted {
        path,
        edits: vec![edit],
    }
}

/// opencode reads both; the one with comments if that is there.
fn either(folder: &Path) -> PathBuf {
    let with_comments = folder.join("opencode.jsonc");
    match with_comments.exists() {
        true => with_comments,
        false => folder.join("opencode.json"),
    }
}

fn instructions() -> Edit {
    Edit::Block(INSTRUCTIONS.to_owned())
}

fn mcp_server(weald: &str) -> Edit {
    Edit::Member(Member {
        parents: &["mcpServers"],
        name: "weald",
        value: json!({"command": weald, "args": ["mcp"]}),
        ours: |value| value["command"].as_str().is_some_and(is_weald),
    })
}

fn opencode_server(weald: &str) -> Edit {
    Edit::Member(Member {
        parents: &["mcp"],
        name: "weald",
        value: json!({"type": "local", "command": [weald, "mcp"], "enabled": true}),
        ours: |value| value["command"][0].as_str().is_some_and(is_weald),
    })
}

fn codex_server(weald: &str) -> Edit {
    Edit::Table(Table {
        parent: "mcp_servers",
        name: "weald",
        values: vec![
            ("command", weald.into()),
            ("args", json!(["mcp"])),
            ("env_vars", json!([&KNOWN_BY[..], &FOLDERS].concat())),
        ],
    })
}

/// What Codex's own sandbox lets its commands write, besides the folder that it was started in. It keeps `.git` at the top
/// of each of these read-only, so worktrees themselves are none.
fn codex_folders(worktrees: &[PathBuf]) -> Edit {
    let folders = worktrees.iter().filter_map(|path| path.to_str());
    Edit::Folders(Folders {
        parent: "sandbox_workspace_write",
        name: "writable_roots",
        folders: folders.map(str::to_owned).collect(),
    })
}

fn codex_hooks(weald: &str) -> Edit {
    let hook = |event, word: &str| Hook {
        event,
        command: format!("{} hook codex {word}", quoted(weald)),
    };
    Edit::Hooks(vec![
        hook("SessionStart", "session-start"),
        hook("PostToolUse", "post-tool-use"),
        hook("Stop", "stop"),
    ])
}

/// A word for a shell.
pub(super) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// The plugin in a folder of its own, and the settings that name it.
fn claude(settings: &Path, data: &Path, weald: &str) -> Vec<Wanted> {
    let folder = data.join("claude");
    let files = claude_plugin::FILES.iter();
    let mut all: Vec<_> = files
        .map(|(path, text)| wanted(folder.join(path), Edit::Whole(naming(text, weald))))
        .collect();
    let marketplace = Edit::Member(Member {
        parents: &["extraKnownMarketplaces"],
        name: claude_plugin::NAME,
        value: json!({"source": {"source": "directory", "path": folder}}),
        ours: |value| {
            let path = value["source"]["path"].as_str();
            path.is_some_and(|path| path.ends_with("/weald/claude"))
        },
    });
    let plugin = Edit::Member(Member {
        parents: &["enabledPlugins"],
        name: "weald@weald",
        value: Value::Bool(true),
        ours: |_| true,
    });
    all.push(Wanted {
        path: settings.to_owned(),
        edits: vec![marketplace, plugin],
    });
    all
}

/// A file of the plugin with the command as it has to be on this machine.
fn naming(text: &str, weald: &str) -> String {
    if weald == "weald" {
        return text.to_owned();
    }
    let as_json = |word: &str| Value::from(word).to_string();
    let program = as_json(weald);
    let line = as_json(&quoted(weald));
    let line = line.trim_end_matches('"');
    text.replace("\"command\": \"weald\"", &format!("\"command\": {program}"))
        .replace("\"command\": \"weald ", &format!("\"command\": {line} "))
}
