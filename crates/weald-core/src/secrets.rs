//! What runs do not get to see unless the user says so: well-known places of secrets, and variables that look like one.
//!
//! A store has a name that `sandbox.reveal` takes. Its paths are relative to the user's home.

mod project;
mod stores;

use std::path::{Path, PathBuf};

pub use project::{Use, project_files, uses};
pub use stores::STORES;

/// A place where programs keep secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretStore {
    /// What `sandbox.reveal` calls it.
    pub name: &'static str,
    /// Where it lies, below the home.
    pub paths: &'static [&'static str],
    /// Variables that belong to it: names, or the start of names if they end with `*`.
    pub variables: &'static [&'static str],
}

/// What root alone can read of the system.
pub const OF_ROOT: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/var/backups/shadow.bak",
    "/var/backups/gshadow.bak",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
];

/// Endings of names of variables that hold a secret.
const ENDINGS: [&str; 25] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "KEY",
    "APIKEY",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PWD",
    "CREDS",
    "MONGO_URI",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "DSN",
    "PAT",
    "SK",
    "COOKIE",
    "WEBHOOK",
    "WEBHOOK_URL",
    "PRIVATE",
    "SIGNATURE",
    "DATABASE_URL",
];

/// Words that make a name one of a secret wherever they stand in it.
const WORDS: [&str; 15] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIALS",
    "KEY",
    "APIKEY",
    "AUTHTOKEN",
    "AUTHORIZATION",
    "BEARER",
    "JWT",
    "SSHPASS",
    "PW",
    "PAT",
];

/// Ends of words that make a name one of a secret, as in `APITOKEN`. (`KEY` is not among them: `MONKEY`.)
const WORD_ENDINGS: [&str; 6] = [
    "TOKEN",
    "SECRET",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "SECRETKEY",
];

/// Names that look like a secret and are none.
const HARMLESS: [&str; 5] = ["XAUTHORITY", "GPG_KEY", "PWD", "OLDPWD", "COLORTERM"];

/// Endings of names that are none, whatever store they belong to: certificates are public, and regions are names of places.
const HARMLESS_ENDINGS: [&str; 3] = ["_CA_BUNDLE", "_CA_CERTS_FILE", "_REGION"];

/// How a coding agent logs in: its program, its variables, and its file below the home.
struct Login {
    program: &'static str,
    variables: &'static [&'static str],
    files: &'static [&'static str],
}

const LOGINS: [Login; 4] = [
    Login {
        program: "claude",
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        files: &[".claude/.credentials.json", ".claude.json"],
    },
    Login {
        program: "codex",
        variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
        files: &[".codex/auth.json"],
    },
    Login {
        program: "gemini",
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        files: &[".gemini/oauth_creds.json"],
    },
    Login {
        program: "opencode",
        variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
        files: &[".local/share/opencode/auth.json"],
    },
];

/// Whether a run is denied a variable. `revealed` are names of stores and of variables.
pub fn hides_variable(name: &str, revealed: &[String]) -> bool {
    let is_revealed = |it: &str| revealed.iter().any(|known| known == it);
    let is_harmless =
        HARMLESS.contains(&name) || HARMLESS_ENDINGS.iter().any(|ending| name.ends_with(ending));
    if name.starts_with("WEALD_") || is_revealed(name) || is_harmless {
        return false;
    }
    let owners: Vec<_> = STORES
        .iter()
        .filter(|store| store.variables.iter().any(|known| fits(name, known)))
        .collect();
    if !owners.is_empty() {
        return !owners.iter().any(|store| is_revealed(store.name));
    }
    looks_secret(name)
}

fn fits(name: &str, known: &str) -> bool {
    match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == known,
    }
}

/// `*_TOKEN`, `API_KEY`, `dbPassword` and their like.
fn looks_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let ends = |ending: &&str| {
        let rest = upper.strip_suffix(*ending);
        // A word of its own, or the last one of `mixedCase`.
        rest.is_some_and(|rest| {
            let begins_a_word = name[rest.len()..].starts_with(char::is_uppercase);
            let is_mixed = begins_a_word && rest.ends_with(char::is_alphabetic) && name != upper;
            rest.is_empty() || rest.ends_with(['_', '-']) || is_mixed || ending.len() > 6
        })
    };
    let mut words = upper
        .split(['_', '-', '.'])
        .map(|word| word.trim_end_matches(char::is_numeric));
    let is_secret = |word: &str| {
        WORDS.contains(&word) || WORD_ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    ENDINGS.iter().any(ends) || words.any(is_secret)
}

/// Whether some coding agent logs in by a variable.
pub fn is_login(variable: &str) -> bool {
    LOGINS
        .iter()
        .any(|login| login.variables.contains(&variable))
}

/// Whether a coding agent needs a variable to log in.
pub fn is_login_of(program: &str, variable: &str) -> bool {
    let mut known = LOGINS.iter().filter(|login| login.program == program);
    known.any(|login| login.variables.contains(&variable))
}

/// The files, below the home, that a coding agent needs to log in.
pub fn login_files_of(program: &str) -> &'static [&'static str] {
    let known = LOGINS.iter().find(|it| it.program == program);
    known.map_or(&[], |login| login.files)
}

/// Whether the value of a variable carries a password: `scheme://user:password@host`, or a parameter `password=…` as in
/// the addresses of JDBC, ADO.NET and libpq.
pub fn is_secret_value(value: &str) -> bool {
    let mut parameters = value.split(['?', '&', ';', ' ']);
    parameters.any(is_password_parameter) || has_password_of_user(value)
}

fn is_password_parameter(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, value)| {
        let names = ["password", "passwd"];
        names.iter().any(|known| name.eq_ignore_ascii_case(known)) && !value.is_empty()
    })
}

fn has_password_of_user(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.and_then(|user| user.split_once(':'))
        .is_some_and(|(_, password)| !password.is_empty())
}

/// The paths, below the home, that a run does not see.
pub fn hidden_paths(revealed: &[String]) -> impl Iterator<Item = &'static str> {
    let stores = STORES
        .iter()
        .filter(|store| !revealed.iter().any(|known| known == store.name));
    stores.flat_map(|store| store.paths).copied()
}

/// Where paths below the home are: there, and where the user's variables lead the programs that own them.
pub fn places<'p>(
    paths: impl Iterator<Item = &'p str>,
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Vec<PathBuf> {
    let moved: Vec<(&Path, PathBuf)> = stores::MOVES
        .iter()
        .flat_map(|(name, base)| {
            let value = variable(name).unwrap_or_default();
            let values: Vec<PathBuf> = match *name {
                "KUBECONFIG" => std::env::split_paths(&value).collect(),
                _ => vec![value],
            };
            values.into_iter().map(|value| (Path::new(*base), value))
        })
        // What holds the home can't be meant.
        .filter(|(_, value)| value.is_absolute() && value.parent().is_some())
        .filter(|(_, value)| !home.is_some_and(|home| home.starts_with(value)))
        .collect();
    let all = paths.flat_map(|path| {
        let elsewhere = moved.iter().filter_map(move |(base, value)| {
            match Path::new(path).strip_prefix(base) {
                Ok(rest) if rest.as_os_str().is_empty() => Some(value.clone()),
                Ok(rest) => Some(value.join(rest)),
                Err(_) => base.starts_with(path).then(|| value.clone()),
            }
        });
        home.map(|home| home.join(path))
            .into_iter()
            .chain(elsewhere)
    });
    all.collect()
}

/// A name that `sandbox.reveal` can't mean: no store, and no variable. With the store that it is nearest to.
pub fn unknown_to_reveal(name: &str) -> Option<&'static str> {
    let is_store = STORES.iter().any(|store| store.name == name);
    // A variable may be hidden for its value, whatever its name.
    let is_variable = hides_variable(name, &[]) || name.contains(char::is_uppercase);
    if is_store || is_variable {
        return None;
    }
    let nearest = STORES
        .iter()
        .min_by_key(|store| strsim::levenshtein(store.name, name));
    nearest.map(|store| store.name)
}

#[cfg(test)]
mod tests;
