//! Upper limits for the waits, sizes and counts that a repository may set: the user who clones it pays for them in time and disk
//! space.

use super::kinds::{Key, Kind};
use super::values::{Value, parse_duration, parse_size};

/// The most that a repository may set; `None` is the default, so that it may only lower the key.
const CAPS: [(&str, Option<&str>); 18] = [
    ("lease.ttl", Some("24h")),
    ("tree.fetch_limit", None),
    ("tree.look_limit", None),
    ("tree.lfs_limit", None),
    ("tree.import_limit", None),
    ("setup.timeout", Some("1h")),
    ("ports.count", Some("100")),
    ("work.retries", None),
    ("pool.size", Some("4")),
    ("landing.parallel", Some("4")),
    ("landing.lease", None),
    ("landing.lock_wait", None),
    ("gate.timeout", Some("6h")),
    ("snapshot.file_limit", None),
    ("snapshot.limit", None),
    ("agent.log_limit", None),
    ("sweep.lease", None),
    ("worker.idle_timeout", Some("1h")),
];

/// The most that a repository may set, if `value` is more than that.
pub(super) fn exceeded(key: &Key, value: &Value) -> Option<&'static str> {
    let (_, cap) = CAPS.iter().find(|(name, _)| *name == key.name)?;
    let cap = cap.unwrap_or(key.default);
    let most = amount(key.kind, cap)?;
    let is_within = amount(key.kind, &value.to_string()).is_some_and(|given| given <= most);
    (!is_within).then_some(cap)
}

/// A value as a number; `None` is no bound at all.
fn amount(kind: Kind, text: &str) -> Option<u128> {
    match kind {
        Kind::Duration => Some(parse_duration(text).ok()?.unsigned_abs().as_nanos()),
        Kind::Size => Some(parse_size(text).ok()?.into()),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::find_key;

    #[test]
    fn x14_every_cap_is_one_of_a_known_key_and_not_below_its_default() {
        for (name, cap) in CAPS {
            let key = find_key(name).unwrap();
            let default = amount(key.kind, key.default);
            assert!(default.is_some(), "{name}");
            assert!(
                amount(key.kind, cap.unwrap_or(key.default)) >= default,
                "{name}"
            );
        }
    }
}
