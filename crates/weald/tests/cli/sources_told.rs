//! Telling a tracker: once, by a process that nobody waits for, and that leaves nothing behind.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use weald_testkit::Answer;

use crate::sources::{Field, issue};

/// A repository with open issues `bd-1` to `bd-4` of beads; `bd` does as the script says.
fn beads(settings: &str, script: &str) -> Field {
    let field = Field::new(&format!("source.from = 'beads'\n{settings}"));
    let issues = (1..=4).map(|n| issue(&format!("bd-{n}"), "Task", "open"));
    field.write("issues", &issues.collect::<Vec<_>>());
    let file = field.env.root().join("issues");
    field.ok(&["task", "import", "--from", "beads", file.to_str().unwrap()]);
    field.program("bd", script);
    field
}

/// Waits for a file that a program writes, and gives its words.
fn words(field: &Field, name: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let text = fs::read_to_string(field.env.root().join(name)).unwrap_or_default();
        if text.ends_with('\n') {
            return text.trim().to_owned();
        }
        assert!(Instant::now() < deadline, "{name} was not written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(field: &Field, pid: &str) {
    let mut kill = field.env.command("kill");
    assert!(kill.args(["-KILL", pid]).status().unwrap().success());
}

#[test]
fn p12_nothing_is_told_again_when_trackers_change_or_a_place_is_lost() {
    let field = beads("", "exit 0");
    field.program("gh", "exit 0");
    field.ok(&["task", "claim", "bd-1", "--session", "alice"]);
    field.ok(&["task", "done", "bd-1", "--token", "1"]);
    let told = field.told();
    assert_eq!(
        told.last().unwrap(),
        "bd close bd-1 --reason weald: completed"
    );
    let gh = ["--set", "source.from=gh", "task", "add", "Elsewhere"];
    field.ok(&gh);
    field.ok(&["task", "add", "Here"]);
    assert_eq!(field.told(), [""; 0]);
    // What happened while another one was named is news.
    let claim = ["task", "claim", "bd-2", "--session", "alice"];
    field.ok(&[&gh[..2], &claim].concat());
    field.ok(&["task", "add", "Here, too"]);
    assert_eq!(field.told(), ["bd update bd-2 --claim"]);
    fs::write(field.places(), "{").unwrap();
    field.ok(&["task", "release", "bd-2", "--token", "1"]);
    assert_eq!(field.told(), ["bd update bd-2 --status open"]);
    // A place that is of another log.
    let ahead = r#"{"beads": {"told": 9999, "failed": 0, "shown": 0}}"#;
    fs::write(field.places(), ahead).unwrap();
    field.ok(&["task", "claim", "bd-3", "--session", "alice"]);
    assert_eq!(field.told(), ["bd update bd-3 --claim"]);
}

#[test]
fn p12_a_repository_says_nothing_of_trackers() {
    let field = Field::new("");
    let settings = "[source]\ntimeout = '25s'\nupdate = false\n";
    fs::write(field.env.repo().join("weald.toml"), settings).unwrap();
    field.env.git(&["add", "."]);
    field.env.git(&["commit", "-qm", "settings"]);
    let shown = field.ok(&["config", "show"]).to_string();
    for key in ["source.timeout", "source.update"] {
        assert_eq!(shown.matches(&format!("\"{key}\"")).count(), 2, "{shown}");
    }
    assert!(!shown.contains("25s"), "{shown}");
    let long = field.weald(&["config", "set", "source.timeout", "61s"]);
    assert_eq!(long.code, 2, "{long:#?}");
    assert!(long.stdout.contains("at most 60 seconds"), "{long:#?}");
    field.ok(&["config", "set", "source.timeout", "60s"]);
    field.ok(&["config", "set", "source.update", "false"]);
}

#[test]
fn p12_nobody_waits_for_a_tracker_that_hangs() {
    let field = beads(
        "source.timeout = '60s'",
        "[ -e $HERE/hangs ] || exit 0; rm $HERE/hangs; echo $$ > $HERE/bd; exec sleep 60",
    );
    fs::write(field.env.root().join("hangs"), "").unwrap();
    let begun = Instant::now();
    let claim = |n| {
        let id = format!("bd-{n}");
        let mut claim = field.command(&["task", "claim", &id, "--session", "alice"]);
        claim.stdout(Stdio::piped()).stderr(Stdio::piped());
        claim.spawn().unwrap()
    };
    let claims = [1, 2, 3, 4].map(claim);
    for claim in claims {
        let answer = Answer::of(claim.wait_with_output().unwrap());
        assert_eq!(
            (answer.code, answer.stderr.as_str()),
            (0, ""),
            "{answer:#?}"
        );
    }
    let bd = words(&field, "bd");
    let list = field.weald(&["list"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{list:#?}");
    field.ok(&["task", "release", "bd-4", "--token", "1"]);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        field.asked().len(),
        1,
        "one process tells, one thing at a time"
    );
    kill(&field, &bd);
    let mut told = field.told();
    assert_eq!(told.pop().unwrap(), "bd update bd-4 --status open");
    let claims = told.iter().filter(|line| line.ends_with("--claim"));
    assert!(claims.count() >= 2, "{told:?}");
}

#[test]
fn p12_what_tells_takes_the_trackers_command_along_when_it_is_killed() {
    let field = beads(
        "source.timeout = '60s'",
        "[ -e $HERE/hangs ] || exit 0; rm $HERE/hangs; echo $PPID > $HERE/teller; echo $$ > $HERE/bd; exec sleep 60",
    );
    fs::write(field.env.root().join("hangs"), "").unwrap();
    field.ok(&["task", "claim", "bd-1", "--session", "alice"]);
    let (bd, teller) = (words(&field, "bd"), words(&field, "teller"));
    kill(&field, &teller);
    wait_for_end(&bd);
    assert_eq!(field.asked(), ["bd update bd-1 --claim"]);
    // The next change tells it.
    field.ok(&["task", "add", "Something"]);
    assert_eq!(field.told(), ["bd update bd-1 --claim"]);
}

#[test]
fn p12_what_a_tracker_leaves_running_holds_nobody_up() {
    let field = Field::new("source.from = 'beads'\nsource.timeout = '20s'");
    field.write("issues", &[issue("bd-1", "Task", "open")]);
    field.program("bd", "sleep 60 & echo $! > $HERE/daemon; cat $HERE/issues");
    let begun = Instant::now();
    assert_eq!(
        field.ok(&["task", "import", "--from", "beads"])["imported"],
        1
    );
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    // And it is ended with the command that left it.
    let daemon = fs::read_to_string(field.env.root().join("daemon")).unwrap();
    wait_for_end(daemon.trim());
}

/// Waits until a process is gone, or only waits to be taken away.
fn wait_for_end(pid: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if status.is_empty() || status.contains("State:\tZ") {
            return;
        }
        assert!(Instant::now() < deadline, "{pid} is alive: {status}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn p12_any_tracker_by_commands_of_its_own() {
    let field = Field::new(
        "source.from = 'command'\nsource.fetch = 'tix get {id}'\nsource.claim = \"tix start '{id}' by\"\n\
         source.close = 'tix note {id} {message}'",
    );
    field.program(
        "tix",
        "echo \"count $#\" >> $HERE/asked; [ $1 = get ] && echo '{\"id\":\"x-1\",\"title\":\"Theirs\"}'; exit 0",
    );
    field.ok(&[
        "--set",
        "work.on_empty=complete",
        "work",
        "x-1",
        "--",
        "true",
    ]);
    let mut told = field.told();
    // Nobody may have come to tell the claim while it lasted.
    if let Some(claim) = told.iter().position(|line| line == "tix start x-1 by") {
        assert_eq!(told.drain(claim..claim + 2).next_back().unwrap(), "count 3");
    }
    assert_eq!(
        told,
        [
            "tix get x-1",
            "count 2",
            "tix note x-1 weald: completed",
            "count 3"
        ]
    );
}

#[test]
fn p12_an_issue_that_is_refused_is_named_as_people_know_it() {
    let field = Field::new("");
    let issues = serde_json::json!([
        {"number": 7, "title": "Mind\u{1b}[2J the gap", "state": "OPEN"},
        {"number": 8, "title": "Fix it", "state": "OPEN"},
        {"number": 8, "title": "Fix it", "state": "OPEN"},
    ]);
    field.write("issues", &[issues]);
    let file = field.env.root().join("issues");
    let import = ["task", "import", "--from", "gh", file.to_str().unwrap()];
    let mut strict = import.to_vec();
    strict.push("--strict");
    let refused = field.weald(&strict);
    assert_eq!(refused.error_code(), "bad_lines");
    let message = refused.json()["error"]["message"].to_string();
    assert!(message.contains("issue 7 (Mind[2J the gap): "), "{message}");
    let told = field.weald(&import);
    let errors = &told.json()["errors"];
    assert_eq!(errors[0]["entry"], "issue 7 (Mind[2J the gap)", "{errors}");
    assert_eq!(errors[1]["entry"], "gh-8", "{errors}");
    assert!(!errors.to_string().contains("line 1"), "{errors}");
    let plain = field.env.weald(&import);
    assert!(plain.stdout.starts_with("issue 7 (Mind[2J the gap): title"));
    assert!(
        plain.stdout.contains("\ngh-8: it appears twice"),
        "{plain:#?}"
    );
}
