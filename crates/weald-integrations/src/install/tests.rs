//! Texts and files through `weald install` and back.

mod files;
mod mishaps;
mod random;

use serde_json::{Value, json};

use super::clients;
use super::edit::{Edit, EditError, Hook};
use super::{Client, Homes};

const CLIENTS: [Client; 4] = [
    Client::Claude,
    Client::Codex,
    Client::Gemini,
    Client::Opencode,
];

/// The edits of a client's file of this name.
fn edits(client: Client, file: &str, weald: &str) -> Vec<Edit> {
    let home = std::path::Path::new("/home/ann");
    let homes = Homes {
        home: home.into(),
        claude: home.join(".claude"),
        codex: home.join(".codex"),
        config: home.join(".config"),
        data: home.join(".local/share/weald"),
        state: home.join(".local/state/weald"),
    };
    let all = clients::for_user(client, &homes, weald, &["/srv/app.weald".into()]).into_iter();
    let mut found = all.filter(|wanted| wanted.path.ends_with(file));
    found.next().expect("the client has such a file").edits
}

#[track_caller]
fn added(edits: &[Edit], text: &str) -> String {
    let mut edits = edits.iter();
    let added = edits.try_fold(text.to_owned(), |text, edit| edit.add(&text));
    added.unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn taken(edits: &[Edit], text: &str) -> String {
    let mut edits = edits.iter();
    let taken = edits.try_fold(text.to_owned(), |text, edit| edit.take(&text));
    taken.unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Adds, checks that a second time changes nothing, and takes out again.
#[track_caller]
fn through(edits: &[Edit], text: &str, expected: &str) {
    let with = added(edits, text);
    assert_eq!(with, expected, "from {text:?}");
    assert_eq!(added(edits, &with), with, "a second time");
    assert_eq!(taken(edits, &with), text, "and out again");
    assert_eq!(taken(edits, text), text, "nothing of ours is in it");
}

#[test]
fn json_keeps_its_form() {
    let gemini = edits(Client::Gemini, "settings.json", "weald");
    let golden = [
        (
            "{\n  \"theme\": \"dark\"\n}\n",
            "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"weald\": {\n      \"command\": \"weald\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n",
        ),
        // Comments, tabs, a trailing comma.
        (
            "// mine\n{\n\t\"theme\": \"dark\", // as the night\n\t/* servers */\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"},\n\t},\n}\n",
            "// mine\n{\n\t\"theme\": \"dark\", // as the night\n\t/* servers */\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"},\n\t\t\"weald\": {\n\t\t\t\"command\": \"weald\",\n\t\t\t\"args\": [\"mcp\"],\n\t\t},\n\t},\n}\n",
        ),
        // Windows, and no line ending at the end.
        (
            "{\r\n    \"a\": 1\r\n}",
            "{\r\n    \"a\": 1,\r\n    \"mcpServers\": {\r\n        \"weald\": {\r\n            \"command\": \"weald\",\r\n            \"args\": [\"mcp\"]\r\n        }\r\n    }\r\n}",
        ),
    ];
    for (text, expected) in golden {
        through(&gemini, text, expected);
    }
}

#[test]
fn an_empty_file_becomes_one_that_can_be_read() {
    for client in [Client::Gemini, Client::Opencode] {
        let file = if client == Client::Gemini {
            "settings.json"
        } else {
            "opencode.json"
        };
        for text in ["", "\n", "{}", "{ }\n"] {
            let with = added(&edits(client, file, "weald"), text);
            let value: Value = serde_json::from_str(&with).unwrap();
            assert!(value.to_string().contains("weald"), "{with}");
        }
    }
}

#[test]
fn older_entries_are_brought_up_to_date_and_additions_stay() {
    let text = "{\"mcpServers\": {\"weald\": {\"command\": \"/old/weald\", \"args\": [\"mcp\", \"--old\"], \"timeout\": 5}, \"b\": {}}}\n";
    let with = added(&edits(Client::Gemini, "settings.json", "weald"), text);
    let value: Value = serde_json::from_str(&with).unwrap();
    let expected = json!({"mcpServers": {"weald": {"command": "weald", "args": ["mcp"], "timeout": 5}, "b": {}}});
    assert_eq!(value, expected);
    let toml = "[mcp_servers.weald]\ncommand = '/old/weald' # mine\ntool_timeout_sec = 9\n";
    let with = added(&edits(Client::Codex, "config.toml", "weald"), toml);
    assert!(with.starts_with("[mcp_servers.weald]\ncommand = \"weald\" # mine\ntool_timeout_sec = 9\nargs = [\"mcp\"]\n"), "{with}");
}

#[test]
fn what_is_not_ours_is_not_touched() {
    let gemini = edits(Client::Gemini, "settings.json", "weald");
    let refused = |text: &str| gemini[0].add(text).unwrap_err();
    let theirs = "{\"mcpServers\": {\"weald\": {\"command\": \"forest\"}}}";
    assert_eq!(
        refused(theirs),
        EditError::Taken("mcpServers.weald".to_owned())
    );
    assert_eq!(gemini[0].take(theirs).unwrap(), theirs);
    assert_eq!(
        refused("{\"mcpServers\": []}"),
        EditError::Shape("mcpServers".to_owned())
    );
    assert_eq!(refused("[]"), EditError::Shape("the file".to_owned()));
    for broken in [
        "{",
        "{\"a\": 1 \"b\": 2}",
        "{a: 1}",
        "{} {}",
        "{\"a\": 'x'}",
    ] {
        assert!(matches!(refused(broken), EditError::Syntax(_)), "{broken}");
    }
    let codex = edits(Client::Codex, "config.toml", "weald");
    let refused = |text: &str| codex[0].add(text).unwrap_err();
    assert!(matches!(refused("a = = 1"), EditError::Syntax(_)));
    assert_eq!(
        refused("mcp_servers = 1"),
        EditError::Shape("mcp_servers".to_owned())
    );
    let theirs = "[mcp_servers.weald]\ncommand = 'forest'\n";
    assert_eq!(
        refused(theirs),
        EditError::Taken("[mcp_servers.weald]".to_owned())
    );
    assert_eq!(codex[0].take(theirs).unwrap(), theirs);
}

const SERVER: &str = "[mcp_servers.weald]\ncommand = \"weald\"\nargs = [\"mcp\"]\nenv_vars = [";

#[test]
fn toml_keeps_its_form() {
    let codex = edits(Client::Codex, "config.toml", "weald");
    for text in [
        "",
        "# mine\nmodel = 'o9' # the best\n\n[tui]\ntheme = \"dark\"\n",
        "[mcp_servers.other] # theirs\ncommand = 'x'\nargs = [\n  'a', # one\n]\n\n[tui]\nx = 1\n",
        "model = 'o9'\r\n\r\n[tui]\r\nx = 1\r\n",
        "model = 'o9'\r\n\n[tui]\r\nx = 1\n",
        "mcp_servers = { other = { command = 'x' } }\n",
        "mcp_servers.other.command = 'x'\nz = nan\n",
        "[mcp_servers]\nother = { command = 'x' }\n",
    ] {
        let with = added(&codex, text);
        let plain = with.replace('\r', "");
        assert!(
            plain.contains(SERVER) || text.contains("mcp_servers = {"),
            "{with}"
        );
        assert!(toml::from_str::<toml::Table>(&with).is_ok(), "{with}");
        for line in text
            .split_inclusive('\n')
            .filter(|line| !line.contains('{'))
        {
            assert!(with.contains(line), "{line:?} in {with:?}");
        }
        assert_eq!(added(&codex, &with), with);
        assert_eq!(taken(&codex, &with), text);
    }
}

#[test]
fn hooks_stand_beside_those_of_others() {
    let codex = edits(Client::Codex, "hooks.json", "/opt/my tools/weald");
    let theirs = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [{ \"type\": \"command\", \"command\": \"beep\" }]\n      }\n    ]\n  }\n}\n";
    let with = added(&codex, theirs);
    let value: Value = serde_json::from_str(&with).unwrap();
    assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "beep");
    let own = &value["hooks"]["Stop"][1]["hooks"][0]["command"];
    assert_eq!(own, "'/opt/my tools/weald' hook codex stop");
    assert_eq!(added(&codex, &with), with);
    assert_eq!(taken(&codex, &with), theirs);
    // Another place of the binary, and an event that is not wanted any more.
    let older = Edit::Hooks(vec![Hook {
        event: "PreCompact",
        command: "/old/weald hook codex pre-compact".to_owned(),
    }]);
    let old = added(&[older], theirs);
    assert_eq!(added(&codex, &old), with);
    // Somebody put ours into a group of their own.
    let mixed = theirs.replace(
        "[{ \"type\"",
        "[{\"type\": \"command\", \"command\": \"weald hook codex stop\"}, { \"type\"",
    );
    let value: Value = serde_json::from_str(&taken(&codex, &mixed)).unwrap();
    assert_eq!(value, serde_json::from_str::<Value>(theirs).unwrap());
}

#[test]
fn hooks_keep_what_somebody_added_to_them() {
    let old = edits(Client::Codex, "hooks.json", "/old/weald");
    let mut value: Value = serde_json::from_str(&added(&old, "{}\n")).unwrap();
    // A time and a condition of the user's own, and one of ours in a group of theirs.
    value["hooks"]["Stop"][0]["hooks"][0]["timeout"] = json!(120);
    value["hooks"]["PostToolUse"][0]["matcher"] = json!("apply_patch");
    let beside = json!({"type": "command", "command": "beep"});
    let start = value["hooks"]["SessionStart"][0]["hooks"].as_array_mut();
    start.unwrap().insert(0, beside);
    let text = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(added(&old, &text), text, "it is as it should be");
    let new = added(&edits(Client::Codex, "hooks.json", "weald"), &text);
    assert_eq!(new, text.replace("/old/weald", "weald"));
    // Twice the same is once too much.
    let stop = value["hooks"]["Stop"].as_array_mut().unwrap();
    stop.push(json!({"hooks": [{"type": "command", "command": "weald hook codex stop"}]}));
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(read(&added(&old, &value.to_string())), read(&text));
}

#[test]
fn a_byte_order_mark_stays_in_front() {
    let gemini = edits(Client::Gemini, "settings.json", "weald");
    let with = added(&gemini, "\u{feff}{\n  \"a\": 1\n}\n");
    assert!(with.starts_with("\u{feff}{\n  \"a\": 1,\n"), "{with:?}");
}

#[test]
fn the_plugin_names_the_program_as_it_has_to() {
    let (hooks, servers) = ("weald/hooks/hooks.json", "weald/.mcp.json");
    let read = |file: &str, weald: &str| -> Value {
        serde_json::from_str(&added(&edits(Client::Claude, file, weald), "")).unwrap()
    };
    let stop = |value: &Value| value["hooks"]["Stop"][0]["hooks"][0]["command"].clone();
    assert_eq!(stop(&read(hooks, "weald")), "weald hook claude stop");
    let odd = "/opt/my \"tools\"/weald";
    let words = shlex::split(stop(&read(hooks, odd)).as_str().unwrap()).unwrap();
    assert_eq!(words, [odd, "hook", "claude", "stop"]);
    assert_eq!(read(servers, odd)["mcpServers"]["weald"]["command"], odd);
}

#[test]
fn a14_folders_join_a_list_below_a_comment_and_leave_it_again() {
    let codex = &edits(Client::Codex, "config.toml", "weald")[1..];
    let own = "    # weald: worktrees, for agents to write\n    \"/srv/app.weald\",\n";
    let table = "[sandbox_workspace_write]\n";
    through(codex, "", &format!("{table}writable_roots = [\n{own}]\n"));
    let theirs = format!("{table}writable_roots = [\"/x\"]\nnetwork_access = true\n");
    let with = added(codex, &theirs);
    assert!(with.contains("\"/x\",\n") && with.contains(own), "{with}");
    assert_eq!(added(codex, &with), with, "a second time");
    let left: toml::Table = taken(codex, &with).parse().unwrap();
    assert_eq!(left, theirs.parse().unwrap());
    // What its user wrote is its user's.
    let same = format!("{table}writable_roots = [\"/srv/app.weald\"]\n");
    through(codex, &same, &same);
    let odd = edits(Client::Codex, "config.toml", "weald")[1].add("sandbox_workspace_write = 5\n");
    assert!(matches!(odd, Err(EditError::Shape(_))), "{odd:?}");
}
