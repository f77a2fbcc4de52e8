//! The environment, read once.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variable that names the socket of a run's broker.
pub const BROKER_PATH: &str = "WEALD_BROKER";
/// The variable with that broker's secret.
pub const BROKER_SECRET: &str = "WEALD_BROKER_SECRET";

/// What the process was started with.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: Vec<(String, String)>,
}

impl Environment {
    /// Reads it. Variables that are no text are left out.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the environment is read"
    )]
    pub fn read() -> Self {
        let texts = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            variables: texts.collect(),
        }
    }

    /// The same with another value of a variable.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The value of a variable, as it was at the start.
    pub fn get(&self, name: &str) -> Option<String> {
        self.variables
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }

    /// All of them that are text.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// What a command in a sandbox may see: everything but git's own variables, which could lead it elsewhere.
    #[expect(
        clippy::disallowed_methods,
        reason = "variables that are no text are passed on, too"
    )]
    pub fn for_commands(&self) -> Vec<(OsString, OsString)> {
        std::env::vars_os()
            .filter(|(name, _)| {
                let name = name.as_encoded_bytes();
                // The broker of a run around this one is not for the runs in it.
                !name.starts_with(b"GIT_")
                    && !name.starts_with(b"WEALD_BROKER")
                    && name != b"WEALD_CD_FILE"
            })
            .collect()
    }

    /// The user's home: by the variable, or where the system says that it is.
    pub fn home(&self) -> Option<PathBuf> {
        let named = self.get("HOME").map(PathBuf::from);
        let home = named
            .filter(|home| home.is_absolute())
            .or_else(weald_sandbox::home_of_user)?;
        // By its real name: what is in it is compared with paths that the kernel gave.
        Some(home.canonicalize().unwrap_or(home))
    }

    /// The user's own configuration file.
    pub fn user_config(&self) -> Option<PathBuf> {
        Some(
            self.base("XDG_CONFIG_HOME", ".config")?
                .join("weald/config.toml"),
        )
    }

    /// Where the user's own index of trees is.
    pub fn state(&self) -> Option<PathBuf> {
        Some(self.base("XDG_STATE_HOME", ".local/state")?.join("weald"))
    }

    /// Where what can be made again is kept.
    pub fn cache(&self) -> Option<PathBuf> {
        Some(self.base("XDG_CACHE_HOME", ".cache")?.join("weald"))
    }

    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        match self.get(variable).map(PathBuf::from) {
            Some(path) if path.is_absolute() => Some(path),
            _ => Some(self.home()?.join(below_home)),
        }
    }
}
