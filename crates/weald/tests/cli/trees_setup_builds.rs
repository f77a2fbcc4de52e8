//! Real projects in new trees: builds are warm, answers are the tree's own, main stays as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use weald_testkit::{Answer, TestEnv, skipped};

use crate::trees_remove::repository;
use crate::trees_setup::commit_all;
use crate::trees_trash::manifest;

fn write(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn has(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if found.is_err() {
        skipped(&format!("no {program} here"));
    }
    found.is_ok()
}

/// Everything in main but git's own files.
fn files_of(main: &Path) -> Vec<(PathBuf, String)> {
    let all = manifest(main).into_iter();
    let own = all.filter(|(path, _)| !path.starts_with(".git"));
    own.map(|(path, found)| (path, format!("{found:?}")))
        .collect()
}

/// cargo of the machine: its toolchain is in the real home.
fn with_toolchain(command: &mut Command) -> &mut Command {
    for (name, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(below));
        let named = std::env::var_os(name).map(PathBuf::from).or(home);
        if let Some(path) = named.filter(|path| path.is_dir()) {
            command.env(name, path);
        }
    }
    command.env("CARGO_NET_OFFLINE", "true")
}

fn run(env: &TestEnv, tree: &str, script: &str) -> Answer {
    let mut command = env.weald_command(&["run", tree, "--", "sh", "-c", script]);
    let output = with_toolchain(&mut command).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn cargo(env: &TestEnv, directory: &Path, args: &[&str]) {
    let mut command = env.command("cargo");
    command.args(args).current_dir(directory);
    let output = with_toolchain(&mut command).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A workspace: a library without paths in it, one with, one with a build script, and a program with a test.
fn cargo_project(env: &TestEnv) {
    let main = env.repo();
    let package = |name: &str, more: &str| {
        format!("[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2021'\n{more}")
    };
    let dependencies = "[dependencies]\nplain = { path = 'plain' }\nplace = { path = 'place' }\nscript = { path = 'script' }\n";
    write(main.join("Cargo.toml"), &package("app", dependencies));
    write(
        main.join("src/main.rs"),
        "fn main() { println!(\"{} {} {}\", plain::answer(), place::here(), script::told()); }\n",
    );
    write(
        main.join("tests/t.rs"),
        "#[test]\nfn t() { println!(\"[{}]\", env!(\"CARGO_BIN_EXE_app\")); }\n",
    );
    write(main.join("plain/Cargo.toml"), &package("plain", ""));
    write(
        main.join("plain/src/lib.rs"),
        "pub fn answer() -> u32 { 41 }\n",
    );
    write(main.join("place/Cargo.toml"), &package("place", ""));
    write(
        main.join("place/src/lib.rs"),
        "pub fn here() -> &'static str { env!(\"CARGO_MANIFEST_DIR\") }\n",
    );
    write(main.join("script/Cargo.toml"), &package("script", ""));
    let build = "use std::{env, fs};\nfn main() {\n let here = env::var(\"CARGO_MANIFEST_DIR\").unwrap();\n \
        println!(\"cargo:rerun-if-changed={here}/told.txt\");\n let out = env::var(\"OUT_DIR\").unwrap();\n \
        let told = fs::read_to_string(format!(\"{here}/told.txt\")).unwrap();\n \
        fs::write(format!(\"{out}/told.rs\"), format!(\"pub fn told() -> &'static str {{ {:?} }}\", told.trim())).unwrap();\n}\n";
    write(main.join("script/build.rs"), build);
    write(main.join("script/told.txt"), "first\n");
    write(
        main.join("script/src/lib.rs"),
        "include!(concat!(env!(\"OUT_DIR\"), \"/told.rs\"));\n",
    );
    write(main.join(".gitignore"), "target/\nnode_modules/\n*.log\n");
    cargo(env, &main, &["build", "-q"]);
    cargo(env, &main, &["test", "-q", "--no-run"]);
    commit_all(env);
}

#[test]
fn k14_a_cargo_project_is_warm_and_answers_for_its_tree() {
    if !has("cargo") {
        return;
    }
    let env = repository();
    cargo_project(&env);
    let main = env.repo();
    let before = files_of(&main);
    let made = env.ok(&["new", "a", "--set", "tree.share_paths=target"]);
    assert_eq!(made["setup"]["shared"][0], "target", "{made}");
    let tree = env.root().join("app.weald/a");
    let built = run(&env, "a", "cargo build -v 2>&1 && ./target/debug/app");
    assert_eq!(built.code, 0, "{built:#?}");
    assert!(
        built.stdout.contains("Fresh plain"),
        "what has no place in it is warm: {built:#?}"
    );
    // What has main's place compiled in is built again, so the answer is the tree's.
    let here = tree.join("place").display().to_string();
    assert!(
        built.stdout.ends_with(&format!("41 {here} first\n")),
        "{built:#?}"
    );
    let tested = run(&env, "a", "cargo test -- --nocapture 2>&1");
    let program = tree.join("target/debug/app").display().to_string();
    assert!(
        tested.stdout.contains(&format!("[{program}]")),
        "{tested:#?}"
    );
    let again = run(&env, "a", "cargo build 2>&1");
    assert!(!again.stdout.contains("Compiling"), "{again:#?}");
    // An edit counts, also one of what only a build script reads.
    write(
        tree.join("plain/src/lib.rs"),
        "pub fn answer() -> u32 { 42 }\n",
    );
    write(tree.join("script/told.txt"), "second\n");
    let edited = run(&env, "a", "cargo run -q 2>&1");
    assert_eq!(edited.stdout, format!("42 {here} second\n"));
    assert_eq!(files_of(&main), before, "main is as it was");
}

/// Build outputs of changes that are not committed say nothing about what a tree holds.
#[test]
fn k14_what_main_built_from_uncommitted_changes_is_built_again() {
    if !has("cargo") {
        return;
    }
    let env = repository();
    cargo_project(&env);
    let main = env.repo();
    write(
        main.join("plain/src/lib.rs"),
        "pub fn answer() -> u32 { 99 }\n",
    );
    cargo(&env, &main, &["build", "-q"]);
    env.ok(&["new", "a", "--set", "tree.share_paths=target"]);
    let here = env.root().join("app.weald/a/place").display().to_string();
    let built = run(&env, "a", "cargo run -q 2>&1");
    assert_eq!(built.stdout, format!("41 {here} first\n"));
}

/// A package of elsewhere stays as it is: it does not change with the place.
#[test]
fn k14_packages_from_elsewhere_are_not_compiled_again() {
    if !has("cargo") {
        return;
    }
    let env = repository();
    let vendor = env.home().join("elsewhere/dep");
    write(
        vendor.join("Cargo.toml"),
        "[package]\nname = 'dep'\nversion = '0.1.0'\nedition = '2021'\n",
    );
    write(
        vendor.join("build.rs"),
        "use std::{env, fs};\nfn main() { fs::write(format!(\"{}/x.rs\", env::var(\"OUT_DIR\").unwrap()), \"pub fn x() -> u32 { 7 }\").unwrap(); println!(\"cargo:rerun-if-changed=build.rs\"); println!(\"cargo:rustc-link-search=native={}\", env::var(\"OUT_DIR\").unwrap()); }\n",
    );
    write(
        vendor.join("src/lib.rs"),
        "include!(concat!(env!(\"OUT_DIR\"), \"/x.rs\"));\n",
    );
    let main = env.repo();
    let manifest = format!(
        "[package]\nname = 'app'\nversion = '0.1.0'\nedition = '2021'\n[dependencies]\ndep = {{ path = '{}' }}\n[workspace]\n",
        vendor.display()
    );
    write(main.join("Cargo.toml"), &manifest);
    write(
        main.join("src/main.rs"),
        "fn main() { println!(\"{}\", dep::x()); }\n",
    );
    write(main.join(".gitignore"), "target/\n");
    cargo(&env, &main, &["build", "-q"]);
    commit_all(&env);
    env.ok(&["new", "a", "--set", "tree.share_paths=target"]);
    let tree = env.root().join("app.weald/a");
    // Sources that look newer than the build: only what they belong to is built again.
    let later = fs::metadata(main.join("target/debug/app"))
        .unwrap()
        .modified()
        .unwrap();
    let later = later.max(UNIX_EPOCH) + Duration::from_secs(5);
    fs::File::open(tree.join("src/main.rs"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    let built = run(&env, "a", "cargo run -v 2>&1");
    assert!(built.stdout.contains("Fresh dep"), "{built:#?}");
    assert!(built.stdout.ends_with("7\n"), "{built:#?}");
}

#[test]
fn k14_a_node_project_runs_on_copied_and_on_linked_modules() {
    if !has("node") {
        return;
    }
    let env = repository();
    let main = env.repo();
    write(main.join(".gitignore"), "node_modules/\n*.log\n");
    write(
        main.join("index.js"),
        "console.log(require('left') + require('own'))\n",
    );
    write(
        main.join("packages/own/package.json"),
        "{\"name\":\"own\",\"version\":\"1.0.0\",\"main\":\"i.js\"}",
    );
    write(main.join("packages/own/i.js"), "module.exports = ' own'\n");
    write(
        main.join("node_modules/left/package.json"),
        "{\"name\":\"left\",\"version\":\"1.0.0\",\"main\":\"i.js\"}",
    );
    write(
        main.join("node_modules/left/i.js"),
        "module.exports = 'left'\n",
    );
    let link = |to: PathBuf, name: &str| {
        std::os::unix::fs::symlink(to, main.join("node_modules").join(name)).unwrap();
    };
    link(main.join("packages/own"), "own");
    commit_all(&env);
    let before = files_of(&main);
    env.ok(&["new", "copied", "--set", "tree.share_paths=node_modules"]);
    let run = |tree: &str, script: &str| run(&env, tree, script);
    assert_eq!(run("copied", "node index.js").stdout, "left own\n");
    let edit = "echo \"module.exports = ' mine'\" > packages/own/i.js; echo \"module.exports = 'right'\" > node_modules/left/i.js; node index.js";
    assert_eq!(
        run("copied", edit).stdout,
        "right mine\n",
        "the tree's own package, not main's"
    );
    let linked = [
        "--set",
        "tree.share_paths=node_modules",
        "--set",
        "tree.share=symlink",
    ];
    env.ok(&[&["new", "linked"], &linked[..]].concat());
    assert_eq!(run("linked", "node index.js").stdout, "left own\n");
    assert_ne!(run("linked", "echo x > node_modules/left/i.js").code, 0);
    assert_eq!(files_of(&main), before);
}
