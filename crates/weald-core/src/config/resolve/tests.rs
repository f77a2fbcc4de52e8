//! Layers on top of each other.

use super::*;
use crate::approval::PROTECTED;

fn layer(origin: Origin, text: &str) -> Layer {
    Layer {
        origin,
        values: text.parse().unwrap(),
    }
}

fn repository(text: &str) -> Layer {
    layer(Origin::Repository("main".into()), text)
}

fn user(text: &str) -> Layer {
    layer(Origin::User("~/.config/weald/config.toml".into()), text)
}

#[test]
fn p14_later_layers_win_whatever_order_they_come_in() {
    let layers = vec![
        layer(Origin::Flag("set".into()), "landing.strategy = 'ff'"),
        repository("profile = 'classroom'\nlanding.strategy = 'rebase'\nlanding.fetch = 'require'"),
        user("landing.strategy = 'squash'\nlease.ttl = '20m'"),
        layer(
            Origin::Variable("WEALD_LEASE_TTL".into()),
            "lease.ttl = '30m'",
        ),
    ];
    let config = resolve(layers).unwrap();
    let found = |key| (config.get(key).0.to_string(), config.get(key).1.to_string());
    assert_eq!(found("landing.strategy"), ("ff".into(), "--set".into()));
    assert_eq!(
        found("lease.ttl"),
        ("30m".into(), "$WEALD_LEASE_TTL".into())
    );
    assert_eq!(
        found("landing.fetch"),
        ("require".into(), "weald.toml at main".into())
    );
    assert_eq!(
        found("landing.after"),
        ("keep".into(), "profile classroom".into())
    );
    assert_eq!(
        found("session.stale_after"),
        ("5m".into(), "default".into())
    );
}

#[test]
fn the_repository_tightens_and_never_loosens() {
    let gate = |layers| {
        resolve(layers)
            .unwrap()
            .get("policy.gate")
            .0
            .to_string()
            .to_owned()
    };
    assert_eq!(gate(vec![repository("policy.gate = 'none'")]), "tests");
    assert_eq!(gate(vec![repository("policy.gate = 'human'")]), "human");
    assert_eq!(
        gate(vec![repository("policy.gate = 'nonsense'")]),
        "human",
        "unreadable is strict"
    );
    assert_eq!(gate(vec![user("policy.gate = 'none'")]), "none");
    let both = vec![
        user("profile = 'jkz'"),
        repository("policy.gate = 'tests'\ntarget = 'x'\nsandbox.write = ['/']"),
    ];
    let config = resolve(both).unwrap();
    assert_eq!(
        config.get("policy.gate").0.to_string(),
        "human",
        "below what the owner chose, too"
    );
    assert_eq!(
        (config.target.as_str(), config.sandbox_write.len()),
        ("auto", 0)
    );
    let strict = Layer {
        origin: Origin::Repository("main".into()),
        values: strictest_values(),
    };
    assert_eq!(gate(vec![strict]), "human");
}

/// Values of a key, from the loosest to the strictest as far as that can be said.
fn values_of(key: &Key) -> Vec<String> {
    match key.kind {
        Kind::Guarded(order) | Kind::OwnChoice(order) => {
            order.iter().map(|name| format!("'{name}'")).collect()
        }
        Kind::OwnList | Kind::OwnNames | Kind::JoinedList => {
            let word = key.words().map_or("x", |words| words[0]);
            vec!["[]".to_owned(), format!("['{word}']")]
        }
        Kind::OwnSwitch => vec!["false".to_owned(), "true".to_owned()],
        Kind::OwnDuration(_) => vec!["'1s'".to_owned(), "'2s'".to_owned()],
        _ => vec!["''".to_owned(), "'x'".to_owned()],
    }
}

#[test]
fn m24_no_key_that_guards_something_is_loosened_by_the_repository() {
    let mut seen = 0;
    for key in KEYS {
        let is_guarding = key.kind.is_own()
            || matches!(key.kind, Kind::Guarded(_) | Kind::JoinedList | Kind::Place);
        if !is_guarding {
            continue;
        }
        seen += 1;
        let values = values_of(key);
        for (strictness, own) in values.iter().enumerate() {
            let owners = format!("{} = {own}", key.name);
            let alone = resolve(vec![user(&owners)]).unwrap();
            let alone = alone.get(key.name).0.clone();
            for (theirs, value) in values.iter().enumerate() {
                let shared = repository(&format!("{} = {value}", key.name));
                let config = resolve(vec![shared.clone(), user(&owners)]).unwrap();
                let found = config.get(key.name).0.clone();
                let grows = key.kind == Kind::JoinedList && theirs > strictness;
                assert_eq!(found == alone, !grows, "{}: {own} {value}", key.name);
                // Without a word of the owner's the default can't be loosened either.
                let config = resolve(vec![shared]).unwrap();
                let (found, origin) = config.get(key.name);
                if *origin != Origin::Default {
                    let Kind::Guarded(order) = key.kind else {
                        assert_eq!(key.kind, Kind::JoinedList, "{}", key.name);
                        continue;
                    };
                    let rank = |name: &str| order.iter().position(|known| *known == name);
                    assert!(
                        rank(&found.to_string()) >= rank(key.default),
                        "{}",
                        key.name
                    );
                }
            }
        }
    }
    assert!(seen >= 9, "{seen} keys guard something");
}

#[test]
fn x30_what_one_layer_denies_no_other_layer_shows() {
    let denied = |layers| resolve(layers).unwrap().sandbox_read_deny.join(" ");
    let own = user("sandbox.read_deny = ['~/notes', '~/keys']");
    for other in ["[]", "['!~/keys']", "['~/keys']"] {
        let flag = layer(
            Origin::Flag("set".into()),
            &format!("sandbox.read_deny = {other}"),
        );
        let found = denied(vec![own.clone(), flag]);
        assert!(found.starts_with("~/notes ~/keys"), "{other}: {found}");
    }
    let shared = repository("sandbox.read_deny = ['secret.env']");
    assert_eq!(denied(vec![shared, own]), "secret.env ~/notes ~/keys");
}

#[test]
fn m24_protected_paths_of_everybody_count_together() {
    let protected = |layers| {
        let config = resolve(layers).unwrap();
        let own = |item: &&String| !PROTECTED.split(',').any(|known| known.trim() == *item);
        let own: Vec<_> = config
            .policy_protected
            .iter()
            .filter(own)
            .cloned()
            .collect();
        own.join(" ")
    };
    let both = vec![
        repository("policy.protected = ['infra/', '*.lock']"),
        user("policy.protected = ['*.lock', 'docs']"),
        layer(Origin::Flag("set".into()), "policy.protected = []"),
    ];
    assert_eq!(protected(both), "infra/ *.lock docs");
    for odd in ["['a', '!a']", "5", "[5]"] {
        let odd = repository(&format!("policy.protected = {odd}"));
        assert_eq!(protected(vec![odd]), "**", "unreadable is strict");
    }
    let narrowed = resolve(vec![
        repository("policy.protected = ['infra/']"),
        user("policy.protected = ['!.vscode', '!infra/', 'docs']"),
    ]);
    let narrowed = narrowed.unwrap();
    let narrowed = &narrowed.policy_protected;
    for (item, is_there) in [
        (".vscode", false),
        ("infra/", false),
        ("docs", true),
        (".claude", true),
    ] {
        assert_eq!(narrowed.contains(&item.to_owned()), is_there, "{item}");
    }
}

#[test]
fn own_mistakes_are_errors_and_foreign_ones_are_reported() {
    let error = resolve(vec![user("lease.ttl = '0s'")]).unwrap_err();
    assert_eq!(error.key, "lease.ttl");
    let config = resolve(vec![repository("lease.ttl = '-5m'\nnope = 1")]).unwrap();
    assert_eq!(config.get("lease.ttl").0.to_string(), "15m");
    assert_eq!(config.ignored.len(), 2);
}

#[test]
fn every_profile_sets_known_keys_to_valid_values() {
    for name in super::super::PROFILES {
        let config = resolve(vec![user(&format!("profile = '{name}'"))]).unwrap();
        assert!(config.ignored.is_empty(), "{name}: {:?}", config.ignored);
    }
}

#[test]
fn x14_a_repository_chooses_neither_long_waits_nor_much_room() {
    let hostile = "tree.look_limit = '1000h'\ntree.fetch_limit = '11s'\ntree.import_limit = 'none'\n\
        pool.size = 64\nlanding.parallel = 16\nlanding.lock_wait = '1000h'\nlanding.autostash = true\n\
        gate.timeout = '7h'\nvault.lease = '1s'\nsnapshot.limit = '2G'";
    let config = resolve(vec![repository(hostile)]).unwrap();
    let ignored: Vec<_> = config.ignored.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(ignored.len(), 10, "{ignored:?}");
    for key in ignored {
        assert_eq!(config.get(key).1, &Origin::Default, "{key}");
    }
    let modest =
        "tree.look_limit = '5s'\npool.size = 4\ngate.timeout = '6h'\nsnapshot.limit = '1M'";
    let config = resolve(vec![repository(modest)]).unwrap();
    assert_eq!(config.ignored, []);
    assert_eq!(config.pool_size, 4);
    assert_eq!(config.get("gate.timeout").0.to_string(), "6h");
    // What is the user's own has no cap.
    let own = resolve(vec![
        repository(hostile),
        user("pool.size = 64\ngate.timeout = '7h'"),
    ]);
    let own = own.unwrap();
    assert_eq!(own.pool_size, 64);
    assert_eq!(own.get("gate.timeout").0.to_string(), "7h");
}
