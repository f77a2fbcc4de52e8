//! What weald lists fits narrow terminals and uses wide ones.

use std::collections::BTreeMap;
use std::fs;

use weald_testkit::TestEnv;

use crate::env;

/// What lists something, and whether its lines stand below heads.
const LISTINGS: [(&str, bool); 18] = [
    ("", false),
    ("list", true),
    ("status --all", true),
    ("status rotate-the-signing-keys-of-all-releases", false),
    ("task list", true),
    ("task ready", true),
    ("restore", true),
    ("undo --list", true),
    ("agent list --all", true),
    ("session list", true),
    ("config", true),
    ("config show", true),
    ("usage", false),
    ("queue", true),
    ("conflicts", false),
    ("clean", false),
    ("events --limit 100", false),
    ("doctor", false),
];

/// A name as somebody gives it who wants to be understood.
const NAME: &str = "rotate-the-signing-keys-of-all-releases";
const OTHER: &str = "rotate-the-signing-keys-of-each-branch";
const PERSON: &str = "alice-in-the-release-team";
const SUBJECT: &str =
    "Rotate the signing keys of all releases before the certificates of the old ones expire";

/// A repository where everything has a long name.
fn long_names() -> TestEnv {
    let env = env();
    let file = "services/billing/src/invoices/rendering/signatures.txt";
    fs::create_dir_all(env.repo().join(file).parent().unwrap()).unwrap();
    fs::write(env.repo().join(file), "1\n2\n3\n").unwrap();
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "invoices"]);
    env.ok(&["config", "set", "gate.command", &format!("echo {SUBJECT}")]);
    for n in 0..3 {
        let subject = format!("{SUBJECT}, part {n}");
        env.ok(&["task", "add", &subject, "--id", &format!("KEYS-2026-{n}")]);
    }
    env.ok(&["task", "add", SUBJECT, "--after", "KEYS-2026-0,KEYS-2026-1"]);
    for (name, task) in [(NAME, "KEYS-2026-0"), (OTHER, "KEYS-2026-1")] {
        env.ok(&["new", name, "--task", task]);
        let write = format!("echo {name} > {file}; git commit -qam {name}; echo more > left-over");
        assert_eq!(env.weald(&["run", name, "--", "sh", "-c", &write]).code, 0);
    }
    env.ok(&["session", "register", PERSON]);
    env.ok(&["task", "claim", "KEYS-2026-2", "--session", PERSON]);
    env.ok(&["session", "note", SUBJECT, "--session", PERSON]);
    env.ok(&["new", "a-worktree-that-nobody-needs-any-more"]);
    env.ok(&["rm", "a-worktree-that-nobody-needs-any-more"]);
    let words = ["agent", "spawn", SUBJECT, "--", "sh", "-c"];
    let agent = env.ok(&[&words[..], &["echo a line that is long enough; exit 3"]].concat());
    let id = agent["agents"][0]["id"].as_str().unwrap().to_owned();
    env.weald(&["agent", "wait", &id]);
    env.ok(&["queue", "pause", "--reason", SUBJECT]);
    env.weald(&["land", NAME, "--commit", "--no-wait"]);
    env
}

/// What each listing shows on a terminal of this width.
fn shown(env: &TestEnv, columns: u16) -> BTreeMap<&'static str, Vec<String>> {
    let script = LISTINGS.map(|(listing, _)| format!("echo '== {listing}'; weald {listing}\n"));
    let mut found = BTreeMap::new();
    let mut lines: &mut Vec<String> = &mut Vec::new();
    for line in env.printed_at(columns, &script.concat()) {
        let next = line.strip_prefix("==").map(str::trim);
        match next.and_then(|name| LISTINGS.iter().find(|(one, _)| *one == name)) {
            Some((listing, _)) => lines = found.entry(*listing).or_default(),
            None if line.is_empty() => {}
            None => lines.push(line),
        }
    }
    found
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// Where the heads begin: two spaces stand between columns.
fn starts(heads: &str) -> Vec<usize> {
    let heads: Vec<_> = heads.chars().collect();
    let begins = |at: &usize| heads[*at] != ' ' && heads[at - 2..*at] == [' ', ' '];
    (2..heads.len()).filter(begins).collect()
}

#[test]
fn u11_every_table_fits_a_terminal_of_60_80_and_200_columns() {
    let env = long_names();
    let trees = env.ok(&["list"])["trees"].as_array().unwrap().clone();
    let paths: Vec<_> = trees
        .iter()
        .map(|tree| tree["path"].as_str().unwrap())
        .collect();
    assert!(paths.iter().all(|path| path.len() > 60), "{paths:?}");
    for columns in [60, 80, 200] {
        let shown = shown(&env, columns);
        assert_eq!(shown.len(), LISTINGS.len());
        for (listing, has_heads) in LISTINGS {
            let lines = &shown[listing];
            let all = lines.join("\n");
            assert!(
                !lines.is_empty() && !all.contains("error:"),
                "weald {listing}: {all}"
            );
            for line in lines {
                // A word that is longer than the line stands alone.
                let fits = width(line) <= usize::from(columns) || !line.trim().contains(' ');
                assert!(fits, "weald {listing} at {columns}: {line}\n{all}");
            }
            if has_heads {
                let is_heads = |line: &&String| **line == line.to_uppercase();
                let heads = lines.iter().find(is_heads).expect(&all);
                let rows = lines.iter().skip_while(|line| *line != heads).skip(1);
                let rows = rows.take_while(|row| row.contains("  "));
                let rows: Vec<Vec<char>> = rows.map(|row| row.chars().collect()).collect();
                assert!(!rows.is_empty(), "weald {listing} at {columns}:\n{all}");
                for (start, row) in starts(heads)
                    .iter()
                    .flat_map(|at| rows.iter().map(move |row| (at, row)))
                {
                    let before = row.get(start - 2..*start).unwrap_or(&[' ', ' ']);
                    assert_eq!(
                        before,
                        [' ', ' '],
                        "weald {listing} at {columns}, {start}:\n{all}"
                    );
                }
            }
        }
        let tasks = shown["task list"].join("\n");
        for id in ["KEYS-2026-0 ", "KEYS-2026-1 ", "KEYS-2026-2 "] {
            assert!(tasks.contains(&format!("\n{id}")), "{tasks}");
        }
        assert!(tasks.contains("WORKTREE"), "{tasks}");
        for path in &paths {
            let end = &path[path.len() - 8..];
            let list = shown["list"].join("\n");
            assert!(
                list.lines().any(|line| line.ends_with(end)),
                "{end}: {list}"
            );
        }
        let events = shown["events --limit 100"].join("\n");
        assert!(events.contains("tree.create.after"), "{events}");
        if columns == 200 {
            let (list, board) = (shown["list"].join("\n"), shown[""].join("\n"));
            for tree in &trees {
                let name = tree["name"].as_str().unwrap();
                let is_whole = |line: &str| line.starts_with(name) && line.ends_with(name);
                assert!(list.lines().any(is_whole), "{name}: {list}");
            }
            assert!(
                tasks.contains(NAME) && tasks.contains(&SUBJECT[..60]),
                "{tasks}"
            );
            assert!(board.contains(SUBJECT), "{board}");
        }
    }
}

#[test]
fn u11_programs_read_whole_values() {
    let env = long_names();
    for (listing, wanted) in [
        (&["list"][..], NAME),
        (&["task", "list"], SUBJECT),
        (&["restore"], "a-worktree-that-nobody-needs-any-more"),
        (&["config"], SUBJECT),
        (&[], SUBJECT),
        (&["queue"], NAME),
        (
            &["conflicts"],
            "services/billing/src/invoices/rendering/signatures.txt",
        ),
    ] {
        let said = env.weald(listing).stdout;
        assert!(
            said.contains(wanted) && !said.contains('…'),
            "{listing:?}: {said}"
        );
    }
    let events = env.weald(&["events", "--limit", "200"]).stdout;
    let landing = events.lines().find(|line| line.contains("landing.queued"));
    assert!(landing.is_some_and(|line| line.contains(NAME)), "{events}");
}
