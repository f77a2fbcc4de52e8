//! AppArmor: a profile that lets weald create user namespaces where the system denies them to other programs.
//!
//! The profile names the program by its path. It is loaded before it is written: a profile that an older AppArmor can't
//! parse would make the system's own service fail at the next boot.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weald_control::files;

use super::lines::unified;
use super::{ChangedConfig, Direction, FileOutcome, InstallError};

/// The profile of a packaged weald.
const PROFILE: &str = include_str!("../../../../packaging/apparmor/weald");

/// Where a package puts the program.
const PACKAGED: &str = "/usr/bin/weald";

/// How a profile of weald's is recognised.
const MARK: &str = "Written by: weald install apparmor";

/// The profile of one program.
#[derive(Debug, Clone)]
pub struct AppArmorProfile {
    file: PathBuf,
    text: String,
    parser: PathBuf,
}

impl AppArmorProfile {
    /// The system's profile of a program, whose path has no links in it.
    pub fn of(program: &Path) -> Result<Self, InstallError> {
        Self::below(Path::new("/etc/apparmor.d"), program, "apparmor_parser")
    }

    fn below(folder: &Path, program: &Path, parser: &str) -> Result<Self, InstallError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        let path = program.to_str().filter(|path| path.chars().all(is_plain));
        let path = path.ok_or_else(|| InstallError::OddPath {
            path: program.to_owned(),
        })?;
        let name = match path {
            PACKAGED => "weald".to_owned(),
            path => format!("weald{}", path.replace('/', ".")),
        };
        let text = PROFILE
            .replace(
                &format!("profile weald {PACKAGED}"),
                &format!("profile {name} {path}"),
            )
            .replace("<local/weald>", &format!("<local/{name}>"));
        Ok(Self {
            file: folder.join(name),
            text,
            parser: parser.into(),
        })
    }

    /// What would be done; writes nothing.
    pub fn look(&self, direction: Direction) -> Result<ChangedConfig, InstallError> {
        let old = match fs::read_to_string(&self.file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.failed(error)),
        };
        let is_ours = old.as_ref().is_none_or(|text| text.contains(MARK));
        if direction == Direction::In && !is_ours {
            return Err(InstallError::Taken {
                path: self.file.clone(),
            });
        }
        let new = match direction {
            Direction::In => Some(self.text.clone()),
            Direction::Out => old.clone().filter(|_| !is_ours),
        };
        let outcome = match (&old, &new) {
            (old, new) if old == new => FileOutcome::Unchanged,
            (None, _) => FileOutcome::Created,
            (_, None) => FileOutcome::Deleted,
            _ => FileOutcome::Changed,
        };
        let name = self.file.display().to_string();
        let side = |text: Option<String>| match text {
            Some(text) => (name.clone(), text),
            None => ("/dev/null".to_owned(), String::new()),
        };
        let (old, new) = (side(old), side(new));
        Ok(ChangedConfig {
            path: self.file.clone(),
            outcome,
            diff: unified((&old.0, &old.1), (&new.0, &new.1)),
            kept: Vec::new(),
        })
    }

    /// Loads and writes the profile, or unloads and deletes it. A profile that was there already is loaded again.
    pub fn perform(&self, direction: Direction) -> Result<ChangedConfig, InstallError> {
        let change = self.look(direction)?;
        match (direction, change.outcome) {
            (Direction::In, outcome) => {
                // First: what the parser refuses must not be in the folder that the system loads when it starts.
                self.parse("--replace")?;
                if outcome != FileOutcome::Unchanged {
                    self.write()?;
                }
            }
            (Direction::Out, FileOutcome::Deleted) => {
                // One that is not loaded can't be unloaded, and need not be.
                let _ = self.parse("--remove");
                fs::remove_file(&self.file).map_err(|error| self.failed(error))?;
            }
            (Direction::Out, _) => {}
        }
        Ok(change)
    }

    fn write(&self) -> Result<(), InstallError> {
        files::replace(&self.file, &self.text).map_err(|error| self.failed(error))
    }

    /// Gives the profile to AppArmor's parser.
    fn parse(&self, order: &str) -> Result<(), InstallError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "AppArmor's own program loads profiles; root started weald for this"
        )]
        let mut parser = Command::new(&self.parser);
        parser.args([order, "--skip-cache"]).stdin(Stdio::piped());
        let parser = parser.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let refused = |why: String| InstallError::AppArmor { why };
        let mut parser = parser.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => refused("apparmor_parser is not installed".to_owned()),
            _ => refused(format!("apparmor_parser: {error}")),
        })?;
        if let Some(mut stdin) = parser.stdin.take() {
            // One that reads nothing says why in its errors.
            let _ = stdin.write_all(self.text.as_bytes());
        }
        let output = parser
            .wait_with_output()
            .map_err(|error| self.failed(error))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let errors = String::from_utf8_lossy(&output.stderr);
                let last = errors.lines().rfind(|line| !line.trim().is_empty());
                Err(refused(format!(
                    "apparmor_parser refused the profile ({})",
                    last.unwrap_or("without a reason").trim()
                )))
            }
        }
    }

    fn failed(&self, source: io::Error) -> InstallError {
        InstallError::File {
            path: self.file.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A parser that notes what it was asked and given, and ends as the file `fails` says.
    fn parser(folder: &Path) -> PathBuf {
        let place = folder.display();
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {place}/asked; cat > {place}/given\n\
             if [ -e {place}/fails ]; then echo 'AppArmor parser error: syntax error' >&2; exit 1; fi\n"
        );
        let path = folder.join("parser");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn profile(folder: &Path, program: &str) -> AppArmorProfile {
        let parser = parser(folder);
        AppArmorProfile::below(folder, Path::new(program), parser.to_str().unwrap()).unwrap()
    }

    #[test]
    fn u20_the_profile_is_loaded_before_it_is_written_and_goes_again() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name));
        let profile = profile(folder.path(), "/home/me/.cargo/bin/weald");
        let file = "weald.home.me..cargo.bin.weald";

        fs::write(folder.path().join("fails"), "").unwrap();
        let refused = profile.perform(Direction::In).unwrap_err().to_string();
        assert!(refused.contains("syntax error"), "{refused}");
        assert!(read(file).is_err(), "it would be loaded at the next boot");

        fs::remove_file(folder.path().join("fails")).unwrap();
        let change = profile.perform(Direction::In).unwrap();
        assert_eq!(change.outcome, FileOutcome::Created);
        let text = read(file).unwrap();
        assert_eq!(text, read("given").unwrap());
        assert!(text.contains(&format!("profile {file} /home/me/.cargo/bin/weald flags")));
        assert!(text.contains("  userns,\n"), "{text}");

        let change = profile.perform(Direction::In).unwrap();
        assert_eq!(change.outcome, FileOutcome::Unchanged);
        let change = profile.perform(Direction::Out).unwrap();
        assert_eq!(change.outcome, FileOutcome::Deleted);
        assert!(read(file).is_err());
        let asked = read("asked").unwrap();
        let orders: Vec<_> = asked.lines().map(|line| &line[..5]).collect();
        assert_eq!(orders, ["--rep", "--rep", "--rep", "--rem"]);
    }

    #[test]
    fn u20_the_profile_of_another_weald_stays() {
        let folder = tempfile::tempdir().unwrap();
        let packaged = profile(folder.path(), PACKAGED);
        assert_eq!(packaged.text, PROFILE);
        let foreign = folder.path().join("weald");
        fs::write(&foreign, "profile weald /opt/weald {}\n").unwrap();
        let refused = packaged.perform(Direction::In);
        assert!(matches!(refused, Err(InstallError::Taken { .. })));
        packaged.perform(Direction::Out).unwrap();
        assert!(foreign.exists());
        // A path that would mean more than one program.
        for path in ["/home/*/weald", "/home/a b/weald", "/a/{b,c}"] {
            let refused = AppArmorProfile::below(folder.path(), Path::new(path), "parser");
            assert!(refused.is_err(), "{path}");
        }
    }
}
