//! How people of four other systems work, from start to end, in one profile each. The classroom's story is in `mcp_seeds`:
//! it is told by MCP alone.

use weald_testkit::TestEnv;

use crate::trees_remove::repository;

/// Runs a script in a repository; `weald` is on its path.
#[track_caller]
fn told(env: &TestEnv, script: &str) -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_weald"));
    let path = std::env::var("PATH").unwrap();
    let folder = binary.parent().unwrap().display();
    let mut shell = env.command("sh");
    shell.args(["-exc", script]).current_dir(env.repo());
    let output = shell
        .env("PATH", format!("{folder}:{path}"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// Two planes: tasks and worktrees, bound to each other, with files for other programs.
#[test]
fn p17_the_story_of_two_planes() {
    let env = repository();
    let script = r#"
weald init --profile two-plane
weald task add Backend; weald task add Frontend --after 1
weald new lane-1; weald task bind 1 lane-1
weald worker --max 1 --idle-timeout 1s -- sh -c 'echo api > api.txt; git add -A; git commit -qm api'
grep -q '"status": "completed"' .tasks/task_1.json; grep -q '"lane-1"' .worktrees/index.json
[ "$(git rev-parse main)" = "$(git rev-parse HEAD)" ]; [ ! -e api.txt ]
weald land lane-1; weald rm lane-1 --complete-task
[ "$(git show main:api.txt)" = api ]; git log -1 --format=%s | grep -q '^Merge task 1: Backend'
weald task ready | grep Frontend
"#;
    told(&env, script);
}

/// Cards of a board, a race, reports, and landings that a person asks for.
#[test]
fn p17_the_story_of_refact() {
    let env = repository();
    let script = r#"
weald init --profile refact
weald task add "Parse dates" --id gh-7 --plan calendar
weald race gh-7 -n 2 -- sh -c 'echo "$WEALD_ROLE" > dates.txt; git add -A; git commit -qm dates'
git branch --list 'refact/task/calendar/card/T-7/*' | wc -l | grep -qx 2
weald race pick gh-7 b && exit 1
weald race pick gh-7 b --report "parses ISO dates"
[ "$(git show main:dates.txt)" = race:b ]; weald trash list | grep T-7-a
weald task add "Second card" --id T-9 --plan calendar
weald work T-9 -- sh -c 'echo x > x.txt; git add -A; git commit -qm x; weald task done --report "x is there"'
git show main:x.txt && exit 1
weald land T-9; git show main:x.txt
weald list | grep 'No active'
"#;
    told(&env, script);
}

/// Issue and scratch worktrees, locks, an approval, clean-up and sweep.
#[test]
fn p17_the_story_of_jkz() {
    let env = repository();
    let script = r#"
weald init --profile jkz
weald task add "Fix it" --id gh-12
weald new --task gh-12; git worktree list --porcelain | grep -q '^locked'
weald new --scratch --for 12
echo try > ../jkz-worktree-12-s1/try.txt; git -C ../jkz-worktree-12-s1 add -A; git -C ../jkz-worktree-12-s1 commit -qm try
weald land 12-s1; [ ! -e ../jkz-worktree-12-s1 ]; [ "$(cat ../jkz-worktree-12/try.txt)" = try ]
weald land 12 && exit 1
weald approve 12 --yes; weald land 12; git show main:try.txt
weald sweep --dry-run; weald cleanup-merged; [ -e ../jkz-worktree-12 ]
weald cleanup-merged --apply; [ ! -e ../jkz-worktree-12 ]
weald undo; [ -e ../jkz-worktree-12 ]
"#;
    told(&env, script);
}

/// Work, a failure, work again, a branch that is left over, state files.
#[test]
fn p17_the_story_of_jean_claude() {
    let env = repository();
    let script = r#"
weald init --profile jean-claude
weald task add "Add login" --id beads-jc-7
weald work beads-jc-7 --yes -- sh -c 'echo half > login.txt; exit 3' && exit 1
grep -q '"workflow_type": "beads-task"' agents/*/state.json; ls agents/*/logs/a1.log
weald work beads-jc-7 -- sh -c 'grep half login.txt && echo whole > login.txt'
[ "$(git show main:login.txt)" = whole ]; git log -1 --format=%s | grep -q '^Merge workflow'
git branch beads/jc-8 main
weald task add "Left over" --id beads-jc-8
weald work beads-jc-8 -- true && exit 1
weald new --task beads-jc-8 --on-branch-exists reuse
weald work beads-jc-8 -- sh -c 'echo eight > eight.txt'
git show main:eight.txt; weald worktrees list; weald worktrees cleanup
"#;
    told(&env, script);
}
