//! `weald install`: as people see it, and as real Codex reads it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;
use weald_testkit::{Answer, Scenario, ScriptedModel, TestEnv, Turn};

use crate::env;
use crate::real_agents::{weald, with_agents};

/// Every program that keeps settings.
const PROGRAMS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

#[track_caller]
fn install(env: &TestEnv, args: &[&str]) -> serde_json::Value {
    let answer = env.weald_alone(&[&["--json", "install"], args].concat());
    assert_eq!(answer.code, 0, "{args:?}: {answer:#?}");
    answer.json()["install"].clone()
}

#[test]
fn install_shows_what_it_does_and_takes_it_back() {
    // Outside of any repository, too.
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    for program in PROGRAMS {
        let shown = install(&env, &[program, "--dry-run"]);
        assert_eq!(shown["outcome"], "installed");
        assert_eq!(shown["dry_run"], true);
        assert!(
            !env.home().join(".local/state/weald/install").exists(),
            "{program}"
        );
        let done = install(&env, &[program, "--yes"]);
        assert_eq!(done["files"], shown["files"]);
        for file in done["files"].as_array().unwrap() {
            assert_eq!(file["outcome"], "created", "{file}");
            let text = fs::read_to_string(file["path"].as_str().unwrap()).unwrap();
            let first = format!("\n+{}\n", text.lines().next().unwrap());
            assert!(file["diff"].as_str().unwrap().contains(&first), "{file}");
        }
        // The test's binary is in no search path.
        assert_eq!(done["command"], env!("CARGO_BIN_EXE_weald"));
        assert_eq!(install(&env, &[program])["outcome"], "already_installed");
        assert_eq!(install(&env, &[program, "--remove"])["outcome"], "removed");
        assert_eq!(
            install(&env, &[program, "--remove"])["outcome"],
            "not_installed"
        );
        fs::remove_dir_all(env.home().join(".local/state/weald")).unwrap();
    }
    let left: Vec<_> = fs::read_dir(env.home())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, [".local"], "nothing is left but weald's own folder");
    let plain = env.weald_alone(&["install", "gemini"]);
    assert!(
        plain.stdout.contains("+    \"weald\": {") && plain.stdout.contains("--remove"),
        "{plain:#?}"
    );
}

#[test]
fn install_is_refused_to_agents_and_to_what_it_cannot_read() {
    let env = env();
    for (variable, value, code) in [
        ("CLAUDECODE", "1", "agent_session"),
        ("WEALD_AGENT", "a1", "agent_session"),
    ] {
        let mut command = env.weald_command(&["--json", "install", "codex"]);
        let refused = Answer::of(command.env(variable, value).output().unwrap());
        assert_eq!(
            (refused.code, refused.error_code().as_str()),
            (1, code),
            "{variable}"
        );
    }
    assert!(!env.home().join(".codex").exists());
    fs::create_dir(env.home().join(".gemini")).unwrap();
    let settings = env.home().join(".gemini/settings.json");
    fs::write(&settings, "{ broken").unwrap();
    let refused = env.weald_alone(&["--json", "install", "gemini"]);
    assert_eq!(
        (refused.code, refused.error_code().as_str()),
        (1, "file_invalid")
    );
    assert!(
        refused.stdout.contains("settings.json") && refused.stdout.contains("nothing was changed")
    );
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{ broken");
}

#[test]
fn install_notices_a_plugin_that_claude_has_from_elsewhere() {
    let env = env();
    // As `claude plugin marketplace add` and `claude plugin install` leave it.
    let theirs = json!({
        "extraKnownMarketplaces": {"weald": {"source": {"source": "directory", "path": "/src/of/it"}}},
        "enabledPlugins": {"weald@weald": true},
    });
    fs::create_dir(env.home().join(".claude")).unwrap();
    let settings = env.home().join(".claude/settings.json");
    fs::write(&settings, theirs.to_string()).unwrap();
    let refused = env.weald_alone(&["--json", "install", "claude"]);
    assert_eq!(refused.error_code(), "name_taken", "{refused:#?}");
    let error = &refused.json()["error"];
    for part in [
        "marketplace add",
        "keep that one",
        "marketplace remove weald",
    ] {
        assert!(error["hint"].as_str().unwrap().contains(part), "{error}");
    }
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("extraKnownMarketplaces.weald"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(&settings).unwrap(), theirs.to_string());
    assert!(!env.home().join(".local/share/weald").exists());
}

#[test]
fn install_says_what_stays_when_it_is_taken_out() {
    let env = env();
    install(&env, &["gemini"]);
    let settings = env.home().join(".gemini/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    let edited = text.replace(env!("CARGO_BIN_EXE_weald"), "/usr/bin/wrapper");
    fs::write(&settings, &edited).unwrap();
    let answer = install(&env, &["gemini", "--remove"]);
    assert_eq!(answer["outcome"], "not_installed");
    assert_eq!(
        answer["files"][0]["kept"],
        json!([{"entry": "mcpServers.weald", "why": "not_wealds"}])
    );
    let note = answer["notes"][0].as_str().unwrap();
    assert!(note.contains("mcpServers.weald stays"), "{note}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), edited);
}

#[test]
fn install_in_a_project_writes_into_its_checkout() {
    let env = env();
    fs::write(env.repo().join("AGENTS.md"), "# Rules\n").unwrap();
    fs::create_dir(env.repo().join("deep")).unwrap();
    install(
        &env,
        &[
            "codex",
            "--project",
            "-C",
            env.repo().join("deep").to_str().unwrap(),
        ],
    );
    assert!(env.repo().join(".codex/config.toml").is_file());
    let rules = fs::read_to_string(env.repo().join("AGENTS.md")).unwrap();
    assert!(rules.starts_with("# Rules\n\n<!-- weald: begin"), "{rules}");
    assert!(
        !env.private().exists(),
        "nothing else is made in the repository"
    );
    install(&env, &["codex", "--project", "--remove"]);
    assert_eq!(
        fs::read_to_string(env.repo().join("AGENTS.md")).unwrap(),
        "# Rules\n"
    );
    assert!(!env.repo().join(".codex").exists());
}

#[test]
fn install_in_a_project_names_the_way_out_of_the_project() {
    let env = env();
    let installed = env.weald_alone(&["install", "gemini", "--project"]);
    let way_out = "weald install gemini --project --remove";
    assert!(
        installed
            .stdout
            .ends_with(&format!("to remove it: {way_out}\n")),
        "{installed:#?}"
    );
    assert_eq!(
        install(&env, &["gemini", "--project", "--remove"])["outcome"],
        "removed"
    );
    // Also of what was there before.
    let own = "{\"mcpServers\": {\"weald\": {\"command\": \"weald\", \"args\": [\"old\"]}}}\n";
    fs::create_dir_all(env.repo().join(".gemini")).unwrap();
    fs::write(env.repo().join(".gemini/settings.json"), own).unwrap();
    install(&env, &["gemini", "--project"]);
    let removed = install(&env, &["gemini", "--project", "--remove"]);
    let note = removed["notes"][0].as_str().unwrap();
    assert!(note.contains(way_out), "{note}");
}

/// Runs weald as nobody's child, with the binary in a folder of the search path.
pub fn on_path(env: &TestEnv, args: &[&str]) -> serde_json::Value {
    let folder = bin(env);
    let script = "PATH=\"$1:$PATH\"; at=$2; shift 2; ( while kill -0 $$ 2>/dev/null; do sleep 0.002; done; weald --json \"$@\" > \"$at.new\" 2>&1; mv \"$at.new\" \"$at\" ) & exit 0";
    let out = env.root().join("answer");
    let mut command = env.command("sh");
    command.args(["-c", script, "sh"]).arg(&folder).arg(&out);
    assert!(command.args(args).status().unwrap().success());
    while !out.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let text = fs::read_to_string(&out).unwrap();
    fs::remove_file(&out).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// A folder with the binary in it.
pub fn bin(env: &TestEnv) -> PathBuf {
    let folder = env.home().join("bin");
    if !folder.exists() {
        fs::create_dir(&folder).unwrap();
        symlink(env!("CARGO_BIN_EXE_weald"), folder.join("weald")).unwrap();
    }
    folder
}

#[test]
fn entries_name_weald_alone_where_the_search_path_has_this_one() {
    let env = env();
    let answer = on_path(&env, &["install", "gemini"]);
    assert_eq!(answer["install"]["command"], "weald", "{answer}");
    assert_eq!(answer["install"]["notes"], json!([]));
}

#[test]
fn p13_real_codex_calls_a_tool_of_the_server_that_install_made_known() {
    let about = "look at the board";
    let call = |tool: &str, input| Turn::Tool {
        name: format!("mcp__weald__{tool}"),
        input,
    };
    let turns = [
        call("task_list", json!({})),
        call("task_create", json!({"subject": "Prune the hedge"})),
        call("task_claim", json!({"task_id": 1})),
        Turn::say("seen"),
    ];
    let model = ScriptedModel::start([Scenario::new(about, turns)]);
    let Some(env) = with_agents(&model) else {
        return;
    };
    env.ok(&["task", "add", "Water the trees"]);
    let config = env.home().join(".codex/config.toml");
    let before = fs::read_to_string(&config).unwrap();
    assert_eq!(install(&env, &["codex"])["outcome"], "installed");
    let path = weald(&env, &model, &[]);
    let path = path
        .get_envs()
        .find(|(name, _)| *name == "PATH")
        .unwrap()
        .1
        .unwrap();
    let mut codex = env.command(env.home().join("bin/codex"));
    codex
        // Hooks are the user's to trust, in a dialogue that a test has not.
        .args(["exec", "--json", "--dangerously-bypass-hook-trust", about])
        .env("PATH", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let answer = Answer::of(codex.output().unwrap());
    assert_eq!(answer.code, 0, "{answer:#?}");
    let results = model.results(about);
    assert_eq!(results.len(), 3, "{answer:#?}");
    assert!(results[0].contains("Water the trees"), "{results:#?}");
    let tasks = env.ok(&["task", "list"]).to_string();
    assert!(tasks.contains("Prune the hedge"), "{results:#?}");
    // It has read the instructions, too.
    let asked = model.requests(about)[0].body.to_string();
    assert!(
        asked.contains("each in its own worktree that weald created"),
        "{asked}"
    );
    // And its hooks have told it who it is.
    assert!(asked.contains("You are known as codex-"), "{asked}");
    let sessions = env.ok(&["session", "list"]).to_string();
    assert!(sessions.contains("\"codex-"), "{sessions}");
    // And its tools speak in the same name.
    let owner = env.ok(&["task", "show", "1"])["task"]["owner"].to_string();
    assert!(owner.starts_with("\"codex-"), "{owner} {results:#?}");
    install(&env, &["codex", "--remove"]);
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
}

#[test]
fn hooks_of_codex_answer_by_its_contract_and_never_stop_it_by_mistake() {
    let env = env();
    let hook = |event: &str, input: &str| {
        env.weald_with_input(&["hook", "codex", event], input.as_bytes())
    };
    let input = |fields: serde_json::Value| {
        let mut all = json!({"session_id": "0199", "cwd": env.repo(), "transcript_path": null, "model": "o9", "turn_id": "1", "permission_mode": "default"});
        all.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        all.to_string()
    };
    // Where weald is not used nothing is said and nothing is made.
    let quiet = hook(
        "session-start",
        &input(json!({"hook_event_name": "SessionStart", "source": "startup"})),
    );
    assert_eq!((quiet.code, quiet.stdout.as_str()), (0, ""), "{quiet:#?}");
    assert!(!env.private().exists());
    env.ok(&["task", "add", "Water the trees"]);
    let told = hook(
        "session-start",
        &input(json!({"hook_event_name": "SessionStart", "source": "startup"})),
    );
    assert_eq!(told.code, 0, "{told:#?}");
    assert_eq!(
        told.json()["hookSpecificOutput"]["hookEventName"],
        "SessionStart"
    );
    env.ok(&["msg", "send", "codex-0199", "mind the roots"]);
    let tool = json!({"hook_event_name": "PostToolUse", "tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch"}, "tool_response": "ok", "tool_use_id": "1"});
    let told = hook("post-tool-use", &input(tool.clone()));
    let context = told.json()["hookSpecificOutput"]["additionalContext"].to_string();
    assert!(context.contains("mind the roots"), "{told:#?}");
    assert_eq!(
        hook("post-tool-use", &input(tool)).stdout,
        "",
        "each is told once"
    );
    let stop = input(
        json!({"hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": "done"}),
    );
    assert_eq!(hook("stop", &stop).code, 0);
    for (event, input) in [
        ("stop", "{"),
        ("stop", "[]"),
        ("no-such-event", "{}"),
        ("worktree-create", &stop),
    ] {
        let odd = hook(event, input);
        assert!(
            odd.code != 2 && odd.stdout.is_empty(),
            "{event} {input}: {odd:#?}"
        );
    }
}

#[test]
fn w8_a_hook_that_is_not_understood_stops_no_agent() {
    let env = env();
    for words in [
        "hook codex no-such-event",
        "hook claude no-such",
        "hook nobody stop",
        "hook claude",
        "hook",
        "hook codex stop more",
        "hook codex --what stop",
        "--what hook codex stop",
        "--json hook nobody stop",
        "-C /nowhere/at/all hook codex stop",
    ] {
        let words: Vec<_> = words.split(' ').collect();
        let odd = env.weald_with_input(&words, b"{}");
        assert_eq!((odd.code, odd.stdout.as_str()), (1, ""), "{words:?}");
        assert!(!odd.stderr.is_empty(), "{words:?}");
    }
    // Elsewhere a mistake is a mistake, and help is help.
    assert_eq!(env.weald_alone(&["land", "--what", "hook"]).code, 2);
    assert_eq!(env.weald_alone(&["hook", "--help"]).code, 0);
}
