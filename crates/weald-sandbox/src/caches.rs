//! The folders of package managers: warm inside, and safe from the inside.
//!
//! A folder that exists is seen through a private upper layer: reads come from the host's, writes go to the layer. One that
//! does not exist (nothing can be mounted there) is replaced by a private folder that the manager's variable names.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::policy::Policy;

/// A folder of a package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Below the home.
    pub path: &'static str,
    /// What names another place for it.
    pub variable: Option<&'static str>,
}

const fn cache(path: &'static str, variable: Option<&'static str>) -> Cache {
    Cache { path, variable }
}

/// Every folder weald knows.
pub const CACHES: &[Cache] = &[
    cache(".cargo/registry", None),
    cache(".cargo/git", None),
    cache(".npm", Some("npm_config_cache")),
    cache(".cache/pip", Some("PIP_CACHE_DIR")),
    cache(".cache/uv", Some("UV_CACHE_DIR")),
    cache(".cache/yarn", Some("YARN_CACHE_FOLDER")),
    cache(".cache/go-build", Some("GOCACHE")),
    cache("go/pkg/mod", Some("GOMODCACHE")),
    cache(".local/share/pnpm/store", None),
    cache(".m2/repository", None),
    cache(".gradle/caches", None),
];

/// A cache as a run sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Where it lies.
    pub path: PathBuf,
    /// What is written to it.
    pub upper: PathBuf,
    /// The kernel's scratch space.
    pub work: PathBuf,
}

/// The layers for the caches that exist. A cache inside a writable directory, or around one, is left alone.
pub fn layers(policy: &Policy) -> Vec<Layer> {
    let (Some(home), Some(layers)) = (&policy.home, &policy.cache_layers) else {
        return Vec::new();
    };
    let overlaps = |path: &Path| {
        policy
            .write
            .iter()
            .any(|write| write.starts_with(path) || path.starts_with(write))
    };
    let existing = CACHES.iter().map(|cache| (cache, home.join(cache.path)));
    let usable =
        existing.filter(|(_, path)| path.is_dir() && !path.is_symlink() && !overlaps(path));
    usable
        .map(|(cache, path)| {
            let base = layers.join(folder_name(cache));
            Layer {
                path,
                upper: base.join("upper"),
                work: base.join("work"),
            }
        })
        .collect()
}

/// Makes the folders of the layers on the host, and gives the variables for the caches that don't exist.
pub fn prepare(policy: &Policy) -> io::Result<Vec<(OsString, OsString)>> {
    for layer in layers(policy) {
        fs::create_dir_all(&layer.upper)?;
        fs::create_dir_all(&layer.work)?;
    }
    let (Some(home), Some(layers)) = (&policy.home, &policy.cache_layers) else {
        return Ok(Vec::new());
    };
    let mut variables = Vec::new();
    for cache in CACHES {
        if let (Some(variable), false) = (cache.variable, home.join(cache.path).is_dir()) {
            let private = layers.join(folder_name(cache)).join("own");
            fs::create_dir_all(&private)?;
            variables.push((variable.into(), private.into()));
        }
    }
    Ok(variables)
}

/// Private folders that stand in for caches that don't exist.
pub fn own_folders(policy: &Policy) -> Vec<PathBuf> {
    let Some(layers) = &policy.cache_layers else {
        return Vec::new();
    };
    let own = CACHES
        .iter()
        .map(|cache| layers.join(folder_name(cache)).join("own"));
    own.filter(|path| path.is_dir()).collect()
}

fn folder_name(cache: &Cache) -> String {
    cache.path.trim_start_matches('.').replace(['/', '.'], "-")
}
