//! What a run wanted to reach and did not, for people.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::lock;

/// How many different ones are kept.
const KEPT: usize = 100;

/// The longest name that is kept: names of the internet are not longer.
const LONGEST: usize = 253;

/// Something that a run was kept from. Names and programs are the run's words, in plain characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// A name or an address.
    pub host: String,
    /// What a listed name stands for, where that is an address that is kept from runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `None` where only the name was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `tcp`, `udp`, or `dns` for a name.
    pub protocol: String,
    /// The program that asked, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    pub count: u64,
}

/// All of a run; the same list wherever it is held.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    all: Vec<Refusal>,
    /// How many more there were than are kept.
    more: u64,
}

impl Refusals {
    /// What was refused so far, in the order in which it was first asked for.
    pub fn list(&self) -> Vec<Refusal> {
        lock(&self.0).all.clone()
    }

    /// How often anything was refused.
    pub fn count(&self) -> u64 {
        let list = lock(&self.0);
        list.all.iter().map(|it| it.count).sum::<u64>() + list.more
    }

    /// Counts one.
    pub(super) fn note(&self, refusal: Refusal) {
        let refusal = Refusal {
            host: plain_text(&refusal.host, LONGEST),
            ..refusal
        };
        let mut list = lock(&self.0);
        let same = |it: &&mut Refusal| {
            let count = refusal.count;
            Refusal {
                count,
                ..(**it).clone()
            } == refusal
        };
        if let Some(known) = list.all.iter_mut().find(same) {
            known.count += refusal.count;
            return;
        }
        match list.all.len() < KEPT {
            true => list.all.push(refusal),
            false => list.more += refusal.count,
        }
    }
}

/// What can be read anywhere: no control characters, nothing that turns the reading direction.
pub(super) fn plain_text(text: &str, most: usize) -> String {
    let kept = text.chars().take(most);
    let plain = |c: char| match c.is_ascii_graphic() || c == ' ' {
        true => c,
        false => '?',
    };
    kept.map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a16_refusals_are_counted_bounded_and_plain() {
        let all = Refusals::default();
        let refused = |host: &str| Refusal {
            host: host.to_owned(),
            address: None,
            port: Some(443),
            protocol: "tcp".to_owned(),
            program: "curl".to_owned(),
            count: 1,
        };
        all.note(refused("a\u{1b}[2J\u{202e}.example"));
        all.note(refused("a\u{1b}[2J\u{202e}.example"));
        let first = &all.list()[0];
        assert_eq!((first.host.as_str(), first.count), ("a?[2J?.example", 2));
        for number in 0..1_000 {
            all.note(refused(&format!("{number}.example")));
        }
        assert_eq!((all.list().len(), all.count()), (KEPT, 1_002));
    }
}
