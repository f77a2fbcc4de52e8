//! `weald sweep`: stale locks, switches, leases, and leftovers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};
use weald_testkit::TestEnv;

use crate::agents_dying::started;
use crate::trees_meanwhile::stopped;
use crate::trees_remove::{grow, repository};

/// Every call is a cycle of its own.
const CYCLE: [&str; 3] = ["sweep", "--set", "sweep.cycle=1ms"];

fn sweep(env: &TestEnv) -> Value {
    env.ok(&CYCLE)["sweep"].clone()
}

/// A tree that its profile locked, for a task that a tracker closed so many hours ago.
fn locked(env: &TestEnv, kind: &str, hours: u64) {
    let closed = SystemTime::now() - Duration::from_secs(hours * 3600);
    let seconds = closed.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let open = json!({"id": "gh-1", "subject": "a"}).to_string();
    env.weald_with_input(&["task", "import"], open.as_bytes());
    let new = ["new", "a", "--task", "gh-1", "--kind", kind];
    env.ok(&[&new[..], &["--set", "tree.lock=create"]].concat());
    let line = json!({"id": "gh-1", "subject": "a", "status": "completed", "closed_at": seconds.as_secs()});
    env.weald_with_input(&["task", "import"], line.to_string().as_bytes());
}

pub fn is_locked(env: &TestEnv) -> bool {
    !env.ok(&["show", "a"])["tree"]["locked"].is_null()
}

#[test]
fn l9_the_second_cycle_unlocks_and_git_shows_it() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        locked(&env, kind, 25);
        let shown = || env.git(&["worktree", "list", "--porcelain"]);
        assert!(shown().contains("locked weald: "), "{}", shown());
        let dry = env.ok(&["sweep", "--dry-run"])["sweep"].clone();
        assert_eq!(
            (&dry["marked"], &dry["applied"]),
            (&json!(["a"]), &json!(false))
        );
        let dry = env.weald(&["sweep", "--dry-run"]).stdout;
        assert!(dry.starts_with("would be marked: a"), "{dry}");
        assert!(dry.ends_with("nothing was changed; to do it: weald sweep\n"));
        let first = sweep(&env);
        assert_eq!(first["marked"], json!(["a"]), "{first}");
        assert!(is_locked(&env));
        let soon = env.ok(&["sweep"])["sweep"].clone();
        assert_eq!(soon["kept"][0]["code"], "marked", "{soon}");
        let second = sweep(&env);
        assert_eq!(second["unlocked"], json!(["a"]), "{second}");
        assert!(!is_locked(&env));
        assert!(!shown().contains("locked weald: "), "{}", shown());
        assert_eq!(sweep(&env)["kept"], json!([]));
        // Nobody did it, so nobody takes it back.
        env.refused(&["undo"], 1, "nothing_to_undo");
    }
}

#[test]
fn l9_at_23_hours_and_after_a_reopening_nothing_happens() {
    let env = repository();
    locked(&env, "sealed", 23);
    let swept = sweep(&env);
    assert_eq!(swept["kept"][0]["code"], "closed_lately", "{swept}");
    let env = repository();
    locked(&env, "sealed", 25);
    assert_eq!(sweep(&env)["marked"], json!(["a"]));
    env.ok(&["task", "reopen", "gh-1"]);
    assert_eq!(sweep(&env)["kept"][0]["code"], "task_open");
    env.ok(&["task", "cancel", "gh-1"]);
    let swept = sweep(&env);
    assert_eq!(swept["kept"][0]["code"], "closed_lately", "{swept}");
    assert!(is_locked(&env));
}

#[test]
fn l9_whoever_stands_in_it_keeps_its_lock() {
    let env = repository();
    locked(&env, "sealed", 25);
    assert_eq!(sweep(&env)["marked"], json!(["a"]));
    let tree = env.root().join("app.weald/a");
    let mut shell = env.command("sleep");
    let mut shell = shell.arg("600").current_dir(&tree).spawn().unwrap();
    let swept = sweep(&env);
    assert_eq!(swept["kept"][0]["code"], "alive", "{swept}");
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_eq!(sweep(&env)["unlocked"], json!(["a"]));
}

#[test]
fn l9_a_task_that_was_last_worked_on_in_it_keeps_its_lock() {
    let env = repository();
    let id = env.ok(&["task", "add", "more"])["task"]["id"].to_string();
    env.ok(&["new", "a", "--task", &id, "--set", "tree.lock=create"]);
    env.ok(&["task", "start", &id]);
    env.ok(&["task", "unbind", &id]);
    let closed = SystemTime::now() - Duration::from_secs(25 * 3600);
    let seconds = closed.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let line = json!({"id": "gh-1", "subject": "a", "status": "completed", "closed_at": seconds.as_secs()});
    env.weald_with_input(&["task", "import"], line.to_string().as_bytes());
    env.ok(&["task", "bind", "gh-1", "a"]);
    for _ in 0..2 {
        let swept = sweep(&env);
        assert_eq!(swept["kept"][0]["code"], "task_open", "{swept}");
    }
    env.ok(&["task", "done", &id]);
    assert_eq!(sweep(&env)["kept"][0]["code"], "closed_lately");
    assert!(is_locked(&env));
}

#[test]
fn l8_a_switch_makes_the_sweep_do_nothing() {
    let env = repository();
    locked(&env, "sealed", 25);
    sweep(&env);
    let named = ["--set", "sweep.kill_switches=JKZ_STALE_LOCK_SWEEP_DISABLE"];
    for variable in ["WEALD_SWEEP_DISABLE", "JKZ_STALE_LOCK_SWEEP_DISABLE"] {
        let mut command = env.weald_command(&[&CYCLE[..], &named].concat());
        let output = command.env(variable, "1").output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = format!("${variable} switches sweep off; nothing was changed");
        assert!(said.contains(&expected), "{said}");
        assert!(output.stdout.is_empty());
    }
    assert!(is_locked(&env));
    // The switch of the other command is not this one's.
    let mut command = env.weald_command(&CYCLE);
    assert!(
        command
            .env("WEALD_CLEAN_DISABLE", "1")
            .status()
            .unwrap()
            .success()
    );
    assert!(!is_locked(&env));
}

#[test]
fn l10_what_can_not_be_told_keeps_the_lock() {
    let env = repository();
    locked(&env, "sealed", 25);
    sweep(&env);
    // In another pid namespace, whose numbers mean nothing here.
    let script = r#""$0" session register bob --pid $$ && "$0" session heartbeat bob --tree a"#;
    let registered = env
        .command("unshare")
        .args(["-Urpf", "--mount-proc", "sh", "-c", script])
        .arg(env!("CARGO_BIN_EXE_weald"))
        .output()
        .unwrap();
    assert!(registered.status.success(), "{registered:?}");
    let stale = [&CYCLE[..], &["--set", "session.stale_after=1ms"]].concat();
    for _ in 0..2 {
        let swept = env.ok(&stale)["sweep"].clone();
        assert_eq!(swept["kept"][0]["code"], "unknown", "{swept}");
    }
    assert!(is_locked(&env));
    // A registry that can't be read: nothing happens at all.
    let database = env.private().join("weald.db");
    let kept = fs::read(&database).unwrap();
    fs::write(&database, "no database").unwrap();
    assert_ne!(env.weald(&CYCLE).code, 0);
    fs::write(&database, kept).unwrap();
    assert!(is_locked(&env));
    env.ok(&["session", "end", "bob"]);
    let swept = sweep(&env);
    assert_eq!(swept["unlocked"], json!(["a"]), "{swept}");
}

/// A weald that stops itself at a step, for as long as this lives.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stopped {
    fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('T')
    }

    fn go_on(&self) {
        let pid = i32::try_from(self.0.id()).unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
    }
}

fn start(env: &TestEnv, args: &[&str]) -> Stopped {
    let mut command = env.weald_command(args);
    command.env("WEALD_STEP", "stop:sweep.taken");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Stopped(command.spawn().unwrap())
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < end, "it took too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn l11_an_expired_sweep_is_taken_over_by_exactly_one() {
    let env = repository();
    let first = start(&env, &["sweep", "--set", "sweep.lease=5s"]);
    wait_until(|| first.is_stopped());
    let busy = env.refused(&["sweep"], 5, "sweep_busy");
    assert_eq!(busy["error"]["details"]["pid"], json!(first.0.id()));
    let taken = || {
        let told = env.weald(&["events", "--json", "--limit", "500"]).stdout;
        told.matches("dev.weald.maintenance.taken").count()
    };
    // Nothing but time ends its lease.
    std::thread::sleep(Duration::from_secs(5));
    let mut rivals: Vec<_> = (0..8)
        .map(|_| start(&env, &["sweep", "--set", "sweep.lease=1h"]))
        .collect();
    wait_until(|| {
        let settled =
            |rival: &mut Stopped| rival.is_stopped() || rival.0.try_wait().unwrap().is_some();
        rivals.iter_mut().all(settled)
    });
    let codes: Vec<_> = rivals
        .iter_mut()
        .map(|rival| rival.0.try_wait().unwrap().map(|status| status.code()))
        .collect();
    assert_eq!(
        codes.iter().filter(|code| code.is_none()).count(),
        1,
        "{codes:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == Some(Some(5))).count(),
        7,
        "{codes:?}"
    );
    assert_eq!(taken(), 2);
    // The one that was taken over wakes up late, and does nothing any more.
    let mut first = first;
    first.go_on();
    assert_eq!(first.0.wait().unwrap().code(), Some(5));
}

#[test]
fn l11_leases_are_above_zero() {
    let env = repository();
    for key in ["landing.lease", "vault.lease", "sweep.lease", "sweep.cycle"] {
        for value in ["0", "0s", "-1s", "", "none"] {
            let answer = env.weald_alone(&["--json", "config", "set", key, value]);
            assert_eq!(answer.code, 2, "{key}={value}: {answer:?}");
            let set = format!("{key}={value}");
            assert_ne!(env.weald(&["sweep", "--set", &set]).code, 0, "{set}");
        }
    }
}

/// A process that holds the vault's lock, says that it is `who`, and is stopped.
fn hold_vault(env: &TestEnv, who: &str) -> Stopped {
    let script = r#"exec 9>>"$1"; flock 9; : > "$1"; printf %s "$2" > "$1"; touch -d '1 hour ago' "$1"; kill -STOP $$"#;
    let mut command = env.command("bash");
    command.args(["-c", script, "bash"]);
    command.arg(env.private().join("vault.lock")).arg(who);
    let stopped = Stopped(command.spawn().unwrap());
    wait_until(|| stopped.is_stopped());
    stopped
}

/// How weald names a process.
fn identity(pid: u32) -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap().trim().to_owned();
    let stat = read(&format!("/proc/{pid}/stat"));
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    json!({
        "host": read("/proc/sys/kernel/hostname"),
        "boot_id": read("/proc/sys/kernel/random/boot_id"),
        "pid_namespace": namespace,
        "pid": pid,
        "start_time": fields[19].parse::<u64>().unwrap(),
    })
}

#[test]
fn l11_a_stopped_holder_of_the_vault_is_ended_after_its_lease() {
    let env = repository();
    grow(&env, "a", "sealed");
    let held = hold_vault(&env, "");
    let who = identity(held.0.id());
    let lock = env.private().join("vault.lock");
    fs::write(&lock, who.to_string()).unwrap();
    fs::write(env.repo().join("more"), "more").unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "more"]);
    env.ok(&["new", "b", "--set", "vault.lease=1s"]);
    let mut held = held;
    assert!(held.0.try_wait().unwrap().is_some(), "it was ended");
    let name = fs::read_to_string(&lock).unwrap();
    assert!(name.contains("\"pid\":"), "who holds it says so: {name}");
}

#[test]
fn l11_a_holder_of_the_vault_that_can_not_be_ended_is_told() {
    let env = repository();
    grow(&env, "a", "sealed");
    let mut elsewhere = identity(std::process::id());
    elsewhere["host"] = json!("elsewhere");
    let mut held = hold_vault(&env, &elsewhere.to_string());
    fs::write(env.repo().join("more"), "more").unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "more"]);
    env.refused(&["new", "b", "--set", "vault.lease=1s"], 5, "vault_busy");
    assert!(held.0.try_wait().unwrap().is_none(), "nobody was ended");
}

#[test]
fn x18_a_process_that_is_not_wealds_does_not_keep_the_vault() {
    let env = repository();
    grow(&env, "a", "sealed");
    fs::write(env.repo().join("more"), "more").unwrap();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "more"]);
    // The file still names the command that held it last.
    let lock = fs::File::open(env.private().join("vault.lock")).unwrap();
    lock.lock().unwrap();
    // Whoever waits for its end gets the lock, and fails this test.
    let held = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(60));
        drop(lock);
    });
    let new = ["new", "b", "--set", "vault.lease=600ms"];
    let refused = env.refused(&new, 5, "vault_busy");
    let holder = format!("process {} ", std::process::id());
    assert!(refused.to_string().contains(&holder), "{refused:#?}");
    // A signal ends the wait at once.
    let mut waiting = env.weald_command(&["new", "c"]).spawn().unwrap();
    let is_waiting = || {
        let waits = format!(" {} ", waiting.id());
        let list = fs::read_to_string("/proc/locks").unwrap();
        list.lines()
            .any(|line| line.contains("->") && line.contains(&waits))
    };
    wait_until(is_waiting);
    let pid = Pid::from_child(&waiting);
    kill_process(pid, Signal::TERM).unwrap();
    assert!(!waiting.wait().unwrap().success());
    assert!(!held.is_finished(), "it did not wait for the lock");
}

#[test]
fn l9_leftovers_of_what_is_gone_are_cleared() {
    let env = repository();
    grow(&env, "gone", "sealed");
    grow(&env, "here", "sealed");
    let id = |name: &str| env.ok(&["show", name])["tree"]["id"].as_u64().unwrap();
    let homes = env.own_folder().join("homes");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let home = |id: u64| {
        let home = homes.join(id.to_string()).join("claude");
        fs::create_dir_all(&home).unwrap();
        for name in [".credentials.json", "conversation"] {
            fs::write(home.join(name), "{}").unwrap();
            let file = fs::File::options().write(true).open(home.join(name));
            file.unwrap().set_modified(old).unwrap();
        }
        home
    };
    let (gone, here) = (home(id("gone")), home(id("here")));
    let run = env.own_folder().join("runs/0123456789abcdef");
    fs::create_dir_all(&run).unwrap();
    let mut nobody = identity(std::process::id());
    nobody["start_time"] = json!(1);
    std::os::unix::fs::symlink(nobody.to_string(), run.with_extension("owner")).unwrap();
    // Of a repository that is gone.
    let lost = env.own_folder().with_file_name("0123456789abcdef");
    let lost = lost.join("homes/1/claude");
    fs::create_dir_all(lost.parent().unwrap()).unwrap();
    fs::rename(home(999), &lost).unwrap();
    assert_eq!(sweep(&env)["homes"], 0, "its tree is there");
    assert!(!here.join(".credentials.json").exists());
    assert!(!lost.join(".credentials.json").exists());
    assert!(lost.join("conversation").exists(), "its disk may be away");
    assert!(here.join("conversation").exists());
    assert!(!run.exists());
    env.ok(&["rm", "gone"]);
    assert_eq!(sweep(&env)["homes"], 0, "its tree can be restored");
    env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
    let dry = env.ok(&["sweep", "--dry-run"])["sweep"].clone();
    assert_eq!(dry["homes"], 1, "{dry}");
    assert!(gone.exists());
    let swept = sweep(&env);
    assert_eq!(
        (&swept["homes"], &swept["failed"]),
        (&json!(1), &json!([])),
        "{swept}"
    );
    assert!(!gone.parent().unwrap().exists());
    assert!(here.join("conversation").exists());
    let again = env.weald(&CYCLE);
    assert_eq!(again.stdout, "nothing to sweep\n");
}

#[test]
fn l9_the_login_of_an_agent_that_began_during_the_sweep_stays() {
    let env = repository();
    grow(&env, "gone", "sealed");
    let home = |tree: &str| {
        let id = env.ok(&["show", tree])["tree"]["id"].to_string();
        let home = env.own_folder().join("homes").join(id).join("claude");
        fs::create_dir_all(&home).unwrap();
        home
    };
    home("gone");
    env.ok(&["rm", "gone"]);
    env.ok(&["trash", "purge", "--older-than", "1ms", "--apply"]);
    env.ok(&["task", "add", "one"]);
    let mut sweep = stopped(&env, &CYCLE, "sweep.leftover");
    let agent = started(&env, &["1"], &["write a one", "hang"], "wrote a");
    let login = home(agent.tree.unwrap().as_str()).join(".credentials.json");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let file = fs::File::create(&login).unwrap();
    file.set_modified(old).unwrap();
    kill_process(Pid::from_child(&sweep), Signal::CONT).unwrap();
    let options = WaitOptions::UNTRACED;
    let (_, status) = waitpid(Some(Pid::from_child(&sweep)), options)
        .unwrap()
        .unwrap();
    assert!(status.exited(), "it deleted something else");
    // It is reaped already.
    let _ = sweep.wait();
    assert!(login.exists());
    env.end_processes();
}

#[test]
fn l9_a_sweep_that_could_not_clear_something_says_so_by_its_code() {
    let env = repository();
    grow(&env, "a", "sealed");
    let id = env.ok(&["show", "a"])["tree"]["id"].to_string();
    let home = env.own_folder().join("homes").join(id).join("claude");
    // No file: it can't be deleted like one.
    let login = home.join(".credentials.json");
    fs::create_dir_all(&login).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(&login).unwrap().set_modified(old).unwrap();
    let answer = env.weald(&CYCLE);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert!(answer.stdout.contains("not cleared: "), "{answer:#?}");
    fs::remove_dir(&login).unwrap();
    assert_eq!(env.weald(&CYCLE).code, 0);
}

/// Everything below a directory, with contents, as far as it can be read.
fn below(directory: &Path) -> String {
    let script = "find . -exec ls -ldi --time-style=full-iso {} + | awk '{print $1,$2,$3,$7,$NF}' | sort; \
        git -C ../app for-each-ref; cat */draft";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).current_dir(directory);
    let output = command.env("GIT_CONFIG_COUNT", "1");
    let output = output.env("GIT_CONFIG_KEY_0", "safe.directory");
    let output = output.env("GIT_CONFIG_VALUE_0", "*").output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn l10_an_ordinary_user_with_records_that_can_not_be_read_changes_nothing() {
    let Some(home) = crate::sandbox::ordinary_home("l10-user") else {
        return;
    };
    let at = |script: &str| {
        let mut command = std::process::Command::new("sh");
        crate::sandbox::as_user(&mut command);
        command.args(["-c", script]).current_dir(&home).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", &home).env("WEALD_POOL_SIZE", "0");
        command.output().unwrap()
    };
    let made = at(r#"set -e
git init -q -b main app; cd app
git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m one
../weald task add a; ../weald new a --task 1; ../weald task cancel 1
echo mine > ../app.weald/a/draft; ../weald status a"#);
    assert!(made.status.success(), "{made:?}");
    let private = home.join("app/.git/weald/private");
    for place in [private.join("weald.db"), private] {
        let mode = fs::metadata(&place).unwrap().permissions();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o000)).unwrap();
        let before = below(&home.join("app.weald"));
        assert!(before.contains("mine"), "{before}");
        for args in [
            "clean --apply --min-age 0 --orphans",
            "sweep",
            "rm a --discard",
        ] {
            let answer = at(&format!("cd app; ../weald {args}"));
            assert!(!answer.status.success(), "{place:?} {args}: {answer:?}");
            assert_eq!(below(&home.join("app.weald")), before, "{place:?} {args}");
        }
        fs::set_permissions(&place, mode).unwrap();
    }
    let gone = at("cd app; ../weald rm a --discard");
    assert!(gone.status.success(), "it could have gone: {gone:?}");
}
