//! Files: written whole or not at all, and back as they were.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{CLIENTS, Client, Homes};
use crate::install::{Direction, FileOutcome, InstallError, Installation, Kept};

pub(super) struct Place {
    folder: TempDir,
    pub(super) homes: Homes,
}

pub(super) fn place() -> Place {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let homes = Homes {
        claude: home.join(".claude"),
        codex: home.join(".codex"),
        config: home.join(".config"),
        data: home.join(".local/share/weald"),
        state: folder.path().join("state"),
        home,
    };
    Place { folder, homes }
}

impl Place {
    pub(super) fn perform(
        &self,
        client: Client,
        direction: Direction,
    ) -> Result<Vec<FileOutcome>, InstallError> {
        self.as_weald("weald", client, direction)
    }

    pub(super) fn as_weald(
        &self,
        weald: &str,
        client: Client,
        direction: Direction,
    ) -> Result<Vec<FileOutcome>, InstallError> {
        let homes = &self.homes;
        let installation = Installation {
            client,
            homes,
            project: None,
            worktrees: &[],
            weald,
        };
        let seen = installation.look(direction).map(outcomes);
        let done = installation.perform(direction).map(outcomes);
        if let (Ok(seen), Ok(done)) = (&seen, &done) {
            assert_eq!(seen, done, "what was shown is what was done");
        }
        done
    }

    /// A file of the user's, with its folder.
    pub(super) fn seed(&self, path: &str, text: &str) -> PathBuf {
        let path = self.homes.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// What stays when weald goes: the entries.
    pub(super) fn kept(&self, client: Client) -> Vec<Kept> {
        let installation = Installation {
            client,
            homes: &self.homes,
            project: None,
            worktrees: &[],
            weald: "weald",
        };
        let changes = installation.look(Direction::Out).unwrap();
        changes.into_iter().flat_map(|change| change.kept).collect()
    }

    /// Every file and folder below the home, with its text.
    pub(super) fn all(&self) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        walk(&self.homes.home, &mut found);
        found.sort();
        found
    }

    pub(super) fn settings(&self) -> PathBuf {
        let path = self.homes.home.join(".gemini/settings.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

fn outcomes(changes: Vec<crate::install::ChangedConfig>) -> Vec<FileOutcome> {
    for change in &changes {
        let is_told = !change.diff.is_empty();
        assert_eq!(
            is_told,
            change.outcome != FileOutcome::Unchanged,
            "{change:?}"
        );
    }
    changes.iter().map(|change| change.outcome).collect()
}

fn walk(folder: &Path, found: &mut Vec<(PathBuf, Option<String>)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            walk(&path, found);
        }
        let text = fs::read_to_string(&path).ok();
        found.push((path, text));
    }
}

pub(super) const SEEDS: [(&str, &str); 5] = [
    (
        ".claude/settings.json",
        "{\"env\":{\"A\":\"1\"},   \"enabledPlugins\": {}}",
    ),
    (
        ".codex/config.toml",
        "model='o9'\r\n[ mcp_servers ]\r\n# none\r\n[x]\ny=1",
    ),
    (".codex/AGENTS.md", "# Mine\n\nwords, no line ending"),
    (".gemini/settings.json", "{ /* nothing */ }"),
    (".config/opencode/opencode.jsonc", "{\"mcp\": {},}\n\n\n"),
];

#[test]
fn every_file_comes_back_byte_for_byte() {
    for seeded in [true, false] {
        let place = place();
        for (path, text) in SEEDS.iter().filter(|_| seeded) {
            place.seed(path, text);
        }
        let before = place.all();
        for client in CLIENTS {
            let done = place.perform(client, Direction::In).unwrap();
            assert!(
                !done.contains(&FileOutcome::Unchanged),
                "{client:?} {done:?}"
            );
            let installed = place.all();
            let again = place.perform(client, Direction::In).unwrap();
            assert!(
                again
                    .iter()
                    .all(|outcome| *outcome == FileOutcome::Unchanged)
            );
            assert_eq!(place.all(), installed);
            // From another place, and back to this one.
            place.as_weald("/opt/weald", client, Direction::In).unwrap();
            assert_ne!(place.all(), installed);
            place.perform(client, Direction::In).unwrap();
            assert_eq!(place.all(), installed, "{client:?}");
        }
        for client in CLIENTS {
            place
                .as_weald("/elsewhere/weald", client, Direction::Out)
                .unwrap();
        }
        assert_eq!(place.all(), before, "seeded: {seeded}");
        for client in CLIENTS {
            let done = place.perform(client, Direction::Out).unwrap();
            assert!(
                done.iter()
                    .all(|outcome| *outcome == FileOutcome::Unchanged)
            );
        }
    }
}

#[test]
fn what_somebody_wrote_meanwhile_stays() {
    let place = place();
    let path = place.settings();
    place.perform(Client::Gemini, Direction::In).unwrap();
    let with = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        with.replacen("{\n", "{\n  \"theme\": \"dark\",\n", 1),
    )
    .unwrap();
    assert_eq!(
        place.perform(Client::Gemini, Direction::In).unwrap(),
        [FileOutcome::Unchanged]
    );
    assert_eq!(
        place.perform(Client::Gemini, Direction::Out).unwrap(),
        [FileOutcome::Changed]
    );
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\n  \"theme\": \"dark\"\n}\n"
    );
    // What is empty then, and was made by weald, goes; a file of the user's does not.
    place.perform(Client::Opencode, Direction::In).unwrap();
    let own = place.homes.config.join("opencode/opencode.json");
    fs::write(&own, fs::read_to_string(&own).unwrap() + "\n\n").unwrap();
    assert_eq!(
        place.perform(Client::Opencode, Direction::Out).unwrap(),
        [FileOutcome::Deleted]
    );
    assert!(!place.homes.config.exists());
}

#[test]
fn without_its_records_ours_is_still_found() {
    let place = place();
    fs::write(place.settings(), "{\n  \"a\": 1\n}\n").unwrap();
    place.perform(Client::Gemini, Direction::In).unwrap();
    fs::remove_dir_all(&place.homes.state).unwrap();
    assert_eq!(
        place.perform(Client::Gemini, Direction::Out).unwrap(),
        [FileOutcome::Changed]
    );
    assert_eq!(
        fs::read_to_string(place.settings()).unwrap(),
        "{\n  \"a\": 1\n}\n"
    );
}

#[test]
fn a_link_stays_and_its_file_is_written_with_its_mode() {
    let place = place();
    let (link, real) = (place.settings(), place.folder.path().join("dotfiles.json"));
    fs::write(&real, "{}").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    place.perform(Client::Gemini, Direction::In).unwrap();
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("weald"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    place.perform(Client::Gemini, Direction::Out).unwrap();
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}");
}

#[test]
fn a_file_that_cannot_be_edited_stops_everything_before_anything_is_written() {
    for (text, mode) in [
        ("{ broken", 0o644),
        ("{\"hooks\": 1}", 0o644),
        ("{}", 0o444),
    ] {
        let place = place();
        let path = place.homes.codex.join("hooks.json");
        fs::create_dir(&place.homes.codex).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = place.all();
        let refused = place.perform(Client::Codex, Direction::In).unwrap_err();
        assert!(refused.to_string().contains("hooks.json"), "{refused}");
        assert_eq!(place.all(), before);
    }
}

#[test]
fn a_link_of_a_project_must_not_lead_out_of_it() {
    let place = place();
    let root = place.folder.path().join("app");
    fs::create_dir(&root).unwrap();
    let outside = place.homes.home.join("notes.md");
    fs::write(&outside, "mine\n").unwrap();
    symlink(&outside, root.join("AGENTS.md")).unwrap();
    let installation = Installation {
        client: Client::Codex,
        homes: &place.homes,
        project: Some(&root),
        worktrees: &[],
        weald: "weald",
    };
    let refused = installation.perform(Direction::In).unwrap_err();
    assert!(
        matches!(refused, InstallError::LeadsOut { .. }),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine\n");
    assert!(!root.join(".codex").exists());
    // One that stays inside is fine.
    fs::remove_file(root.join("AGENTS.md")).unwrap();
    fs::write(root.join("CLAUDE.md"), "all\n").unwrap();
    symlink("CLAUDE.md", root.join("AGENTS.md")).unwrap();
    installation.perform(Direction::In).unwrap();
    assert!(
        fs::read_to_string(root.join("CLAUDE.md"))
            .unwrap()
            .contains("weald")
    );
}
