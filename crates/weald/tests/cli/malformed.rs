//! Malformed input on the command line: clear errors, stable codes, nothing outside the state directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use weald_testkit::full_scale;

use crate::env;

/// Every file below `directory` but weald's own, with its content.
fn manifest(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let own = [".git/weald", ".local/state/weald", ".cache/weald"];
        if own.iter().any(|own| path.ends_with(own)) {
            continue;
        }
        match path.is_dir() {
            true => found.extend(manifest(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

fn odd_texts() -> Vec<String> {
    let mut odd: Vec<String> = [
        "",
        " ",
        "-x",
        "--",
        "..",
        ".",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "$(id)",
        "`id`",
        "a;b",
        "é",
        "e\u{301}",
        "\u{202e}abc",
        "\u{200b}",
        "😀",
        "a\tb",
        "a\nb",
        "\u{1b}[31m",
        "null",
        "{}",
        "[]",
        "0",
        "-1",
        "1e9",
        "99999999999999999999",
        "#",
        "##1",
        "CON",
        "x.lock",
        "HEAD",
        "@{u}",
        "~",
        "*",
        "%00",
        "\u{feff}1",
    ]
    .map(str::to_owned)
    .into();
    odd.push("x".repeat(301));
    odd.push("日".repeat(200));
    odd
}

#[test]
fn n1_malformed_arguments_get_stable_codes_and_write_nothing_outside() {
    let env = env();
    env.ok(&["task", "add", "there"]);
    let before = manifest(env.root());
    let templates: [&[&str]; 7] = [
        &["task", "show", "--", "?"],
        &["task", "add", "x", "--id", "?"],
        &["task", "add", "x", "--after", "?"],
        &["session", "register", "--", "?"],
        &["msg", "send", "--session", "me", "--", "?", "text"],
        &["events", "--tree", "?"],
        &["task", "claim", "--ttl", "?"],
    ];
    let known = [
        "invalid_value",
        "usage",
        "task_not_found",
        "tree_not_found",
        "task_exists",
        "bad_subject",
        "nothing_ready",
        "name_reserved",
    ];
    let odd = odd_texts();
    let step = if full_scale() { 1 } else { 4 };
    for (number, text) in odd.iter().enumerate() {
        for template in templates.iter().skip(number % step).step_by(step) {
            let args: Vec<_> = template
                .iter()
                .map(|arg| if *arg == "?" { text.as_str() } else { arg })
                .collect();
            let answer = env.weald(&[&["--json"], &args[..]].concat());
            assert!((0..=5).contains(&answer.code), "{args:?}: {answer:?}");
            if answer.code != 0 {
                assert!(
                    known.contains(&answer.error_code().as_str()),
                    "{args:?}: {answer:?}"
                );
            }
        }
    }
    assert_eq!(manifest(env.root()), before);
}

#[test]
fn t13_ten_thousand_malformed_lines_are_reported_line_by_line() {
    let env = env();
    let before = manifest(env.root());
    let mut input = Vec::new();
    let (mut good, mut total) = (0, 0);
    while total < 10_000 {
        for (number, text) in odd_texts().iter().enumerate() {
            let line: Vec<u8> = match (total / 7 + number) % 5 {
                0 => format!("{{\"subject\":{},\"n\":{total}}}", serde_json::json!(text))
                    .into_bytes(),
                1 => format!("{{\"id\":{},\"subject\":\"ok\"}}", serde_json::json!(text))
                    .into_bytes(),
                2 => text.replace('\n', " ").into_bytes(),
                3 => vec![b'{', 0, 0xff, 0xfe],
                _ => {
                    good += 1;
                    b"{\"subject\":\"fine\",\"x\":1}".to_vec()
                }
            };
            input.extend(line);
            input.push(b'\n');
            total += 1;
        }
    }
    let answer = env.weald_with_input(&["task", "import", "--json"], &input);
    assert_eq!(answer.code, 1);
    let imported = answer.json()["imported"].as_u64().unwrap();
    assert!(imported >= good, "{imported} of at least {good}");
    let known = ["bad_json", "bad_field", "bad_id", "task_exists"];
    for error in answer.json()["errors"].as_array().unwrap() {
        assert!(known.contains(&error["code"].as_str().unwrap()), "{error}");
    }
    assert_eq!(manifest(env.root()), before);
    assert_eq!(env.ok(&["task", "list"])["total"], imported);
}
