//! The documentation says what is: its commands run as they stand there, its list of commands is the binary's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use weald_testkit::{Answer, TestEnv};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The `sh` blocks of a page, each with the heading above it.
fn blocks(page: &str) -> Vec<(String, String)> {
    let (mut found, mut heading, mut block) = (Vec::new(), String::new(), None::<String>);
    for line in page.lines() {
        match (&mut block, line) {
            (Some(_), "```") => found.push((heading.clone(), block.take().unwrap())),
            (Some(block), line) => block.push_str(&format!("{line}\n")),
            (None, "```sh") => block = Some(String::new()),
            (None, line) if line.starts_with("## ") => heading = line[3..].to_owned(),
            _ => {}
        }
    }
    found
}

/// A repository with one file of five lines, and a person in git's own settings.
fn repository() -> TestEnv {
    let env = crate::env();
    let person = "[user]\nname = Test\nemail = test@example.com\n";
    fs::write(env.home().join(".gitconfig"), person).unwrap();
    fs::write(env.repo().join("notes.txt"), "1\n2\n3\n4\n5\n").unwrap();
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "notes"]);
    env
}

/// What is written with `!` in front has to fail: the shell itself would go on either way.
fn strictly(script: &str) -> String {
    let lines = script.lines().map(|line| match line.strip_prefix("! ") {
        Some(command) => format!("if {command}\nthen echo 'this had to fail'; exit 9; fi\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// Runs a script as a person would type it: `weald` is on the search path, the first error ends it.
#[track_caller]
fn run(env: &TestEnv, script: &str) -> Answer {
    let script = &strictly(script);
    let binary = Path::new(env!("CARGO_BIN_EXE_weald"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    let mut shell = env.command("bash");
    shell.args(["-eu", "-c", script]).env("PATH", path);
    // Workers in the background must not hold the test up after it failed.
    let log = env.root().join("log");
    let file = fs::File::create(&log).unwrap();
    shell.stdout(Stdio::from(file.try_clone().unwrap()));
    let status = shell.stderr(Stdio::from(file)).status().unwrap();
    Answer {
        code: status.code().unwrap_or(-1),
        stdout: fs::read_to_string(log).unwrap(),
        stderr: String::new(),
    }
}

#[track_caller]
fn works(env: &TestEnv, title: &str, script: &str) -> String {
    let answer = run(env, script);
    assert_eq!(answer.code, 0, "{title}:\n{script}\n{}", answer.stdout);
    answer.stdout
}

#[test]
fn the_quick_start_works_as_it_stands() {
    let all = blocks(&page("docs/quick-start.md"));
    assert!(all.len() >= 5, "{all:?}");
    let script: String = all.into_iter().map(|(_, block)| block).collect();
    let said = works(&repository(), "quick start", &script);
    for fact in ["HELLO\n", "landed on main", "its tests failed"] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
}

#[test]
fn u16_the_quick_start_and_every_recipe_work_one_after_another_in_one_repository() {
    let env = repository();
    let start = blocks(&page("docs/quick-start.md"));
    let start: String = start.into_iter().map(|(_, block)| block).collect();
    works(&env, "quick start", &start);
    let lines =
        "printf '1\\n2\\n3\\n4\\n5\\n' > notes.txt; git add notes.txt; git commit -qm notes";
    works(&env, "notes", &format!("cd hello\n{lines}"));
    for (title, script) in blocks(&page("docs/recipes.md")) {
        works(&env, &title, &format!("cd hello\n{script}"));
    }
}

#[test]
fn u16_every_guide_works_as_it_stands() {
    for guide in ["people", "agents", "landing", "teams", "machine"] {
        let all = blocks(&page(&format!("docs/guides/{guide}.md")));
        assert!(all.len() >= 3, "{guide}: {all:?}");
        let env = repository();
        for (title, script) in all {
            works(&env, &format!("{guide}: {title}"), &script);
        }
    }
}

/// Paragraphs of prose: no code, tables, pictures or headings.
fn prose(page: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = vec![String::new()];
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let is_other =
            is_code || line.starts_with(['`', '|', '#', '<', '!']) || line.starts_with("    ");
        if line.is_empty() || is_other || line.starts_with("- ") {
            found.push(String::new());
        }
        if !is_other {
            let last = found.last_mut().unwrap();
            last.push_str(line);
            last.push(' ');
        }
    }
    found
}

#[test]
fn u16_a_stranger_reads_the_readme_in_two_minutes_and_a_guide_in_five() {
    let mut pages = vec![("README.md".to_owned(), 600)];
    for guide in ["people", "agents", "landing", "teams", "machine"] {
        pages.push((format!("docs/guides/{guide}.md"), 700));
    }
    for (name, most) in pages {
        let text = page(&name);
        let words = text.split_whitespace().count();
        assert!(words <= most, "{name} has {words} words");
        for paragraph in prose(&text) {
            let words = paragraph.split_whitespace().count();
            assert!(words <= 80, "{name}: {words} words in {paragraph}");
            for sentence in paragraph.split(['.', '!', '?', ':', ';']) {
                let words = sentence.split_whitespace().count();
                assert!(words <= 30, "{name}: {words} words in {sentence}");
            }
        }
    }
    let readme = page("README.md");
    let first: String = readme.lines().take(30).collect::<Vec<_>>().join("\n");
    for wanted in [
        "docs/assets/demo.svg",
        "cargo run --release -p weald -- demo",
        "./scripts/test",
    ] {
        assert!(first.contains(wanted), "not on the first screen: {wanted}");
    }
}

#[test]
fn the_readme_leads_to_a_landed_task() {
    let all = blocks(&page("README.md"));
    assert!(!all.is_empty());
    let script: String = all.into_iter().map(|(_, block)| block).collect();
    let said = works(&repository(), "README", &script);
    assert!(said.contains("Merged into main"), "{said}");
}

/// Every recipe of one half, each in a repository of its own: nobody reads them all.
fn recipes(half: usize) {
    let all = blocks(&page("docs/recipes.md"));
    assert!(all.len() >= 10, "{all:?}");
    for (title, script) in all.into_iter().skip(half).step_by(2) {
        works(&repository(), &title, &script);
    }
}

#[test]
fn recipes_work_as_they_stand() {
    recipes(0);
}

#[test]
fn recipes_work_as_they_stand_too() {
    recipes(1);
}

#[test]
fn the_list_of_commands_is_the_binarys_own() {
    let made = crate::env().weald(&["man", "--markdown"]);
    assert_eq!(made.code, 0, "{made:#?}");
    assert!(
        made.stdout == page("docs/commands.md"),
        "docs/commands.md is old; renew it: cargo run -p weald -- man --markdown > docs/commands.md"
    );
}

/// Links of a page to files beside it, without the part behind `#`.
fn links(page: &str) -> Vec<String> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    let files = targets.filter_map(|target| target.split('#').next());
    files
        .filter(|file| !file.is_empty() && !file.contains("://"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_link_of_the_guide_leads_somewhere() {
    let mut pages = vec![PathBuf::from("README.md")];
    for folder in ["docs", "docs/guides"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            pages.push(Path::new(folder).join(entry.unwrap().file_name()));
        }
    }
    let guide = page("docs/README.md");
    for path in pages {
        if path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        let text = page(path.to_str().unwrap());
        let folder = root().join(path.parent().unwrap());
        for link in links(&text) {
            assert!(folder.join(&link).exists(), "{}: {link}", path.display());
        }
        let name = path.strip_prefix("docs").unwrap_or(&path).to_str().unwrap();
        let is_listed = name == "README.md" || links(&guide).iter().any(|link| link == name);
        assert!(is_listed, "docs/README.md does not lead to {name}");
    }
}

#[test]
fn every_key_stands_in_the_guide_to_the_configuration() {
    let guide = page("docs/configuration.md");
    let shown = repository().ok(&["config", "show"]);
    let keys = shown["config"]["values"].as_array().unwrap();
    assert!(keys.len() > 80, "{}", keys.len());
    for key in keys {
        let row = format!("| `{}` |", key["key"].as_str().unwrap());
        let mut lines = guide.lines().filter(|line| line.starts_with(&row));
        let about = key["about"].as_str().unwrap();
        let is_said = lines.any(|line| line.contains(about));
        assert!(is_said, "docs/configuration.md: {row} … {about}");
    }
}

#[test]
fn a_setting_that_the_help_shows_can_be_shown() {
    let env = repository();
    let help = page("docs/commands.md");
    let named = help.split("`weald config show ").skip(1);
    let keys: Vec<_> = named.filter_map(|rest| rest.split('`').next()).collect();
    assert!(keys.contains(&"phase.list"), "{keys:?}");
    for key in keys.iter().filter(|key| key.contains(char::is_lowercase)) {
        env.ok(&["config", "show", key]);
    }
}
