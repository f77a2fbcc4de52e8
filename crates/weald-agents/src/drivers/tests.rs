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
    form: Form,
    model: Option<&'static str>,
    conversation: Option<&'static str>,
    with_tools: bool,
    user_hooks: bool,
    hidden: Vec<PathBuf>,
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
            form: Form::Headless,
            model: None,
            conversation: None,
            with_tools: false,
            user_hooks: false,
            hidden: Vec::new(),
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
        let project = self.at("main");
        driver.start(&Brief {
            form: self.form,
            prompt: &self.prompt,
            prompt_file: Path::new("/p/prompt.md"),
            tree: &tree,
            project: &project,
            user_hooks: self.user_hooks,
            home: &home,
            user_home: Some(&user),
            hidden: &self.hidden,
            model: self.model,
            conversation: self.conversation,
            with_tools: self.with_tools,
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
    assert_eq!(
        ground.words(&*driver("", None, &["make", "all"])),
        ["make", "all"]
    );
    // A line of the configuration gets the prompt as it says, and the words after `--`.
    let line = "agent.drivers = [\"own: tool 'a b'\"]\n";
    for (setting, last) in [
        ("", &["fix {tree} it"][..]),
        ("agent.prompt = 'file'", &["/p/prompt.md"]),
        ("agent.prompt = 'stdin'", &[]),
    ] {
        let driver = driver(&format!("{line}{setting}"), Some("own"), &["--fast"]);
        let words = [&["tool", "a b", "--fast"], last].concat();
        assert_eq!(ground.words(&*driver), words);
        let input = ground.start(&*driver).unwrap().input;
        let is_read = setting.ends_with("'stdin'");
        assert_eq!(input != Input::Nothing, is_read, "{setting}");
    }
    let own = driver(
        "agent.drivers = ['own: tool --file {prompt_file} now']",
        Some("own"),
        &["--fast"],
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
fn a1_an_agent_is_known_by_its_program_if_that_is_nobodys_but_its_users() {
    let ground = Ground::new();
    for name in ["bin/claude", "bin/codex", "tree/claude", "tree/bin/codex"] {
        ground.put(name, "");
        fs::set_permissions(ground.at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink(ground.at("tree/claude"), ground.at("bin/link")).unwrap();
    fs::create_dir(ground.at("linked")).unwrap();
    symlink(ground.at("bin/link"), ground.at("linked/claude")).unwrap();
    symlink(ground.at("bin/claude"), ground.at("tree/bin/claude")).unwrap();
    let at = |name: &str| ground.at(name).display().to_string();
    let untrusted = [ground.at("tree").canonicalize().unwrap()];
    let plain = format!("/nowhere:{}", at("bin"));
    let relative = format!("sub:{}", at("bin"));
    let first = format!("{}:{}", at("tree/bin"), at("bin"));
    let behind = format!("{}:.", at("bin"));
    for (path, command, agent, note) in [
        (&plain, "claude", Some("claude"), ""),
        (&plain, "claude --model opus -p 'do it'", Some("claude"), ""),
        (
            &plain,
            &format!("{} -c", at("bin/claude")),
            Some("claude"),
            "",
        ),
        (&plain, "codex exec x", Some("codex"), ""),
        (&plain, "codex --model x resume --last", Some("codex"), ""),
        (&behind, "claude", Some("claude"), ""),
        (&plain, "make claude", None, ""),
        (&plain, "", None, ""),
        // A repository's own, by whatever way.
        (&plain, "./claude", None, "relative"),
        (&plain, &at("tree/claude"), None, "can write"),
        (&plain, &at("linked/claude"), None, "can write"),
        (&relative, "claude", None, "relative entry `sub`"),
        (&first, "claude", None, "can write"),
        (&first, "codex", None, "can write"),
        // No conversations.
        (
            &plain,
            "claude mcp list",
            None,
            "does not start a conversation",
        ),
        (&plain, "codex login", None, "does not start a conversation"),
        (
            &plain,
            "codex exec review",
            None,
            "does not start a conversation",
        ),
        // Started by others.
        (&plain, "npx claude -p x", None, "run `claude` directly"),
        (
            &plain,
            "npx -y @openai/codex@1 exec",
            None,
            "run `codex` directly",
        ),
        (
            &plain,
            "sh -c 'cd x; claude -p y'",
            None,
            "run `claude` directly",
        ),
        (&plain, "sh -c make", None, ""),
    ] {
        let words: Vec<_> = shlex::split(command).unwrap();
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        let meant = meant_by(&words, Some(OsStr::new(path)), &untrusted);
        match (meant, agent) {
            (Meant::Agent(found), Some(agent)) => assert_eq!(found, agent, "{command}"),
            (Meant::Command(None), None) => assert_eq!(note, "", "{command}"),
            (Meant::Command(Some(told)), None) => {
                assert!(!note.is_empty() && told.contains(note), "{command}: {told}");
            }
            (meant, _) => panic!("{command} ({path}): {meant:?}"),
        }
    }
}

#[test]
fn a1_what_is_typed_wins_and_no_flag_is_there_twice() {
    let mut ground = Ground::new();
    ground.prompt = "task".to_owned();
    ground.model = Some("m");
    let skip = "--dangerously-skip-permissions";
    let stream = "--output-format stream-json --input-format stream-json --verbose";
    let plain = "exec --json --skip-git-repo-check -C TREE";
    let bypass = "--dangerously-bypass-approvals-and-sandbox";
    for (form, typed, expected, prompt) in [
        (
            Form::Headless,
            "claude",
            format!("claude -p {stream} {skip} --model m"),
            "task",
        ),
        (
            Form::Headless,
            "/x/claude --model opus -p 'do it'",
            format!("/x/claude -p {stream} {skip} --model opus"),
            "task … do it",
        ),
        (
            Form::Headless,
            "claude --output-format text --permission-mode plan",
            "claude -p --model m --output-format text --permission-mode plan".to_owned(),
            "task",
        ),
        (
            Form::Headless,
            "claude --verbose --output-format=stream-json --resume x",
            format!(
                "claude -p --input-format stream-json {skip} --model m --verbose --output-format=stream-json --resume x"
            ),
            "task",
        ),
        (
            Form::Interactive,
            "claude -p x",
            format!("claude {skip} --model m -- task … x"),
            "",
        ),
        (
            Form::Interactive,
            "claude -c",
            format!("claude {skip} --model m -c"),
            "",
        ),
        (
            Form::Typed,
            "claude -p 'do it'",
            format!("claude {skip} --model m -p do it"),
            "",
        ),
        (
            Form::Headless,
            "codex --model x 'do it'",
            format!("codex --model x {plain} {bypass} -"),
            "task … do it",
        ),
        (
            Form::Headless,
            "codex exec --json -s read-only -",
            format!("codex {plain} --model m -s read-only -"),
            "task",
        ),
        (
            Form::Headless,
            "codex exec -C sub resume --last 'go on'",
            format!(
                "codex exec --json --skip-git-repo-check {bypass} --model m -C sub resume --last -"
            ),
            "task … go on",
        ),
        (
            Form::Typed,
            "codex exec -m x 'do it'",
            format!("codex exec {bypass} -m x do it"),
            "",
        ),
    ] {
        ground.form = form;
        let words = shlex::split(typed).unwrap();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let name = if typed.contains("claude") {
            "claude"
        } else {
            "codex"
        };
        let driver = driver("", Some(name), &words);
        let shown = |text: &str| {
            let said = "\n\nThe user also typed the text below; it overrides anything above:\n\n";
            text.replace(said, " … ")
        };
        assert_eq!(
            shown(&ground.words(&*driver).join(" ")),
            expected,
            "{typed}"
        );
        let given = match ground.start(&*driver).unwrap().input {
            Input::Nothing => String::new(),
            Input::Text(text) => String::from_utf8(text).unwrap(),
            Input::Open(line) => {
                let line: Value = serde_json::from_slice(&line).unwrap();
                line["message"]["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            }
        };
        assert_eq!(shown(&given), prompt, "{typed}");
    }
    // weald continues the conversation that it knows.
    ground.conversation = Some("known");
    ground.form = Form::Headless;
    let claude = driver(
        "",
        Some("claude"),
        &["claude", "--session-id", "x", "--fork-session"],
    );
    let words = ground.words(&*claude).join(" ");
    assert!(words.ends_with("--resume known"), "{words}");
    let codex = driver("", Some("codex"), &["codex", "resume", "other"]);
    let words = ground.words(&*codex).join(" ");
    assert!(words.ends_with("resume known -"), "{words}");
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
    let claude = driver("", Some("claude"), &["--effort", "high"]);
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
    let plain = "codex exec --json --skip-git-repo-check -C TREE --dangerously-bypass-approvals-and-sandbox";
    assert_eq!(ground.words(&*codex).join(" "), format!("{plain} -"));
    ground.model = Some("m");
    ground.conversation = Some("01a1e01c");
    let codex = driver("", Some("codex"), &["-c", "a=b"]);
    let resumed = format!("{plain} --model m resume 01a1e01c -");
    let resumed = resumed.replacen("codex", "codex -c a=b", 1);
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
fn an_interface_of_its_own_starts_with_the_prompt_or_where_the_conversation_was() {
    let mut ground = Ground::new();
    ground.form = Form::Interactive;
    let [claude, codex] = ["claude", "codex"].map(|name| driver("", Some(name), &[]));
    assert_eq!(
        ground.words(&*claude).join(" "),
        "claude --dangerously-skip-permissions -- fix {tree} it"
    );
    let quiet = "-c check_for_update_on_startup=false -c features.daemon_auto_start=false -c projects={\"TREE\"={trust_level=\"trusted\"}} -C TREE --dangerously-bypass-approvals-and-sandbox";
    let words = ground.words(&*codex).join(" ");
    assert_eq!(words, format!("codex {quiet} -- fix {{tree}} it"));
    assert_eq!(ground.start(&*claude).unwrap().input, Input::Nothing);
    ground.conversation = Some("1fb49229-5067-4831-94c0-b8c874fc78b2");
    for (driver, end) in [(&claude, "--resume"), (&codex, "resume")] {
        let words = ground.words(&**driver);
        let end = [end, ground.conversation.unwrap()];
        assert_eq!(words[words.len() - 2..], end);
    }
    ground.conversation = None;
    ground.prompt = "x".repeat(200 * 1024);
    let last = ground.words(&*codex).pop().unwrap();
    assert!(last.contains("/p/prompt.md"), "{last}");
    // A command is its own interface, unless its input is meant for the prompt.
    assert_eq!(ground.words(&*driver("", None, &["vi"])), ["vi"]);
    let reads = "agent.command = 'make'\nagent.prompt = 'stdin'";
    let refused = ground.start(&*driver(reads, Some("command"), &[]));
    assert!(matches!(refused, Err(DriverError::NotInteractive { .. })));
}

#[test]
fn an_interface_asks_nothing_before_it_begins() {
    let ground = Ground::new();
    ground.put(
        "private/.claude.json",
        r#"{"projects": 7, "customApiKeyResponses": {"rejected": ["x"]}}"#,
    );
    let claude = driver("", Some("claude"), &[]);
    let tree = ground.at("tree").display().to_string();
    // Whatever the agent made of its own file, and as often as it starts.
    for _ in 0..2 {
        ground.start(&*claude).unwrap();
        let state = ground.json("private/.claude.json");
        assert_eq!(state["hasCompletedOnboarding"], true);
        assert_eq!(state["projects"][&tree]["hasTrustDialogAccepted"], true);
    }
    let (home, user) = (ground.at("private"), ground.at("user"));
    let asked = |key: &'static str| {
        let start = claude.start(&Brief {
            form: Form::Interactive,
            prompt: "",
            prompt_file: Path::new("/p"),
            tree: &ground.at("tree"),
            project: &ground.at("main"),
            user_hooks: false,
            home: &home,
            user_home: Some(&user),
            hidden: &[],
            model: None,
            conversation: None,
            with_tools: false,
            variable: &|name| (name == "ANTHROPIC_API_KEY").then(|| key.into()),
        });
        start.unwrap();
        ground.json("private/.claude.json")["customApiKeyResponses"].clone()
    };
    assert_eq!(asked("short"), json!({"approved": ["short"]}));
    ground.put(
        "user/.claude.json",
        r#"{"customApiKeyResponses": {"rejected": ["cdefghijklmnopqrstuv"]}}"#,
    );
    let rejected = json!({"rejected": ["cdefghijklmnopqrstuv"]});
    assert_eq!(asked("abcdefghijklmnopqrstuv"), rejected);
}

#[test]
fn the_last_conversation_is_found_by_its_transcript() {
    let ground = Ground::new();
    let [claude, codex] = ["claude", "codex"].map(|name| driver("", Some(name), &[]));
    let home = ground.at("private");
    assert_eq!(claude.conversation_in(&home), None);
    let ids = [
        "11111111-2222-4333-8444-555555555555",
        "01a1f599-032c-7083-a440-f2b380cad84e",
    ];
    ground.put(&format!("private/projects/-tree/{}.jsonl", ids[0]), "");
    ground.put(&format!("private/projects/-tree/{}.jsonl", ids[1]), "");
    ground.put("private/projects/-tree/agent-1.jsonl", "");
    ground.put("private/projects/-tree/--settings.jsonl", "");
    ground.put("victim/99999999-2222-4333-8444-555555555555.jsonl", "");
    symlink(ground.at("victim"), ground.at("private/projects/link")).unwrap();
    let old = home.metadata().unwrap().modified().unwrap() - std::time::Duration::from_secs(60);
    let first = ground.at(&format!("private/projects/-tree/{}.jsonl", ids[0]));
    fs::File::open(first).unwrap().set_modified(old).unwrap();
    assert_eq!(claude.conversation_in(&home).as_deref(), Some(ids[1]));
    let rollout = |day: &str, id: &str| {
        ground.put(
            &format!("private/sessions/2026/11/{day}/rollout-2026-11-19T20-56-48-{id}.jsonl"),
            "",
        );
    };
    rollout("19", ids[0]);
    assert_eq!(codex.conversation_in(&home).as_deref(), Some(ids[0]));
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
        ("plugins/cache/x.json", "{}"),
        ("plugins/installed_plugins.json", "{}"),
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
    assert_eq!(ground.json("private/settings.json")["a"], 1);
    assert_eq!(ground.text("private/agents/linked.md").unwrap(), "linked");
    let mode = |name: &str| ground.at(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("private/skills/s/run.sh"), 0o700);
    assert_eq!(mode("private/.credentials.json"), 0o600);
    let login = json!({"claudeAiOauth": {"accessToken": "t", "expiresAt": 5}});
    assert_eq!(ground.json("private/.credentials.json"), login);
    let state = ground.json("private/.claude.json");
    assert_eq!(state["oauthAccount"], json!({"x": 1}));
    assert_eq!(state["projects"]["mine"], 1);
    assert_eq!(state.get("primaryApiKey"), None, "the user has none");
    assert_eq!(state.get("tipsHistory"), None);
    assert!(ground.at("private/plugins/installed_plugins.json").exists());
    for name in ["projects", "plugins/cache"] {
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
fn a10_hooks_of_the_user_come_only_when_they_say_so() {
    let mut ground = Ground::new();
    ground.put(
        "user/.claude/settings.json",
        r#"{"hooks": {"Stop": []}, "model": "x"}"#,
    );
    ground.put("user/.codex/hooks.json", "{}");
    let config = "notify = ['x']\n# why\nmodel = 'x'\n[[hooks.Stop]]\n[tui]\na = 1\n";
    ground.put("user/.codex/config.toml", config);
    for own in [true, false] {
        ground.user_hooks = own;
        for name in ["claude", "codex"] {
            ground.start(&*driver("", Some(name), &[])).unwrap();
        }
        let settings = ground.json("private/settings.json");
        assert_eq!(
            (settings.get("hooks").is_some(), &settings["model"]),
            (own, &json!("x"))
        );
        let copied = ground.text("private/config.toml").unwrap();
        assert_eq!(
            copied.contains("hooks") && copied.contains("notify"),
            own,
            "{copied}"
        );
        assert!(
            copied.contains("model = 'x'") && copied.contains("[tui]"),
            "{copied}"
        );
        assert_eq!(ground.at("private/hooks.json").exists(), own);
    }
    ground.put("user/.codex/config.toml", "= broken");
    let start = ground.start(&*driver("", Some("codex"), &[])).unwrap();
    assert!(
        start.notes[0].contains("config.toml was left out"),
        "{:?}",
        start.notes
    );
}

#[test]
fn a10_servers_that_the_user_added_for_the_project_come_and_go_with_the_run() {
    let ground = Ground::new();
    let main = ground.at("main").display().to_string();
    let own = json!({"mcpServers": {"mine": {"command": "x"}}, "enabledMcpjsonServers": ["a"], "history": []});
    let users = json!({"primaryApiKey": "k", "mcpServers": {"all": {}}, "projects": {main: own}});
    ground.put("user/.claude.json", &users.to_string());
    let claude = driver("", Some("claude"), &[]);
    ground.start(&*claude).unwrap();
    let tree = ground.at("tree").display().to_string();
    let state = ground.json("private/.claude.json");
    assert_eq!(
        state["projects"][&tree]["mcpServers"]["mine"]["command"],
        "x"
    );
    assert_eq!(
        state["projects"][&tree]["enabledMcpjsonServers"],
        json!(["a"])
    );
    assert_eq!(state["projects"][&tree].get("history"), None);
    ground.put("private/.credentials.json", "{}");
    assert_eq!(claude.forget(&ground.at("private")), Vec::<String>::new());
    let left = ground.text("private/.claude.json").unwrap();
    assert!(
        !left.contains("mcpServers") && !left.contains("primaryApiKey"),
        "{left}"
    );
    assert!(left.contains("hasTrustDialogAccepted"), "{left}");
    assert!(!ground.at("private/.credentials.json").exists());
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
    assert_eq!(
        ground.text("private/config.toml").unwrap().trim(),
        "model = 'x'"
    );
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
    assert!(ground.json("private/settings.json").is_object());
    assert_eq!(ground.json("private/.claude.json")["oauthAccount"], 1);
    // A folder in the place of a file is refused, with its name.
    fs::remove_file(ground.at("private/settings.json")).unwrap();
    fs::create_dir(ground.at("private/settings.json")).unwrap();
    let refused = ground.start(&*claude).unwrap_err().to_string();
    assert!(refused.contains("private/settings.json"), "{refused}");
}

#[test]
fn a10_a_link_among_the_users_skills_brings_nothing_hidden_and_nothing_from_elsewhere() {
    let mut ground = Ground::new();
    ground.put("user/.ssh/key", "secret");
    ground.put("user/notes/plan.md", "plan");
    ground.put("elsewhere/shared/SKILL.md", "shared");
    ground.put("user/.claude/skills/team/SKILL.md", "team");
    ground.put("user/.claude/.credentials.json", r#"{"x": 1}"#);
    ground.put("user/.claude.json", r#"{"oauthAccount": 1}"#);
    let user = ground.at("user");
    let link = |target: &str, name: &str| symlink(target, user.join(".claude").join(name)).unwrap();
    link("SKILL.md", "skills/team/README.md");
    link("../../../.ssh/key", "skills/team/notes.md");
    link("../../../notes/plan.md", "skills/team/plan.md");
    link("../../../notes", "skills/team/all");
    link("../../.ssh", "skills/keys");
    link("../../../elsewhere/shared", "skills/shared");
    link("/proc/self/environ", "skills/environ");
    link("../.ssh/key", "CLAUDE.md");
    ground.hidden = [".ssh", ".claude/.credentials.json", ".claude.json"]
        .map(|name| user.join(name))
        .into();
    let start = ground.start(&*driver("", Some("claude"), &[])).unwrap();
    let skill = |name: &str| ground.text(&format!("private/skills/{name}"));
    assert_eq!(skill("team/SKILL.md").as_deref(), Some("team"));
    assert_eq!(skill("team/README.md").as_deref(), Some("team"));
    assert_eq!(skill("shared/SKILL.md").as_deref(), Some("shared"));
    for name in [
        "team/notes.md",
        "team/plan.md",
        "team/all",
        "keys",
        "environ",
    ] {
        assert!(
            !ground.at("private/skills").join(name).exists(),
            "{name} was copied"
        );
    }
    assert_eq!(ground.text("private/CLAUDE.md"), None);
    // The login is hidden from runs, too, and meant to come along.
    assert_eq!(ground.json("private/.credentials.json"), json!({"x": 1}));
    assert_eq!(ground.json("private/.claude.json")["oauthAccount"], 1);
    let notes = |word: &str| start.notes.iter().filter(|it| it.contains(word)).count();
    assert_eq!(notes("and 4 more not copied"), 1, "{:?}", start.notes);
    assert_eq!(notes("CLAUDE.md was left out: it is hidden from runs"), 1);
}

#[test]
fn a10_a_login_that_leads_to_another_secret_is_left_out() {
    let mut ground = Ground::new();
    ground.put("user/.docker/config.json", r#"{"auths": {}}"#);
    let user = ground.at("user");
    symlink(
        "../.docker/config.json",
        user.join(".claude/.credentials.json"),
    )
    .unwrap();
    ground.hidden = [".docker/config.json", ".claude/.credentials.json"]
        .map(|name| user.join(name))
        .into();
    ground.start(&*driver("", Some("claude"), &[])).unwrap();
    assert_eq!(ground.text("private/.credentials.json"), None);
}

#[test]
fn a16_no_step_of_the_way_to_a_program_with_a_login_lies_in_a_worktree() {
    let ground = Ground::new();
    for name in ["safe/bin/claude", "tree/x"] {
        ground.put(name, "");
    }
    let safe = ground.at("safe/bin");
    // The link in the worktree leads out of it today, and elsewhere when an agent changes it.
    symlink(&safe, ground.at("tree/link")).unwrap();
    symlink(ground.at("tree/link"), ground.at("bin/by-link")).unwrap();
    symlink("../safe/bin", ground.at("bin/fine")).unwrap();
    symlink("round", ground.at("bin/round")).unwrap();
    let untrusted = [ground.at("tree").canonicalize().unwrap()];
    let refused = |name: &str| {
        let program = ground.at(name).into_os_string();
        require_trusted(&program, None, &untrusted).err()
    };
    for name in ["safe/bin/claude", "bin/fine/claude", "bin/nowhere/claude"] {
        assert_eq!(refused(name), None, "{name}");
    }
    for name in [
        "tree/link/claude",
        "bin/by-link/claude",
        "tree/../safe/bin/claude",
    ] {
        let why = refused(name).unwrap_or_default();
        assert!(why.contains("can write"), "{name}: {why}");
    }
    let why = refused("bin/round/claude").unwrap();
    assert!(why.contains("leads nowhere"), "{why}");
    let why = require_trusted(OsStr::new("/proc/self/cwd/claude"), None, &untrusted);
    assert!(why.unwrap_err().contains("/proc"));
}

#[test]
fn a16_the_search_path_of_an_agent_with_a_login_has_no_folder_of_a_repository() {
    let ground = Ground::new();
    fs::create_dir(ground.at("tree/bin")).unwrap();
    symlink(ground.at("tree/bin"), ground.at("linked")).unwrap();
    let untrusted = [ground.at("tree").canonicalize().unwrap()];
    let at = |name: &str| ground.at(name).display().to_string();
    let kept = |search: String| {
        let mut environment = vec![("PATH".into(), search.into()), ("A".into(), "b".into())];
        let note = keep_trusted(&mut environment, &untrusted);
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, path)| path.to_str().unwrap().to_owned());
        assert!(environment.contains(&("A".into(), "b".into())));
        (path, note)
    };
    let plain = format!("{}:/usr/bin", at("bin"));
    assert_eq!(kept(plain.clone()), (Some(plain.clone()), None));
    let mixed = format!(
        "{}:./node_modules/.bin:{}:/usr/bin:{}:",
        at("bin"),
        at("tree/bin"),
        at("linked")
    );
    let (path, note) = kept(mixed);
    assert_eq!(path, Some(plain));
    assert!(note.unwrap().contains("`./node_modules/.bin`"));
    assert_eq!(
        kept(".".to_owned()).0,
        None,
        "an empty one would be the worktree"
    );
}

#[test]
fn the_built_in_drivers_are_known_by_their_names_and_nothing_else_is() {
    for (name, make) in BUILT_IN {
        assert!(has_driver(name) && make(&[]).name() == name);
    }
    assert!(!has_driver(COMMAND) && !has_driver("sh"));
}

#[test]
fn weald_s_tools_come_by_the_command_line_alone() {
    let mut ground = Ground::new();
    ground.with_tools = true;
    let words = ground.words(&*driver("", Some("claude"), &[]));
    let given = words
        .iter()
        .find_map(|word| word.strip_prefix("--mcp-config="));
    let given: Value = serde_json::from_str(given.unwrap()).unwrap();
    let server = json!({"command": "weald", "args": ["mcp"], "alwaysLoad": true});
    assert_eq!(given, json!({"mcpServers": {"weald": server}}));
    // A flag that takes many gets one more.
    let own = driver("", Some("claude"), &["--mcp-config", "own.json", "--bare"]);
    let words = ground.words(&*own);
    let at = words
        .iter()
        .position(|word| word == "--mcp-config")
        .unwrap();
    assert_eq!(
        (words[at + 1].as_str(), words[at + 3].as_str()),
        ("own.json", "--bare")
    );
    assert!(words[at + 2].contains("mcpServers"), "{words:?}");
    // As the user's plugin calls it: Claude Code takes what is called the same for the same.
    let (market, program) = (ground.at("market"), ground.at("bin/weald"));
    let (folder, program) = (market.display(), program.display());
    let settings = format!(
        r#"{{"enabledPlugins": {{"weald@weald": true}}, "extraKnownMarketplaces": {{"weald": {{"source": {{"path": "{folder}"}}}}}}}}"#
    );
    ground.put("user/.claude/settings.json", &settings);
    let servers = format!(r#"{{"mcpServers": {{"weald": {{"command": "{program}"}}}}}}"#);
    ground.put("market/plugins/weald/.mcp.json", &servers);
    let called = |ground: &Ground| ground.words(&*driver("", Some("claude"), &[])).join(" ");
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
