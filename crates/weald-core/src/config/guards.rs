//! What guards a landing, and whether a value guards less than another one.
//!
//! The repository is kept from loosening by the layers themselves; this is for agents, whose flags and variables would
//! count as their owner's.

use super::kinds::{Key, Kind};
use super::resolve::Config;
use super::values::Value;
use super::{KEYS, find_key};

/// Sections whose keys all decide what is tested, and how.
const SECTIONS: [&str; 4] = ["gate.", "policy.", "sandbox.", "setup."];

/// What works on a task is held by the sandbox whatever it is, and how the user is notified loosens nothing: these guard
/// nothing though only the user sets them.
const AGENTS: [&str; 3] = ["agent.", "phase.", "notify."];

/// Programs that weald starts on the host, outside every sandbox.
const ON_HOST: [&str; 1] = ["notify.command"];

/// Whether a key takes part in guarding what lands, or the host. A profile sets others that do.
pub fn is_guard(key: &Key) -> bool {
    if ON_HOST.contains(&key.name) {
        return true;
    }
    if AGENTS.iter().any(|section| key.name.starts_with(section)) {
        return false;
    }
    matches!(
        key.kind,
        Kind::Guarded(_) | Kind::OwnText | Kind::OwnList | Kind::OwnNames | Kind::JoinedList
    ) || SECTIONS.iter().any(|section| key.name.starts_with(section))
        || ["profile", "landing.check"].contains(&key.name)
}

/// The first key that guards less in `now` than in `before`. A profile is judged by what it sets.
pub fn first_loosened(before: &Config, now: &Config) -> Option<&'static str> {
    let guards = KEYS
        .iter()
        .filter(|key| is_guard(key) && key.name != "profile");
    let mut loosened =
        guards.filter(|key| guards_less(key, before.get(key.name).0, now.get(key.name).0));
    loosened.next().map(|key| key.name)
}

/// Whether the name is one of a key that guards something.
pub fn names_guard(name: &str) -> bool {
    find_key(name).is_some_and(is_guard)
}

/// Where no order is known, every difference counts.
fn guards_less(key: &Key, before: &Value, now: &Value) -> bool {
    match (key.kind, before, now) {
        (Kind::Guarded(order), Value::Text(before), Value::Text(now)) => {
            let rank = |name: &str| order.iter().position(|known| *known == name);
            rank(now) < rank(before)
        }
        (Kind::JoinedList | Kind::GrowingList, Value::List(before), Value::List(now)) => {
            !before.iter().all(|item| now.contains(item))
        }
        (Kind::Hosts, Value::List(before), Value::List(now)) => {
            !now.iter().all(|item| before.contains(item))
        }
        // Time makes nothing green.
        (Kind::Duration | Kind::Age, _, _) => false,
        // A command where there was none tests more than before.
        (Kind::Text, Value::Text(before), _) if before.is_empty() => false,
        _ => before != now,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, Origin, resolve};
    use super::*;

    fn config(text: &str) -> Config {
        let values = text.parse().unwrap();
        let origin = Origin::User("file".into());
        resolve(vec![Layer { origin, values }]).unwrap()
    }

    #[test]
    fn m24_what_guards_less_is_told_from_what_guards_more() {
        for (before, now, loosened) in [
            ("", "", None),
            ("", "policy.gate = 'human'", None),
            ("", "policy.gate = 'none'", Some("policy.gate")),
            ("profile = 'jkz'", "", Some("policy.gate")),
            ("", "profile = 'jkz'", None),
            ("", "gate.command = 'make'", None),
            (
                "gate.command = 'make'",
                "gate.command = 'true'",
                Some("gate.command"),
            ),
            ("gate.command = 'make'", "", Some("gate.command")),
            ("landing.check = 'make'", "", Some("landing.check")),
            ("", "landing.hooks = 'run'", Some("landing.hooks")),
            ("", "sandbox.write = ['/']", Some("sandbox.write")),
            ("", "sandbox.network = 'allow'", None),
            (
                "sandbox.network = 'off'",
                "sandbox.network = 'allow'",
                Some("sandbox.network"),
            ),
            ("", "sandbox.hosts = ['a.b']", Some("sandbox.hosts")),
            (
                "sandbox.hosts = ['a.b', 'c.d']",
                "sandbox.hosts = ['c.d']",
                None,
            ),
            ("", "setup.commands = ['x']", Some("setup.commands")),
            ("", "target = 'other'", Some("target")),
            ("", "policy.protected = ['a']\ngate.timeout = '1s'", None),
            (
                "",
                "policy.protected = ['!.claude']",
                Some("policy.protected"),
            ),
            ("", "landing.strategy = 'ff'\nlanding.after = 'keep'", None),
            ("", "agent.driver = 'codex'\nagent.model = 'x'", None),
            ("", "notify.command = 'sh -c x'", Some("notify.command")),
            (
                "notify.command = 'ntfy'",
                "notify.command = 'sh -c x'",
                Some("notify.command"),
            ),
            ("", "notify.desktop = true\nnotify.on = ['red']", None),
        ] {
            let found = first_loosened(&config(before), &config(now));
            assert_eq!(found, loosened, "{before} -> {now}");
        }
        assert!(names_guard("policy.gate") && names_guard("profile"));
        assert!(names_guard("notify.command") && !names_guard("notify.on"));
        assert!(!names_guard("landing.strategy") && !names_guard("nonsense"));
    }
}
