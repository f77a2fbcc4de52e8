//! What of the caller's environment a gate sees: names that mean the same in every session, and those of `gate.env`.
//!
//! Everything else stays out. A verdict is remembered by these names and values, so what changes from terminal to terminal
//! would only make it forget, and what is not in it must not decide anything.

use std::ffi::{OsStr, OsString};

use crate::Landings;
use weald_trees::{Host, Trees};

/// Variables that say where things are and how the user wants them.
const STABLE: [&str; 45] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "ANDROID_HOME",
    "BUN_INSTALL",
    "CARGO_HOME",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "NIX_PATH",
    "NIX_PROFILES",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "VOLTA_HOME",
    "NIX_SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
];

/// Whether a gate sees a variable of the caller's.
fn is_seen(name: &OsStr, further: &[String]) -> bool {
    STABLE.iter().any(|known| name == *known)
        || name.as_encoded_bytes().starts_with(b"LC_")
        || further.iter().any(|known| name == known.as_str())
}

impl<'a> Landings<'a> {
    /// What a gate sees of the caller's environment, by name.
    pub(super) fn stable_environment(&self) -> Vec<(OsString, OsString)> {
        let further = &self.trees.config.gate_env;
        let all = self.trees.host.environment.iter();
        let mut seen: Vec<_> = all
            .filter(|(name, _)| is_seen(name, further))
            .cloned()
            .collect();
        seen.sort();
        seen
    }

    /// What the user named for gates comes along whatever it looks like.
    pub(super) fn with_named(
        &self,
        mut environment: Vec<(OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let named = &self.trees.config.gate_env;
        let all = self.trees.host.environment.iter();
        let given = all.filter(|(name, _)| named.iter().any(|known| name == known.as_str()));
        environment.extend(given.cloned());
        environment
    }

    /// The same trees, as if the caller had that environment and no other.
    pub(super) fn with_stable_environment(&self) -> Trees<'a> {
        let host = Host {
            environment: self.stable_environment(),
            ..self.trees.host.clone()
        };
        Trees::new(
            self.trees.engine,
            self.trees.place,
            self.trees.config,
            self.trees.target.clone(),
            host,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::is_seen;

    #[test]
    fn a_gate_sees_where_things_are_and_no_session() {
        let further = ["DATABASE_URL".to_owned()];
        for name in ["PATH", "HOME", "LC_ALL", "CARGO_HOME", "DATABASE_URL"] {
            assert!(is_seen(name.as_ref(), &further), "{name}");
        }
        for name in [
            "TERM",
            "SSH_AUTH_SOCK",
            "XDG_SESSION_ID",
            "AWS_SECRET_ACCESS_KEY",
            "LD_PRELOAD",
            "WEALD_SESSION",
            "PATHS",
        ] {
            assert!(!is_seen(name.as_ref(), &further), "{name}");
        }
    }
}
