//! Secrets that do not lie where they usually do, and what the user reveals.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::Command;

use serde_json::json;
use weald_testkit::TestEnv;

use crate::sandbox::is_root;
use crate::sandbox_home::{SECRET, write};
use crate::trees_remove::{commit, grow, repository};

const LEVELS: [&str; 2] = ["full", "landlock"];

/// What a command in a worktree prints, with further variables.
fn said(env: &TestEnv, level: &str, variables: &[(&str, String)], command: &[&str]) -> String {
    let args = [&["run", "a", "--sandbox", level, "--"], command].concat();
    let mut run = env.weald_command(&args);
    run.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = run.output().unwrap();
    assert!(output.status.success(), "{level}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn x30_a_store_is_hidden_where_variables_lead_and_its_owner_still_logs_in() {
    let env = repository();
    grow(&env, "a", "sealed");
    let moved = env.home().join("moved");
    let at = |path: &str| moved.join(path).display().to_string();
    // Each variable, and a secret where it leads.
    let table = [
        ("XDG_CONFIG_HOME", at("config"), "config/gh/hosts.yml"),
        ("XDG_DATA_HOME", at("data"), "data/keyrings/login"),
        ("CARGO_HOME", at("cargo"), "cargo/credentials.toml"),
        ("GNUPGHOME", at("gnupg"), "gnupg/secret"),
        (
            "KUBECONFIG",
            [at("kube/one"), at("kube/two")].join(":"),
            "kube/two",
        ),
        ("DOCKER_CONFIG", at("docker"), "docker/config.json"),
        ("AWS_SHARED_CREDENTIALS_FILE", at("aws/keys"), "aws/keys"),
        ("AWS_CONFIG_FILE", at("aws/settings"), "aws/settings"),
        (
            "CLAUDE_CONFIG_DIR",
            at("claude"),
            "claude/.credentials.json",
        ),
        ("CODEX_HOME", at("codex"), "codex/auth.json"),
        ("NPM_CONFIG_USERCONFIG", at("npm"), "npm"),
        ("NETRC", at("net"), "net"),
        ("PASSWORD_STORE_DIR", at("pass"), "pass/key.gpg"),
        ("GH_CONFIG_DIR", at("gh"), "gh/hosts.yml"),
        ("CLOUDSDK_CONFIG", at("gcloud"), "gcloud/access_tokens.db"),
        ("AZURE_CONFIG_DIR", at("azure"), "azure/token.json"),
    ];
    let variables: Vec<_> = table
        .iter()
        .map(|(name, value, _)| (*name, value.clone()))
        .collect();
    for (_, _, file) in &table {
        write(&moved.join(file), SECRET);
    }
    write(&moved.join("cargo/config.toml"), "plain\n");
    let files: Vec<_> = table.iter().map(|(_, _, file)| at(file)).collect();
    let script = format!(
        "cat {} 2>/dev/null; cat {}",
        files.join(" "),
        at("cargo/config.toml")
    );
    // A program of the user's own that has the name of a coding agent.
    let bin = env.home().join("bin");
    write(
        &bin.join("claude"),
        &format!(
            "#!/bin/sh\ncat \"$CLAUDE_CONFIG_DIR/.credentials.json\"; cat {} {} 2>/dev/null\n",
            files[8], files[9]
        ),
    );
    // Of its own login it gets a copy, in its private home.
    write(&moved.join("claude/.credentials.json"), "{}");
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), env.plain_path());
    let with_path = [&variables[..], &[("PATH", path)]].concat();
    for level in LEVELS {
        let seen = said(&env, level, &variables, &["sh", "-c", &script]);
        assert_eq!(seen, "plain\n", "{level}");
        let args = ["run", "a", "--sandbox", level, "--", "claude"];
        let output = env
            .weald_command(&args)
            .envs(with_path.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        let seen = String::from_utf8_lossy(&output.stdout);
        assert_eq!(seen, "{}", "{level}: its own login, and no other's");
    }
}

#[test]
fn x30_what_links_of_a_store_lead_to_is_hidden_too() {
    let env = repository();
    grow(&env, "a", "sealed");
    let (home, dotfiles) = (env.home(), env.home().join("dotfiles"));
    for file in ["aws/credentials", "ssh/id", "config/gh/hosts.yml"] {
        write(&dotfiles.join(file), SECRET);
    }
    write(&dotfiles.join("plain"), "plain\n");
    write(&dotfiles.join("ssh/plain"), "plain\n");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::remove_dir_all(home.join(".config")).unwrap_or_default();
    for (target, link) in [
        (dotfiles.join("aws"), ".aws"),
        (dotfiles.join("ssh/id"), ".ssh/id"),
        (dotfiles.join("config"), ".config"),
        // Neither the system's nor what the run needs is hidden by a link.
        ("/usr/bin/env".into(), ".ssh/tool"),
        (home.clone(), ".ssh/home"),
        (env.repo(), ".ssh/main"),
    ] {
        symlink(target, home.join(link)).unwrap();
    }
    let script = "cd ~; cat .aws/credentials .ssh/id .config/gh/hosts.yml dotfiles/aws/credentials dotfiles/ssh/id \
        dotfiles/config/gh/hosts.yml 2>/dev/null; cat dotfiles/plain dotfiles/ssh/plain; /usr/bin/env true; \
        ls $WEALD_MAIN/.git/HEAD >/dev/null";
    for level in LEVELS {
        let seen = said(&env, level, &[], &["sh", "-c", script]);
        assert_eq!(seen, "plain\nplain\n", "{level}");
    }
}

#[test]
fn x30_without_the_variable_the_home_is_where_the_system_says() {
    let env = repository();
    grow(&env, "a", "sealed");
    write(&env.home().join(".ssh/id"), SECRET);
    write(&env.home().join("plain"), "plain\n");
    let (users, weald) = (env.root().join("passwd"), env!("CARGO_BIN_EXE_weald"));
    let line = format!("root:x:0:0::{}:/bin/sh\n", env.home().display());
    fs::write(&users, line).unwrap();
    for home in ["unset HOME", "HOME="] {
        for level in LEVELS {
            let script = format!(
                "mount --bind {} /etc/passwd && {home} && exec {weald} run a --sandbox {level} -- \
                 sh -c 'cat {own}/.ssh/id; cat {own}/plain'",
                users.display(),
                own = env.home().display(),
            );
            let mut command = env.command("unshare");
            command.arg(if is_root() { "-m" } else { "-rm" });
            let output = command.args(["sh", "-c", &script]).output().unwrap();
            let seen = String::from_utf8_lossy(&output.stdout);
            assert_eq!(seen, "plain\n", "{home}, {level}: {output:?}");
        }
    }
}

#[test]
fn x30_a_name_that_reveals_nothing_is_refused_and_what_is_hidden_again_is_said() {
    let env = repository();
    let refused = env.refused(
        &["config", "set", "sandbox.reveal", "ssh,regstries"],
        2,
        "unknown_store",
    );
    let text = refused.to_string();
    for part in ["`regstries`", "did you mean `registries`?", "gcloud"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        env.ok(&["config", "show", "sandbox.reveal"])["config"]["values"][0]["value"],
        json!([])
    );
    env.ok(&["config", "set", "sandbox.reveal", "aws,MY_KEY"]);
    let args = ["config", "set", "sandbox.reveal", "aws,ssh"];
    let set = env.ok(&args);
    assert_eq!(set["config"]["hidden_again"], json!(["MY_KEY"]), "{set}");
    env.ok(&["config", "set", "sandbox.reveal", "aws,MY_KEY"]);
    let told = env.weald(&args);
    let line = "MY_KEY was revealed and is hidden from runs again";
    assert!(told.stderr.contains(line), "{told:#?}");
}

#[test]
fn x30_init_proposes_to_reveal_what_the_project_uses_and_reveals_nothing() {
    let env = repository();
    let plain = env.weald(&["init"]);
    assert!(!plain.stdout.contains("sandbox.reveal"), "{plain:#?}");
    commit(
        &env,
        &env.repo(),
        ".npmrc",
        "registry=https://npm.corp.example/\n//npm.corp.example/:_authToken=${NPM_TOKEN}\n",
    );
    commit(
        &env,
        &env.repo(),
        ".gitmodules",
        "\turl = git@host:a/b.git\n",
    );
    // Nobody has an ssh key here, so nothing of that is hidden.
    write(&env.home().join(".npmrc"), SECRET);
    env.ok(&["config", "set", "sandbox.reveal", "netrc"]);
    let output = env
        .weald_command(&["init"])
        .env("NPM_TOKEN", SECRET)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let command = "weald config set sandbox.reveal netrc,registries,NPM_TOKEN";
    assert!(told.contains(command), "{told}");
    assert!(told.contains(".npmrc") && !told.contains(SECRET), "{told}");
    let answer = env.ok(&["init"])["init"].clone();
    let command = "weald config set sandbox.reveal netrc,registries";
    assert_eq!(answer["reveal"], command, "{answer}");
    let revealed = env.ok(&["config", "show", "sandbox.reveal"]);
    assert_eq!(
        revealed["config"]["values"][0]["value"],
        json!(["netrc"]),
        "only the user decides"
    );
}

#[test]
fn x30_no_agent_of_keys_and_no_session_of_the_desktop_is_reached() {
    let env = repository();
    grow(&env, "a", "sealed");
    let home = env.home();
    fs::create_dir_all(home.join(".gnupg")).unwrap();
    let sockets = [
        home.join("agent"),
        home.join(".gnupg/S.gpg-agent"),
        home.join("bus"),
        home.join("wayland-0"),
        env.repo().join("X0"),
    ];
    let _listeners: Vec<_> = sockets
        .iter()
        .map(|path| UnixListener::bind(path).unwrap())
        .collect();
    let abstract_name = format!("weald-x30-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let _bus = UnixListener::bind_addr(&address).unwrap();
    for path in &sockets {
        UnixStream::connect(path).unwrap();
    }
    let names: Vec<_> = sockets.iter().map(|it| format!("{it:?}")).collect();
    let script = format!(
        "import os, socket\n\
         assert 'SSH_AUTH_SOCK' not in os.environ\n\
         for name in [{}, '\\0{abstract_name}']:\n\
         \x20   try:\n\
         \x20       s = socket.socket(socket.AF_UNIX); s.connect(name); print('reached', name)\n\
         \x20   except OSError: print('no')\n",
        names.join(", ")
    );
    let variables = [
        ("SSH_AUTH_SOCK", sockets[0].display().to_string()),
        (
            "DBUS_SESSION_BUS_ADDRESS",
            format!("unix:path={}", sockets[2].display()),
        ),
        ("XDG_RUNTIME_DIR", home.display().to_string()),
        ("WAYLAND_DISPLAY", "wayland-0".to_owned()),
    ];
    for level in LEVELS {
        let seen = said(&env, level, &variables, &["python3", "-c", &script]);
        assert_eq!(seen, "no\n".repeat(6), "{level}");
    }
}

#[test]
fn x26_a_new_directory_at_the_same_path_starts_with_a_clean_home() {
    let env = repository();
    let (here, there) = (env.root().join("work"), env.root().join("moved"));
    let look = |directory: &std::path::Path, script: &str| {
        let answer = env.weald(&[
            "sandbox",
            "exec",
            "--write",
            directory.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            script,
        ]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        answer.stdout
    };
    fs::create_dir(&here).unwrap();
    look(&here, "echo poison > ~/planted");
    assert_eq!(look(&here, "cat ~/planted"), "poison\n", "its own home");
    fs::rename(&here, &there).unwrap();
    fs::create_dir(&here).unwrap();
    assert_eq!(look(&here, "cat ~/planted 2>/dev/null; true"), "");
    assert_eq!(look(&there, "cat ~/planted"), "poison\n", "it was moved");
}

#[test]
fn i1_a_mount_below_the_home_is_named_where_it_makes_the_home_read_only() {
    let env = repository();
    grow(&env, "a", "sealed");
    let inner = env.home().join("disk");
    fs::create_dir(&inner).unwrap();
    let weald = env!("CARGO_BIN_EXE_weald");
    let script = format!(
        "mount -t tmpfs x {} && {weald} sandbox explain a && {weald} run a -- true && {weald} run a -- true",
        inner.display()
    );
    let mut command: Command = env.command("unshare");
    command.arg(if is_root() { "-m" } else { "-rm" });
    let output = command.args(["sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let line = format!(
        "your home is read-only inside: {} is mounted below it",
        inner.display()
    );
    let count = |text: &[u8]| String::from_utf8_lossy(text).matches(&line).count();
    assert_eq!(count(&output.stdout), 1, "explained: {output:?}");
    assert_eq!(
        count(&output.stderr),
        1,
        "the first run says so: {output:?}"
    );
}
