//! One repository with all that a word can mean, and what it means to each kind of command.

use jiff::Timestamp;

use super::*;
use crate::agent::{AgentStatus, Post};
use crate::id::Token;
use crate::tree::Base;

fn tree(id: u64, name: &str, task: Option<&str>) -> Tree {
    let base = Base {
        reference: "main".to_owned(),
        commit: "c".to_owned(),
    };
    let path = format!("/repo.weald/{name}").into();
    let mut tree = Tree::new(
        TreeId(id),
        name.parse().unwrap(),
        path,
        base,
        Timestamp::UNIX_EPOCH,
    );
    tree.status = TreeStatus::Active;
    tree.task = task.map(|task| task.parse().unwrap());
    tree
}

fn task(id: &str, worktree: Option<&str>) -> Task {
    let mut task = Task::new(id.parse().unwrap(), "Subject", Timestamp::UNIX_EPOCH);
    task.worktree = worktree.map(|name| name.parse().unwrap());
    task
}

fn agent(id: u64, on: &str, tree: Option<u64>, status: AgentStatus) -> Agent {
    let post = Post {
        session: format!("worker-{on}").parse().unwrap(),
        task: on.parse().unwrap(),
        token: Token(1),
    };
    let mut agent = Agent::new(AgentId(id), post, "command", Timestamp::UNIX_EPOCH);
    agent.tree_id = tree.map(TreeId);
    agent.status = status;
    agent
}

fn word(text: &str) -> Word {
    text.parse().unwrap()
}

/// Task 12 has worktree `fix` on `feature/x`, task 7 has worktree `12`; two agents raced for task 5 in `one` and `two`.
fn records(text: &str) -> Records {
    let mut fix = tree(1, "fix", Some("12"));
    fix.branch = "feature/x".to_owned();
    let mut gone = tree(9, "gone", None);
    gone.status = TreeStatus::Trashed;
    let trees = vec![
        fix,
        tree(2, "12", Some("7")),
        tree(3, "one", None),
        tree(4, "two", None),
        gone,
    ];
    let landing = |id, of: &Tree, status| {
        let mut landing = Landing::new(LandingId(id), of, "h".to_owned(), Timestamp::UNIX_EPOCH);
        landing.status = status;
        landing
    };
    let mut revert = landing(4, &trees[0], LandingStatus::Landed);
    revert.reverts = Some(LandingId(2));
    let landings = vec![
        landing(2, &trees[0], LandingStatus::Landed),
        landing(3, &trees[0], LandingStatus::Refused),
        revert,
    ];
    let word = word(text);
    let tasks = [
        task("12", Some("fix")),
        task("7", Some("12")),
        task("5", None),
        task("gh-3", None),
    ];
    Records {
        name: word.bare().parse().ok(),
        places: word
            .path(Path::new("/repo.weald/fix/src"))
            .filter(|_| word.is_path())
            .into_iter()
            .collect(),
        task: word
            .task_id()
            .and_then(|id| tasks.into_iter().find(|task| task.id == id)),
        agents: vec![
            agent(1, "12", Some(1), AgentStatus::Exited),
            agent(2, "12", Some(1), AgentStatus::Exited),
            agent(3, "5", Some(3), AgentStatus::Running),
            agent(4, "5", Some(4), AgentStatus::Running),
        ],
        trees,
        landings,
    }
}

/// `=name`, or what is said instead.
fn told<T>(found: Result<T, Unclear>, name: impl Fn(T) -> String) -> String {
    match found {
        Ok(thing) => format!("={}", name(thing)),
        Err(Unclear::Ambiguous { choices, .. }) => {
            let say: Vec<_> = choices.into_iter().map(|choice| choice.say).collect();
            say.join(" ")
        }
        Err(Unclear::Without { what, .. }) => format!("{}: none", what.is),
        Err(Unclear::InTrash { .. }) => "trash".to_owned(),
        Err(Unclear::Unknown { .. }) => "unknown".to_owned(),
    }
}

#[test]
fn u2_a_word_means_one_thing_or_is_refused() {
    let raced = "agent:a3 agent:a4";
    let unknown = ["unknown"; 4];
    for (text, [tree, task, agent, landing]) in [
        ("fix", ["=fix", "=12", "=a2", "=4"]),
        ("worktree:fix", ["=fix", "=12", "=a2", "=4"]),
        ("#12", ["=fix", "=12", "=a2", "=4"]),
        ("task:12", ["=fix", "=12", "=a2", "=4"]),
        ("a1", ["=fix", "=12", "=a1", "=4"]),
        ("agent:a1", ["=fix", "=12", "=a1", "=4"]),
        ("feature/x", ["=fix", "=12", "=a2", "=4"]),
        ("branch:feature/x", ["=fix", "=12", "=a2", "=4"]),
        (".", ["=fix", "=12", "=a2", "=4"]),
        ("../deep/er", ["=fix", "=12", "=a2", "=4"]),
        ("/repo.weald/fix", ["=fix", "=12", "=a2", "=4"]),
        ("path:lib", ["=fix", "=12", "=a2", "=4"]),
        ("landing:2", ["=fix", "=12", "=a2", "=2"]),
        // A worktree and a task; a number alone is a landing's.
        (
            "12",
            [
                "worktree:12 task:12",
                "worktree:12 task:12",
                "=a2",
                "unknown",
            ],
        ),
        ("2", ["unknown", "unknown", "unknown", "=2"]),
        (
            "worktree:12",
            [
                "=12",
                "=7",
                "worktree 12 of task 7: none",
                "worktree 12 of task 7: none",
            ],
        ),
        (
            "/repo.weald/12/x",
            [
                "=12",
                "=7",
                "worktree 12 of task 7, at that path: none",
                "worktree 12 of task 7, at that path: none",
            ],
        ),
        // An entry of a race, and the race.
        ("one", ["=one", "=5", "=a3", "worktree one: none"]),
        ("#5", ["task 5: none", "=5", raced, "task 5: none"]),
        ("worker-5", ["unknown", "unknown", raced, "unknown"]),
        ("agent:worker-12", ["=fix", "=12", "=a2", "=4"]),
        (
            "gh-3",
            [
                "task gh-3: none",
                "=gh-3",
                "task gh-3: none",
                "task gh-3: none",
            ],
        ),
        (
            "gone",
            [
                "trash",
                "worktree gone: none",
                "worktree gone: none",
                "worktree gone: none",
            ],
        ),
        // Near is not enough.
        ("fi", unknown),
        ("fixx", unknown),
        ("feature", unknown),
        ("wt/fix", unknown),
        ("lib", unknown),
        ("/repo.weald", unknown),
        ("/repo.weald/fixx", unknown),
        ("task:fix", unknown),
        ("branch:fix", unknown),
        ("a9", unknown),
    ] {
        let (word, all) = (word(text), records(text));
        let found = [
            told(all.tree(&word), |tree| tree.name.to_string()),
            told(all.task(&word), |task| task.to_string()),
            told(all.agent(&word), |agent| agent.id.to_string()),
            told(all.landing(&word, Counts::All), |id| id.to_string()),
        ];
        assert_eq!(found, [tree, task, agent, landing], "{text}");
    }
    let landed = records("fix").landing(&word("fix"), Counts::Landed);
    assert_eq!(landed, Ok(LandingId(2)));
}

#[test]
fn u2_what_lies_in_the_current_directory_gives_a_name_no_other_meaning() {
    let here = Path::new("/repo.weald/fix");
    for (text, path) in [
        ("fix", None),
        ("src", None),
        ("feature/x", Some("/repo.weald/fix/feature/x")),
        ("./src", Some("/repo.weald/fix/src")),
        ("../12", Some("/repo.weald/12")),
        ("../../..", Some("/")),
        ("path:src", Some("/repo.weald/fix/src")),
        ("task:./src", None),
    ] {
        assert_eq!(
            word(text).path(here).as_deref(),
            path.map(Path::new),
            "{text}"
        );
    }
    // A branch that is also a directory of another worktree is the branch.
    let text = "feature/x";
    let places = vec!["/repo.weald/one/feature/x".into()];
    let all = Records {
        places,
        ..records(text)
    };
    assert_eq!(
        told(all.tree(&word(text)), |tree| tree.name.to_string()),
        "=fix"
    );
    // A link that leads out of one worktree into another is neither.
    let places = vec!["/repo.weald/one/x".into(), "/repo.weald/two".into()];
    let all = Records {
        places,
        ..records("./x")
    };
    let both = "path:/repo.weald/one path:/repo.weald/two";
    assert_eq!(told(all.tree(&word("./x")), |_| String::new()), both);
}

#[test]
fn u2_a_run_names_its_own_worktree_and_nothing_else() {
    let (tree, task): (TreeName, TaskId) = ("fix".parse().unwrap(), "12".parse().unwrap());
    let own = Own {
        tree: &tree,
        branch: "feature/x",
        path: Path::new("/repo.weald/fix"),
        task: Some(&task),
        agent: Some(AgentId(2)),
    };
    for (text, is_own) in [
        ("fix", true),
        ("worktree:fix", true),
        ("12", true),
        ("#12", true),
        ("a2", true),
        ("feature/x", true),
        ("/repo.weald/fix", true),
        ("/repo.weald/fix/src/lib.rs", true),
        ("path:/repo.weald/fix/src", true),
        ("worktree:12", false),
        ("task:fix", false),
        ("a1", false),
        ("branch:fix", false),
        ("/repo.weald/fix/../12", false),
        ("/repo.weald/fixx", false),
        ("/repo.weald", false),
        ("wt/fix", false),
    ] {
        assert_eq!(own.is_named(&word(text)), is_own, "{text}");
    }
    let nobodys = Own {
        task: None,
        agent: None,
        ..own
    };
    assert!(!nobodys.is_named(&word("x")) && !nobodys.is_named(&word("12")));
}

#[test]
fn u2_the_nearest_name_is_suggested_and_no_number_is() {
    let near = |text: &str| {
        let unknown = Unclear::unknown(&word(text), Wanted::Worktree);
        match unknown.with_nearest(["fix-login", "13", "a1"]) {
            Unclear::Unknown { nearest, .. } => nearest,
            _ => None,
        }
    };
    assert_eq!(near("fix-logn").as_deref(), Some("fix-login"));
    for text in ["12", "a2", "other"] {
        assert_eq!(near(text), None, "{text}");
    }
}

#[test]
fn u2_words_are_read_from_json_as_they_were_given() {
    let read = |json: &str| serde_json::from_str::<Word>(json).map(String::from);
    assert_eq!(read("12").unwrap(), "#12");
    assert_eq!(read("\"12\"").unwrap(), "12");
    for bad in [
        "\"\"",
        "\"a\\u0000b\"",
        "\"a\\nb\"",
        "-1",
        "null",
        "\"a b\"",
        "\"-x\"",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
    assert!(read(&format!("{:?}", "x".repeat(LONGEST + 1))).is_err());
    for odd in ["a;b", "$(id)", "`id`", "a|b", "*", "a\tb"] {
        assert!(odd.parse::<Word>().is_err(), "{odd}");
    }
    for path in ["./a b", "path:a b", "/tmp/$x"] {
        assert!(path.parse::<Word>().is_ok(), "{path}");
    }
}
