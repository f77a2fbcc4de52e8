//! What weald keeps for the user, outside of all repositories: no run sees it.

use std::path::Path;
use std::process::Command;

use crate::sandbox::as_user;
use crate::sandbox_home::SECRET;
use crate::trees_levels::homes;
use crate::trees_remove::{grow, repository};

/// Runs a script as the user that a home belongs to.
fn sh(home: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    if home.file_name().unwrap().to_str().unwrap().contains("user") {
        as_user(&mut command);
    }
    command.args(["-c", script]).current_dir(home).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.env("HOME", home).env("WEALD_POOL_SIZE", "0");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{told}");
    told
}

#[test]
fn x16_a_repository_first_used_during_a_run_keeps_its_agents_homes_and_secrets_from_it() {
    let script = r#"
set -e
W=$HOME/weald; S=$HOME/.local/state/weald
for name in app src/later; do
    git init -q -b main $name; git -C $name config user.name T; git -C $name config user.email t@example.com
    echo plain > $name/plain; git -C $name add -A; git -C $name commit -qm one
done
wait_for() { n=0; until ls $1 > /dev/null 2>&1; do n=$((n+1)); [ $n -lt 3000 ] || { echo "no $1"; exit 1; }; sleep 0.02; done; }
for level in full landlock; do
    $W -C app new $level > /dev/null
    $W -C app run $level --sandbox $level -- sh -c \
        'touch ready.log; until [ -e go.log ]; do sleep 0.02; done; while read it; do cat "$it"; done < go.log; true' > said-$level 2>&1 &
done
for level in full landlock; do wait_for app.weald/$level/ready.log; done
folders_of_runs() { find */.git/weald src/*/.git/weald $S -type d \( -path '*/homes/*' -o -path '*/runs/*' \) 2> /dev/null; }
folders_of_runs | sort > own
# The other repository has an agent at work, whose home and run folder are there.
$W -C src/later task add first > /dev/null
$W -C src/later work 1 -- sh -c 'touch ready.log; until [ -e over.log ]; do sleep 0.02; done' > /dev/null 2>&1 &
wait_for 'src/later.weald/*/ready.log'
mkdir -p $S/approval; echo hunter2 > $S/approval/key
folders_of_runs | sort | comm -13 own - > folders
grep -q homes/ folders; grep -q runs/ folders
while read folder; do echo hunter2 > $folder/key; echo $PWD/$folder/key; done < folders | sed "s|$PWD//|/|" > paths
echo $S/approval/key >> paths; echo $PWD/src/later/plain >> paths
[ "$(xargs cat < paths | grep -c hunter2)" = "$(grep -c key paths)" ] || { echo "the test reads nothing"; exit 1; }
for level in full landlock; do cp paths app.weald/$level/go.tmp; mv app.weald/$level/go.tmp app.weald/$level/go.log; done
touch $(dirname src/later.weald/*/ready.log)/over.log
wait
cat paths; cat said-*
"#;
    for home in homes("x16-later") {
        let said = sh(&home, script);
        assert!(!said.contains("hunter2"), "{said}");
        assert_eq!(said.matches("plain\n").count(), 3, "{said}");
        let _ = std::fs::remove_dir_all(&home);
    }
}

#[test]
fn x16_an_agents_home_of_an_earlier_version_is_used_where_it_is() {
    let env = repository();
    env.ok(&["task", "add", "first"]);
    env.ok(&["task", "add", "second"]);
    let earlier = env.private().with_file_name("homes");
    std::fs::create_dir_all(earlier.join("1")).unwrap();
    for task in ["1", "2"] {
        let answer = env.weald(&["work", task, "--", "sh", "-c", "echo x > $WEALD_TASK"]);
        assert_eq!(answer.code, 0, "{answer:#?}");
    }
    let (own, is_there) = (env.own_folder().join("homes"), |path: &Path| path.is_dir());
    assert!(is_there(&earlier.join("1/command")) && !own.join("1").exists());
    assert!(is_there(&own.join("2/command")) && !earlier.join("2").exists());
}

/// What a run writes to its home lies in a layer, and so does what it leaves where the user makes a repository later.
#[test]
fn x16_what_a_run_left_at_the_place_of_a_later_repository_stops_no_run_and_shows_nothing() {
    let env = repository();
    grow(&env, "a", "sealed");
    let run = |script: &str| env.weald(&["run", "a", "--", "sh", "-c", script]);
    let planted = run(
        "cd; echo x > file; mkdir -p fifo/.git/weald link/.git/weald; ln -s / folder; \
        mkfifo fifo/.git/weald/private; ln -s /usr link/.git/weald/private",
    );
    assert_eq!(planted.code, 0, "{planted:#?}");
    let names = ["file", "fifo", "link", "folder"];
    for name in names {
        let path = env.home().join(name);
        let path = path.to_str().unwrap();
        env.git(&["init", "-q", "-b", "main", path]);
        let who = ["-c", "user.name=T", "-c", "user.email=t@e"];
        let commit = ["commit", "-q", "--allow-empty", "-m", "1"];
        env.git(&[&["-C", path], &who[..], &commit].concat());
        env.ok(&["-C", path, "task", "add", SECRET]);
    }
    let script = names.map(|name| format!("cat ~/{name}/.git/weald/private/events.jsonl"));
    let answer = run(&format!(
        "{}; ls /usr > /dev/null && echo runs",
        script.join("; ")
    ));
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (0, "runs\n"),
        "{answer:#?}"
    );
}
