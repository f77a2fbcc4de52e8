//! Laying layers on top of each other.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use super::caps;
use super::kinds::{Key, Kind, find_key, similar_keys};
use super::profiles::profile_text;
use super::settings::{KEYS, Settings};
use super::values::{Value, check_value, from_text};

/// Where a value came from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The table of keys.
    Default,
    Profile(String),
    /// `weald.toml` at the target's tip.
    Repository(String),
    /// The user's own file.
    User(String),
    /// The private file of this repository.
    Private(String),
    Variable(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::Repository(at) => write!(f, "weald.toml at {at}"),
            Self::User(path) | Self::Private(path) => f.write_str(path),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// One source of values, as text or TOML.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Where it came from.
    pub origin: Origin,
    pub values: toml::Table,
}

/// Something in a layer that does not count, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// The key as written.
    pub key: String,
    #[serde(serialize_with = "display")]
    pub origin: Origin,
    pub reason: String,
}

fn display<S: serde::Serializer>(origin: &Origin, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(origin)
}

/// A value of the user's own that can't be used. Guessing what was meant could loosen something, so it is an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} in {origin}: {reason}")]
pub struct ConfigError {
    pub key: String,
    pub origin: Origin,
    pub reason: String,
}

/// What every key is set to, and where that was said.
#[derive(Debug, Clone)]
pub struct Config {
    settings: Settings,
    values: Values,
    /// What was found and does not count.
    pub ignored: Vec<Ignored>,
    /// Hosts that the repository's file lists: they count once somebody approved exactly these.
    pub proposed_hosts: Vec<String>,
    /// Hosts that the user took out, which nobody adds again.
    refused_hosts: Vec<String>,
}

/// `config.gate_timeout` is the value of `gate.timeout`.
impl Deref for Config {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Config {
    /// A key's value as people write it, and where it came from. Panics on a key that is not in the table: that is a bug.
    pub fn get(&self, key: &str) -> (&Value, &Origin) {
        let (value, origin) = &self.values.0[key];
        (value, origin)
    }

    /// Has the repository's hosts count, but for those that the user takes out.
    pub fn admit_hosts(&mut self) {
        const KEY: &str = "sandbox.hosts";
        let mut all = self.proposed_hosts.clone();
        let own = self.settings.sandbox_hosts.clone();
        all.retain(|host| !own.contains(host) && !self.refused_hosts.contains(host));
        all.splice(0..0, own);
        if let Some((value, _)) = self.values.0.get_mut(KEY) {
            *value = Value::List(all.clone());
        }
        self.settings.sandbox_hosts = all;
    }
}

/// The value of each key, and where it came from.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<&'static str, (Value, Origin)>);

impl Values {
    /// Panics on a key that is not in the table: that is a bug.
    pub(super) fn value(&self, key: &str) -> &Value {
        &self.0[key].0
    }
}

/// Layers as they are laid on top of each other.
#[derive(Default)]
struct Laying {
    values: Values,
    ignored: Vec<Ignored>,
    proposed_hosts: Vec<String>,
    refused_hosts: Vec<String>,
}

/// Lays `layers` (weakest first, without default and profile) over the profile they choose.
pub fn resolve(mut layers: Vec<Layer>) -> Result<Config, ConfigError> {
    layers.sort_by(|a, b| a.origin.cmp(&b.origin));
    let mut laying = Laying::default();
    for key in KEYS {
        let value = check_value(key, &from_text(key, key.default)).expect("defaults are valid");
        laying.set(key, value, Origin::Default);
    }
    if let Some((name, chosen_by)) = chosen_profile(&layers)
        && let Some(text) = profile_text(&name)
    {
        let values = text.parse().expect("profiles are valid TOML");
        let trust = Trust::of(&chosen_by);
        laying.lay(
            Layer {
                origin: Origin::Profile(name),
                values,
            },
            trust,
        )?;
    }
    for layer in layers {
        let trust = Trust::of(&layer.origin);
        laying.lay(layer, trust)?;
    }
    let Laying {
        values,
        ignored,
        proposed_hosts,
        refused_hosts,
    } = laying;
    Ok(Config {
        settings: Settings::read(&values),
        values,
        ignored,
        proposed_hosts,
        refused_hosts,
    })
}

/// Every guarded key at its strictest: what counts when a repository's file can't be understood.
pub fn strictest_values() -> toml::Table {
    let guarded = KEYS.iter().filter_map(|key| match key.kind {
        Kind::Guarded(order) => Some((key.name.to_owned(), (*order.last()?).into())),
        _ => None,
    });
    guarded.collect()
}

fn chosen_profile(layers: &[Layer]) -> Option<(String, Origin)> {
    layers.iter().rev().find_map(|layer| {
        let name = layer.values.get("profile")?.as_str()?;
        Some((name.to_owned(), layer.origin.clone()))
    })
}

/// Whose word a layer is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Owner,
    Repository,
}

impl Trust {
    fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Repository(_) => Self::Repository,
            _ => Self::Owner,
        }
    }
}

/// Why a layer's value does not count.
enum Rejected {
    Invalid(String),
    Loosens(String),
    TooMuch(&'static str),
    NotTheirs,
}

/// Whether a value is for somebody to approve.
fn is_proposal(key: &Key, trust: Trust) -> bool {
    key.kind == Kind::Hosts && trust == Trust::Repository
}

impl Laying {
    fn set(&mut self, key: &Key, value: Value, origin: Origin) {
        self.values.0.insert(key.name, (value, origin));
    }

    fn lay(&mut self, layer: Layer, trust: Trust) -> Result<(), ConfigError> {
        let mut flat = Vec::new();
        flatten("", &layer.values, &mut flat);
        for (name, raw) in flat {
            let Some(key) = find_key(&name) else {
                let reason = match similar_keys(&name).first() {
                    Some(meant) => format!("unknown key; did you mean `{meant}`?"),
                    None => "unknown key".to_owned(),
                };
                self.ignore(&name, &layer.origin, reason);
                continue;
            };
            let is_theirs = match key.kind {
                // Profiles ship with weald, so their values are trusted even if the repository selected the profile.
                Kind::Place => matches!(layer.origin, Origin::Repository(_)),
                kind => kind.is_own() && trust == Trust::Repository,
            };
            let admitted = match is_theirs {
                true => Err(Rejected::NotTheirs),
                false => self.admit(key, &raw, trust),
            };
            match admitted {
                Ok(Value::List(hosts)) if is_proposal(key, trust) => self.proposed_hosts = hosts,
                Ok(value) => {
                    self.note_refused(key, &value);
                    let value = self.joined(key, value);
                    self.set(key, value, layer.origin.clone());
                }
                Err(Rejected::Invalid(reason)) if trust == Trust::Owner => {
                    return Err(ConfigError {
                        key: name,
                        origin: layer.origin,
                        reason,
                    });
                }
                Err(rejected) => self.ignore_shared(key, &layer.origin, rejected),
            }
        }
        Ok(())
    }

    fn note_refused(&mut self, key: &Key, value: &Value) {
        if let (Kind::Hosts, Value::List(hosts)) = (key.kind, value) {
            let out = hosts.iter().filter_map(|host| host.strip_prefix('!'));
            self.refused_hosts.extend(out.map(str::to_owned));
        }
    }

    /// The value of a list that everybody adds to, with what it held before and without what `!` takes out.
    fn joined(&self, key: &Key, value: Value) -> Value {
        let (Kind::JoinedList | Kind::GrowingList | Kind::Hosts, Value::List(more)) =
            (key.kind, &value)
        else {
            return value;
        };
        let Value::List(mut all) = self.values.value(key.name).clone() else {
            return value;
        };
        for item in more {
            let out = item.strip_prefix('!');
            match out.filter(|_| key.kind != Kind::GrowingList) {
                Some(out) => all.retain(|known| known != out),
                None if !all.contains(item) => all.push(item.clone()),
                None => {}
            }
        }
        Value::List(all)
    }

    /// Checks a value; one that the repository brings must neither loosen a guarded key nor exceed a cap.
    fn admit(&self, key: &'static Key, raw: &toml::Value, trust: Trust) -> Result<Value, Rejected> {
        let value = check_value(key, raw).map_err(Rejected::Invalid)?;
        let takes_out = |list: &[String]| list.iter().any(|item| item.starts_with('!'));
        if let (Kind::JoinedList | Kind::Hosts, Trust::Repository, Value::List(list)) =
            (key.kind, trust, &value)
            && takes_out(list)
        {
            let why = "a repository can't take entries out of this list with `!`";
            return Err(Rejected::Invalid(why.to_owned()));
        }
        if let (Kind::Guarded(order), Trust::Repository, Value::Text(text)) =
            (key.kind, trust, &value)
        {
            let rank = |name: &str| order.iter().position(|known| *known == name);
            let current = self.values.value(key.name).to_string();
            if rank(text) < rank(&current) {
                return Err(Rejected::Loosens(current));
            }
        }
        if trust == Trust::Repository
            && let Some(most) = caps::exceeded(key, &value)
        {
            return Err(Rejected::TooMuch(most));
        }
        Ok(value)
    }

    /// The repository's value does not count; if it guards something and can't be read, the strictest one does.
    fn ignore_shared(&mut self, key: &'static Key, origin: &Origin, rejected: Rejected) {
        let reason = match (rejected, key.kind) {
            (Rejected::Loosens(current), _) => {
                format!("the repository can't loosen this below `{current}`")
            }
            (Rejected::TooMuch(most), _) => format!(
                "a repository can set this to `{most}` at most; only you can set more (weald config set {} VALUE)",
                key.name
            ),
            (Rejected::NotTheirs, _) => format!(
                "only you can set this, not the repository (weald config set {} VALUE)",
                key.name
            ),
            (Rejected::Invalid(reason), Kind::Guarded(order)) => {
                let strictest = order.last().expect("guarded keys have values");
                let value = Value::Text((*strictest).to_owned());
                self.set(key, value, origin.clone());
                format!("{reason}; weald uses `{strictest}` until it can be read")
            }
            (Rejected::Invalid(reason), Kind::JoinedList) => {
                let everything = self.joined(key, Value::List(vec!["**".to_owned()]));
                self.set(key, everything, origin.clone());
                format!("{reason}; everything counts as listed until it can be read")
            }
            (Rejected::Invalid(reason), _) => reason,
        };
        self.ignore(key.name, origin, reason);
    }

    fn ignore(&mut self, key: &str, origin: &Origin, reason: String) {
        self.ignored.push(Ignored {
            key: key.to_owned(),
            origin: origin.clone(),
            reason,
        });
    }
}

fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            toml::Value::Table(inner) => flatten(&path, inner, out),
            other => out.push((path, other.clone())),
        }
    }
}

#[cfg(test)]
mod tests;
