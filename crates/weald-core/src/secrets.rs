//! What runs do not get to see unless the user says so: well-known places of secrets, and variables that look like one.
//!
//! A store has a name that `sandbox.reveal` takes. Its paths are relative to the user's home.

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

const fn store(
    name: &'static str,
    paths: &'static [&'static str],
    variables: &'static [&'static str],
) -> SecretStore {
    SecretStore {
        name,
        paths,
        variables,
    }
}

/// Every store that weald knows.
pub const STORES: &[SecretStore] = &[
    store("ssh", &[".ssh"], &["SSH_AUTH_SOCK", "SSH_ASKPASS"]),
    store("gpg", &[".gnupg", ".config/gnupg"], &["GPG_AGENT_INFO"]),
    store("aws", &[".aws"], &["AWS_*"]),
    store(
        "gcloud",
        &[".config/gcloud", ".boto"],
        &["GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_*"],
    ),
    store(
        "azure",
        &[".azure", ".config/azure"],
        &["AZURE_*", "ARM_CLIENT_*"],
    ),
    store(
        "clouds",
        &[
            ".oci",
            ".aliyun",
            ".bluemix",
            ".config/doctl",
            ".config/hcloud",
            ".config/scw",
            ".config/openstack",
            ".config/linode-cli",
            ".config/flyctl",
            ".fly",
            ".config/heroku",
            ".config/netlify",
            ".vercel",
            ".local/share/com.vercel.cli",
            ".wrangler",
            ".config/.wrangler",
            ".railway",
            ".pulumi",
            ".terraform.d",
            ".terraformrc",
            ".config/rclone",
            ".s3cfg",
            ".mc",
        ],
        &["DIGITALOCEAN_*", "HCLOUD_*", "OS_PASSWORD", "TF_VAR_*"],
    ),
    store(
        "kube",
        &[".kube", ".config/k9s", ".config/helm", ".talos"],
        &["KUBECONFIG"],
    ),
    store(
        "docker",
        &[
            ".docker/config.json",
            ".docker/trust",
            ".config/containers/auth.json",
            ".config/podman",
        ],
        &["DOCKER_CONFIG", "DOCKER_AUTH_CONFIG", "REGISTRY_AUTH_FILE"],
    ),
    store(
        "forges",
        &[
            ".config/gh",
            ".config/glab-cli",
            ".config/tea",
            ".config/hub",
            ".config/berg",
            ".git-credentials",
            ".config/git/credentials",
            ".gitcookies",
        ],
        &["GIT_ASKPASS"],
    ),
    store(
        "services",
        &[
            ".subversion/auth",
            ".kaggle",
            ".databrickscfg",
            ".config/stripe",
            ".config/ngrok",
            ".ngrok2",
            ".sentryclirc",
        ],
        &[],
    ),
    store(
        "netrc",
        &[".netrc", "_netrc", ".authinfo", ".authinfo.gpg"],
        &[],
    ),
    store(
        "registries",
        &[
            ".npmrc",
            ".yarnrc.yml",
            ".cargo/credentials",
            ".cargo/credentials.toml",
            ".pypirc",
            ".config/pypoetry/auth.toml",
            ".gem/credentials",
            ".local/share/gem/credentials",
            ".bundle/config",
            ".m2/settings.xml",
            ".m2/settings-security.xml",
            ".gradle/gradle.properties",
            ".nuget/NuGet/NuGet.Config",
            ".composer/auth.json",
            ".config/composer/auth.json",
            ".hex/hex.config",
            ".condarc",
            ".config/pip/pip.conf",
            ".pip/pip.conf",
            ".cache/huggingface/token",
            ".huggingface",
        ],
        &["PIP_EXTRA_INDEX_URL", "UV_INDEX_*", "TWINE_*"],
    ),
    store(
        "passwords",
        &[
            ".password-store",
            ".local/share/keyrings",
            ".local/share/kwalletd",
            ".config/op",
            ".op",
            ".config/Bitwarden",
            ".config/Bitwarden CLI",
            ".config/keepassxc",
            ".config/1Password",
            ".1password",
            ".vault-token",
            ".config/sops",
            ".age",
            ".config/age",
            ".pgpass",
            ".my.cnf",
            ".mylogin.cnf",
        ],
        &[
            "OP_SESSION_*",
            "BW_SESSION",
            "VAULT_*",
            "PGPASSWORD",
            "PGPASSFILE",
            "MYSQL_PWD",
        ],
    ),
    store(
        "browsers",
        &[
            ".mozilla",
            ".thunderbird",
            ".config/google-chrome",
            ".config/google-chrome-beta",
            ".config/chromium",
            ".config/BraveSoftware",
            ".config/microsoft-edge",
            ".config/opera",
            ".config/vivaldi",
            ".cache/mozilla",
            ".cache/google-chrome",
            ".cache/chromium",
            "snap/firefox",
            "snap/chromium",
            ".var/app",
        ],
        &[],
    ),
    store(
        "chats",
        &[
            ".config/Slack",
            ".config/discord",
            ".config/Signal",
            ".local/share/TelegramDesktop",
            ".config/Element",
        ],
        &[],
    ),
    store(
        "history",
        &[
            ".bash_history",
            ".zsh_history",
            ".zsh_sessions",
            ".local/share/fish/fish_history",
            ".histfile",
            ".sh_history",
            ".history",
            ".python_history",
            ".node_repl_history",
            ".psql_history",
            ".mysql_history",
            ".sqlite_history",
            ".rediscli_history",
            ".lesshst",
            ".viminfo",
            ".wget-hsts",
            ".local/share/atuin",
        ],
        &[],
    ),
    store(
        "agents",
        &[
            ".claude/.credentials.json",
            ".claude.json",
            ".codex/auth.json",
            ".gemini/oauth_creds.json",
            ".local/share/opencode/auth.json",
            ".config/github-copilot",
            ".config/io.datasette.llm/keys.json",
            ".aider.conf.yml",
        ],
        &[],
    ),
];

/// Endings of names of variables that hold a secret.
const ENDINGS: [&str; 24] = [
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
    "COOKIE",
    "WEBHOOK",
    "WEBHOOK_URL",
    "PRIVATE",
    "SIGNATURE",
    "DATABASE_URL",
];

/// Words that make a name one of a secret wherever they stand in it.
const WORDS: [&str; 14] = [
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
    "JWT",
    "SSHPASS",
    "PW",
    "PAT",
];

/// Names that look like a secret and are none.
const HARMLESS: [&str; 5] = ["XAUTHORITY", "GPG_KEY", "PWD", "OLDPWD", "COLORTERM"];

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
    if name.starts_with("WEALD_") || is_revealed(name) || HARMLESS.contains(&name) {
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
    ENDINGS.iter().any(ends) || words.any(|word| WORDS.contains(&word))
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

/// Whether the value of a variable carries a password: `scheme://user:password@host`.
pub fn is_secret_value(value: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x30_variables_that_look_like_secrets_are_hidden_and_ordinary_ones_are_not() {
        for name in [
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "NPM_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "AWS_PROFILE",
            "STRIPE_SECRET",
            "API_KEY",
            "MY_SERVICE_KEY",
            "DB_PASSWORD",
            "dbPassword",
            "SENTRY_DSN",
            "SMTP_PASS",
            "SECRET_KEY_BASE",
            "SSHPASS",
            "CI_JOB_JWT_V2",
            "NPM_CONFIG__AUTHTOKEN",
            "MYSQL_ROOT_PW",
            "KUBE_TOKEN_1",
            "ENCRYPTION_KEY_BASE64",
            "DB_PWD",
            "SSH_AUTH_SOCK",
            "DATABASE_URL",
            "OPENAI_API_KEY",
            "SOME_SECRET_ID",
            "secret",
        ] {
            assert!(hides_variable(name, &[]), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "TERM",
            "WEALD_TOKEN",
            "EDITOR",
            "KEYMAP",
            "MONKEY",
            "monkey",
            "GITHUB_SHA",
            "TOKENIZERS_PARALLELISM",
            "XDG_CONFIG_HOME",
            "CARGO_HOME",
            "SHELL",
            "DISPLAY",
            "XAUTHORITY",
            "PWD",
            "BYPASS",
        ] {
            assert!(!hides_variable(name, &[]), "{name}");
        }
    }

    #[test]
    fn x30_a_value_with_a_password_is_a_secret() {
        assert!(is_secret_value("redis://app:hunter2@db:6379/0"));
        for value in [
            "https://example.com/a:b@c",
            "ssh://git@host/x",
            "http://proxy:3128",
            "a:b@c",
        ] {
            assert!(!is_secret_value(value), "{value}");
        }
    }

    #[test]
    fn x30_a_store_or_a_variable_is_revealed_by_its_name() {
        let revealed = ["aws".to_owned(), "MY_KEY".to_owned()];
        assert!(!hides_variable("AWS_SECRET_ACCESS_KEY", &revealed));
        assert!(!hides_variable("MY_KEY", &revealed));
        assert!(hides_variable("OTHER_KEY", &revealed));
        assert!(!hidden_paths(&revealed).any(|path| path == ".aws"));
        assert!(hidden_paths(&revealed).any(|path| path == ".ssh"));
    }
}
