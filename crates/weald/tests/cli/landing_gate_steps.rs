//! Steps of a gate: each finds exactly what lands, whatever the one before it did.

use std::fs;

use crate::landing_gate::{land, log_of, runs, set, tree_with};
use crate::trees_remove::repository;
use crate::trees_setup::commit_all;

#[test]
fn x28_each_step_of_the_gate_finds_what_lands() {
    let env = repository();
    fs::write(env.repo().join("check.sh"), "[ ! -e planted ] && exit 7\n").unwrap();
    commit_all(&env);
    let lands = |setup: &str, gate: &str| {
        set(&env, "setup.commands", "");
        let name = format!("t{}", runs(&env));
        tree_with(&env, &name, &name, "x\n");
        set(&env, "setup.commands", setup);
        set(&env, "gate.command", gate);
        land(&env, &name)
    };
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
            log.contains("exit code 7") && log.contains("they were restored"),
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
