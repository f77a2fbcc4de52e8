//! Any settings at all: what they mean stays, and every comment with it.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::files::place;
use super::{Client, added, edits, taken};
use crate::install::Direction;

const JSON_FILES: [(Client, &str); 4] = [
    (Client::Claude, "settings.json"),
    (Client::Codex, "hooks.json"),
    (Client::Gemini, "settings.json"),
    (Client::Opencode, "opencode.json"),
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\\n\"\\\\/*{}, ü]{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "[a-z]{1,4}",
        Just("mcpServers".to_owned()),
        Just("hooks".to_owned())
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An object whose entries can hold ours.
fn settings() -> impl Strategy<Value = Value> {
    let object = || {
        let members = prop::collection::vec(("[a-z]{1,4}", json_value()), 0..4);
        members.prop_map(|members| members.into_iter().collect::<Map<_, _>>())
    };
    (object(), prop::option::of(object())).prop_map(|(mut all, servers)| {
        if let Some(servers) = servers.filter(|servers| !servers.is_empty()) {
            all.insert("mcpServers".to_owned(), servers.into());
        }
        Value::Object(all)
    })
}

/// The same in one of the ways in which people write it.
fn written(value: &Value, style: u8) -> String {
    let text = match style % 2 {
        0 => value.to_string(),
        _ => serde_json::to_string_pretty(value).unwrap(),
    };
    let text = if style & 2 == 0 {
        text
    } else {
        text.replace('\n', "\r\n")
    };
    let text = if style & 4 == 0 {
        text
    } else {
        format!("// first\n{text} /* last */")
    };
    if style & 8 == 0 {
        text
    } else {
        format!("{text}\n")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_means_the_same_without_ours(value in settings(), style in 0..16_u8) {
        let text = written(&value, style);
        for (client, file) in JSON_FILES {
            let edits = edits(client, file, "weald");
            let with = added(&edits, &text);
            prop_assert_eq!(&added(&edits, &with), &with);
            let left = taken(&edits, &with);
            prop_assert_eq!(left.contains("// first"), text.contains("// first"));
            prop_assert_eq!(left.ends_with("/* last */"), text.ends_with("/* last */"));
            let left = left.replace("// first", "").replace("/* last */", "");
            prop_assert_eq!(&serde_json::from_str::<Value>(&left).unwrap(), &value, "{:?} {}", client, with);
        }
    }

    #[test]
    fn json_comes_back_byte_for_byte(value in settings(), style in 0..16_u8) {
        let text = written(&value, style);
        let place = place();
        let path = place.settings();
        std::fs::write(&path, &text).unwrap();
        place.perform(Client::Gemini, Direction::In).unwrap();
        prop_assert!(std::fs::read_to_string(&path).unwrap() != text);
        place.perform(Client::Gemini, Direction::Out).unwrap();
        prop_assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn toml_comes_back_as_it_was(value in settings(), style in 0..8_u8) {
        let mut table = Map::new();
        for (name, value) in value.as_object().unwrap() {
            let name = if name == "mcpServers" { "mcp_servers" } else { name };
            table.insert(name.to_owned(), without_null(value));
        }
        let Ok(text) = toml::to_string(&table) else { return Ok(()) };
        let text = if style & 1 == 0 { text } else { text.replace('\n', "\r\n") };
        let text = if style & 2 == 0 { text } else { format!("# first\n\n{text}# last") };
        let edits = edits(Client::Codex, "config.toml", "weald");
        let with = added(&edits, &text);
        prop_assert_eq!(&added(&edits, &with), &with);
        prop_assert_eq!(taken(&edits, &with), text, "{}", with);
    }
}

fn without_null(value: &Value) -> Value {
    match value {
        Value::Null => "".into(),
        Value::Array(values) => values.iter().map(without_null).collect(),
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, value)| (name.clone(), without_null(value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}
