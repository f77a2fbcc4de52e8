//! Steps of a gate: each finds exactly what lands, whatever the one before it did.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::Value;
use weald_testkit::TestEnv;

use crate::landing_gate::{land, log_of, runs, set, tree_with};
use crate::trees_remove::repository;
use crate::trees_setup::commit_all;
use crate::trees_submodules::with_submodule;

/// Lands a new worktree with these commands.
fn lands(env: &TestEnv, setup: &str, gate: &str) -> Value {
    set(env, "setup.commands", "");
    let name = format!("t{}", runs(env));
    tree_with(env, &name, &name, "x\n");
    set(env, "setup.commands", setup);
    set(env, "gate.command", gate);
    land(env, &name)
}

#[test]
fn x28_a_sparse_gate_finds_what_lands_too() {
    let env = repository();
    fs::write(env.repo().join("check.sh"), "exit 7\n").unwrap();
    fs::create_dir(env.repo().join("out")).unwrap();
    fs::write(env.repo().join("out/side"), "x\n").unwrap();
    commit_all(&env);
    env.git(&["sparse-checkout", "set", "in"]);
    let lie = "echo 'exit 0' > check.sh; echo 'check.sh filter=lie' > .git/info/attributes; \
               git config filter.lie.clean 'cat >/dev/null; echo exit 7'; git add check.sh";
    for setup in [lie, "echo 'exit 0' > check.sh", "rm check.sh"] {
        let landing = lands(&env, setup, "sh check.sh");
        assert_eq!(landing["outcome"], "red", "{setup}: {landing:#}");
        let log = log_of(&landing);
        assert!(log.contains("exited 7"), "{setup}: {log}");
    }
    let landing = lands(&env, "", "test ! -e out");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    env.git(&["cat-file", "-e", "main:out/side"]);
}

#[test]
fn x28_each_step_of_the_gate_finds_what_lands() {
    let env = repository();
    fs::write(env.repo().join("check.sh"), "[ ! -e planted ] && exit 7\n").unwrap();
    commit_all(&env);
    let lands = |setup: &str, gate: &str| lands(&env, setup, gate);
    // The candidate's own check is red, whatever an earlier step puts in its place.
    let hidden = "echo 'exit 0' > check.sh; git update-index --assume-unchanged check.sh";
    let moved = "echo 'exit 0' > check.sh; git -c user.name=a -c user.email=a@b commit -qam moved";
    for setup in [
        "echo 'exit 0' > check.sh",
        "rm check.sh; echo x > planted",
        hidden,
        moved,
    ] {
        let landing = lands(setup, "sh check.sh");
        assert_eq!(landing["outcome"], "red", "{setup}: {landing:#}");
        let log = log_of(&landing);
        assert!(
            log.contains("exited 7") && log.contains("they were restored"),
            "{setup}: {log}"
        );
    }
    // What can't be restored is red, and nothing runs.
    let landing = lands("echo x > check.sh; chmod 500 .", "echo the tests ran");
    assert_eq!(landing["outcome"], "red", "{landing:#}");
    assert!(!log_of(&landing).contains("\nthe tests ran"));
    // A command that changes what it tests is no test of it; what it leaves besides is nobody's.
    let landing = lands("", "echo exit 0 > check.sh; sh check.sh");
    assert_eq!(landing["outcome"], "red", "{landing:#}");
    assert!(
        log_of(&landing).contains("changed tracked files (1)"),
        "{landing:#}"
    );
    let landing = lands("", "echo x > report.xml");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
}

#[test]
fn x28_the_index_of_a_submodule_hides_nothing_from_the_gate() {
    let env = with_submodule();
    // A submodule that main does not have, which the set-up fetches by itself.
    let link = env.git(&["rev-parse", "HEAD:libs/one"]);
    let link = format!("160000,{},libs/two", link.trim());
    env.git(&["update-index", "--add", "--cacheinfo", &link]);
    env.git(&["commit", "-q", "-m", "a second one"]);
    fs::write(
        env.repo().join("hide.sh"),
        "cd $1; echo two > l; git update-index $2 l\n",
    )
    .unwrap();
    env.git(&["add", "hide.sh"]);
    env.git(&["commit", "-q", "-m", "a way to hide"]);
    let fetch = "git init -q libs/two && git -C libs/two fetch -q ../one HEAD && \
                 git -C libs/two checkout -q FETCH_HEAD";
    let tampering = [
        "sh hide.sh libs/one --assume-unchanged",
        "sh hide.sh libs/one --skip-worktree",
        "sh hide.sh libs/two --assume-unchanged",
        "echo x > libs/one/planted; echo planted > .git/modules/libs/one/info/exclude",
        "rm -r libs/one; mkdir libs/one",
        "mv libs/one away; ln -s ../away libs/one",
    ];
    tree_with(&env, "b", "b", "x\n");
    let commands: Vec<_> = [fetch].into_iter().chain(tampering).collect();
    let line = serde_json::to_string(&commands).unwrap();
    set(&env, "setup.commands", &line);
    let gate =
        "[ \"$(cat libs/one/l libs/two/l | xargs)\" = 'one one' ] && [ ! -e libs/one/planted ]";
    set(&env, "gate.command", gate);
    let landing = land(&env, "b");
    let log = log_of(&landing);
    assert_eq!(landing["outcome"], "landed", "{log}");
    let restored = log.matches("they were restored").count();
    assert_eq!(restored, tampering.len(), "{log}");
    // The gate's own command is held to the same.
    set(&env, "setup.commands", "");
    tree_with(&env, "c", "c", "x\n");
    set(
        &env,
        "gate.command",
        "(sh hide.sh libs/one --skip-worktree)",
    );
    let landing = land(&env, "c");
    assert_eq!(landing["outcome"], "red", "{landing:#}");
    let log = log_of(&landing);
    assert!(log.contains("changed tracked files (1)"), "{log}");
}

/// What the layer of the home of a directory is called.
/// Attributes of an earlier step's own, seen by git or not, would make other bytes look like those that land.
#[test]
fn x28_attributes_that_no_commit_has_hide_nothing_from_the_gate() {
    let env = repository();
    let repo = env.repo();
    fs::create_dir(repo.join("d")).unwrap();
    for file in ["check.sh", "d/check.sh"] {
        fs::write(repo.join(file), "false || exit 7\ntrue\n").unwrap();
    }
    fs::write(repo.join("d/.gitattributes"), "*.bin binary\n").unwrap();
    commit_all(&env);
    let lie = |into: &str, folder: &str| {
        format!(
            "echo '*.sh text working-tree-encoding=UTF-7' {into} {folder}/.gitattributes; \
             printf 'false || +AGU-xit 7\\ntrue\\n' > {folder}/check.sh"
        )
    };
    let own = "echo .gitattributes >> .git/info/exclude; ";
    for (setup, check) in [
        (lie(">", "."), "check.sh"),
        (own.to_owned() + &lie(">", "."), "check.sh"),
        (lie(">", "d"), "d/check.sh"),
        (lie(">>", "d"), "d/check.sh"),
    ] {
        let landing = lands(&env, &setup, &format!("sh {check}"));
        assert_eq!(landing["outcome"], "red", "{setup}: {landing:#}");
        let log = log_of(&landing);
        assert!(log.contains("exited 7"), "{setup}: {log}");
        assert!(log.contains("they were restored"), "{setup}: {log}");
    }
    // The gate's own command hides nothing by them either; that it leaves some is no change.
    let hidden = lie(">", ".");
    let landing = lands(&env, "", &hidden);
    assert_eq!(landing["outcome"], "red", "{landing:#}");
    assert!(log_of(&landing).contains("changed tracked files"));
    let landing = lands(&env, "", "echo '*.x text' > .gitattributes");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
}

fn layer_name(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[test]
fn x28_no_landing_finds_a_program_that_an_earlier_gate_put_into_its_home() {
    let env = repository();
    set(&env, "gate.retries", "0");
    let put = "mkdir -p ~/.local/bin && echo 'exit 0' > ~/.local/bin/cargo";
    set(&env, "setup.commands", put);
    set(&env, "gate.command", "sh ~/.local/bin/cargo");
    tree_with(&env, "a", "a.txt", "a\n");
    let landing = land(&env, "a");
    assert_eq!(landing["outcome"], "landed", "{landing:#}");
    set(&env, "setup.commands", "");
    set(&env, "gate.command", "[ ! -e ~/.local/bin/cargo ]");
    tree_with(&env, "b", "b.txt", "b\n");
    // A gate that was killed left one for the same path, and the repository was made again since.
    let next = landing["id"].as_u64().unwrap() + 1;
    let folder = env.root().canonicalize().unwrap().join("app.weald/.gate");
    let layers = env.home().join(".cache/weald/layers");
    let stale = layers.join(layer_name(&folder.join(format!("{next}-1"))));
    fs::create_dir_all(stale.join("upper/.local/bin")).unwrap();
    fs::create_dir_all(stale.join("work")).unwrap();
    fs::write(stale.join("upper/.local/bin/cargo"), "exit 0\n").unwrap();
    let landing = land(&env, "b");
    assert_eq!(landing["outcome"], "landed", "{}", log_of(&landing));
    assert!(!stale.exists(), "the gate ran elsewhere: {landing:#}");
}
