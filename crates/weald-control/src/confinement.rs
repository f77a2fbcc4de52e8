//! What a run may do, by the configuration.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use weald_core::config::{Config, NetworkPolicy, SandboxLevel};
use weald_core::hosts::{HostRule, host_of_url, of_driver, registries, urls_in_settings};
use weald_core::id::TreeId;
use weald_core::secrets::{self, SecretStore, Use};
use weald_git::{born, device};
use weald_sandbox::{Host, Level, Limits, Network, Policy};

use crate::files::read_small;
use crate::marker::hash_of;
use crate::place::CONTROL_PLANE;
use crate::standing::repositories;

/// Who wants to run something, and where.
pub struct SandboxRequest<'a> {
    /// What relative paths in the configuration start from: the main checkout.
    pub main: PathBuf,
    pub home: Option<PathBuf>,
    /// The user's variables: some lead programs to secrets elsewhere.
    pub variables: &'a [(OsString, OsString)],
    /// The directories to be written.
    pub write: Vec<PathBuf>,
    /// What must not be seen: control planes.
    pub masked: Vec<PathBuf>,
    /// Where weald keeps what is the user's and no repository's.
    pub state: Option<PathBuf>,
    /// Where what the run writes to its home is kept; `None` for a home of which it can write nothing.
    pub home_layer: Option<PathBuf>,
}

/// The policy of a run: the directories asked for, and what the configuration says of the rest. The control plane of the
/// repository is never seen from inside.
pub fn sandbox_policy(config: &Config, request: SandboxRequest<'_>) -> Policy {
    let home = request.home.as_deref();
    let paths = |list: &[String]| {
        list.iter()
            .map(|path| request.main.join(expand(path, home)))
            .collect::<Vec<_>>()
    };
    let mut write = request.write;
    write.extend(paths(&config.sandbox_write));
    let mut hidden = paths(&config.sandbox_read_deny);
    hidden.extend(never_seen(home, request.state.as_deref()));
    hidden.extend(secrets_of_root());
    let stores = secrets::hidden_paths(&config.sandbox_reveal);
    let stores = secrets::places(stores, home, variable_of(request.variables));
    // What holds a directory to be written can't be meant.
    let is_needed = |path: &PathBuf| write.iter().any(|it| it.starts_with(path));
    hidden.extend(stores.into_iter().filter(|path| !is_needed(path)));
    let mut mask = request.masked;
    mask.extend(control_planes(request.state.as_deref()));
    // Hidden and masked: what this run alone may see of it lies on top of the mask.
    mask.extend(made_state(request.state.as_deref()));
    mask.retain(|folder| !write.iter().any(|path| path.starts_with(folder)));
    mask.sort();
    mask.dedup();
    let count = |number: u64| Some(number).filter(|number| *number > 0);
    Policy {
        level: match config.sandbox_level {
            SandboxLevel::Landlock => Level::Landlock,
            SandboxLevel::Full => Level::Full,
        },
        mask,
        hidden,
        sockets: paths(&config.sandbox_sockets),
        datagrams: config.sandbox_datagrams,
        devices: paths(&config.sandbox_devices),
        network: match config.sandbox_network {
            NetworkPolicy::Off => Network::Off,
            NetworkPolicy::Allow => Network::Allow,
            NetworkPolicy::On => Network::On,
        },
        hosts: hosts(&config.sandbox_hosts),
        home_layer: request.home_layer,
        home: request.home.clone(),
        limits: Limits {
            cpu: count(config.sandbox_cpu_seconds).map(std::time::Duration::from_secs),
            memory: config.sandbox_memory,
            processes: count(config.sandbox_processes),
            file_size: config.sandbox_file_size,
            tmp: config.sandbox_tmp,
            ..Limits::default()
        },
        debugs: true,
        write,
        ..Policy::default()
    }
}

/// Hosts as the sandbox takes them. They were checked when they were read.
pub fn hosts(list: &[String]) -> Vec<Host> {
    let rules = list.iter().filter_map(|text| text.parse::<HostRule>().ok());
    let host = |HostRule { name, below, port }| Host { name, below, port };
    rules.map(host).collect()
}

/// The hosts that an agent talks to its model by: those of its maker, and where the user's variables and settings lead it.
/// Nothing in a worktree takes part.
pub fn driver_hosts(
    driver: &str,
    home: Option<&Path>,
    variables: &[(OsString, OsString)],
) -> Vec<Host> {
    let variable = variable_of(variables);
    let named = weald_core::hosts::variables_of_driver(driver).iter();
    let named = named.filter_map(|name| variable(name)?.into_os_string().into_string().ok());
    let (folder, usual, file) = match driver {
        "claude" => ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        _ => ("CODEX_HOME", ".codex", "config.toml"),
    };
    let folder = variable(folder).or_else(|| home.map(|home| home.join(usual)));
    let settings =
        folder.and_then(|folder| read_small(&folder.join(file), PROJECT_FILE).ok().flatten());
    let in_settings = settings.map(|text| urls_in_settings(driver, &text));
    let urls = named.chain(in_settings.into_iter().flatten());
    let mut all: Vec<_> = of_driver(driver)
        .iter()
        .map(|it| (*it).to_owned())
        .collect();
    all.extend(urls.filter_map(|url| Some(host_of_url(&url)?.to_string())));
    hosts(&all)
}

/// Registries that the project in a checkout seems to load from, and that no entry of the list allows.
pub fn missing_registries(config: &Config, checkout: &Path) -> Vec<String> {
    let mut found = registries(|file| checkout.join(file).is_file());
    found.retain(|host| !config.sandbox_hosts.iter().any(|listed| listed == host));
    found.into_iter().map(str::to_owned).collect()
}

/// What no run sees of weald's own: the user's state folder, with the runs, agents' homes and secrets of all repositories,
/// and the layers of other runs' homes.
pub(crate) fn never_seen(home: Option<&Path>, state: Option<&Path>) -> Vec<PathBuf> {
    let state = state.map(Path::to_owned);
    // Also the usual one: another process may be without the variable that leads this one elsewhere.
    let usual = home.map(|home| home.join(".local/state/weald"));
    let layers = home.map(layers);
    state.into_iter().chain(usual).chain(layers).collect()
}

/// The user's state folder, made now: another repository may be used for the first time while a run goes on.
fn made_state(state: Option<&Path>) -> Option<PathBuf> {
    let state = state?;
    let mut builder = DirBuilder::new();
    let _ = builder.recursive(true).mode(0o700).create(state);
    state.is_dir().then(|| state.to_owned())
}

/// What root alone can read, for root's own runs, also what is made later. Other users' runs can't open these anyway.
fn secrets_of_root() -> impl Iterator<Item = PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    let files = secrets::OF_ROOT.iter().filter(move |_| is_root);
    files.map(PathBuf::from)
}

/// What weald keeps in the repositories of this user. The vaults, which worktrees borrow from, are beside these folders.
pub(crate) fn control_planes(state: Option<&Path>) -> Vec<PathBuf> {
    let repositories = state.map(repositories).unwrap_or_default();
    let used = repositories
        .iter()
        .map(|common| common.join("weald"))
        .filter(|weald| weald.is_dir());
    let planes = used.flat_map(|weald| CONTROL_PLANE.map(|folder| weald.join(folder)));
    planes
        .inspect(|folder| {
            // A mask lies only on what is there, and the first agent of that repository may start while a run goes on here.
            let _ = DirBuilder::new().mode(0o700).create(folder);
        })
        .filter(|folder| folder.is_dir())
        .collect()
}

/// Variables that say by whom and under which claim weald was called. A run is not its caller; an agent gets its own.
const CALLERS: [&str; 2] = ["WEALD_SESSION", "WEALD_TOKEN"];

/// Variables of the caller's that a run gets: all but those that look like a secret, or say who the caller is.
pub fn without_secrets(
    config: &Config,
    environment: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let revealed = &config.sandbox_reveal;
    let all = environment.into_iter();
    all.filter(|(name, _)| CALLERS.iter().all(|caller| name != caller))
        .filter(|(name, value)| !is_secret(name, value, revealed))
        .collect()
}

/// What is hidden from runs on this machine: names of stores that are there, and of variables that are set.
pub fn hidden_names(
    config: &Config,
    home: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Vec<String> {
    let revealed = &config.sandbox_reveal;
    let is_there = |store: &SecretStore| {
        let paths = store.paths.iter().copied();
        let places = secrets::places(paths, home, variable_of(environment));
        places.iter().any(|path| path.symlink_metadata().is_ok())
    };
    let stores = secrets::STORES
        .iter()
        .filter(|store| !revealed.iter().any(|name| name == store.name) && is_there(store));
    let variables = environment
        .iter()
        .filter(|(name, value)| is_secret(name, value, revealed));
    let variables = variables.filter_map(|(name, _)| name.to_str());
    stores
        .map(|store| store.name)
        .chain(variables)
        .map(str::to_owned)
        .collect()
}

/// What a project seems to use of what is hidden from its runs on this machine.
pub fn hidden_uses(
    config: &Config,
    checkout: &Path,
    home: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Vec<Use> {
    let text = |file: &str| read_small(&checkout.join(file), PROJECT_FILE).ok()?;
    let is_set = |wanted: &str| environment.iter().any(|(name, _)| name == wanted);
    let mut used = secrets::uses(text, is_set);
    let hidden = hidden_names(config, home, environment);
    used.retain(|it| hidden.contains(&it.name));
    used
}

/// The longest file of a project that is looked at.
const PROJECT_FILE: u64 = 1 << 20;

/// Looks a variable up that names a path.
pub fn variable_of(variables: &[(OsString, OsString)]) -> impl Fn(&str) -> Option<PathBuf> + '_ {
    move |wanted| {
        let found = variables.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| PathBuf::from(value))
    }
}

/// Whether a variable looks like a secret, by its name or by its value.
fn is_secret(name: &OsStr, value: &OsStr, revealed: &[String]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let is_named = revealed.iter().any(|known| known == name);
    let by_value = || !is_named && value.to_str().is_some_and(secrets::is_secret_value);
    secrets::hides_variable(name, revealed) || by_value()
}

/// Where the layers of homes lie.
fn layers(home: &Path) -> PathBuf {
    home.join(".cache/weald/layers")
}

/// Where what runs in a directory write to their home is kept, if the directory is no tree: for this very directory, also
/// if it is moved, and not for another one that takes its place.
pub fn home_layer_of(home: &Path, directory: &Path) -> PathBuf {
    let Ok(found) = directory.metadata() else {
        return home_layer_at(home, directory);
    };
    let number = found.ino();
    layers(home).join(match born(&found) {
        Some(born) => format!("{number:x}-{born:x}"),
        None => format!("{number:x}-{:x}-device", device(directory, &found)),
    })
}

/// The same for one that weald itself makes and deletes at this path.
pub fn home_layer_at(home: &Path, directory: &Path) -> PathBuf {
    let path = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    layers(home).join(format!("{:016x}", hash_of(&path)))
}

/// Where what runs in a tree write to their home is kept: for this tree alone, also if another one gets its name later.
pub fn home_layer_of_tree(home: &Path, repository: &Path, tree: TreeId) -> PathBuf {
    layers(home).join(format!("{:016x}-{tree}", hash_of(repository)))
}

fn expand(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
