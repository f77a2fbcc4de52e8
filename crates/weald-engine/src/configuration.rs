//! Reading the layers of the configuration, and writing the private one.
//!
//! The repository's file is read from the target's tip, never from a checkout; its text is kept in a cache file under
//! the tip's id, so that a command starts no git process while the target has not moved.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weald_core::config::{
    Config, ConfigError, KEYS, Key, Layer, Origin, Value, check_value, find_key, from_text,
    resolve, variable_of,
};
use weald_git::GitError;

use crate::place::Place;

/// The repository's file.
pub const SHARED_FILE: &str = "weald.toml";

/// The private file of a repository.
pub const PRIVATE_FILE: &str = "config.toml";

/// The largest configuration file that is read.
const FILE_LIMIT: usize = 256 * 1024;

const CACHE_FILE: &str = "target-config";

/// Where values may come from besides the repository.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The user's own file.
    pub user_file: Option<PathBuf>,
    /// The environment.
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
        /// Which.
        path: PathBuf,
        /// What the parser says.
        message: String,
    },
    /// A file can't be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// git did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no such key.
    #[error("weald knows no key `{key}`")]
    UnknownKey {
        /// As given.
        key: String,
        /// One that looks like it.
        similar: Option<&'static str>,
    },
    /// A value does not fit the key it was set for.
    #[error("{key}: {reason}")]
    BadValue {
        /// The key.
        key: String,
        /// What would be right.
        reason: String,
    },
}

/// The configuration, and what a person should know about how it came about.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// The values.
    pub config: Config,
    /// The branch that work lands on, and its tip; `None` without a commit.
    pub target: Option<(String, String)>,
    /// Differences that a person may not expect.
    pub notes: Vec<String>,
}

/// Reads all layers.
pub fn load_config(place: &Place, sources: &Sources) -> Result<LoadedConfig, ConfigFileError> {
    let mut layers = own_layers(place, sources)?;
    let chosen = layers
        .iter()
        .rev()
        .find_map(|layer| layer.values.get("target")?.as_str().map(str::to_owned));
    let target = match chosen.filter(|target| target != "auto") {
        Some(branch) => Some(branch),
        None => place.repository().default_target()?,
    };
    let tip = match &target {
        Some(branch) => place
            .repository()
            .resolve(&format!("refs/heads/{branch}"))?,
        None => None,
    };
    let mut notes = Vec::new();
    let target = target.zip(tip.map(|tip| tip.as_str().to_owned()));
    if let Some((branch, tip)) = &target {
        let text = shared_text(place, tip)?;
        notes.extend(checkout_note(place, branch, &text));
        match text.parse() {
            Ok(values) => layers.push(Layer {
                origin: Origin::Repository(branch.clone()),
                values,
            }),
            Err(error) => notes.push(format!(
                "weald.toml at {branch} is no TOML and does not count: {error}"
            )),
        }
    }
    Ok(LoadedConfig {
        config: resolve(layers)?,
        target,
        notes,
    })
}

/// Everything that is the user's own word.
fn own_layers(place: &Place, sources: &Sources) -> Result<Vec<Layer>, ConfigFileError> {
    let mut layers = Vec::new();
    if let Some(path) = &sources.user_file {
        layers.extend(file_layer(path, Origin::User)?);
    }
    layers.extend(file_layer(
        &place.private().join(PRIVATE_FILE),
        Origin::Private,
    )?);
    for key in KEYS {
        let name = variable_of(key);
        if let Some((_, value)) = sources
            .variables
            .iter()
            .find(|(variable, _)| *variable == name)
        {
            layers.push(single(Origin::Variable(name), key, value));
        }
    }
    for (name, value) in &sources.flags {
        layers.push(single(
            Origin::Flag("set".to_owned()),
            require_key(name)?,
            value,
        ));
    }
    Ok(layers)
}

fn single(origin: Origin, key: &Key, value: &str) -> Layer {
    let mut values = toml::Table::new();
    values.insert(key.name.to_owned(), from_text(key, value));
    Layer { origin, values }
}

fn file_layer(path: &Path, origin: fn(String) -> Origin) -> Result<Option<Layer>, ConfigFileError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(ConfigFileError::File {
                path: path.to_owned(),
                source,
            });
        }
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
    if let Some(text) = fs::read_to_string(&cache)
        .ok()
        .as_deref()
        .and_then(|cached| cached.strip_prefix(tip))
    {
        return Ok(text.strip_prefix('\n').unwrap_or(text).to_owned());
    }
    let blob = place
        .repository()
        .blob_at(tip, SHARED_FILE, FILE_LIMIT)?
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&blob).into_owned();
    if place.private().is_dir() {
        // A cache that can't be written costs time, nothing else.
        let _ = replace_file(&cache, &format!("{tip}\n{text}"));
    }
    Ok(text)
}

/// People expect the file they see to count; say so when it does not.
fn checkout_note(place: &Place, branch: &str, at_tip: &str) -> Option<String> {
    let path = place.repository().checkout()?.join(SHARED_FILE);
    let here = fs::read_to_string(path).ok()?;
    (here != at_tip)
        .then(|| format!("weald.toml here differs from the one on {branch}; only that one counts"))
}

/// Finds a key or says which one was meant.
pub fn require_key(name: &str) -> Result<&'static Key, ConfigFileError> {
    let similar = || {
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        KEYS.iter()
            .map(|key| key.name)
            .find(|known| last(known) == last(name) || known.contains(name))
    };
    find_key(name).ok_or_else(|| ConfigFileError::UnknownKey {
        key: name.to_owned(),
        similar: similar(),
    })
}

/// Sets a key in a file, keeping everything else in it as it is. Makes the file if there is none.
pub fn edit_file(path: &Path, name: &str, value: &str) -> Result<Value, ConfigFileError> {
    let key = require_key(name)?;
    let raw = from_text(key, value);
    let checked = check_value(key, &raw).map_err(|reason| ConfigFileError::BadValue {
        key: name.to_owned(),
        reason,
    })?;
    let mut document = read_document(path)?;
    let (table, leaf) = table_of(&mut document, name);
    table.insert(leaf, toml_edit::Item::Value(as_edit_value(&checked)));
    write_document(path, &document)?;
    Ok(checked)
}

/// Takes a key out of a file; false if it was not there.
pub fn remove_key(path: &Path, name: &str) -> Result<bool, ConfigFileError> {
    require_key(name)?;
    let mut document = read_document(path)?;
    let (table, leaf) = table_of(&mut document, name);
    let removed = table.remove(leaf).is_some();
    if removed {
        write_document(path, &document)?;
    }
    Ok(removed)
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
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => {
            return Err(ConfigFileError::File {
                path: path.to_owned(),
                source,
            });
        }
    };
    text.parse()
        .map_err(|error: toml_edit::TomlError| ConfigFileError::Syntax {
            path: path.to_owned(),
            message: error.to_string(),
        })
}

fn write_document(path: &Path, document: &toml_edit::DocumentMut) -> Result<(), ConfigFileError> {
    replace_file(path, &document.to_string()).map_err(|source| ConfigFileError::File {
        path: path.to_owned(),
        source,
    })
}

/// Writes a file beside its place and renames it there.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let building = PathBuf::from(name);
    fs::write(&building, text)?;
    fs::rename(&building, path).inspect_err(|_| {
        let _ = fs::remove_file(&building);
    })
}
