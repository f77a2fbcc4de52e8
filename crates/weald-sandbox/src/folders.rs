//! Folders that tools write below the home, at level landlock: there is no view of its own there, so variables lead them to a
//! private folder. Level full needs none of this: all of its home can be written.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::policy::{Level, Policy};

/// A tool's variable, the folder that stands in for what it names, and the tool's own folder below the home.
///
/// A tool whose own folder exists keeps reading it where that is worth more than writing (`warm`): cargo's registry.
struct Folder {
    variable: &'static str,
    name: &'static str,
    warm: Option<&'static str>,
}

const fn folder(variable: &'static str, name: &'static str) -> Folder {
    Folder {
        variable,
        name,
        warm: None,
    }
}

const FOLDERS: &[Folder] = &[
    folder("XDG_CACHE_HOME", "cache"),
    folder("XDG_STATE_HOME", "state"),
    folder("npm_config_cache", "npm"),
    folder("npm_config_prefix", "npm-global"),
    folder("npm_config_store_dir", "pnpm-store"),
    folder("YARN_CACHE_FOLDER", "yarn"),
    folder("BUN_INSTALL_CACHE_DIR", "bun"),
    folder("PIP_CACHE_DIR", "pip"),
    folder("PYTHONUSERBASE", "python"),
    folder("PIPX_HOME", "pipx"),
    folder("UV_CACHE_DIR", "uv"),
    folder("UV_TOOL_DIR", "uv-tools"),
    folder("PRE_COMMIT_HOME", "pre-commit"),
    folder("GOCACHE", "go-build"),
    folder("GOMODCACHE", "go-mod"),
    folder("CCACHE_DIR", "ccache"),
    folder("SCCACHE_DIR", "sccache"),
    folder("ZIG_GLOBAL_CACHE_DIR", "zig"),
    folder("HF_HOME", "huggingface"),
    folder("JUPYTER_DATA_DIR", "jupyter"),
    Folder {
        variable: "CARGO_HOME",
        name: "cargo",
        warm: Some(".cargo/registry"),
    },
    Folder {
        variable: "GRADLE_USER_HOME",
        name: "gradle",
        warm: Some(".gradle/caches"),
    },
];

/// Where programs keep what they can make again.
pub const CACHE: &str = "XDG_CACHE_HOME";

/// The cache in the home, where the caller's variable leads to a folder that is read-only inside. In the home, all can be
/// written.
pub fn own_cache(policy: &Policy, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let (Level::Full, Some(home), Some(_)) = (policy.level, &policy.home, &policy.home_layer)
    else {
        return None;
    };
    let (_, named) = environment.iter().find(|(name, _)| name == CACHE)?;
    let named = PathBuf::from(named);
    let named = named.canonicalize().unwrap_or(named);
    let is_written = policy.write.iter().any(|write| named.starts_with(write));
    (!is_written && !named.starts_with(home)).then(|| home.join(".cache"))
}

/// The folders that this policy gives, with the variable that names each.
fn given(policy: &Policy) -> Vec<(&'static str, PathBuf)> {
    let (Level::Landlock, Some(layer)) = (policy.level, &policy.home_layer) else {
        return Vec::new();
    };
    let is_warm = |warm: &str| {
        let home = policy.home.as_deref();
        home.is_some_and(|home| home.join(warm).is_dir())
    };
    let wanted = FOLDERS
        .iter()
        .filter(|folder| !folder.warm.is_some_and(is_warm));
    wanted
        .map(|folder| (folder.variable, layer.join("folders").join(folder.name)))
        .collect()
}

/// Makes the folders on the host, and gives their variables.
pub fn prepare(policy: &Policy) -> io::Result<Vec<(OsString, OsString)>> {
    let given = given(policy);
    for (_, path) in &given {
        fs::create_dir_all(path)?;
    }
    let named = |(variable, path): (&str, PathBuf)| (variable.into(), path.into());
    Ok(given.into_iter().map(named).collect())
}

/// The folders themselves: they may be written.
pub fn writable(policy: &Policy) -> Vec<PathBuf> {
    given(policy).into_iter().map(|(_, path)| path).collect()
}
