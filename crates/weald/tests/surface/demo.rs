//! The demo: short, true, and gone without a trace.

use std::fs;

use weald_terminal::Size;
use weald_testkit::TestEnv;

fn env() -> TestEnv {
    let env = TestEnv::without_repository(env!("CARGO_BIN_EXE_weald"));
    fs::create_dir(env.root().join("tmp")).unwrap();
    env
}

fn leftovers(env: &TestEnv) -> Vec<String> {
    let entries = fs::read_dir(env.root().join("tmp")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn u15_the_demo_shows_what_is_special_in_40_lines() {
    let env = env();
    let mut command = env.weald_command(&["demo"]);
    let output = command
        .env("TMPDIR", env.root().join("tmp"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(text.lines().count() <= 40, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );
    assert!(!text.contains("weald-demo-"), "paths are short: {text}");
    let mut rest = &*text;
    for shown in [
        "../../app/menu.txt: Read-only file system\n",
        "~/.ssh/id_ed25519: No such file or directory\n",
        "&\n✓ ",
        "Merged into main as ",
        "Merged into main as ",
        "$ cat menu.txt\nsalad\nbread\nfruit\n",
        "/bread/d menu.txt\n✗ ",
        "main is unchanged",
        "$ ./test.sh\nok: there is bread\n",
        "\nNow in your own repository:\n  weald work \"Fix the login\" -- claude ",
    ] {
        let Some((_, after)) = rest.split_once(shown) else {
            panic!("{shown:?} is missing or comes too early:\n{text}");
        };
        rest = after;
    }
    assert_eq!(leftovers(&env), [""; 0]);
}

#[test]
fn u15_the_demo_pauses_on_a_terminal_and_ctrl_c_removes_it() {
    let env = env();
    let size = Size {
        columns: 120,
        rows: 45,
    };
    let (_terminal, mut person) = env.shell(None, size);
    person.types("export TMPDIR=$PWD/tmp; weald demo; echo exit=$?\r");
    // Without pauses, the next command would be on the screen before a key arrives.
    person.sees("$ weald new try");
    assert!(!leftovers(&env).is_empty());
    person.types("\u{3}");
    person.sees("exit=130");
    let shown = person.terminal.text().join("\n");
    assert!(!shown.contains("Two agents"), "{shown}");
    assert_eq!(leftovers(&env), [""; 0]);
}
