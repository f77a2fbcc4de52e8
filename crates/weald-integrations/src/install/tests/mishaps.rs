//! What goes wrong halfway, and files that are not as they should be.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use super::files::{SEEDS, place};
use super::{CLIENTS, Client, EditError, edits};
use crate::install::records::{Record, Records};
use crate::install::{Direction, FileOutcome, InstallError, KeptBecause};

#[test]
fn a_failed_update_leaves_what_was_remembered() {
    let place = place();
    for (path, text) in SEEDS.iter().filter(|(path, _)| path.starts_with(".codex")) {
        place.seed(path, text);
    }
    let before = place.all();
    place.perform(Client::Codex, Direction::In).unwrap();
    let installed = place.all();
    // The last of the files has something to change, and can't be written.
    let rules = place.homes.codex.join("AGENTS.md");
    let text = fs::read_to_string(&rules).unwrap();
    fs::write(&rules, text.replace("weald created", "nobody created")).unwrap();
    let in_the_way = place.homes.codex.join(format!(
        "AGENTS.md.{}.new",
        rustix::thread::gettid().as_raw_nonzero()
    ));
    fs::create_dir(&in_the_way).unwrap();
    let failed = place.as_weald("/opt/weald", Client::Codex, Direction::In);
    assert!(matches!(failed, Err(InstallError::File { .. })));
    fs::remove_dir(&in_the_way).unwrap();
    fs::write(&rules, text).unwrap();
    assert_eq!(place.all(), installed);
    place.perform(Client::Codex, Direction::Out).unwrap();
    assert_eq!(place.all(), before);
}

#[test]
fn a_file_keeps_its_owner() {
    let place = place();
    let path = place.seed(".gemini/settings.json", "{}");
    if chown(&path, Some(1000), Some(1000)).is_err() {
        // Only root gives files away.
        return;
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    for direction in [Direction::In, Direction::Out] {
        place.perform(Client::Gemini, direction).unwrap();
        let found = fs::metadata(&path).unwrap();
        let found = (found.uid(), found.gid(), found.mode() & 0o7777);
        assert_eq!(found, (1000, 1000, 0o640));
    }
}

#[test]
fn a_hard_link_is_not_torn() {
    let place = place();
    let path = place.seed(".gemini/settings.json", "{}");
    fs::hard_link(&path, place.homes.home.join("dotfiles.json")).unwrap();
    let refused = place.perform(Client::Gemini, Direction::In).unwrap_err();
    assert!(
        matches!(refused, InstallError::HardLinked { .. }),
        "{refused}"
    );
    assert_eq!(fs::metadata(&path).unwrap().nlink(), 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
}

#[test]
fn a_name_that_is_there_twice_is_refused() {
    for (client, file, text, name) in [
        (
            Client::Gemini,
            "settings.json",
            "{\"mcpServers\": {\"x\": 1}, \"mcpServers\": {\"y\": 1}}",
            "mcpServers",
        ),
        (
            Client::Gemini,
            "settings.json",
            "{\"mcpServers\": {\"weald\": {\"command\": \"weald\", \"c\\u006fmmand\": \"x\"}}}",
            "command",
        ),
        (
            Client::Codex,
            "hooks.json",
            "{\"hooks\": {\"Stop\": [{\"hooks\": [], \"hooks\": []}]}}",
            "hooks",
        ),
    ] {
        let edit = &edits(client, file, "weald")[0];
        let refused = Err(EditError::Twice(name.to_owned()));
        assert_eq!(edit.add(text), refused);
        assert_eq!(edit.take(text), refused);
    }
}

#[test]
fn what_the_user_wrote_of_weald_before_comes_back() {
    for (client, path, text, entry) in [
        (
            Client::Claude,
            ".claude/settings.json",
            "{\"enabledPlugins\":{\"weald@weald\":false}}",
            "enabledPlugins.weald@weald",
        ),
        (
            Client::Codex,
            ".codex/config.toml",
            "mcp_servers.weald.command = \"weald\"",
            "[mcp_servers.weald]",
        ),
        (
            Client::Codex,
            ".codex/hooks.json",
            "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"weald hook codex stop\"}]}]}}",
            "hooks.Stop: weald hook codex stop",
        ),
    ] {
        let place = place();
        let path = place.seed(path, text);
        let before = place.all();
        place.perform(client, Direction::In).unwrap();
        place.as_weald("/opt/weald", client, Direction::In).unwrap();
        let kept = place.kept(client);
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(kept[0].entry, entry);
        assert_eq!(kept[0].why, KeptBecause::ThereBefore);
        place.perform(client, Direction::Out).unwrap();
        assert_eq!(place.all(), before);
        // Asked again it is taken out, too.
        place.perform(client, Direction::Out).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("weald"));
        assert_eq!(place.kept(client), []);
    }
}

#[test]
fn what_starts_something_else_stays_and_is_told() {
    let place = place();
    place.perform(Client::Codex, Direction::In).unwrap();
    assert_eq!(place.kept(Client::Codex), []);
    let (config, hooks) = (
        place.homes.codex.join("config.toml"),
        place.homes.codex.join("hooks.json"),
    );
    for (path, old, new) in [
        (&config, "\"weald\"", "\"/usr/bin/wrapper\""),
        (
            &hooks,
            "weald hook codex stop",
            "nice weald hook codex stop",
        ),
    ] {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, text.replacen(old, new, 1)).unwrap();
    }
    let kept = place.kept(Client::Codex);
    let entries: Vec<_> = kept.iter().map(|kept| kept.entry.as_str()).collect();
    assert_eq!(
        entries,
        [
            "[mcp_servers.weald]",
            "hooks.Stop: nice weald hook codex stop"
        ]
    );
    assert!(kept.iter().all(|kept| kept.why == KeptBecause::NotWealds));
    place.perform(Client::Codex, Direction::Out).unwrap();
    assert!(fs::read_to_string(&config).unwrap().contains("wrapper"));
}

#[test]
fn a_program_with_its_version_in_its_name_is_weald_too() {
    for client in CLIENTS {
        let place = place();
        let weald = "/opt/weald-0.1";
        place.as_weald(weald, client, Direction::In).unwrap();
        let again = place.as_weald(weald, client, Direction::In).unwrap();
        assert!(again.iter().all(|is| *is == FileOutcome::Unchanged));
        place.perform(client, Direction::In).unwrap();
        place.as_weald(weald, client, Direction::Out).unwrap();
        assert_eq!(place.all(), []);
        let refused = place.as_weald("/opt/wd", client, Direction::In);
        assert!(matches!(refused, Err(InstallError::Name { .. })));
        assert_eq!(place.all(), []);
    }
}

#[test]
fn a_file_that_the_plugin_has_no_more_goes() {
    let place = place();
    place.perform(Client::Claude, Direction::In).unwrap();
    let installed = place.all();
    let folder = place.homes.data.join("claude/plugins/weald/commands");
    let old = folder.join("old.md");
    let leave = |text: &str| {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&old, text).unwrap();
        let record = Record::of(&old, None, text, vec![folder.clone()]);
        let records = Records::in_folder(place.homes.state.join("install"));
        records.put(&record).unwrap();
    };
    leave("do it the old way\n");
    let done = place.perform(Client::Claude, Direction::In).unwrap();
    assert_eq!(done.last(), Some(&FileOutcome::Deleted));
    assert_eq!(place.all(), installed);
    // What weald did not write stays, and so does its folder.
    leave("do it the old way\n");
    fs::write(folder.join("mine.md"), "mine\n").unwrap();
    place.perform(Client::Claude, Direction::Out).unwrap();
    assert!(!old.exists() && folder.join("mine.md").exists());
}
