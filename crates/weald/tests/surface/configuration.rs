//! Configuration explains itself.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::env;

#[test]
fn u13_config_get_prints_the_value_and_json_its_origin() {
    let env = env();
    let plain = |key: &str| env.weald(&["config", "get", key]).stdout;
    assert_eq!(plain("landing.strategy"), "squash\n");
    assert_eq!(plain("phase.list"), "plan\nbuild\nreview\nqa\n");
    assert_eq!(plain("sandbox.reveal"), "");
    env.ok(&["config", "set", "landing.strategy", "ff"]);
    assert_eq!(plain("landing.strategy"), "ff\n");
    let one = &env.ok(&["config", "get", "landing.strategy"])["config"];
    assert_eq!(
        (&one["value"], &one["default"]),
        (&"ff".into(), &"squash".into())
    );
    assert!(
        one["origin"]
            .as_str()
            .unwrap()
            .ends_with("private/config.toml")
    );
    assert!(
        one["about"]
            .as_str()
            .unwrap()
            .starts_with("how commits reach")
    );
}

#[test]
fn u13_config_list_explains_a_section_and_config_alone_lists_what_differs() {
    let env = env();
    let alone = env.weald(&["config"]).stdout;
    assert!(!alone.contains("gate.timeout"), "{alone}");
    env.ok(&["config", "set", "gate.timeout", "5m"]);
    let list = env.weald(&["config", "list", "gate"]).stdout;
    assert!(
        list.starts_with("gate\n  gate.command =\n      the tests that"),
        "{list}"
    );
    assert!(
        list.contains("  gate.timeout = 5m\n      time limit of the tests\n      set in "),
        "{list}"
    );
    assert!(list.contains("default: 30m"), "{list}");
    assert!(!list.contains("landing."), "{list}");
    let alone = env.weald(&["config"]).stdout;
    let keys: Vec<_> = alone
        .lines()
        .filter_map(|line| line.split("  ").next())
        .collect();
    assert!(
        keys[0] == "KEY" && keys.contains(&"gate.timeout"),
        "{alone}"
    );
    assert!(!alone.contains("landing.strategy"), "{alone}");
    let all = env.weald(&["config", "list"]).stdout;
    let heads = all
        .lines()
        .filter(|line| !line.starts_with(' ') && !line.is_empty());
    let heads: Vec<_> = heads.collect();
    let mut once = heads.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(
        heads.len(),
        once.len(),
        "a section is printed twice: {heads:?}"
    );
    assert_eq!(heads[0], "general");
}

#[test]
fn u13_global_settings_go_to_your_own_file_and_keep_what_you_wrote_there() {
    let env = env();
    let kept = env.home().join("dotfiles.toml");
    let folder = env.home().join(".config/weald");
    fs::create_dir_all(&folder).unwrap();
    let text =
        "# mine\n[landing]\n# why\nstrategy   =   'merge' # for now\n\n[gate]\nretries = 2\n";
    fs::write(&kept, text).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&kept, folder.join("config.toml")).unwrap();
    let set = env.ok(&["config", "set", "--global", "landing.strategy", "rebase"]);
    assert_eq!(
        set["config"]["file"],
        kept.canonicalize().unwrap().to_str().unwrap()
    );
    let now = fs::read_to_string(&kept).unwrap();
    assert_eq!(now, text.replace("'merge'", "\"rebase\""));
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(folder.join("config.toml").is_symlink());
    let private = env.private().join("config.toml");
    assert!(!private.exists());
    env.ok(&["config", "unset", "--global", "gate.retries"]);
    let now = fs::read_to_string(&kept).unwrap();
    assert!(!now.contains("gate") && now.contains("# for now"), "{now}");
    // It holds for every repository: no repository has to be there, and an agent sets no guard.
    let mut outside = env.weald_command(&["config", "set", "--global", "agent.model", "opus"]);
    let outside = outside.current_dir(env.home()).output().unwrap();
    assert!(outside.status.success(), "{outside:?}");
    let value = env.weald(&["config", "get", "agent.model"]).stdout;
    assert_eq!(value, "opus\n");
    let guard = [
        "config",
        "set",
        "--global",
        "policy.gate",
        "human",
        "--json",
    ];
    let mut agent = env.weald_command(&guard);
    let refused = agent.env("CLAUDECODE", "1").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stdout).contains("agent_session"));
}

#[test]
fn u13_a_wrong_key_or_value_suggests_the_nearest() {
    let env = env();
    let hint = |args: &[&str], code: &str| {
        let error = env.refused(args, 2, code);
        let said = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
        format!("{} {}", said("message"), said("hint"))
    };
    for (given, meant) in [
        ("landing.stratgy", "`landing.strategy`"),
        ("strategy", "`landing.strategy`"),
        ("stratgy", "`landing.strategy`"),
        ("gate.comand", "`gate.command`"),
        ("landing", "weald config list landing"),
        ("nosuch.thing", "weald config list"),
    ] {
        let said = hint(&["config", "get", given], "unknown_key");
        assert!(said.contains(meant), "{given}: {said}");
    }
    let said = hint(
        &["config", "set", "landing.strategy", "sqash"],
        "invalid_value",
    );
    assert!(said.contains("did you mean `squash`?"), "{said}");
    let said = hint(&["config", "list", "landng"], "unknown_key");
    assert!(said.ends_with(" weald config list landing"), "{said}");
    fs::create_dir_all(env.home().join(".config/weald")).unwrap();
    fs::write(
        env.home().join(".config/weald/config.toml"),
        "gate.retris = 1\n",
    )
    .unwrap();
    let warned = env.weald(&["config", "show", "gate.retries"]).stderr;
    assert!(warned.contains("did you mean `gate.retries`?"), "{warned}");
}
