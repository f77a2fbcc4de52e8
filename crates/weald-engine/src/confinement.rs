//! What a run may do, by the configuration.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_core::config::{Config, parse_size};
use weald_sandbox::{Level, Limits, Network, Policy};

/// Who wants to run something, and where.
pub struct SandboxRequest {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The directories to be written.
    pub write: Vec<PathBuf>,
    /// What must not be seen: control planes.
    pub hidden: Vec<PathBuf>,
}

/// The policy of a run: the directories asked for, and what the configuration says of the rest. The control plane of the
/// repository is never seen from inside.
pub fn sandbox_policy(config: &Config, request: SandboxRequest) -> Policy {
    let home = request.home.as_deref();
    let paths = |key: &str| {
        config
            .list(key)
            .iter()
            .map(|path| expand(path, home))
            .collect::<Vec<_>>()
    };
    let mut write = request.write;
    write.extend(paths("sandbox.write"));
    let mut mask = paths("sandbox.read_deny");
    mask.extend(request.hidden);
    let size = |key: &str| parse_size(config.text(key)).ok();
    let count = |key: &str| {
        u64::try_from(config.number(key))
            .ok()
            .filter(|number| *number > 0)
    };
    Policy {
        level: match config.text("sandbox.level") {
            "landlock" => Level::Landlock,
            _ => Level::Full,
        },
        read_only: false,
        show: Vec::new(),
        mask,
        reveal: Vec::new(),
        sockets: paths("sandbox.sockets"),
        network: match config.text("sandbox.network") {
            "off" => Network::Off,
            _ => Network::On,
        },
        cache_layers: home.map(|home| layers_of(home, &write[0])),
        home: request.home.clone(),
        tmp: None,
        limits: Limits {
            cpu: count("sandbox.cpu_seconds").map(std::time::Duration::from_secs),
            memory: size("sandbox.memory"),
            processes: count("sandbox.processes"),
            file_size: size("sandbox.file_size"),
            tmp: size("sandbox.tmp"),
        },
        simulated: Default::default(),
        write,
    }
}

/// Where the private layers of a directory's caches lie: the same for every run in it, so that it stays warm.
pub(crate) fn layers_of(home: &Path, directory: &Path) -> PathBuf {
    let path = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    // FNV-1a: a name for a folder, not a secret.
    let hash = path
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    home.join(".cache/weald/layers")
        .join(format!("{hash:016x}"))
}

fn expand(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
