//! The settings files of other tools: what they run in a new worktree.
//!
//! Only what runs to its end counts: a server that a tool keeps in the background is no set-up.

use serde_json::Value as Json;

/// A file of another tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolFile {
    /// Where it lies in a repository.
    pub path: &'static str,
    read: fn(&str) -> Result<Vec<String>, String>,
}

/// The files that are looked for, in this order; the first that has commands counts.
pub const SETTINGS_FILES: &[ToolFile] = &[
    ToolFile {
        path: ".codex/environments/environment.toml",
        read: codex,
    },
    ToolFile {
        path: ".cursor/worktrees.json",
        read: cursor,
    },
    ToolFile {
        path: ".conductor/settings.toml",
        read: conductor_toml,
    },
    ToolFile {
        path: "conductor.json",
        read: conductor,
    },
    ToolFile {
        path: ".config/wt.toml",
        read: worktrunk,
    },
];

impl ToolFile {
    /// The commands in its text, or why they can't be read.
    pub fn commands(self, text: &str) -> Result<Vec<String>, String> {
        let mut found = (self.read)(text)?;
        found.retain(|command| !command.trim().is_empty());
        Ok(found)
    }
}

/// `worktree.symlinkDirectories` of Claude Code's `settings.json`.
pub fn linked_directories(text: &str) -> Result<Vec<String>, String> {
    let settings = json(text)?;
    Ok(match &settings["worktree"]["symlinkDirectories"] {
        Json::Null => Vec::new(),
        found => texts(found)?,
    })
}

fn json(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn table(text: &str) -> Result<toml::Table, String> {
    text.parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())
}

fn texts(value: &Json) -> Result<Vec<String>, String> {
    let items = value.as_array().ok_or("expected a list of strings")?;
    let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
    texts
        .collect::<Option<_>>()
        .ok_or_else(|| "expected a list of strings".to_owned())
}

/// `[setup] script`, and `[setup.linux] script` instead of it.
fn codex(text: &str) -> Result<Vec<String>, String> {
    let file = table(text)?;
    let Some(setup) = file.get("setup") else {
        return Ok(Vec::new());
    };
    let own = setup.get("linux").and_then(|linux| linux.get("script"));
    match own.or_else(|| setup.get("script")) {
        None => Ok(Vec::new()),
        Some(script) => one_text(script.as_str(), "setup.script"),
    }
}

/// `setup-worktree-unix`, else `setup-worktree`: commands, or a script beside the file.
fn cursor(text: &str) -> Result<Vec<String>, String> {
    let file = json(text)?;
    let found = ["setup-worktree-unix", "setup-worktree"]
        .iter()
        .find_map(|key| file.get(key));
    match found {
        None => Ok(Vec::new()),
        Some(Json::String(script)) => Ok(vec![format!(
            "sh {}",
            super::templates::quoted(&format!(".cursor/{script}"))
        )]),
        Some(commands) => texts(commands),
    }
}

fn conductor(text: &str) -> Result<Vec<String>, String> {
    match &json(text)?["scripts"]["setup"] {
        Json::Null => Ok(Vec::new()),
        script => one_text(script.as_str(), "scripts.setup"),
    }
}

fn conductor_toml(text: &str) -> Result<Vec<String>, String> {
    let file = table(text)?;
    match file.get("scripts").and_then(|scripts| scripts.get("setup")) {
        None => Ok(Vec::new()),
        Some(script) => one_text(script.as_str(), "scripts.setup"),
    }
}

/// `post-create` and `pre-start`: a command, a table of them, or a list of tables. What runs in the background is left out.
fn worktrunk(text: &str) -> Result<Vec<String>, String> {
    let file = table(text)?;
    let mut commands = Vec::new();
    for key in ["post-create", "pre-start"] {
        if let Some(found) = file.get(key) {
            gather(found, &mut commands).ok_or_else(|| format!("{key} has no commands"))?;
        }
    }
    Ok(commands)
}

fn gather(value: &toml::Value, commands: &mut Vec<String>) -> Option<()> {
    match value {
        toml::Value::String(command) => commands.push(command.clone()),
        toml::Value::Table(table) => table
            .values()
            .try_for_each(|value| gather(value, commands))?,
        toml::Value::Array(items) => items.iter().try_for_each(|value| gather(value, commands))?,
        _ => return None,
    }
    Some(())
}

fn one_text(text: Option<&str>, key: &str) -> Result<Vec<String>, String> {
    text.map(|text| vec![text.to_owned()])
        .ok_or_else(|| format!("{key} is not a string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, text: &str) -> Result<Vec<String>, String> {
        let file = SETTINGS_FILES.iter().find(|file| file.path == path);
        file.unwrap().commands(text)
    }

    #[test]
    fn k14_the_files_of_other_tools_are_understood() {
        let codex = ".codex/environments/environment.toml";
        let cursor = ".cursor/worktrees.json";
        for (path, text, expected) in [
            (
                codex,
                "version = 1\nname = 'app'\n[setup]\nscript = '''\nnpm ci\n'''",
                &["npm ci\n"][..],
            ),
            (
                codex,
                "[setup]\nscript = 'a'\n[setup.linux]\nscript = 'b'",
                &["b"],
            ),
            (codex, "[setup]\nscript = ''", &[]),
            (codex, "name = 'app'", &[]),
            (
                cursor,
                r#"{"setup-worktree": ["npm ci", "cp $ROOT_WORKTREE_PATH/.env ."]}"#,
                &["npm ci", "cp $ROOT_WORKTREE_PATH/.env ."],
            ),
            (
                cursor,
                r#"{"setup-worktree": ["x"], "setup-worktree-unix": "set up.sh"}"#,
                &["sh '.cursor/set up.sh'"],
            ),
            (cursor, r#"{"setup-worktree-windows": ["x"]}"#, &[]),
            (
                "conductor.json",
                r#"{"scripts": {"setup": "npm install", "run": "npm start"}}"#,
                &["npm install"],
            ),
            ("conductor.json", r#"{"runScriptMode": "concurrent"}"#, &[]),
            (
                ".conductor/settings.toml",
                "[scripts]\nsetup = 'pnpm i'\nrun = 'x'",
                &["pnpm i"],
            ),
            (".config/wt.toml", "post-create = 'npm ci'", &["npm ci"]),
            (
                ".config/wt.toml",
                "[pre-start]\na = 'one'\nb = 'two'\n[post-start]\nserver = 'npm run dev'",
                &["one", "two"],
            ),
            (
                ".config/wt.toml",
                "[[pre-start]]\na = 'one'\n[[pre-start]]\nb = 'two'",
                &["one", "two"],
            ),
        ] {
            assert_eq!(read(path, text).unwrap(), expected, "{path}: {text}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_an_error_not_nothing() {
        for (path, text) in [
            ("conductor.json", "{"),
            ("conductor.json", r#"{"scripts": {"setup": 1}}"#),
            (".cursor/worktrees.json", r#"{"setup-worktree": [1]}"#),
            (".config/wt.toml", "post-create = 1"),
            (".codex/environments/environment.toml", "[setup"),
        ] {
            assert!(read(path, text).is_err(), "{path}: {text}");
        }
        assert!(linked_directories("[]").unwrap().is_empty());
        assert!(linked_directories("{").is_err());
        let settings = r#"{"worktree": {"symlinkDirectories": ["node_modules", ".cache"]}}"#;
        assert_eq!(
            linked_directories(settings).unwrap(),
            ["node_modules", ".cache"]
        );
    }
}
