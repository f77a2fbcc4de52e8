//! Signing commits with the user's own key, by the user's own program.
//!
//! Which program runs is the user's word alone: the repository's own configuration, which a run in a linked worktree can
//! write, names none, neither as a program nor as a command that finds a key. It may say whether to sign, the format, and
//! which of the user's keys; a path to a key is not among that, since whatever lies there could be somebody else's key.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::{Git, GitError};
use crate::reference::Commit;

/// How long signing may take: somebody may have to type a passphrase, and nobody may be there.
pub const SIGNING_LIMIT: Duration = Duration::from_secs(30);

/// Variables that say where the user's own configuration is.
const PLACES: [&str; 6] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "XDG_CONFIG_HOME",
];

/// `git config` on a repository that reads all that the user's own git would there.
pub(crate) fn config_as_user(git_dir: &Path, home: Option<&Path>) -> Git {
    Git::with_own_config(git_dir, "config")
        .with_user_config(home)
        .env("GIT_CONFIG_NOSYSTEM", "0")
        .own_variables(|name| {
            let is_entry = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
            PLACES.contains(&name) || is_entry.iter().any(|start| name.starts_with(start))
        })
}

/// How a user signs, by their configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SigningConfig {
    /// Whether commits are to be signed (`commit.gpgsign`).
    pub is_wanted: bool,
    /// `openpgp`, `x509` or `ssh`.
    pub format: String,
    settings: Vec<(String, String)>,
    /// Programs that the repository's own configuration names; they are not used.
    ignored: Vec<String>,
    /// Why nothing can be signed, if that is known beforehand.
    impossible: Option<String>,
}

/// One entry of a configuration.
pub(crate) struct ConfigEntry<'a> {
    /// Whether it is the user's or the machine's, and not the repository's own.
    pub(crate) is_users: bool,
    pub(crate) key: &'a str,
    /// An entry without one means true.
    pub(crate) value: Option<&'a str>,
}

/// What `git config -z --show-scope` lists.
pub(crate) fn config_entries(listed: &str) -> Vec<ConfigEntry<'_>> {
    let mut fields = listed.split_terminator('\0');
    let mut entries = Vec::new();
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = match entry.split_once('\n') {
            Some((key, value)) => (key, Some(value)),
            None => (entry, None),
        };
        entries.push(ConfigEntry {
            is_users: matches!(scope, "system" | "global" | "command"),
            key,
            value,
        });
    }
    entries
}

impl SigningConfig {
    /// Reads the configuration that holds in a repository.
    pub fn load(git_dir: &Path, home: Option<&Path>) -> Result<Self, GitError> {
        let keys = r"^(commit\.gpgsign|user\.signingkey|gpg\..*)$";
        let asked = config_as_user(git_dir, home);
        // No entry is an exit code of its own.
        let answer = asked
            .args(["-z", "--show-scope", "--includes", "--get-regexp", keys])
            .output()?;
        Ok(Self::parse(&String::from_utf8_lossy(&answer.stdout)))
    }

    /// Reads what `git config -z --show-scope` lists, later entries over earlier ones.
    fn parse(listed: &str) -> Self {
        let entries = config_entries(listed);
        let last = |key: &str| entries.iter().rev().find(|entry| entry.key == key);
        let mut config = Self {
            is_wanted: last("commit.gpgsign").is_some_and(ConfigEntry::is_true),
            format: match last("gpg.format").and_then(|entry| entry.value) {
                Some(format @ ("ssh" | "x509")) => format.to_owned(),
                _ => "openpgp".to_owned(),
            },
            ..Self::default()
        };
        config.set("gpg.format", &config.format.clone());
        for entry in entries.iter().filter(|entry| entry.names_a_program()) {
            match entry.is_users {
                true => config.set(entry.key, entry.value.unwrap_or_default()),
                false => config.ignored.push(entry.key.to_owned()),
            }
        }
        let key = last("user.signingkey").and_then(|entry| Some((entry.is_users, entry.value?)));
        match key {
            Some((is_users, key)) if is_users || config.format != "ssh" || is_literal(key) => {
                config.set("user.signingkey", key);
            }
            Some((_, key)) => {
                config.impossible = Some(format!(
                    "user.signingkey ({key}) is set in the repository's own configuration, which a run in a linked worktree can write; set it in yours: git config --global"
                ));
            }
            None => {}
        }
        config
    }

    fn set(&mut self, key: &str, value: &str) {
        self.settings.push((key.to_owned(), value.to_owned()));
    }
}

impl ConfigEntry<'_> {
    fn is_true(&self) -> bool {
        let value = self.value.map(str::to_ascii_lowercase);
        match value.as_deref() {
            None | Some("true" | "yes" | "on") => true,
            Some(number) => number.parse::<i64>().is_ok_and(|number| number != 0),
        }
    }

    fn names_a_program(&self) -> bool {
        self.key == "gpg.program"
            || self.key == "gpg.ssh.defaultkeycommand"
            || (self.key.starts_with("gpg.") && self.key.ends_with(".program"))
    }
}

/// Whether a key for ssh is the key itself: then the user's ssh-agent has to have it.
fn is_literal(key: &str) -> bool {
    key.starts_with("key::") || key.starts_with("ssh-")
}

pub struct Signer<'s> {
    /// The repository that holds them.
    pub git_dir: &'s Path,
    pub config: &'s SigningConfig,
    /// The user's environment: where their agents are.
    pub environment: &'s [(OsString, OsString)],
    /// When it has to be done.
    pub deadline: Instant,
}

/// Why a commit was not signed, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotSigned(pub String);

impl From<GitError> for NotSigned {
    fn from(error: GitError) -> Self {
        Self(error.to_string())
    }
}

impl Signer<'_> {
    /// Makes the same commits again with signatures, oldest first: each of `commits` on top of the one before it. Answers the
    /// last of the new ones. No ref moves.
    pub fn sign_chain(&self, commits: &[String]) -> Result<String, NotSigned> {
        if let Some(why) = &self.config.impossible {
            return Err(NotSigned(why.clone()));
        }
        let mut last: Option<(&str, String)> = None;
        for commit in commits {
            let base = match &last {
                Some((old, new)) => reparented(self.git_dir, commit, old, new)?,
                None => commit.clone(),
            };
            last = Some((commit, self.sign(&base)?));
        }
        last.map(|(_, signed)| signed)
            .ok_or_else(|| NotSigned("there is no commit to sign".to_owned()))
    }

    fn sign(&self, commit: &str) -> Result<String, NotSigned> {
        let raw = read_commit(self.git_dir, commit)?;
        let parts = Parts::of(&raw).ok_or_else(|| NotSigned(format!("{commit} is odd")))?;
        let mut git = Git::new(self.git_dir, "commit-tree")
            .in_directory(self.git_dir)
            .args(["-S"])
            .args(&parts.arguments)
            .args(["-F", "-"])
            .input(parts.message)
            .limit(self.deadline.saturating_duration_since(Instant::now()));
        for (name, value) in self.environment {
            git = git.env(name, value);
        }
        for (name, value) in &parts.people {
            git = git.env(name, value);
        }
        for (key, value) in &self.config.settings {
            git = git.config(key, value);
        }
        // Nothing asks on a terminal; a passphrase is for the user's agents to ask for.
        let answer = git.env("SSH_ASKPASS_REQUIRE", "force").output();
        let output = match answer {
            Ok(output) => output,
            Err(GitError::TimedOut { .. }) => {
                let limit = SIGNING_LIMIT.as_secs();
                return Err(NotSigned(format!("signing took longer than {limit} s")));
            }
            Err(error) => return Err(error.into()),
        };
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let made = Commit::parse(answer.trim()).filter(|_| output.status.success());
        let Some(made) = made else {
            return Err(NotSigned(self.explained(&output.stderr)));
        };
        match without_signature(&read_commit(self.git_dir, made.as_str())?) {
            Some(rest) if rest == raw => Ok(made.as_str().to_owned()),
            Some(_) => Err(NotSigned(
                "the signed commit says something else".to_owned(),
            )),
            None => Err(NotSigned("the program made no signature".to_owned())),
        }
    }

    /// What went wrong, on one line, without what only programs read.
    fn explained(&self, stderr: &str) -> String {
        let is_noise = |line: &&str| {
            let line = line.trim();
            line.is_empty()
                || line.starts_with("[GNUPG:]")
                || line == "error: gpg failed to sign the data:"
                || line == "fatal: failed to write commit object"
        };
        let lines = stderr.lines().filter(|line| !is_noise(line));
        let lines = lines.map(|line| line.trim().trim_start_matches("error: "));
        let mut why = lines.collect::<Vec<_>>().join("; ");
        if let Some(key) = self.config.ignored.first() {
            why += &format!(
                " ({key} of the repository's own configuration is not used: a run in a linked worktree can write it)"
            );
        }
        why
    }
}

/// A commit with another parent, and no signature; no ref moves.
pub fn reparented(git_dir: &Path, commit: &str, old: &str, new: &str) -> Result<String, GitError> {
    let raw = read_commit(git_dir, commit)?;
    let unexpected = |answer: &[u8]| {
        let start: String = String::from_utf8_lossy(answer).chars().take(200).collect();
        GitError::unexpected("cat-file", start)
    };
    let (from, to) = (format!("\nparent {old}\n"), format!("\nparent {new}\n"));
    let place = raw
        .windows(from.len())
        .position(|window| window == from.as_bytes())
        .ok_or_else(|| unexpected(&raw))?;
    let mut text = raw[..place].to_vec();
    text.extend_from_slice(to.as_bytes());
    text.extend_from_slice(&raw[place + from.len()..]);
    let answer = Git::new(git_dir, "hash-object")
        .args(["-t", "commit", "-w", "--stdin"])
        .input(text)
        .run()?;
    let id = String::from_utf8_lossy(&answer).trim().to_owned();
    match Commit::parse(&id) {
        Some(_) => Ok(id),
        None => Err(unexpected(&answer)),
    }
}

fn read_commit(git_dir: &Path, commit: &str) -> Result<Vec<u8>, GitError> {
    Git::new(git_dir, "cat-file").args(["commit", commit]).run()
}

/// A commit as `git commit-tree` wants it.
struct Parts {
    arguments: Vec<String>,
    people: Vec<(&'static str, OsString)>,
    message: Vec<u8>,
}

impl Parts {
    fn of(raw: &[u8]) -> Option<Self> {
        let end = raw.windows(2).position(|two| two == b"\n\n")?;
        let mut parts = Self {
            arguments: Vec::new(),
            people: Vec::new(),
            message: raw[end + 2..].to_vec(),
        };
        for line in raw[..end].split(|byte| *byte == b'\n') {
            let space = line.iter().position(|byte| *byte == b' ')?;
            let (name, value) = (&line[..space], &line[space + 1..]);
            let id = || {
                Some(
                    Commit::parse(std::str::from_utf8(value).ok()?)?
                        .as_str()
                        .to_owned(),
                )
            };
            match name {
                b"tree" => parts.arguments.push(id()?),
                b"parent" => parts.arguments.extend(["-p".to_owned(), id()?]),
                b"author" => {
                    let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];
                    parts.people.extend(person(names, value)?);
                }
                b"committer" => {
                    let names = [
                        "GIT_COMMITTER_NAME",
                        "GIT_COMMITTER_EMAIL",
                        "GIT_COMMITTER_DATE",
                    ];
                    parts.people.extend(person(names, value)?);
                }
                _ => return None,
            }
        }
        Some(parts)
    }
}

/// `Name <mail> 1700000000 +0100` as variables.
fn person(names: [&'static str; 3], value: &[u8]) -> Option<[(&'static str, OsString); 3]> {
    let open = value.iter().position(|byte| *byte == b'<')?;
    let close = value.iter().rposition(|byte| *byte == b'>')?;
    let name = value[..open].strip_suffix(b" ").unwrap_or(&value[..open]);
    let mail = value.get(open + 1..close)?;
    let mut when = b"@".to_vec();
    when.extend_from_slice(value.get(close + 2..)?);
    let [name_is, mail_is, when_is] = names;
    Some([
        (name_is, OsString::from_vec(name.to_vec())),
        (mail_is, OsString::from_vec(mail.to_vec())),
        (when_is, OsString::from_vec(when)),
    ])
}

/// A commit as it was before it was signed; `None` if it has no signature.
fn without_signature(raw: &[u8]) -> Option<Vec<u8>> {
    let end = raw.windows(2).position(|two| two == b"\n\n")?;
    let (mut rest, mut is_signature, mut found) = (Vec::new(), false, false);
    for line in raw[..=end].split_inclusive(|byte| *byte == b'\n') {
        is_signature = match line.starts_with(b" ") {
            true => is_signature,
            false => line.starts_with(b"gpgsig ") || line.starts_with(b"gpgsig-sha256 "),
        };
        found |= is_signature;
        if !is_signature {
            rest.extend_from_slice(line);
        }
    }
    rest.extend_from_slice(&raw[end + 1..]);
    found.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(entries: &[(&str, &str, &str)]) -> SigningConfig {
        let listed = entries
            .iter()
            .map(|(scope, key, value)| format!("{scope}\0{key}\n{value}\0"));
        SigningConfig::parse(&listed.collect::<String>())
    }

    #[test]
    fn y6_only_the_users_own_configuration_names_a_program() {
        for key in [
            "gpg.program",
            "gpg.openpgp.program",
            "gpg.x509.program",
            "gpg.ssh.program",
            "gpg.ssh.defaultkeycommand",
        ] {
            for (scope, is_used) in [
                ("system", true),
                ("global", true),
                ("command", true),
                ("local", false),
                ("worktree", false),
                ("submodule", false),
            ] {
                let config = parsed(&[(scope, key, "/x")]);
                let found = config.settings.contains(&(key.to_owned(), "/x".to_owned()));
                assert_eq!(found, is_used, "{scope} {key}");
                assert_eq!(config.ignored.is_empty(), is_used, "{scope} {key}");
            }
        }
    }

    #[test]
    fn y6_a_key_file_that_the_repository_names_is_not_used() {
        let ssh = ("global", "gpg.format", "ssh");
        for (scope, key, is_used) in [
            ("global", "~/.ssh/id", true),
            ("local", "~/.ssh/id", false),
            ("local", "key::ssh-ed25519 AAAA", true),
        ] {
            let config = parsed(&[ssh, (scope, "user.signingkey", key)]);
            assert_eq!(config.impossible.is_none(), is_used, "{scope} {key}");
            let named = config.settings.iter().any(|(_, value)| value == key);
            assert_eq!(named, is_used, "{scope} {key}");
        }
        // A key of gnupg is one of the user's, no matter what names it.
        let config = parsed(&[("local", "user.signingkey", "ABC")]);
        assert_eq!(config.impossible, None);
    }

    #[test]
    fn the_last_word_counts_and_words_are_read_as_git_reads_them() {
        for (value, wanted) in [("true", true), ("YES", true), ("0", false), ("no", false)] {
            let config = parsed(&[("local", "commit.gpgsign", value)]);
            assert_eq!(config.is_wanted, wanted, "{value}");
        }
        assert!(SigningConfig::parse("global\0commit.gpgsign\0").is_wanted);
        let both = parsed(&[
            ("global", "commit.gpgsign", "true"),
            ("local", "commit.gpgsign", "false"),
        ]);
        assert!(!both.is_wanted);
        assert_eq!(parsed(&[("global", "gpg.format", "odd")]).format, "openpgp");
    }

    #[test]
    fn a_signature_is_taken_out_and_nothing_else() {
        let id = "a".repeat(40);
        let head = format!(
            "tree {id}\nparent {id}\nauthor A B <a@b> 1 +0000\ncommitter C <c@d> 2 -0130\n"
        );
        let plain = format!("{head}\nSubject\n\ngpgsig no\n");
        let signed = format!("{head}gpgsig -----BEGIN\n abc\n \n end\n\nSubject\n\ngpgsig no\n");
        assert_eq!(
            without_signature(signed.as_bytes()),
            Some(plain.clone().into_bytes())
        );
        assert_eq!(without_signature(plain.as_bytes()), None);
        let parts = Parts::of(plain.as_bytes()).unwrap();
        assert_eq!(parts.arguments, [id.as_str(), "-p", &id]);
        let found: Vec<_> = parts
            .people
            .iter()
            .map(|(_, value)| value.to_str().unwrap())
            .collect();
        assert_eq!(found, ["A B", "a@b", "@1 +0000", "C", "c@d", "@2 -0130"]);
        assert!(
            Parts::of(signed.as_bytes()).is_none(),
            "it is signed already"
        );
    }

    #[test]
    fn y6_a_program_that_does_not_answer_is_ended() {
        let directory = tempfile::tempdir().unwrap();
        let outside = |name: &str| Git::outside(directory.path(), name);
        outside("init").args(["-q", "--bare", "."]).run().unwrap();
        let made = outside("commit-tree")
            .args(["4b825dc642cb6eb9a060e54bf8d69288fbee4904", "-m", "x"])
            .config("user.name", "A")
            .config("user.email", "a@b");
        outside("hash-object")
            .args(["-t", "tree", "-w", "--stdin"])
            .run()
            .unwrap();
        let commit = String::from_utf8(made.run().unwrap())
            .unwrap()
            .trim()
            .to_owned();
        let program = directory.path().join("program");
        std::fs::write(&program, "#!/bin/sh\nsleep 60\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let config = parsed(&[("global", "gpg.program", program.to_str().unwrap())]);
        let began = Instant::now();
        let signer = Signer {
            git_dir: directory.path(),
            config: &config,
            environment: &[],
            deadline: began + Duration::from_millis(200),
        };
        let error = signer.sign_chain(&[commit]).unwrap_err();
        assert!(error.to_string().contains("took longer"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}
