//! The configuration of a repository: what counts, where each value comes from, and changing it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weald_core::config::{
    Config, KEYS, Key, Origin, Value, check_value, find_key, from_text, names_guard, profile_text,
};
use weald_core::secrets::{STORES, unknown_to_reveal};
use weald_core::store::Durability;

use super::Operation;
use crate::{
    Call, ConfigFileError, Failure, INCLUDE_FILE, PRIVATE_FILE, Place, ProjectProposal,
    ProposedSetting, SHARED_FILE, edit_file, exit, hidden_uses, remove_key, require_key,
};

entries!(ShowConfig, GetConfig, SetConfig, UnsetConfig, ChooseProfile);

/// What runs may see of the hidden.
const REVEAL: &str = "sandbox.reveal";

/// Shows what counts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowConfig {
    /// Every key unless given.
    pub key: Option<String>,
    /// Only keys whose names begin with it.
    #[serde(default)]
    pub prefix: Option<String>,
    /// Only keys that some source sets.
    #[serde(default)]
    pub changed: bool,
}

/// The configuration, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShownConfig {
    /// The values that count, and what was ignored.
    pub config: ConfigValues,
}

/// The values that count here and now.
#[derive(Debug, Serialize, Deserialize)]
pub struct ConfigValues {
    /// What some source sets without effect.
    pub ignored: Vec<IgnoredKey>,
    /// Where the shared file was read; `None` without a commit.
    pub target: Option<Target>,
    /// One for each key that was asked for, set or not, in the order of the table of keys.
    pub values: Vec<KeyValue>,
}

/// A setting without effect: unknown, of the wrong type, or not for this source to set.
#[derive(Debug, Serialize, Deserialize)]
pub struct IgnoredKey {
    /// As it is written there.
    pub key: String,
    /// Where it is set, in the words of [`KeyValue::origin`].
    pub origin: String,
    /// Why it has no effect.
    pub reason: String,
}

/// Where the shared file was read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Target {
    /// The one that work lands on.
    pub branch: String,
    /// Its tip at that moment.
    pub commit: String,
}

/// A key, and its value.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeyValue {
    /// One line that describes the key.
    pub about: String,
    /// What holds if no source sets it.
    pub default: Value,
    /// Its full name, as in `gate.timeout`.
    pub key: String,
    /// `default`, `profile NAME`, `weald.toml at BRANCH`, the path of another file, `$VARIABLE` or `--FLAG`.
    pub origin: String,
    /// Its default if no source sets it.
    pub value: Value,
}

impl Operation for ShowConfig {
    const NAME: &'static str = "config_show";
    const READS: bool = true;
    type Output = ShownConfig;

    fn run(self, call: &Call<'_>) -> Result<ShownConfig, Failure> {
        if let Some(key) = &self.key {
            require_key(key)?;
        }
        if let Some(prefix) = &self.prefix
            && !KEYS.iter().any(|key| self.wants(key))
        {
            require_key(prefix)?;
        }
        let loaded = call.config(&call.place()?)?;
        for note in &loaded.notes {
            call.note(note);
        }
        call.warn_of_ignored(&loaded);
        let values = KEYS.iter().filter(|key| self.wants(key));
        let values = values.map(|key| KeyValue::of(key, &loaded.config));
        let values = values.filter(|one| !self.changed || !one.is_default());
        let values: Vec<_> = values.collect();
        let ignored = loaded.config.ignored.iter().map(|ignored| IgnoredKey {
            key: ignored.key.clone(),
            origin: ignored.origin.to_string(),
            reason: ignored.reason.clone(),
        });
        let config = ConfigValues {
            ignored: ignored.collect(),
            target: loaded
                .target
                .map(|(branch, commit)| Target { branch, commit }),
            values,
        };
        Ok(ShownConfig { config })
    }
}

impl ShowConfig {
    fn wants(&self, key: &Key) -> bool {
        let is_named = self.key.as_ref().is_none_or(|name| key.name == name);
        let prefix = self.prefix.as_ref();
        is_named && prefix.is_none_or(|prefix| key.name.starts_with(prefix.as_str()))
    }
}

impl KeyValue {
    fn of(key: &Key, config: &Config) -> Self {
        let (value, origin) = config.get(key.name);
        let default = check_value(key, &from_text(key, key.default)).expect("defaults are valid");
        Self {
            about: key.about.to_owned(),
            default,
            key: key.name.to_owned(),
            origin: origin.to_string(),
            value: value.clone(),
        }
    }

    /// Whether no source sets it.
    pub fn is_default(&self) -> bool {
        self.origin == Origin::Default.to_string()
    }
}

/// Reads one value.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetConfig {
    /// Its full name, as in `gate.timeout`.
    pub key: String,
}

/// One value, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct OneKey {
    /// The key, its value, and where that is set.
    pub config: KeyValue,
}

impl Operation for GetConfig {
    const NAME: &'static str = "config_get";
    const READS: bool = true;
    type Output = OneKey;

    fn run(self, call: &Call<'_>) -> Result<OneKey, Failure> {
        let key = require_key(&self.key)?;
        let loaded = call.config(&call.place()?)?;
        call.warn_of_ignored(&loaded);
        let config = KeyValue::of(key, &loaded.config);
        Ok(OneKey { config })
    }
}

/// Sets a key in the repository's private file, or in the user's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Its full name, as in `gate.timeout`.
    pub key: String,
    /// As text; commas separate the items of a list, which replaces the one set before.
    pub value: String,
    /// In the user's own file, for all repositories.
    #[serde(default)]
    pub global: bool,
}

/// What was set, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct ConfigSet {
    /// The key, and its value.
    pub config: SetKey,
}

/// A key that was set.
#[derive(Debug, Serialize, Deserialize)]
pub struct SetKey {
    /// The absolute path of the file.
    pub file: String,
    /// What runs could see before, where that is what was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_again: Option<Vec<String>>,
    /// Its full name.
    pub key: String,
    /// As it was understood, with its type.
    pub value: Value,
}

impl Operation for SetConfig {
    const NAME: &'static str = "config_set";
    type Output = ConfigSet;

    fn run(self, call: &Call<'_>) -> Result<ConfigSet, Failure> {
        self.refuse_unknown_stores()?;
        let (path, before) = match self.global {
            true => (call.user_file(&self.key)?, None),
            false => {
                let place = call.place()?;
                call.refuse_loosening(&self.key, Some(&self.value))?;
                (place.private().join(PRIVATE_FILE), self.revealed(call)?)
            }
        };
        let value = edit_file(&path, &self.key, &self.value)?;
        let now = match &before {
            Some(_) => self.revealed(call)?,
            None => None,
        };
        let hidden_again = before.map(|mut names| {
            names.retain(|name| !now.iter().flatten().any(|still| still == name));
            names
        });
        for name in hidden_again.iter().flatten() {
            call.note(&format!(
                "{name} was revealed and is hidden from runs again"
            ));
        }
        let config = SetKey {
            file: path.display().to_string(),
            hidden_again,
            key: self.key,
            value,
        };
        Ok(ConfigSet { config })
    }
}

impl SetConfig {
    /// What runs may see of the hidden, if that is what is set here.
    fn revealed(&self, call: &Call<'_>) -> Result<Option<Vec<String>>, Failure> {
        if self.key != REVEAL {
            return Ok(None);
        }
        let loaded = call.config(&call.place()?)?;
        Ok(Some(loaded.config.sandbox_reveal.clone()))
    }

    /// Refuses to reveal what is neither a store nor a variable: nothing would come of it.
    fn refuse_unknown_stores(&self) -> Result<(), Failure> {
        let Some(key) = find_key(&self.key).filter(|key| key.name == REVEAL) else {
            return Ok(());
        };
        let Ok(Value::List(names)) = check_value(key, &from_text(key, &self.value)) else {
            return Ok(());
        };
        let unknown = names
            .iter()
            .find_map(|name| Some((name, unknown_to_reveal(name)?)));
        let Some((name, nearest)) = unknown else {
            return Ok(());
        };
        let known: Vec<_> = STORES.iter().map(|store| store.name).collect();
        let known = known.join(", ");
        let message = format!(
            "`{name}` is neither a variable nor a store of secrets; the stores are {known}"
        );
        let failure = Failure::new("unknown_store", exit::USAGE, message);
        Err(failure.hint(format!("did you mean `{nearest}`?")))
    }
}

impl Call<'_> {
    /// The user's own file, to change `key` in it. It holds for every repository, so an agent may set nothing there that
    /// guards: what loosens nothing here may loosen much elsewhere.
    fn user_file(&self, key: &str) -> Result<PathBuf, Failure> {
        require_key(key)?;
        if names_guard(key) {
            self.refuse_agent_anywhere("weald config set --global")?;
        }
        let path = self.sources().user_file.ok_or_else(|| {
            Failure::new("no_home", exit::NOT_FOUND, "HOME is not set")
                .hint("set it to the absolute path of your home directory")
        })?;
        // People keep theirs elsewhere and link to it; the link stays.
        Ok(path.canonicalize().unwrap_or(path))
    }
}

/// Removes a key from the repository's private file, or from the user's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnsetConfig {
    /// Its full name, as in `gate.timeout`.
    pub key: String,
    /// From the user's own file.
    #[serde(default)]
    pub global: bool,
}

/// What was removed, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct ConfigUnset {
    /// The key, and whether it was there.
    pub config: UnsetKey,
}

/// A key that the file no longer sets. Another source still may.
#[derive(Debug, Serialize, Deserialize)]
pub struct UnsetKey {
    /// The absolute path of the file.
    pub file: String,
    /// Its full name.
    pub key: String,
    /// Whether it was set there.
    pub removed: bool,
}

impl Operation for UnsetConfig {
    const NAME: &'static str = "config_unset";
    type Output = ConfigUnset;

    fn run(self, call: &Call<'_>) -> Result<ConfigUnset, Failure> {
        let path = match self.global {
            true => call.user_file(&self.key)?,
            false => {
                let place = call.place()?;
                call.refuse_loosening(&self.key, None)?;
                place.private().join(PRIVATE_FILE)
            }
        };
        let config = UnsetKey {
            removed: remove_key(&path, &self.key)?,
            file: path.display().to_string(),
            key: self.key,
        };
        Ok(ConfigUnset { config })
    }
}

/// Chooses the conventions of a repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChooseProfile {
    /// The current one unless given.
    pub profile: Option<String>,
    /// In the file that everyone gets, instead of the private one.
    pub shared: bool,
    /// Also write the settings that the project's files propose.
    #[serde(default)]
    pub yes: bool,
    /// Ask a person at a terminal whether to write them.
    #[serde(default)]
    pub ask: bool,
}

/// The chosen conventions, as one object.
#[derive(Debug, Serialize, Deserialize)]
pub struct ChosenProfile {
    /// What was written, and what the user may want to do next.
    pub init: Initialized,
}

/// A repository with its conventions.
#[derive(Debug, Serialize, Deserialize)]
pub struct Initialized {
    /// The absolute path of the file that names the profile now.
    pub file: String,
    /// The name of the profile, also if it was the current one before.
    pub profile: String,
    /// The command that shows runs what the project seems to use.
    pub reveal: Option<String>,
    /// Whether that is the shared file, which counts only once it is committed on the target.
    pub shared: bool,
    /// What the project's files show, and the settings that they propose.
    pub project: ProjectProposal,
    /// The keys that were written of those.
    pub written: Vec<String>,
    /// What shows that it uses it.
    #[serde(skip)]
    pub because: String,
    /// The branch from which the shared file is read.
    #[serde(skip)]
    pub target: Option<String>,
}

impl Operation for ChooseProfile {
    const NAME: &'static str = "init";
    type Output = ChosenProfile;

    fn run(self, call: &Call<'_>) -> Result<ChosenProfile, Failure> {
        let place = call.place()?;
        let path = self.file(&place)?;
        // The first use makes the private directory, with its permissions.
        call.engine()?;
        let profile = match self.profile {
            Some(profile) => profile,
            None => call.config(&place)?.config.profile.to_owned(),
        };
        if !self.shared {
            call.refuse_loosening("profile", Some(&profile))?;
        }
        edit_file(&path, "profile", &profile)?;
        // A profile may want files for other tools; they are there at once.
        let engine = call.engine()?;
        engine.catch_up(Durability::Process);
        call.tell(&engine);
        let target = call.config(&place)?.target.map(|(branch, _)| branch);
        if let Some(folder) = folder_inside(&profile) {
            call.warn(&format!(
                "worktrees are inside the checkout, in {folder}/: `git clean -ffdx` deletes them for good (with a single -f it leaves them alone)"
            ));
        }
        let (reveal, because) = proposal(call, &place)?.unzip();
        let project = project_of(call, self.shared)?;
        let chosen = match (self.yes, self.ask && !project.settings.is_empty()) {
            (true, _) => project.settings.clone(),
            (_, true) => call.progress.choose(&project)?,
            _ => Vec::new(),
        };
        let written = write_chosen(call, &place, &path, &chosen, self.shared)?;
        let init = Initialized {
            file: path.display().to_string(),
            profile,
            reveal,
            shared: self.shared,
            project,
            written,
            because: because.unwrap_or_default(),
            target,
        };
        Ok(ChosenProfile { init })
    }
}

impl ChooseProfile {
    fn file(&self, place: &Place) -> Result<PathBuf, Failure> {
        let checkout = place.repository().checkout().map(Path::to_owned);
        match (self.shared, checkout) {
            (false, _) => Ok(place.private().join(PRIVATE_FILE)),
            (true, Some(checkout)) => Ok(checkout.join(SHARED_FILE)),
            (true, None) => Err(Failure::new(
                "bare_repository",
                exit::REFUSED,
                "a bare repository has no checkout to write weald.toml in",
            )
            .hint("weald init (without --shared)")),
        }
    }
}

/// What the files of the main checkout propose. A repository without one proposes nothing.
fn project_of(call: &Call<'_>, shared: bool) -> Result<ProjectProposal, Failure> {
    let ground = call.ground()?;
    let Some(checkout) = ground.place.repository().checkout().map(Path::to_owned) else {
        return Ok(ProjectProposal::default());
    };
    let trees = ground.trees(call)?;
    let config = call.config(&ground.place)?.config;
    ProjectProposal::of(&trees, &config, &checkout, shared)
}

/// Writes chosen settings, all or none as far as they can be checked before; answers their keys.
fn write_chosen(
    call: &Call<'_>,
    place: &Place,
    path: &Path,
    chosen: &[ProposedSetting],
    shared: bool,
) -> Result<Vec<String>, Failure> {
    let (files, keys): (Vec<_>, Vec<_>) = chosen.iter().partition(|one| one.key == INCLUDE_FILE);
    for one in &keys {
        let key = require_key(&one.key)?;
        check_value(key, &from_text(key, &one.value)).map_err(|reason| {
            ConfigFileError::BadValue {
                key: one.key.clone(),
                reason,
            }
        })?;
        if !shared {
            call.refuse_loosening(&one.key, Some(&one.value))?;
        }
    }
    for one in &keys {
        edit_file(path, &one.key, &one.value)?;
    }
    if let Some(checkout) = place.repository().checkout() {
        for one in &files {
            let lines = one
                .value
                .split(',')
                .map(|line| format!("{}\n", line.trim()));
            let include = checkout.join(INCLUDE_FILE);
            // One that somebody made meanwhile is theirs.
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&include);
            let written =
                file.and_then(|mut file| file.write_all(lines.collect::<String>().as_bytes()));
            written.map_err(|source| Failure::file(&include, &source))?;
        }
    }
    Ok(chosen.iter().map(|one| one.key.clone()).collect())
}

/// The command that would reveal what the project seems to use of the hidden, and what shows that. Only the user decides.
fn proposal(call: &Call<'_>, place: &Place) -> Result<Option<(String, String)>, Failure> {
    let Some(checkout) = place.repository().checkout() else {
        return Ok(None);
    };
    let config = call.config(place)?.config;
    let (home, all) = (call.environment.home(), call.environment.for_commands());
    let used = hidden_uses(&config, checkout, home.as_deref(), &all);
    if used.is_empty() {
        return Ok(None);
    }
    // The setting is replaced as a whole, so what it has comes along.
    let mut names = config.sandbox_reveal.to_vec();
    names.extend(used.iter().map(|it| it.name.clone()));
    let because = used
        .iter()
        .map(|it| format!("{} ({})", it.name, it.because));
    let because = because.collect::<Vec<_>>().join(", ");
    let command = format!("weald config set sandbox.reveal {}", names.join(","));
    Ok(Some((command, because)))
}

/// The folder in the checkout that a profile puts worktrees into.
fn folder_inside(profile: &str) -> Option<&'static str> {
    let lines = profile_text(profile)?.lines();
    let mut inside = lines.filter_map(|line| line.strip_prefix("tree.path = \"{repo}/"));
    inside.next()?.split("/{").next()
}
