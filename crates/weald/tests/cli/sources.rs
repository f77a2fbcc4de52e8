//! Trackers that tasks come from. A `bd` and a `gh` of our own stand for them: they answer what the real ones would, and
//! write down what they were asked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weald_testkit::{Answer, TestEnv};

use crate::trees_remove::repository;

/// A repository with programs in front of all others, and settings of the user's own.
pub struct Field {
    pub env: TestEnv,
}

impl Field {
    pub fn new(settings: &str) -> Self {
        let env = repository();
        fs::create_dir_all(env.root().join("bin")).unwrap();
        let folder = env.home().join(".config/weald");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), settings).unwrap();
        Self { env }
    }

    /// Puts a program there. What it is asked is written down first.
    pub fn program(&self, name: &str, script: &str) {
        let path = self.env.root().join("bin").join(name);
        let log = self.env.root().join("asked");
        let text = format!(
            "#!/bin/sh\nHERE={}\necho \"{name} $*\" >> {}\n{script}\n",
            self.env.root().display(),
            log.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What the programs were asked since the last look.
    pub fn asked(&self) -> Vec<String> {
        let log = self.env.root().join("asked");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(log);
        text.lines().map(str::to_owned).collect()
    }

    /// The same once the tracker was told everything: nobody else waits for that.
    pub fn told(&self) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.is_told() {
            assert!(Instant::now() < deadline, "{:?}", self.asked());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.asked()
    }

    /// Whether the place of a tracker is at the end of the log.
    fn is_told(&self) -> bool {
        let mut newest = self.command(&["events", "--limit", "1"]);
        // What went wrong is shown to a person, and this is none.
        let newest = Answer::of(newest.env("CLAUDECODE", "1").output().unwrap());
        let newest: Value = serde_json::from_str(newest.stdout.trim()).unwrap();
        let places = fs::read_to_string(self.places()).unwrap();
        let places: Value = serde_json::from_str(&places).unwrap();
        let mut places = places.as_object().unwrap().values();
        places.any(|place| place["told"] == newest["sequence"])
    }

    /// Where it says how far each tracker was told.
    pub fn places(&self) -> PathBuf {
        self.env.repo().join(".git/weald/private/source.json")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.env.weald_command(&[&["--json"], args].concat());
        let bin = self.env.root().join("bin");
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
    }

    pub fn weald(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }

    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> Value {
        let answer = self.weald(args);
        assert_eq!(answer.code, 0, "{args:?}: {answer:#?}");
        answer.json()
    }

    pub fn write(&self, name: &str, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.env.root().join(name), text).unwrap();
    }

    /// Whether the log holds an event of this kind.
    pub fn has_event(&self, kind: &str) -> bool {
        let answer = self.env.weald(&["events", "--json", "--limit", "200"]);
        let name = format!("\"dev.weald.{kind}\"");
        answer.stdout.contains(&name)
    }

    pub fn task(&self, id: &str) -> Value {
        self.env.ok(&["task", "show", id])["task"].clone()
    }
}

pub fn issue(id: &str, title: &str, status: &str) -> Value {
    json!({"id": id, "title": title, "status": status, "priority": 1, "issue_type": "task"})
}

#[test]
fn p12_beads_come_in_again_and_nothing_is_reset() {
    let field = Field::new("");
    field.program("bd", "cat $HERE/issues");
    let mut waits = issue("bd-2", "Second", "open");
    waits["dependencies"] =
        json!([{"issue_id": "bd-2", "depends_on_id": "bd-0", "type": "blocks"}]);
    let old = issue("bd-0", "Done before", "closed");
    let history = issue("bd-h", "Nobody waits for this", "closed");
    let third = issue("bd-3", "Third", "open");
    field.write(
        "issues",
        &[
            issue("bd-1", "First", "open"),
            waits.clone(),
            old.clone(),
            history.clone(),
            third,
        ],
    );
    let first = field.ok(&["task", "import", "--from", "beads"]);
    assert_eq!(first["imported"], 4, "{first}");
    assert_eq!(first["errors"], json!([]));
    assert_eq!(field.asked(), ["bd export"]);
    assert_eq!(
        field.task("bd-2")["ready"],
        true,
        "what it waited for is done"
    );
    field
        .env
        .refused(&["task", "show", "bd-h"], 4, "task_not_found");
    let again = field.ok(&["task", "import", "--from", "beads"]);
    assert_eq!(
        (&again["imported"], &again["updated"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(again["unchanged"], 4);
    // One is begun, one renamed, one closed over there.
    field.ok(&["task", "claim", "bd-1", "--session", "alice"]);
    waits["title"] = json!("Second, better");
    let bad = json!({"id": "bd 9", "title": "x", "status": "open"});
    let changed = [
        issue("bd-1", "Renamed while somebody works", "closed"),
        waits,
        old,
        history,
        issue("bd-3", "Third", "closed"),
        bad,
    ];
    field.write("issues", &changed);
    let strict = field.weald(&["task", "import", "--from", "beads", "--strict"]);
    assert_eq!(
        (strict.code, strict.error_code().as_str()),
        (1, "bad_lines")
    );
    assert_eq!(field.task("bd-2")["subject"], "Second");
    let renewed = field.weald(&["task", "import", "--from", "beads"]);
    assert_eq!(renewed.code, 1, "{renewed:#?}");
    assert_eq!(renewed.json()["updated"], json!(["bd-2", "bd-3"]));
    assert_eq!(renewed.json()["errors"][0]["line"], 6);
    let begun = field.task("bd-1");
    assert_eq!(
        (&begun["subject"], &begun["status"]),
        (&json!("First"), &json!("in_progress"))
    );
    assert_eq!(begun["lease"]["session"], "alice");
    assert_eq!(field.task("bd-2")["subject"], "Second, better");
    assert_eq!(field.task("bd-3")["status"], "completed");
    // Without a tracker that is configured nothing is ever told.
    assert_eq!(
        field
            .asked()
            .iter()
            .filter(|line| *line != "bd export")
            .count(),
        0
    );
}

#[test]
fn p12_work_on_an_unknown_id_asks_the_tracker_and_tells_it_what_came_out() {
    let field = Field::new("source.from = 'beads'");
    field.program("bd", "[ \"$1\" = show ] && cat \"$HERE/$2\"; exit 0");
    let mut wanted = issue("bd-2", "Write it", "open");
    wanted["dependencies"] =
        json!([{"id": "bd-1", "status": "closed", "dependency_type": "blocks"}]);
    field.write("bd-2", &[json!([wanted])]);
    let done = field.ok(&["work", "bd-2", "--", "sh", "-c", "echo hello > file"]);
    assert_eq!(done["task"]["status"], "completed", "{done}");
    assert_eq!(
        fs::read_to_string(field.env.repo().join("file")).unwrap(),
        "hello\n"
    );
    let landed = done["landing"]["commit"]
        .as_str()
        .or(done["landing"]["new_tip"].as_str());
    let landed = landed.unwrap().get(..10).unwrap();
    // A claim that is over before anybody came to tell it is not told.
    let told = || {
        let mut told = field.told();
        told.retain(|line| !line.ends_with("--claim"));
        told
    };
    assert_eq!(
        told(),
        [
            "bd show bd-2 --json".to_owned(),
            format!("bd close bd-2 --reason weald: landed on main as {landed}"),
        ]
    );
    assert!(field.has_event("source.told"));
    // A failure is told, too, without a word of the agent's; nothing is told twice.
    field.write("bd-3", &[issue("bd-3", "Break it", "open")]);
    let failed = field.weald(&["work", "bd-3", "--", "sh", "-c", "echo secret; exit 3"]);
    assert_eq!(failed.code, 1);
    field.ok(&["task", "list"]);
    assert_eq!(
        told(),
        [
            "bd show bd-3 --json",
            "bd update bd-3 --status open --append-notes weald: an attempt failed",
        ]
    );
    // What is closed there is not begun here.
    field.write("bd-4", &[issue("bd-4", "Over", "closed")]);
    let closed = field.weald(&["work", "bd-4", "--", "true"]);
    assert_eq!(
        (closed.code, closed.error_code().as_str()),
        (1, "task_closed")
    );
}

#[test]
fn p12_a_tracker_that_fails_hangs_or_babbles_stops_nothing() {
    let field = Field::new("source.from = 'beads'\nsource.timeout = '1s'");
    let lines: Vec<_> = (1..=4)
        .map(|n| issue(&format!("bd-{n}"), "Task", "open"))
        .collect();
    field.write("issues", &lines);
    let file = field.env.root().join("issues");
    field.ok(&["task", "import", "--from", "beads", file.to_str().unwrap()]);
    for (number, script, told) in [
        (1, "sleep 60", "did not answer within 1 s"),
        (2, "echo 'no database' >&2; exit 3", "no database"),
        (
            3,
            "printf '\\033[2Jgarbage\\000\\n'; echo '\x1b[31mred' >&2; exit 1",
            "[31mred",
        ),
        (4, "", "not installed"),
    ] {
        field.program("bd", script);
        if script.is_empty() {
            fs::remove_file(field.env.root().join("bin/bd")).unwrap();
        }
        let begun = Instant::now();
        let id = format!("bd-{number}");
        let claimed = field.weald(&["task", "claim", &id, "--session", "alice"]);
        assert_eq!(claimed.code, 0, "{claimed:#?}");
        assert_eq!(claimed.json()["task"]["status"], "in_progress");
        field.told();
        // An agent would keep it to itself; the next command of a person says it, once.
        let mut agents = field.command(&["task", "list"]);
        let agents = Answer::of(agents.env("CLAUDECODE", "1").output().unwrap());
        assert!(!agents.stderr.contains(told), "{agents:#?}");
        let listed = field.weald(&["task", "list"]);
        assert!(listed.stderr.contains(told), "{told}: {listed:#?}");
        let command = format!("bd update {id} --claim");
        let named = listed.stderr.matches(&command).count();
        assert_eq!(named, 1, "the command, once: {listed:#?}");
        assert!(!listed.stderr.contains('\u{1b}'), "{listed:#?}");
        let again = field.weald(&["task", "list"]);
        assert!(!again.stderr.contains(told), "{again:#?}");
        let unknown = field.weald(&["work", "bd-99", "--", "true"]);
        assert_eq!(
            (unknown.code, unknown.error_code().as_str()),
            (4, "task_not_found")
        );
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
        // The others answer; a busy machine may take its time.
        field.ok(&["config", "set", "source.timeout", "30s"]);
    }
    assert!(field.has_event("source.failed"));
    what_a_supervisor_tells_is_seen_once(&field);
    // One that answers nonsense, without an error.
    field.program(
        "bd",
        "echo '[{\"id\": \"bd-98\", \"title\": \"another\"}, 7'",
    );
    let lied = field.weald(&["work", "bd-99", "--", "true"]);
    assert_eq!(
        (lied.code, lied.error_code().as_str()),
        (4, "task_not_found")
    );
    assert!(lied.stdout.contains("can't be read"), "{lied:#?}");
    let import = field.weald(&["task", "import", "--from", "beads"]);
    assert_eq!((import.code, &import.json()["imported"]), (1, &json!(0)));
}

/// A command of the user's own may hold a secret; everybody reads events.
#[test]
fn p12_what_is_in_a_command_of_ones_own_is_told_to_nobody() {
    let field = Field::new("source.from = 'beads'\nsource.claim = 'bd -H Bearer-x7 claim {id}'");
    field.write("issues", &[issue("bd-1", "Task", "open")]);
    let file = field.env.root().join("issues");
    field.ok(&["task", "import", "--from", "beads", file.to_str().unwrap()]);
    field.program("bd", "echo no >&2; exit 3");
    field.ok(&["task", "claim", "bd-1", "--session", "alice"]);
    field.told();
    let told = field.weald(&["task", "list"]).stderr;
    assert!(
        told.contains("bd … (source.claim)") && told.contains("no"),
        "{told}"
    );
    let events = field.weald(&["events", "--json"]).stdout;
    assert!(events.contains("source.failed"), "{events}");
    assert!(!(told + &events).contains("x7"), "{events}");
}

/// What the supervisor of an agent could not tell.
fn what_a_supervisor_tells_is_seen_once(field: &Field) {
    field.program(
        "bd",
        "[ $1 = close ] && { echo 'read-only' >&2; exit 5; }; exit 0",
    );
    field.ok(&["task", "release", "bd-1", "--token", "1"]);
    let done = field.weald(&["work", "bd-1", "--", "sh", "-c", "echo x > file"]);
    assert_eq!(
        (done.code, done.json()["task"]["status"].clone()),
        (0, json!("completed"))
    );
    field.told();
    let shown = [field.weald(&["list"]), field.weald(&["list"])];
    let shown = shown.map(|answer| answer.stderr);
    let shown = done.stderr + &shown.concat();
    assert_eq!(shown.matches("read-only").count(), 1, "{shown}");
}

#[test]
fn p12_issues_of_github_come_in_and_are_closed_when_done() {
    let field = Field::new("source.from = 'gh'");
    let shown = json!({"number": 12, "title": "Fix it", "body": "why", "state": "OPEN", "labels": [{"name": "P0"}],
        "assignees": [], "url": "https://example.com/12"});
    field.write("list", &[json!([shown])]);
    field.write(
        "13",
        &[json!({"number": 13, "title": "Another", "state": "OPEN"})],
    );
    field.program(
        "gh",
        "[ \"$2\" = list ] && cat $HERE/list; [ \"$2\" = view ] && cat $HERE/$3; exit 0",
    );
    let args = [
        "task",
        "import",
        "--from",
        "gh",
        "--label",
        "ready now",
        "--limit",
        "5",
    ];
    // What gh is asked for can't be chosen from a file, or of another tracker.
    let file = field.env.root().join("list");
    let from_file = [&args[..], &[file.to_str().unwrap()]].concat();
    let other = ["task", "import", "--from", "beads", "--limit", "5"];
    for refused in [&from_file[..], &other] {
        assert_eq!(field.weald(refused).code, 2, "{refused:?}");
    }
    let done = field.ok(&args);
    assert_eq!(done["ids"], json!(["gh-12"]), "{done}");
    let asked = field.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(
        asked[0].ends_with("state,url --label=ready now --limit=5"),
        "{asked:?}"
    );
    let task = field.task("gh-12");
    assert_eq!(
        (&task["priority"], &task["url"]),
        (&json!("P0"), &json!("https://example.com/12"))
    );
    field.ok(&["task", "claim", "gh-12", "--session", "alice"]);
    assert_eq!(field.told(), [""; 0], "GitHub knows no work in progress");
    field.ok(&["task", "done", "gh-12", "--token", "1"]);
    assert_eq!(
        field.told(),
        ["gh issue close 12 --comment weald: completed"]
    );
    field.ok(&["task", "reopen", "gh-12"]);
    assert_eq!(field.told(), ["gh issue reopen 12"]);
    // A number that is not ours is one of theirs.
    let write = "echo x > x";
    let done = field.ok(&["work", "13", "--no-land", "--", "sh", "-c", write]);
    assert_eq!(done["task"]["id"], "gh-13");
    let asked = field.told();
    assert!(
        asked[0].starts_with("gh issue view 13 --json "),
        "{asked:?}"
    );
    // Nothing is told to whom updates are switched off for.
    field.ok(&["--set", "source.update=false", "task", "reopen", "gh-13"]);
    field.ok(&["task", "list"]);
    assert_eq!(field.asked(), [""; 0]);
    // What was left untold, as by a kill, is told by the next change; by nothing that only looks.
    field.ok(&["task", "add", "Something else"]);
    assert_eq!(field.told(), ["gh issue reopen 13"]);
}

#[test]
fn p12_only_the_user_names_a_tracker_and_its_commands() {
    let field = Field::new("");
    let pwned = field.env.root().join("pwned");
    let settings = format!(
        "source.from = 'beads'\nsource.claim = 'touch {0}'\nsource.fetch = 'touch {0}'\n",
        pwned.display()
    );
    fs::write(field.env.repo().join("weald.toml"), settings).unwrap();
    field.env.git(&["add", "."]);
    field.env.git(&["commit", "-qm", "settings"]);
    field.write("issues", &[issue("bd-1", "Task", "open")]);
    field.program("bd", "");
    let file = field.env.root().join("issues");
    field.ok(&["task", "import", "--from", "beads", file.to_str().unwrap()]);
    field.ok(&["task", "claim", "bd-1", "--session", "alice"]);
    assert_eq!(field.weald(&["work", "bd-2", "--", "true"]).code, 4);
    assert!(!pwned.exists());
    assert_eq!(field.asked(), [""; 0]);
    // A program that lies in the repository is not found by a search path that names the current directory.
    let trap = field.env.repo().join("bd");
    fs::copy(field.env.root().join("bin/bd"), &trap).unwrap();
    fs::remove_file(field.env.root().join("bin/bd")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let ask = |args: &[&str]| {
        let mut ask = field.command(&[&["--set", "source.from=beads"], args].concat());
        let answer = Answer::of(ask.env("PATH", format!(".:{path}")).output().unwrap());
        assert_eq!(answer.code, 0, "{answer:#?}");
        answer
    };
    ask(&["task", "release", "bd-1", "--token", "1"]);
    assert_eq!(field.told(), [""; 0]);
    let next = ask(&["task", "list"]);
    assert!(next.stderr.contains("not installed"), "{next:#?}");
    assert_eq!(field.asked(), [""; 0]);
}

#[test]
fn p12_an_item_of_a_list_is_known_again_by_its_text() {
    let field = Field::new("");
    let file = field.env.repo().join("plan.md");
    let import = || field.ok(&["task", "import", "plan.md"]);
    fs::write(
        &file,
        "- [ ] Ship\n  - [ ] Test\n  - [ ] Test\n- [ ] Named (id: n)\n",
    )
    .unwrap();
    assert_eq!(import()["imported"], 4);
    let again = import();
    assert_eq!(
        (&again["imported"], &again["unchanged"]),
        (&json!(0), &json!(4))
    );
    let text = "- [ ] Ship\n  Now with words.\n  - [x] Test\n  - [ ] Test\n- [ ] Renamed (id: n)\n- [ ] New\n";
    fs::write(&file, text).unwrap();
    let third = import();
    assert_eq!(third["imported"], 1);
    assert_eq!(third["updated"], json!([1, 2, "n"]));
    assert_eq!(field.task("1")["description"], "Now with words.");
    assert_eq!(field.task("2")["status"], "completed");
    assert_eq!(field.task("n")["subject"], "Renamed");
}
