//! Edits of TOML files that touch nothing but weald's own table.

use serde_json::Value;
use toml_edit::{DocumentMut, InlineTable, Item, Table as TomlTable, TableLike};

use super::edit::{EditError, Table, is_weald};
use super::lines::with_endings_of;
use super::{Kept, KeptBecause};

/// The text with the table. What is there under its name is brought up to date if it is weald's.
pub(super) fn add(text: &str, wanted: &Table) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let is_first = document.is_empty();
    let shape = || EditError::Shape(wanted.parent.to_owned());
    let parent = document.entry(wanted.parent).or_insert_with(|| {
        let mut table = TomlTable::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let is_inline = parent.is_inline_table();
    let tables = parent.as_table_like_mut().ok_or_else(shape)?;
    match tables.get_mut(wanted.name) {
        Some(there) => {
            let there = there.as_table_like_mut().filter(|there| is_own(*there));
            let there = there.ok_or_else(|| EditError::Taken(name(wanted)))?;
            if !update(there, wanted) {
                return Ok(text.to_owned());
            }
        }
        None => {
            let made = match is_inline {
                true => Item::Value(inline(wanted).into()),
                false => Item::Table(block(wanted, is_first)),
            };
            tables.insert(wanted.name, made);
        }
    }
    checked(text, &document, wanted)
}

/// The text without the table.
pub(super) fn take(text: &str, wanted: &Table) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let Some(tables) = document
        .get_mut(wanted.parent)
        .and_then(Item::as_table_like_mut)
    else {
        return Ok(text.to_owned());
    };
    let there = tables.get(wanted.name).and_then(Item::as_table_like);
    if !there.is_some_and(is_own) {
        return Ok(text.to_owned());
    }
    tables.remove(wanted.name);
    if tables.is_empty() {
        document.remove(wanted.parent);
    }
    checked(text, &document, wanted)
}

/// What is there under the table's name.
pub(super) fn kept(text: &str, wanted: &Table) -> Result<Vec<Kept>, EditError> {
    let document = parse(text)?;
    let tables = document.get(wanted.parent).and_then(Item::as_table_like);
    let there = tables.and_then(|tables| tables.get(wanted.name));
    Ok(Vec::from_iter(there.map(|there| Kept {
        entry: name(wanted),
        why: KeptBecause::of(there.as_table_like().is_some_and(is_own)),
    })))
}

fn name(wanted: &Table) -> String {
    format!("[{}.{}]", wanted.parent, wanted.name)
}

fn is_own(table: &dyn TableLike) -> bool {
    let command = table.get("command").and_then(Item::as_str);
    command.is_some_and(is_weald)
}

/// Brings a table up to date; whether that changed anything.
fn update(there: &mut dyn TableLike, wanted: &Table) -> bool {
    let mut changed = false;
    for (key, value) in &wanted.values {
        let known = there.get(key).and_then(Item::as_value).map(meaning);
        if known.as_ref() == Some(value) {
            continue;
        }
        changed = true;
        let mut new = edited(value);
        if let Some(old) = there.get(key).and_then(Item::as_value) {
            *new.decor_mut() = old.decor().clone();
        }
        there.insert(key, Item::Value(new));
    }
    changed
}

fn block(wanted: &Table, is_first: bool) -> TomlTable {
    let mut table = TomlTable::new();
    for (key, value) in &wanted.values {
        table.insert(key, Item::Value(edited(value)));
    }
    table
        .decor_mut()
        .set_prefix(if is_first { "" } else { "\n" });
    table
}

fn inline(wanted: &Table) -> InlineTable {
    let mut table = InlineTable::new();
    for (key, value) in &wanted.values {
        table.insert(*key, edited(value));
    }
    table
}

/// Texts and lists of texts are all there is.
fn edited(value: &Value) -> toml_edit::Value {
    match value {
        Value::Array(values) => {
            let texts = values.iter().filter_map(Value::as_str);
            texts.collect::<toml_edit::Array>().into()
        }
        other => other.as_str().unwrap_or_default().into(),
    }
}

fn meaning(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Array(values) => values.iter().map(meaning).collect(),
        _ => Value::Null,
    }
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    let parsed = text.parse::<DocumentMut>();
    parsed.map_err(|error| EditError::Syntax(error.to_string().trim_end().to_owned()))
}

/// The new text, if it means the same as the old one but for weald's own table.
fn checked(old: &str, new: &DocumentMut, wanted: &Table) -> Result<String, EditError> {
    let new = with_endings_of(old, &new.to_string());
    // As text: there are numbers that don't equal themselves.
    let rest = |text: &str| -> Result<String, EditError> {
        let parsed = text.parse::<toml::Table>();
        let mut table = parsed.map_err(|_| EditError::Unsafe)?;
        if let Some(tables) = table
            .get_mut(wanted.parent)
            .and_then(toml::Value::as_table_mut)
        {
            tables.remove(wanted.name);
            if tables.is_empty() {
                table.remove(wanted.parent);
            }
        }
        Ok(table.to_string())
    };
    match rest(old)? == rest(&new)? {
        true => Ok(new),
        false => Err(EditError::Unsafe),
    }
}
