//! What drivers start, and what they copy; `streams` is what they read.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use tempfile::TempDir;
use weald_core::config::{Layer, Origin, resolve};

use super::*;

mod streams;

/// A user, a tree and a private folder.
struct Ground {
    folder: TempDir,
    prompt: String,
    model: Option<&'static str>,
    conversation: Option<&'static str>,
    with_tools: bool,
    arguments: Vec<OsString>,
}

impl Ground {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["user/.claude", "user/.codex", "private", "tree", "bin"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            prompt: "fix {tree} it".to_owned(),
            model: None,
            conversation: None,
            with_tools: false,
            arguments: Vec::new(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name).unwrap()).unwrap()
    }

    fn start(&self, driver: &dyn Driver) -> Result<Start, DriverError> {
        let (tree, home, user) = (self.at("tree"), self.at("private"), self.at("user"));
        driver.start(&Brief {
            prompt: &self.prompt,
            prompt_file: Path::new("/p/prompt.md"),
            tree: &tree,
            home: &home,
            user_home: Some(&user),
            model: self.model,
            conversation: self.conversation,
            with_tools: self.with_tools,
            arguments: &self.arguments,
            variable: &|_| None,
        })
    }

    /// The command with the tree's path taken out.
    fn words(&self, driver: &dyn Driver) -> Vec<String> {
        let tree = self.at("tree").display().to_string();
        let words = self.start(driver).unwrap().command;
        let words = words.iter().map(|word| word.to_str().unwrap());
        words.map(|word| word.replace(&tree, "TREE")).collect()
    }
}

fn config(text: &str) -> Config {
    let origin = Origin::User("file".into());
    let values = text.parse().unwrap();
    resolve(vec![Layer { origin, values }]).unwrap()
}

fn os(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn driver(text: &str, name: Option<&str>, command: &[&str]) -> Box<dyn Driver> {
    driver_for(&config(text), name, &os(command)).unwrap()
}

#[test]
fn a_name_decides_then_the_command_then_the_configuration() {
    for (text, name, command, chosen) in [
        ("", None, &[][..], "claude"),
        ("agent.driver = 'codex'", None, &[], "codex"),
        ("", Some("codex"), &["--x"], "codex"),
        ("", None, &["make"], "command"),
        ("agent.command = 'make'", Some("command"), &[], "command"),
        (
            "agent.drivers = ['a: b', 'aider: aider -m']",
            Some("aider"),
            &[],
            "aider",
        ),
    ] {
        assert_eq!(
            driver(text, name, command).name(),
            chosen,
            "{text} {name:?}"
        );
    }
    let refused = |text, name| {
        driver_for(&config(text), name, &[])
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        refused("agent.drivers = ['a: b']", Some("x")),
        "there is no driver `x`; the drivers are claude, codex, command, a"
    );
    assert!(refused("", Some("command")).contains("agent.command"));
    assert!(refused("agent.drivers = ['ab']", Some("x")).contains("name: command line"));
    assert!(refused("agent.command = \"a 'b\"", Some("command")).contains("unclosed"));
    assert!(refused("agent.drivers = ['a:']", Some("a")).contains("no program"));
    for odd in ["../a: b", ": b", "a b: c"] {
        let text = format!("agent.drivers = ['{odd}']");
        let refused = driver_for(&config(&text), Some("x"), &[]).err().unwrap();
        assert!(refused.to_string().contains("letters"), "{odd}");
    }
    let model = config("agent.model = 'm'");
    assert_eq!(model_for(&model, None), Some("m"));
    assert_eq!(model_for(&model, Some("n")), Some("n"));
    assert_eq!(model_for(&config(""), None), None);
}

#[test]
fn words_are_filled_once_and_stay_words() {
    let mut ground = Ground::new();
    ground.model = Some("big");
    let typed = [
        "x",
        "-p",
        "{prompt}",
        "--at={tree}/{model}",
        "{",
        "{odd}",
        "{{tree}",
    ];
    let filled = [
        "x",
        "-p",
        "fix {tree} it",
        "--at=TREE/big",
        "{",
        "{odd}",
        "{TREE",
    ];
    assert_eq!(ground.words(&*driver("", None, &typed)), filled);
    // What was typed is run as it is.
    ground.arguments = os(&["make", "all"]);
    assert_eq!(
        ground.words(&*driver("", None, &["make", "all"])),
        ["make", "all"]
    );
    // A line of the configuration gets the prompt as it says, and the words after `--`.
    ground.arguments = os(&["--fast"]);
    let line = "agent.command = \"tool 'a b'\"\n";
    for (setting, last) in [
        ("", &["fix {tree} it"][..]),
        ("agent.prompt = 'file'", &["/p/prompt.md"]),
        ("agent.prompt = 'stdin'", &[]),
    ] {
        let driver = driver(&format!("{line}{setting}"), Some("command"), &[]);
        let words = [&["tool", "a b", "--fast"], last].concat();
        assert_eq!(ground.words(&*driver), words);
        let input = ground.start(&*driver).unwrap().input;
        let is_read = setting.ends_with("'stdin'");
        assert_eq!(input != Input::Nothing, is_read, "{setting}");
    }
    let own = driver(
        "agent.command = 'tool --file {prompt_file} now'",
        Some("command"),
        &[],
    );
    assert_eq!(
        ground.words(&*own),
        ["tool", "--file", "/p/prompt.md", "now", "--fast"]
    );
}

#[test]
fn a_prompt_that_can_not_be_an_argument_is_refused() {
    let mut ground = Ground::new();
    for prompt in ["a\0b".to_owned(), "x".repeat(128 * 1024)] {
        ground.prompt = prompt;
        let refused = ground.start(&*driver("", None, &["x", "{prompt}"]));
        assert!(matches!(refused, Err(DriverError::BadPrompt { .. })));
        let by_file = driver(
            "agent.prompt = 'file'\nagent.command = 'x'",
            Some("command"),
            &[],
        );
        assert!(ground.start(&*by_file).is_ok());
    }
}

#[test]
fn an_agent_typed_as_a_command_is_told_of_its_driver() {
    let ground = Ground::new();
    let notes = |words: &[&str]| ground.start(&*driver("", None, words)).unwrap().notes;
    assert!(notes(&["/usr/bin/claude", "-p"])[0].contains("--driver claude"));
    assert!(notes(&["make"]).is_empty());
}

#[test]
fn claude_is_started_with_lines_both_ways() {
    let mut ground = Ground::new();
    let claude = driver("", Some("claude"), &[]);
    let start = ground.start(&*claude).unwrap();
    let Input::Open(first) = &start.input else {
        panic!("{start:?}");
    };
    assert_eq!(claude.say("fix {tree} it").as_ref(), Some(first));
    assert!(first.ends_with(b"\n") && !first[..first.len() - 1].contains(&b'\n'));
    assert!(
        start
            .environment
            .contains(&("CLAUDE_CONFIG_DIR".into(), ground.at("private").into()))
    );
    assert!(
        start
            .notes
            .iter()
            .any(|note| note.contains("sandbox confines it"))
    );
    ground.model = Some("opus");
    ground.conversation = Some("1fb49229-5067-4831-94c0-b8c874fc78b2");
    ground.arguments = os(&["--effort", "high"]);
    let words = ground.words(&*claude).join(" ");
    let end = "--model opus --resume 1fb49229-5067-4831-94c0-b8c874fc78b2 --effort high";
    assert!(
        words.starts_with("claude -p --output-format stream-json"),
        "{words}"
    );
    assert!(words.ends_with(end), "{words}");
    ground.conversation = Some("--worktree");
    assert!(matches!(
        ground.start(&*claude),
        Err(DriverError::BadConversation { .. })
    ));
}

#[test]
fn a_program_that_is_not_there_is_told_before_anything_begins() {
    let ground = Ground::new();
    let path = format!("/nowhere:{}", ground.at("bin").display());
    let variable = |name: &str| (name == "PATH").then(|| OsString::from(&path));
    for name in ["claude", "codex"] {
        let driver = driver("", Some(name), &[]);
        let program = ground.at("bin").join(name);
        let missing = DriverError::NotInstalled {
            driver: name.to_owned(),
            program: name.to_owned(),
        };
        assert_eq!(driver.require(&variable), Err(missing.clone()));
        ground.put(&format!("bin/{name}"), "");
        assert_eq!(
            driver.require(&variable),
            Err(missing.clone()),
            "no program"
        );
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(driver.require(&variable), Ok(()));
        assert_eq!(driver.require(&|_| None), Err(missing));
    }
}

#[test]
fn codex_is_started_in_its_tree_and_resumed_by_its_thread() {
    let mut ground = Ground::new();
    let codex = driver("", Some("codex"), &[]);
    let plain = "codex exec --json -C TREE --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox";
    assert_eq!(ground.words(&*codex).join(" "), format!("{plain} -"));
    ground.model = Some("m");
    ground.conversation = Some("01a1e01c");
    ground.arguments = os(&["-c", "a=b"]);
    let resumed = format!("{plain} --model m -c a=b resume 01a1e01c -");
    assert_eq!(ground.words(&*codex).join(" "), resumed);
    let start = ground.start(&*codex).unwrap();
    assert_eq!(start.input, Input::Text(b"fix {tree} it".to_vec()));
    assert_eq!(codex.say("x"), None);
    assert!(
        start
            .notes
            .iter()
            .any(|note| note.contains("weald's sandbox"))
    );
}

#[test]
fn the_users_settings_are_copied_and_history_is_not() {
    let ground = Ground::new();
    for (name, text) in [
        ("settings.json", "{\"a\": 1}"),
        ("CLAUDE.md", "be kind"),
        ("agents/one.md", "one"),
        ("skills/s/run.sh", "#!/bin/sh"),
        ("projects/p/1.jsonl", "history"),
        ("plugins/x.json", "{}"),
        (
            ".credentials.json",
            r#"{"claudeAiOauth": {"accessToken": "t", "refreshToken": "secret", "expiresAt": 5}}"#,
        ),
    ] {
        ground.put(&format!("user/.claude/{name}"), text);
    }
    let script = ground.at("user/.claude/skills/s/run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    ground.put("elsewhere/linked.md", "linked");
    let link = ground.at("user/.claude/agents/linked.md");
    symlink(ground.at("elsewhere/linked.md"), link).unwrap();
    ground.put(
        "user/.claude.json",
        r#"{"oauthAccount": {"x": 1}, "projects": {"p": 1}, "tipsHistory": {}}"#,
    );
    ground.put(
        "private/.claude.json",
        r#"{"projects": {"mine": 1}, "primaryApiKey": "old"}"#,
    );
    let claude = driver("", Some("claude"), &[]);
    ground.start(&*claude).unwrap();
    assert_eq!(ground.text("private/settings.json").unwrap(), "{\"a\": 1}");
    assert_eq!(ground.text("private/agents/linked.md").unwrap(), "linked");
    let mode = |name: &str| ground.at(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("private/skills/s/run.sh"), 0o700);
    assert_eq!(mode("private/.credentials.json"), 0o600);
    let login = json!({"claudeAiOauth": {"accessToken": "t", "expiresAt": 5}});
    assert_eq!(ground.json("private/.credentials.json"), login);
    let state = json!({"projects": {"mine": 1}, "oauthAccount": {"x": 1}});
    assert_eq!(ground.json("private/.claude.json"), state);
    for name in ["projects", "plugins"] {
        assert!(!ground.at("private").join(name).exists(), "{name}");
    }
    // The next start brings what changed, and leaves what the agent added to a folder.
    ground.put("private/agents/own.md", "own");
    ground.put("user/.claude/CLAUDE.md", "be brief");
    fs::remove_file(ground.at("user/.claude/.credentials.json")).unwrap();
    ground.start(&*claude).unwrap();
    assert_eq!(ground.text("private/CLAUDE.md").unwrap(), "be brief");
    assert_eq!(ground.text("private/agents/own.md").unwrap(), "own");
    assert_eq!(ground.text("private/.credentials.json"), None);
}

#[test]
fn codex_gets_no_refresh_token() {
    let ground = Ground::new();
    ground.put("user/.codex/config.toml", "model = 'x'");
    ground.put("user/.codex/prompts/a.md", "a");
    ground.put("user/.codex/sessions/s.jsonl", "history");
    let login = r#"{"tokens": {"access_token": "t", "refresh_token": "secret"}}"#;
    ground.put("user/.codex/auth.json", login);
    ground.start(&*driver("", Some("codex"), &[])).unwrap();
    let copied = json!({"tokens": {"access_token": "t", "refresh_token": ""}});
    assert_eq!(ground.json("private/auth.json"), copied);
    assert_eq!(ground.text("private/config.toml").unwrap(), "model = 'x'");
    assert_eq!(ground.text("private/prompts/a.md").unwrap(), "a");
    assert!(!ground.at("private/sessions").exists());
}

#[test]
fn nothing_that_an_agent_left_leads_the_host_elsewhere() {
    let ground = Ground::new();
    ground.put("user/.claude/settings.json", "{}");
    ground.put("user/.claude/agents/a.md", "a");
    ground.put("user/.claude.json", r#"{"oauthAccount": 1}"#);
    ground.put("victim/file", "safe");
    let claude = driver("", Some("claude"), &[]);
    symlink(ground.at("victim/file"), ground.at("private/settings.json")).unwrap();
    symlink(ground.at("victim/file"), ground.at("private/.claude.json")).unwrap();
    symlink(ground.at("victim"), ground.at("private/agents")).unwrap();
    ground.start(&*claude).unwrap();
    assert_eq!(ground.text("victim/file").unwrap(), "safe");
    assert!(!ground.at("victim/a.md").exists());
    assert_eq!(ground.text("private/settings.json").unwrap(), "{}");
    assert_eq!(
        ground.json("private/.claude.json"),
        json!({"oauthAccount": 1})
    );
    // A folder in the place of a file is refused, with its name.
    fs::remove_file(ground.at("private/settings.json")).unwrap();
    fs::create_dir(ground.at("private/settings.json")).unwrap();
    let refused = ground.start(&*claude).unwrap_err().to_string();
    assert!(refused.contains("private/settings.json"), "{refused}");
}

#[test]
fn the_built_in_drivers_are_known_by_their_names_and_nothing_else_is() {
    for make in BUILT_IN {
        assert!(has_driver(make().name()));
    }
    assert!(!has_driver(COMMAND) && !has_driver("sh"));
}

#[test]
fn weald_s_tools_come_by_the_command_line_alone() {
    let mut ground = Ground::new();
    ground.with_tools = true;
    let words = ground.words(&*driver("", Some("claude"), &[]));
    let at = words
        .iter()
        .position(|word| word == "--mcp-config")
        .unwrap();
    let given: Value = serde_json::from_str(&words[at + 1]).unwrap();
    let server = json!({"command": "weald", "args": ["mcp"], "alwaysLoad": true});
    assert_eq!(given, json!({"mcpServers": {"weald": server}}));
    // It takes words until the next flag.
    assert!(words[at + 2].starts_with("--"), "{words:?}");
    // As the user's plugin calls it: Claude Code takes what is called the same for the same.
    let (market, program) = (ground.at("market"), ground.at("bin/weald"));
    let (folder, program) = (market.display(), program.display());
    let settings = format!(
        r#"{{"enabledPlugins": {{"weald@weald": true}}, "extraKnownMarketplaces": {{"weald": {{"source": {{"path": "{folder}"}}}}}}}}"#
    );
    ground.put("user/.claude/settings.json", &settings);
    let servers = format!(r#"{{"mcpServers": {{"weald": {{"command": "{program}"}}}}}}"#);
    ground.put("market/plugins/weald/.mcp.json", &servers);
    let called = |ground: &Ground| ground.words(&*driver("", Some("claude"), &[]))[at + 1].clone();
    assert!(
        called(&ground).contains("\"command\":\"weald\""),
        "it is not there"
    );
    ground.put("bin/weald", "");
    let may_run = fs::Permissions::from_mode(0o755);
    fs::set_permissions(ground.at("bin/weald"), may_run).unwrap();
    assert!(called(&ground).contains(&format!("\"command\":\"{program}\"")));
    ground.put(
        "user/.claude/settings.json",
        &settings.replace("true", "false"),
    );
    assert!(
        called(&ground).contains("\"command\":\"weald\""),
        "it is off"
    );
    let words = ground.words(&*driver("", Some("codex"), &[])).join(" ");
    assert!(
        words.contains(r#"-c mcp_servers.weald.command="weald""#),
        "{words}"
    );
    assert!(
        words.contains(r#"-c mcp_servers.weald.args=["mcp"]"#),
        "{words}"
    );
    assert!(words.contains("WEALD_BROKER_SECRET"), "{words}");
    ground.with_tools = false;
    for name in ["claude", "codex"] {
        let words = ground.words(&*driver("", Some(name), &[])).join(" ");
        assert!(!words.contains("mcp"), "{words}");
    }
}
