//! Any form in which people type an agent starts that agent's driver, with the user's own tools.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};
use weald_terminal::Size;
use weald_testkit::{Answer, Scenario, ScriptedModel, TestEnv, Turn};

const SIZE: Size = Size {
    columns: 110,
    rows: 40,
};

fn with_agents(model: &ScriptedModel) -> Option<TestEnv> {
    TestEnv::with_agents(env!("CARGO_BIN_EXE_weald"), model)
}

/// Writes a file that says who did it, and tries to write to main.
fn writes(name: &str) -> Scenario {
    let script = format!(
        "echo x > {name}.txt; echo x > \"$WEALD_MAIN/stolen\"; ls -d \"$CLAUDE_CONFIG_DIR$CODEX_HOME\""
    );
    let turns = [Turn::shell(script), Turn::say(format!("{name} is done"))];
    Scenario::new(name, turns)
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(path: &Path, text: &str) {
    put(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn start(command: &mut Command) -> Child {
    command.stdin(std::process::Stdio::null()).spawn().unwrap()
}

fn ended(child: Child) -> Answer {
    Answer::of(child.wait_with_output().unwrap())
}

fn worktree(env: &TestEnv, answer: &Answer) -> PathBuf {
    let name = answer.json()["agent"]["tree"].as_str().unwrap().to_owned();
    env.root().join("app.weald").join(name)
}

#[test]
fn a1_an_agent_typed_in_any_form_is_run_by_its_driver() {
    let names = ["work-a", "work-b", "work-c", "work-d"];
    let model = ScriptedModel::start(names.map(writes));
    let Some(env) = with_agents(&model) else {
        return;
    };
    let [claude, codex] = ["claude", "codex"].map(|name| {
        let path = env.home().join("bin").join(name);
        path.display().to_string()
    });
    program(
        &env.repo().join("claude"),
        "#!/bin/sh\necho \"${ANTHROPIC_API_KEY-none} ${CLAUDE_CONFIG_DIR-none}\" > seen.txt\n",
    );
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "a program of its own"]);
    let forms: [(&str, &str, &[&str]); 4] = [
        (
            "claude",
            "opus",
            &["claude", "--model", "opus", "-p", "typed-a"],
        ),
        (
            "claude",
            "",
            &[&claude, "--output-format", "text", "typed-b"],
        ),
        ("codex", "scripted", &["codex", "exec", "--json", "typed-c"]),
        ("codex", "other", &[&codex, "--model", "other", "typed-d"]),
    ];
    let run = |about: &str, words: &[&str]| {
        let subject = format!("the task of {about}");
        let args = [&["work", &subject, "--no-land", "--json", "--"], words].concat();
        start(&mut env.weald_with_agents(&model, &args))
    };
    let started = [0, 1, 2, 3].map(|at| run(names[at], forms[at].2));
    let own = run("nobody", &["./claude"]);
    let wrapped = run("nobody else", &["sh", "-c", "true claude; echo x > w.txt"]);
    for (((driver, model_name, words), child), name) in forms.into_iter().zip(started).zip(names) {
        let answer = ended(child);
        assert_eq!(answer.code, 0, "{words:?}: {answer:#?}");
        let agent = &answer.json()["agent"];
        assert_eq!(agent["driver"], driver, "{words:?}");
        assert_eq!(agent["command"], json!(words));
        assert!(agent["conversation"].is_string(), "{words:?}: {agent:#}");
        assert!(worktree(&env, &answer).join(format!("{name}.txt")).exists());
        let asked = model.requests(name).pop().unwrap();
        let wanted = asked.body["model"].as_str().unwrap();
        assert!(wanted.contains(model_name), "{words:?}: {wanted}");
        // The task, and what was typed with it.
        let typed = *words.last().unwrap();
        let said = asked.said();
        let prompt = said
            .iter()
            .find(|said| said.contains("the task of"))
            .unwrap();
        assert!(prompt.contains(typed) && prompt.contains(name), "{prompt}");
        // In a home of its own.
        let results = model.results(name);
        assert!(results[0].contains("ead-only file system"), "{results:?}");
        assert!(results[0].contains(&format!("/{driver}")), "{results:?}");
    }
    let own = ended(own);
    assert_eq!(own.json()["agent"]["driver"], "command", "{own:#?}");
    let seen = fs::read_to_string(worktree(&env, &own).join("seen.txt")).unwrap();
    assert_eq!(seen, "none none\n");
    assert!(own.stderr.contains("without a login"), "{own:#?}");
    let wrapped = ended(wrapped);
    assert_eq!(wrapped.json()["agent"]["driver"], "command");
    assert!(
        wrapped.stderr.contains("run `claude` directly"),
        "{wrapped:#?}"
    );
    // Nothing that a user logs in with is left.
    let homes = env.own_folder().join("homes");
    let text = format!("{homes:?} {}", tree_of(&homes).join("\n"));
    assert!(
        !text.contains("credentials") && !text.contains("auth.json"),
        "{text}"
    );
    // A program that a run could have written gets no login, whoever asks.
    let first = env.root().join("app.weald").join("bin");
    program(&first.join("claude"), "#!/bin/sh\n");
    let path = format!(
        "sub:{}:{}",
        env.home().join("bin").display(),
        env.plain_path()
    );
    let mut command = env.weald_with_agents(&model, &["work", "some task", "--json"]);
    let refused = Answer::of(command.env("PATH", path).output().unwrap());
    assert_eq!(refused.error_code(), "driver_not_trusted", "{refused:#?}");
}

fn tree_of(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path().display().to_string());
        if entry.file_type().unwrap().is_dir() {
            found.extend(tree_of(&entry.path()));
        }
    }
    found
}

#[test]
fn a1_on_a_pipe_an_agent_s_own_output_passes_through() {
    let names = ["pipe-a", "pipe-b", "pipe-c", "pipe-d"];
    let model = ScriptedModel::start(names.map(writes));
    let Some(env) = with_agents(&model) else {
        return;
    };
    env.ok(&["new", "one"]);
    env.ok(&["new", "two"]);
    let place = env.root().join("place");
    fs::create_dir(&place).unwrap();
    let write = place.display().to_string();
    let started = [
        vec!["run", "one", "--", "claude", "-p", "do pipe-a"],
        vec!["run", "two", "--", "codex", "exec", "do pipe-b"],
        vec![
            "sandbox",
            "exec",
            "--write",
            &write,
            "--",
            "claude",
            "-p",
            "do pipe-c",
        ],
        vec![
            "sandbox",
            "exec",
            "--write",
            &write,
            "--",
            "codex",
            "exec",
            "--skip-git-repo-check",
            "do pipe-d",
        ],
    ]
    .map(|args| start(&mut env.weald_with_agents(&model, &args)));
    let folders = [
        env.root().join("app.weald/one"),
        env.root().join("app.weald/two"),
        place.clone(),
        place,
    ];
    for ((child, name), folder) in started.into_iter().zip(names).zip(folders) {
        let answer = ended(child);
        assert_eq!(answer.code, 0, "{name}: {answer:#?}");
        assert_eq!(answer.stdout, format!("{name} is done\n"), "{answer:#?}");
        assert!(folder.join(format!("{name}.txt")).exists(), "{name}");
    }
    assert!(!env.repo().join("stolen").exists());
    // The user's own homes are as they were.
    let own = tree_of(&env.home().join(".claude"));
    assert_eq!(own.len(), 1, "{own:#?}");
}

#[test]
fn a1_on_a_terminal_an_agent_s_own_interface_opens_and_continues() {
    let names = ["screen-a", "screen-b"];
    let model = ScriptedModel::start(names.map(writes));
    let Some(env) = with_agents(&model) else {
        return;
    };
    env.ok(&["new", "one"]);
    env.ok(&["new", "two"]);
    let agents = [
        (
            "weald run one -- claude",
            "bypass permissions on",
            " --continue",
            "/exit",
        ),
        (
            "weald run two -- codex",
            "YOLO mode",
            " resume --last",
            "/quit",
        ),
    ];
    let mut people = agents.map(|_| env.shell(Some(&model), SIZE));
    for ((_, person), (command, ..)) in people.iter_mut().zip(agents) {
        person.types(&format!("{command}; echo left $((1+1))\r"));
    }
    let say = |person: &mut weald_testkit::Watcher, text: &str| {
        person.types(text);
        person.sees(text);
        person.types("\r");
    };
    for (((_, person), name), (_, ready, _, leave)) in people.iter_mut().zip(names).zip(agents) {
        // No question before it.
        person.sees(ready);
        say(person, &format!("do {name}"));
        person.sees(&format!("{name} is done"));
        let results = model.results(name);
        assert!(results[0].contains("ead-only file system"), "{results:?}");
        say(person, leave);
        person.sees("left 2");
    }
    for ((_, person), (command, _, again, _)) in people.iter_mut().zip(agents) {
        person.types("clear\r");
        person.no_longer_sees("is done");
        person.types(&format!("{command}{again}; echo left $((1+1))\r"));
    }
    for (((terminal, mut person), name), (.., leave)) in people.into_iter().zip(names).zip(agents) {
        person.sees(&format!("{name} is done"));
        say(&mut person, leave);
        person.sees("left 2");
        person.types("exit\r");
        terminal.ended();
    }
    for (name, tree) in names.iter().zip(["one", "two"]) {
        assert!(
            env.root()
                .join("app.weald")
                .join(tree)
                .join(format!("{name}.txt"))
                .exists()
        );
    }
    assert!(!env.repo().join("stolen").exists());
}

#[test]
fn a9_an_agent_in_another_permission_mode_or_with_denied_tools_has_failed() {
    let turns = [Turn::shell("rm notes.txt"), Turn::say("all done")];
    let model = ScriptedModel::start([Scenario::new("remove it", turns)]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    let settings = env.home().join(".claude/settings.json");
    for (permissions, reason, fix) in [
        (
            json!({"disableBypassPermissionsMode": "disable"}),
            "permission mode `default` instead of `bypassPermissions`",
            "--permission-mode",
        ),
        (
            json!({"deny": ["Bash(rm *)"]}),
            "denied a tool call (Bash)",
            "resume it",
        ),
    ] {
        put(&settings, &json!({"permissions": permissions}).to_string());
        let args = ["work", "now remove it", "--json"];
        let answer = ended(start(&mut env.weald_with_agents(&model, &args)));
        assert_eq!(answer.code, 1, "{answer:#?}");
        let (agent, task) = (&answer.json()["agent"], &answer.json()["task"]);
        assert_eq!(agent["end"]["outcome"], "failed", "{agent:#}");
        let why = agent["end"]["why"].as_str().unwrap();
        assert!(why.contains(reason) && why.contains(fix), "{why}");
        assert_eq!(task["status"], "failed", "{task:#}");
        assert!(agent["conversation"].is_string(), "{agent:#}");
    }
}

/// The first line of an agent's stream.
fn first_line(env: &TestEnv, agent: &str) -> Value {
    let log = env.private().join("agents").join(agent).join("output.log");
    let log = fs::read_to_string(log).unwrap();
    let mut lines = log.lines().filter(|line| line.contains("\"init\""));
    serde_json::from_str(lines.next().unwrap()).unwrap()
}

#[test]
fn a10_the_user_s_own_tools_come_along_and_their_hooks_only_on_request() {
    let look = "mkdir -p ~/.cache/any/thing && echo x > \"$XDG_CACHE_HOME/f\" && echo cache works; \
        ls $CODEX_HOME/prompts; ls hooked";
    let scenario = |name: &str| {
        Scenario::new(
            name,
            [Turn::shell(look), Turn::say(format!("{name} has looked"))],
        )
    };
    let model = ScriptedModel::start([scenario("look-claude"), scenario("look-codex")]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    let (claude, codex) = (env.home().join(".claude"), env.home().join(".codex"));
    let skill =
        |name: &str| format!("---\nname: {name}\ndescription: {name} does it\n---\ndo it\n");
    for (path, text) in [
        (claude.join("skills/my-skill/SKILL.md"), skill("my-skill")),
        (claude.join("agents/my-agent.md"), skill("my-agent")),
        (claude.join("commands/my-command.md"), "do it\n".to_owned()),
        (claude.join("output-styles/my-style.md"), skill("my-style")),
        (
            codex.join("skills/my-codex-skill/SKILL.md"),
            skill("my-codex-skill"),
        ),
        (codex.join("prompts/my-prompt.md"), "do it\n".to_owned()),
    ] {
        put(&path, &text);
    }
    // A plugin of a marketplace elsewhere, as Claude Code installs it.
    let plugins = claude.join("plugins");
    let (market, plugin) = (
        plugins.join("marketplaces/shop"),
        plugins.join("cache/shop/greet/1.0.0"),
    );
    let source = json!({"source": "github", "repo": "acme/shop"});
    let manifest = json!({"name": "greet", "version": "1.0.0"});
    let hook = |file: &str| {
        let command = json!({"type": "command", "command": format!("touch {file}")});
        json!({"SessionStart": [{"hooks": [command]}]})
    };
    let own = json!({"mcpServers": {"my-server": {"command": "/bin/false"}}});
    for (path, value) in [
        (
            claude.join("settings.json"),
            json!({"enabledPlugins": {"greet@shop": true}, "outputStyle": "my-style",
                "extraKnownMarketplaces": {"shop": {"source": source}}, "hooks": hook("hooked")}),
        ),
        (
            plugins.join("known_marketplaces.json"),
            json!({"shop": {"source": source, "installLocation": market, "lastUpdated": "2026-11-01T00:00:00.000Z"}}),
        ),
        (
            plugins.join("installed_plugins.json"),
            json!({"version": 2, "plugins": {"greet@shop": [{"scope": "user", "installPath": plugin,
                "version": "1.0.0", "installedAt": "2026-11-01T00:00:00.000Z", "lastUpdated": "2026-11-01T00:00:00.000Z"}]}}),
        ),
        (
            market.join(".claude-plugin/marketplace.json"),
            json!({"name": "shop", "owner": {"name": "x"}, "plugins": [{"name": "greet", "source": "./greet"}]}),
        ),
        (plugin.join(".claude-plugin/plugin.json"), manifest),
        (
            env.home().join(".claude.json"),
            json!({"projects": {env.repo().display().to_string(): own}}),
        ),
    ] {
        put(&path, &value.to_string());
    }
    put(
        &plugin.join("skills/greetings/SKILL.md"),
        &skill("greetings"),
    );
    fs::create_dir(env.root().join("cache")).unwrap();
    let run = |subject: &str, driver: &str| {
        let args = ["work", subject, "--driver", driver, "--no-land", "--json"];
        let mut command = env.weald_with_agents(&model, &args);
        start(command.env("XDG_CACHE_HOME", env.root().join("cache")))
    };
    let both = [
        run("please look-claude", "claude"),
        run("please look-codex", "codex"),
    ];
    let [of_claude, of_codex] = both.map(ended);
    let id = of_claude.json()["agent"]["id"].as_str().unwrap().to_owned();
    let init = first_line(&env, &id);
    for (field, name) in [
        ("skills", "my-skill"),
        ("skills", "greet:greetings"),
        ("agents", "my-agent"),
        ("slash_commands", "my-command"),
        ("plugins", "greet@shop"),
        ("mcp_servers", "my-server"),
        ("output_style", "my-style"),
    ] {
        assert!(
            init[field].to_string().contains(name),
            "{field}: {}",
            init[field]
        );
    }
    assert!(
        of_codex.json()["agent"]["conversation"].is_string(),
        "{of_codex:#?}"
    );
    let asked = model.requests("look-codex").pop().unwrap().body.to_string();
    assert!(asked.contains("my-codex-skill"), "{asked}");
    let results = model.results("look-codex");
    assert!(results[0].contains("my-prompt.md"), "{results:?}");
    for name in ["look-claude", "look-codex"] {
        let results = model.results(name);
        assert!(results[0].contains("cache works"), "{results:?}");
        assert!(!results[0].contains("\nhooked"), "{results:?}");
    }
    assert!(!env.root().join("cache/f").exists());
    assert!(!worktree(&env, &of_claude).join("hooked").exists());
    // Only the user themselves can ask for their hooks.
    put(
        &env.repo().join("weald.toml"),
        "[agent]\nuser_hooks = true\n",
    );
    let value = |env: &TestEnv| env.ok(&["config", "show", "agent.user_hooks"]).to_string();
    assert!(value(&env).contains("false"), "{}", value(&env));
    fs::remove_file(env.repo().join("weald.toml")).unwrap();
    env.ok(&["config", "set", "agent.user_hooks", "true"]);
    let answer = ended(run("now look-claude again", "claude"));
    assert!(
        worktree(&env, &answer).join("hooked").exists(),
        "{answer:#?}"
    );
}
