//! Reading the layers of the configuration, and writing the private one.
//!
//! The repository's file is read from the target's tip, never from a checkout; its text is kept in a cache file under
//! the tip's id, so that a command starts no git process while the target has not moved.

use std::io;
use std::path::{Path, PathBuf};

use weald_core::config::{
    Config, ConfigError, KEYS, Key, Kind, Layer, Origin, Value, check_value, find_key, from_text,
    resolve, similar_keys, strictest_values, variable_of,
};
use weald_core::setup::is_approved;
use weald_git::{Blob, GitError};

use crate::approvals::{approvals, proposed_hosts};
use crate::files;
use crate::place::Place;

pub const SHARED_FILE: &str = "weald.toml";

/// The private file of a repository.
pub const PRIVATE_FILE: &str = "config.toml";

/// The largest configuration file that is read.
const FILE_LIMIT: u64 = 256 * 1024;

/// Stands for a repository's file that is not read; no TOML, so it is treated like one that can't be understood.
const TOO_LARGE: &str = "<larger than 256 KiB>";

const CACHE_FILE: &str = "target-config";

/// Where values may come from besides the repository.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The user's own file.
    pub user_file: Option<PathBuf>,
    pub variables: Vec<(String, String)>,
    /// Flags: key and value.
    pub flags: Vec<(String, String)>,
}

/// Why the configuration can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// A value does not fit its key.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// A file is no TOML.
    #[error("{}: {message}", .path.display())]
    Syntax {
        path: PathBuf,
        /// What the parser says.
        message: String,
    },
    /// A file can't be read or written.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// git did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no such key.
    #[error("unknown key `{key}`")]
    UnknownKey {
        key: String,
        /// Those that look like it.
        similar: Vec<&'static str>,
    },
    /// A value does not fit the key it was set for.
    #[error("{key}: {reason}")]
    BadValue {
        key: String,
        /// What would be right.
        reason: String,
    },
}

/// The configuration, and what a person should know about how it came about.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    pub config: Config,
    /// The branch that work lands on, and its tip; `None` without a commit.
    pub target: Option<(String, String)>,
    /// Differences that a person may not expect.
    pub notes: Vec<String>,
    /// Why the repository's own file can't be read, if it can't.
    pub unreadable: Option<String>,
}

impl LoadedConfig {
    /// What counts where no file can be read: to look at things, not to change them.
    pub fn defaults() -> Self {
        Self {
            config: resolve(Vec::new()).expect("defaults are valid"),
            target: None,
            notes: Vec::new(),
            unreadable: None,
        }
    }
}

pub fn load_config(place: &Place, sources: &Sources) -> Result<LoadedConfig, ConfigFileError> {
    let mut layers = own_layers(Some(place), sources)?;
    let chosen = layers
        .iter()
        .rev()
        .find_map(|layer| layer.values.get("target")?.as_str().map(str::to_owned));
    let target = match chosen.filter(|target| target != "auto") {
        Some(branch) => place.repository().target(&branch)?,
        None => place.repository().default_target()?,
    };
    let (mut notes, mut unreadable) = (Vec::new(), None);
    let target = target.map(|target| (target.branch, target.tip.as_str().to_owned()));
    if let Some((branch, tip)) = &target {
        let text = shared_text(place, tip)?;
        notes.extend(checkout_note(place, branch, &text));
        let values = text.parse().unwrap_or_else(|error| {
            let why = format!(
                "weald.toml at {branch} can't be read, so the keys it can guard take their strictest value: {error}"
            );
            notes.push(why.clone());
            unreadable = Some(why);
            strictest_values()
        });
        layers.push(Layer {
            origin: Origin::Repository(branch.clone()),
            values,
        });
    }
    let mut config = resolve(layers)?;
    // What can't be read approves nothing.
    if let Some(proposal) = proposed_hosts(&config)
        && is_approved(&approvals(place).unwrap_or_default(), &proposal)
    {
        config.admit_hosts();
    }
    Ok(LoadedConfig {
        config,
        target,
        notes,
        unreadable,
    })
}

/// Reads only what is the user's own, for work outside of any repository.
pub fn load_own_config(sources: &Sources) -> Result<Config, ConfigFileError> {
    Ok(resolve(own_layers(None, sources)?)?)
}

/// Everything that is the user's own word.
fn own_layers(place: Option<&Place>, sources: &Sources) -> Result<Vec<Layer>, ConfigFileError> {
    let mut layers = Vec::new();
    if let Some(path) = &sources.user_file {
        layers.extend(file_layer(path, Origin::User)?);
    }
    if let Some(place) = place {
        layers.extend(file_layer(
            &place.private().join(PRIVATE_FILE),
            Origin::Private,
        )?);
    }
    layers.extend(variable_layers(&sources.variables));
    for (name, value) in &sources.flags {
        layers.push(single(
            Origin::Flag("set".to_owned()),
            require_key(name)?,
            value,
        ));
    }
    Ok(layers)
}

/// What variables set. Most calls have none of ours, and the names of all keys need not be made for them.
fn variable_layers(variables: &[(String, String)]) -> Vec<Layer> {
    let is_ours = |(name, _): &&(String, String)| name.starts_with("WEALD_");
    let ours: Vec<_> = variables.iter().filter(is_ours).collect();
    if ours.is_empty() {
        return Vec::new();
    }
    let named = KEYS.iter().filter_map(|key| Some((key, variable_of(key)?)));
    let layers = named.filter_map(|(key, name)| {
        let (_, value) = ours.iter().find(|(variable, _)| *variable == name)?;
        Some(single(Origin::Variable(name), key, value))
    });
    layers.collect()
}

fn single(origin: Origin, key: &Key, value: &str) -> Layer {
    let mut values = toml::Table::new();
    values.insert(key.name.to_owned(), from_text(key, value));
    Layer { origin, values }
}

fn read_file(path: &Path) -> Result<Option<String>, ConfigFileError> {
    files::read_small(path, FILE_LIMIT).map_err(|source| ConfigFileError::File {
        path: path.to_owned(),
        source,
    })
}

fn file_layer(path: &Path, origin: fn(String) -> Origin) -> Result<Option<Layer>, ConfigFileError> {
    let Some(text) = read_file(path)? else {
        return Ok(None);
    };
    let values = text
        .parse()
        .map_err(|error: toml::de::Error| ConfigFileError::Syntax {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
    Ok(Some(Layer {
        origin: origin(path.display().to_string()),
        values,
    }))
}

/// The repository's file at `tip`; empty if it has none.
fn shared_text(place: &Place, tip: &str) -> Result<String, ConfigFileError> {
    let cache = place.private().join(CACHE_FILE);
    let cached = files::read_small(&cache, 2 * FILE_LIMIT).ok().flatten();
    if let Some(text) = cached
        .as_deref()
        .and_then(|cached| cached.strip_prefix(tip))
    {
        return Ok(text.strip_prefix('\n').unwrap_or(text).to_owned());
    }
    let text = match place.repository().blob_at(tip, SHARED_FILE, FILE_LIMIT)? {
        Blob::Absent => String::new(),
        Blob::TooLarge => TOO_LARGE.to_owned(),
        Blob::Content(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    };
    if place.private().is_dir() {
        // A cache that can't be written costs time, nothing else.
        let _ = files::replace(&cache, &format!("{tip}\n{text}"));
    }
    Ok(text)
}

/// People expect the file they see to count; say so when it does not.
fn checkout_note(place: &Place, branch: &str, at_tip: &str) -> Option<String> {
    let path = place.repository().checkout()?.join(SHARED_FILE);
    let here = files::read_small(&path, FILE_LIMIT).ok()??;
    (here != at_tip).then(|| {
        format!("weald.toml here differs from the one on {branch}; weald uses the one on {branch}")
    })
}

/// Finds a key or says which one was meant.
pub fn require_key(name: &str) -> Result<&'static Key, ConfigFileError> {
    find_key(name).ok_or_else(|| ConfigFileError::UnknownKey {
        key: name.to_owned(),
        similar: similar_keys(name),
    })
}

/// Sets a key in a file, keeping everything else in it as it is. Makes the file if there is none. Hosts after a `+` are
/// added to those in the file.
pub fn edit_file(path: &Path, name: &str, value: &str) -> Result<Value, ConfigFileError> {
    let key = require_key(name)?;
    let added = value.strip_prefix('+').filter(|_| key.kind == Kind::Hosts);
    let is_added = added.is_some();
    let value = added.unwrap_or(value);
    let checked =
        check_value(key, &from_text(key, value)).map_err(|reason| ConfigFileError::BadValue {
            key: name.to_owned(),
            reason,
        })?;
    let mut set = checked;
    change_file(path, |document| {
        let (table, leaf) = table_of(document, name);
        let before = table.get(leaf).and_then(toml_edit::Item::as_array);
        if let (true, Some(before), Value::List(all)) = (is_added, before, &mut set) {
            let before = before.iter().filter_map(|item| item.as_str());
            let mut joined: Vec<_> = before.map(str::to_owned).collect();
            all.retain(|item| !joined.contains(item));
            joined.append(all);
            *all = joined;
        }
        let mut value = as_edit_value(&set);
        match table.get_mut(leaf).and_then(toml_edit::Item::as_value_mut) {
            // With what stands around it: a comment on its line.
            Some(there) => {
                *value.decor_mut() = there.decor().clone();
                *there = value;
            }
            None => drop(table.insert(leaf, toml_edit::Item::Value(value))),
        }
        true
    })?;
    Ok(set)
}

/// Takes a key out of a file; false if it was not there.
pub fn remove_key(path: &Path, name: &str) -> Result<bool, ConfigFileError> {
    require_key(name)?;
    change_file(path, |document| {
        let (table, leaf) = table_of(document, name);
        let removed = table.remove(leaf).is_some();
        if let Some((section, _)) = name.split_once('.')
            && removed
            && is_bare(&document[section])
        {
            document.remove(section);
        }
        removed
    })
}

/// Changes a file while nobody else does; `change` says whether there is anything to write.
fn change_file(
    path: &Path,
    change: impl FnOnce(&mut toml_edit::DocumentMut) -> bool,
) -> Result<bool, ConfigFileError> {
    let failed = |source| ConfigFileError::File {
        path: path.to_owned(),
        source,
    };
    let edited = files::edit_alone(path, || {
        let mut document = read_document(path)?;
        let changed = change(&mut document);
        if changed {
            files::replace_like(path, document.to_string().as_bytes()).map_err(failed)?;
        }
        Ok(changed)
    });
    if path.ends_with(SHARED_FILE) {
        // In a checkout it would be somebody's untracked file.
        let _ = std::fs::remove_file(path.with_added_extension("lock"));
    }
    edited.map_err(failed)?
}

/// Whether a section holds no key and no comment stands above it.
fn is_bare(section: &toml_edit::Item) -> bool {
    let Some(table) = section.as_table() else {
        return false;
    };
    let above = table.decor().prefix().and_then(|prefix| prefix.as_str());
    table.is_empty() && above.is_none_or(|above| above.trim().is_empty())
}

fn table_of<'a, 'b>(
    document: &'a mut toml_edit::DocumentMut,
    name: &'b str,
) -> (&'a mut dyn toml_edit::TableLike, &'b str) {
    let Some((section, leaf)) = name.split_once('.') else {
        return (document.as_table_mut(), name);
    };
    let is_table = document
        .get(section)
        .is_some_and(toml_edit::Item::is_table_like);
    if !is_table {
        document.insert(section, toml_edit::table());
    }
    let table = document[section]
        .as_table_like_mut()
        .expect("made a table above");
    (table, leaf)
}

fn as_edit_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Switch(on) => (*on).into(),
        Value::Number(number) => (*number).into(),
        Value::List(items) => items
            .iter()
            .map(String::as_str)
            .collect::<toml_edit::Array>()
            .into(),
    }
}

fn read_document(path: &Path) -> Result<toml_edit::DocumentMut, ConfigFileError> {
    let text = read_file(path)?.unwrap_or_default();
    text.parse()
        .map_err(|error: toml_edit::TomlError| ConfigFileError::Syntax {
            path: path.to_owned(),
            message: error.to_string(),
        })
}
