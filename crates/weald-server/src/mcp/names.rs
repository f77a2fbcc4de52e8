//! The names of arguments: a tool's own, those that other systems have for them, and none else.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::broker::Fault;

/// The arguments under the tool's own names; or why one is refused. `also` has other names, and the tool's own for each.
/// Names in camel case are taken for the same in snake case.
pub fn own(
    schema: &JsonObject,
    also: &[(&str, &str)],
    arguments: JsonObject,
) -> Result<JsonObject, Fault> {
    let mut named = JsonObject::new();
    let mut under = BTreeMap::new();
    for (given, value) in arguments {
        let name = own_name(schema, also, &given).ok_or_else(|| unknown(schema, also, &given))?;
        named.insert(name.clone(), value);
        if let Some(other) = under.insert(name, given.clone()) {
            let message = format!("{other} and {given} are two names of the same argument");
            return Err(Fault::new("bad_arguments", 2, message).hint("give one of them"));
        }
    }
    Ok(named)
}

fn own_name(schema: &JsonObject, also: &[(&str, &str)], given: &str) -> Option<String> {
    let is_known = |name: &str| property(schema, name).is_some();
    let other = also.iter().find(|(there, _)| *there == given);
    let name = other.map_or(given, |(_, here)| here);
    match is_known(name) {
        true => Some(name.to_owned()),
        false => Some(snake_case(given)).filter(|name| is_known(name)),
    }
}

/// What a schema says of an argument.
pub fn property<'s>(schema: &'s JsonObject, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

fn unknown(schema: &JsonObject, also: &[(&str, &str)], given: &str) -> Fault {
    let properties = schema.get("properties").and_then(Value::as_object);
    let known: Vec<&str> = properties.map_or(Vec::new(), |known| {
        known.keys().map(String::as_str).collect()
    });
    let others = also.iter().map(|(there, here)| (*there, *here));
    let names = known.iter().map(|name| (*name, *name)).chain(others);
    let near = names.min_by_key(|(name, _)| far(given, name));
    let near = near.filter(|(name, _)| far(given, name) <= given.len().max(name.len()) / 2);
    let message = format!("there is no argument {given:.100}");
    let all = known.join(", ");
    let hint = match near {
        Some((_, name)) => format!("did you mean {name}? It takes: {all}"),
        None if known.is_empty() => "it takes none".to_owned(),
        None => format!("it takes: {all}"),
    };
    Fault::new("bad_arguments", 2, message).hint(hint)
}

/// How many letters two names differ in; none where one is a word of the other.
fn far(one: &str, other: &str) -> usize {
    let is_part = |whole: &str, part: &str| whole.split('_').any(|word| word == part);
    if is_part(one, other) || is_part(other, one) {
        return 0;
    }
    let start = |name: &str| name.chars().take(100).collect::<String>();
    strsim::levenshtein(&start(one), &start(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn y14_arguments_are_taken_under_every_name_they_have_and_under_no_other() {
        let schema =
            json!({"properties": {"force": {}, "name": {}, "blocked_by": {}, "complete_task": {}}});
        let schema = schema.as_object().unwrap();
        let also = [("discard_changes", "force")];
        let told = |given: Value| {
            own(schema, &also, given.as_object().unwrap().clone())
                .map(Value::from)
                .map_err(|fault| fault.hint.unwrap_or_default())
        };
        let kept = json!({"force": true, "name": "a", "blocked_by": [1]});
        assert_eq!(
            told(json!({"discard_changes": true, "name": "a", "blockedBy": [1]})),
            Ok(kept)
        );
        let both = json!({"discard_changes": true, "force": false});
        let refused = own(schema, &also, both.as_object().unwrap().clone()).unwrap_err();
        assert_eq!(
            refused.message,
            "discard_changes and force are two names of the same argument"
        );
        for (given, hint) in [
            (json!({"forced": true}), "did you mean force? "),
            (json!({"discard_change": true}), "did you mean force? "),
            (json!({"worktree_name": "a"}), "did you mean name? "),
            (
                json!({"completeTasks": true}),
                "did you mean complete_task? ",
            ),
            (json!({"colour": "red"}), "it takes: "),
            (
                json!({"force": true, "discard_changes": false}),
                "give one of them",
            ),
        ] {
            let refused = told(given.clone()).unwrap_err();
            assert!(refused.starts_with(hint), "{given}: {refused}");
        }
    }
}
