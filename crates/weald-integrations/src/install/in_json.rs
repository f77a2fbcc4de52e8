//! Edits of JSON files, comments and trailing commas included, that touch nothing but weald's entries.

use std::collections::HashSet;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value, json};

use super::edit::{EditError, Hook, Member, is_hook, is_wrapped_hook};
use super::{Kept, KeptBecause};

const HOOKS: &str = "hooks";

/// What the programs themselves read: JSON, and in some of them comments and trailing commas.
const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The text with the member. What is there under its name is brought up to date if it is weald's.
pub(super) fn add_member(text: &str, member: &Member) -> Result<String, EditError> {
    let root = parse(text)?;
    let mut object = outermost(&root)?;
    for parent in member.parents {
        let inner = object.object_value_or_create(parent);
        object = inner.ok_or_else(|| EditError::Shape((*parent).to_owned()))?;
    }
    match object.get(member.name) {
        None => {
            object.append(member.name, input(&member.value));
        }
        Some(there) => {
            require_ours(&there, member)?;
            update(&there, &member.value);
        }
    }
    checked(text, root.to_string(), |value| drop_member(value, member))
}

/// The text without the member, and without objects around it that hold nothing then.
pub(super) fn take_member(text: &str, member: &Member) -> Result<String, EditError> {
    let root = parse(text)?;
    let Some(mut object) = root.object_value() else {
        return Ok(text.to_owned());
    };
    let mut around = Vec::new();
    for parent in member.parents {
        let Some(prop) = object.get(parent) else {
            return Ok(text.to_owned());
        };
        let Some(inner) = prop.object_value() else {
            return Ok(text.to_owned());
        };
        around.push(prop);
        object = inner;
    }
    let Some(there) = object.get(member.name) else {
        return Ok(text.to_owned());
    };
    if require_ours(&there, member).is_err() {
        return Ok(text.to_owned());
    }
    there.remove();
    for prop in around.into_iter().rev() {
        if !prop.object_value().is_some_and(|object| is_bare(&object)) {
            break;
        }
        prop.remove();
    }
    checked(text, root.to_string(), |value| drop_member(value, member))
}

/// What is there under the member's name.
pub(super) fn kept_member(text: &str, member: &Member) -> Result<Vec<Kept>, EditError> {
    let all = value(text)?;
    let mut parents = member.parents.iter();
    let object = parents.try_fold(&all, |value, parent| value.get(parent));
    let there = object.and_then(|object| object.get(member.name));
    Ok(Vec::from_iter(there.map(|value| Kept {
        entry: member.path(),
        why: KeptBecause::of((member.ours)(value)),
    })))
}

/// Hooks that start weald, or something that starts weald.
pub(super) fn kept_hooks(text: &str) -> Result<Vec<Kept>, EditError> {
    let mut kept = Vec::new();
    let all = value(text)?;
    let events = all[HOOKS].as_object().into_iter().flatten();
    for (event, groups) in events {
        let groups = groups.as_array().into_iter().flatten();
        let commands = groups.filter_map(|group| group[HOOKS].as_array()).flatten();
        let lines = commands.filter_map(|hook| hook["command"].as_str());
        let lines = lines.filter(|line| is_hook(line) || is_wrapped_hook(line));
        kept.extend(lines.map(|line| Kept {
            entry: format!("{HOOKS}.{event}: {line}"),
            why: KeptBecause::of(is_hook(line)),
        }));
    }
    Ok(kept)
}

fn require_ours(there: &CstObjectProp, member: &Member) -> Result<(), EditError> {
    let value = there.value().and_then(|value| value.to_serde_value());
    match value.is_some_and(|value| (member.ours)(&value)) {
        true => Ok(()),
        false => Err(EditError::Taken(member.path())),
    }
}

/// Brings a value up to date. In objects only what is wanted is touched.
fn update(prop: &CstObjectProp, wanted: &Value) {
    let there = prop.value().and_then(|value| value.to_serde_value());
    if there.as_ref() == Some(wanted) {
        return;
    }
    match (prop.object_value(), wanted) {
        (Some(object), Value::Object(members)) => {
            for (name, value) in members {
                match object.get(name) {
                    Some(inner) => update(&inner, value),
                    None => {
                        object.append(name, input(value));
                    }
                }
            }
        }
        _ => prop.set_value(input(wanted)),
    }
}

/// The text with these hooks of weald's and no others of weald's. Of one that is there only the command is brought up to date.
pub(super) fn add_hooks(text: &str, hooks: &[Hook]) -> Result<String, EditError> {
    let root = parse(text)?;
    let shape = |name: &str| EditError::Shape(name.to_owned());
    let all = outermost(&root)?.object_value_or_create(HOOKS);
    let all = all.ok_or_else(|| shape(HOOKS))?;
    let mut missing: Vec<_> = hooks.iter().collect();
    take_own(&all, |event, command| {
        let Some(at) = missing.iter().position(|hook| hook.event == event) else {
            return true;
        };
        update(command, &missing.remove(at).command.as_str().into());
        false
    });
    for hook in missing {
        let groups = all.array_value_or_create(hook.event);
        let groups = groups.ok_or_else(|| shape(hook.event))?;
        // The elements in lines of their own, as everybody writes them.
        groups.ensure_multiline();
        groups.append(input(&group(hook)));
    }
    checked(text, root.to_string(), drop_hooks)
}

/// The text without any hook of weald's, and without what held nothing else.
pub(super) fn take_hooks(text: &str) -> Result<String, EditError> {
    let root = parse(text)?;
    let Some(prop) = root.object_value().and_then(|object| object.get(HOOKS)) else {
        return Ok(text.to_owned());
    };
    let Some(all) = prop.object_value() else {
        return Ok(text.to_owned());
    };
    if !take_own(&all, |_, _| true) {
        return Ok(text.to_owned());
    }
    if is_bare(&all) {
        prop.remove();
    }
    checked(text, root.to_string(), drop_hooks)
}

/// Takes out those of weald's hooks that should go, by event and command, and lists that held nothing else; whether any did.
fn take_own(all: &CstObject, mut goes: impl FnMut(&str, &CstObjectProp) -> bool) -> bool {
    let mut taken = false;
    for event in all.properties() {
        let name = event.decoded_name().unwrap_or_default();
        let Some(groups) = event.array_value() else {
            continue;
        };
        if take_groups(&groups, |command| goes(&name, command)) {
            taken = true;
            if is_bare_array(&groups) {
                event.remove();
            }
        }
    }
    taken
}

/// The same in an event's groups.
fn take_groups(groups: &CstArray, mut goes: impl FnMut(&CstObjectProp) -> bool) -> bool {
    let mut taken = false;
    for group in groups.elements() {
        let Some(object) = group.as_object() else {
            continue;
        };
        let Some(commands) = object.array_value(HOOKS) else {
            continue;
        };
        let mut going = commands.elements();
        going.retain(|hook| own_command(hook).is_some_and(|command| goes(&command)));
        if going.is_empty() {
            continue;
        }
        taken = true;
        match going.len() == commands.elements().len() {
            true => group.remove(),
            false => going.into_iter().for_each(CstNode::remove),
        }
    }
    taken
}

/// The command of a hook, if that is weald's.
fn own_command(hook: &CstNode) -> Option<CstObjectProp> {
    let is_own = hook.to_serde_value().is_some_and(|hook| is_own(&hook));
    hook.as_object().filter(|_| is_own)?.get("command")
}

fn is_own(hook: &Value) -> bool {
    hook["command"].as_str().is_some_and(is_hook)
}

fn group(hook: &Hook) -> Value {
    json!({"hooks": [{"type": "command", "command": hook.command}]})
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    let parsed = CstRootNode::parse(text, &DIALECT);
    let root = parsed.map_err(|error| EditError::Syntax(error.to_string()))?;
    root.value().iter().try_for_each(require_single_names)?;
    Ok(root)
}

/// No name twice in any object: most programs take the last, an edit finds the first.
fn require_single_names(node: &CstNode) -> Result<(), EditError> {
    let Some(object) = node.as_object() else {
        let elements = node.as_array().map(|array| array.elements());
        return elements.iter().flatten().try_for_each(require_single_names);
    };
    let mut names = HashSet::new();
    for prop in object.properties() {
        let name = prop.name().and_then(|name| name.decoded_value().ok());
        if let Some(name) = name
            && !names.insert(name.clone())
        {
            return Err(EditError::Twice(name));
        }
        prop.value().iter().try_for_each(require_single_names)?;
    }
    Ok(())
}

/// The object that the file is; made if the file is empty.
fn outermost(root: &CstRootNode) -> Result<CstObject, EditError> {
    let object = root.object_value_or_create();
    object.ok_or_else(|| EditError::Shape("the file".to_owned()))
}

/// What a text means.
fn value(text: &str) -> Result<Value, EditError> {
    let root = parse(text)?;
    Ok(root.to_serde_value().unwrap_or_else(|| json!({})))
}

/// The new text, if it means the same as the old one but for weald's own entries.
fn checked(old: &str, mut new: String, without: impl Fn(&mut Value)) -> Result<String, EditError> {
    let is_whole = old.is_empty() || old.ends_with('\n');
    if is_whole && !new.ends_with('\n') && !new.is_empty() {
        new.push('\n');
    }
    let rest = |text: &str| -> Result<Value, EditError> {
        let mut value = value(text)?;
        without(&mut value);
        Ok(value)
    };
    match rest(old)? == rest(&new)? {
        true => Ok(new),
        false => Err(EditError::Unsafe),
    }
}

fn drop_member(value: &mut Value, member: &Member) {
    fn drop(value: &mut Value, parents: &[&str], name: &str) {
        let Some(object) = value.as_object_mut() else {
            return;
        };
        let Some((first, rest)) = parents.split_first() else {
            object.remove(name);
            return;
        };
        if let Some(inner) = object.get_mut(*first) {
            drop(inner, rest, name);
            if inner.as_object().is_some_and(Map::is_empty) {
                object.remove(*first);
            }
        }
    }
    drop(value, member.parents, member.name);
}

fn drop_hooks(value: &mut Value) {
    let Some(all) = value.get_mut(HOOKS).and_then(Value::as_object_mut) else {
        return;
    };
    for groups in all.values_mut().filter_map(Value::as_array_mut) {
        for group in groups.iter_mut() {
            if let Some(commands) = group.get_mut(HOOKS).and_then(Value::as_array_mut) {
                commands.retain(|hook| !is_own(hook));
            }
        }
        groups.retain(|group| group[HOOKS] != json!([]));
    }
    all.retain(|_, groups| *groups != json!([]));
    if all.is_empty() {
        value.as_object_mut().map(|object| object.remove(HOOKS));
    }
}

/// Whether an object holds nothing, no comment either.
fn is_bare(object: &CstObject) -> bool {
    object.properties().is_empty() && !object.children().iter().any(CstNode::is_comment)
}

fn is_bare_array(array: &CstArray) -> bool {
    array.elements().is_empty() && !array.children().iter().any(CstNode::is_comment)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(bool) => CstInputValue::Bool(*bool),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter();
            CstInputValue::Object(
                members
                    .map(|(name, value)| (name.clone(), input(value)))
                    .collect(),
            )
        }
    }
}
