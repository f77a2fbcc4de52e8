//! Edits of TOML files that touch nothing but weald's own table.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table as TomlTable, TableLike};

use super::edit::{EditError, Folders, Table, is_weald};
use super::lines::with_endings_of;
use super::{Kept, KeptBecause};

/// The comment above a folder of weald's.
const MARK: &str = "# weald: worktrees, for agents to write";

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

/// The text with the folders in the list.
pub(super) fn add_folders(text: &str, wanted: &Folders) -> Result<String, EditError> {
    let mut document = parse(text)?;
    if wanted.folders.is_empty() {
        return Ok(text.to_owned());
    }
    let shape = || EditError::Shape(format!("{}.{}", wanted.parent, wanted.name));
    let is_first = document.is_empty();
    let table = document.entry(wanted.parent).or_insert_with(|| {
        let mut table = TomlTable::new();
        let before = if is_first { "" } else { "\n" };
        table.decor_mut().set_prefix(before);
        Item::Table(table)
    });
    let table = table.as_table_like_mut().ok_or_else(shape)?;
    let list = table
        .entry(wanted.name)
        .or_insert_with(|| Item::Value(Array::new().into()));
    let list = list.as_array_mut().ok_or_else(shape)?;
    let known = |list: &Array, folder: &String| list.iter().any(|one| one.as_str() == Some(folder));
    let mut changed = false;
    for folder in &wanted.folders {
        if known(list, folder) {
            continue;
        }
        changed = true;
        let mut entry = toml_edit::Value::from(folder.as_str());
        entry.decor_mut().set_prefix(format!("\n    {MARK}\n    "));
        list.push_formatted(entry);
        if list
            .trailing()
            .as_str()
            .is_none_or(|end| !end.contains('\n'))
        {
            list.set_trailing("\n");
        }
        list.set_trailing_comma(true);
    }
    match changed {
        true => checked_folders(text, &document, wanted),
        false => Ok(text.to_owned()),
    }
}

/// The text without weald's folders.
pub(super) fn take_folders(text: &str, wanted: &Folders) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let Some(table) = document.get_mut(wanted.parent) else {
        return Ok(text.to_owned());
    };
    let Some(table) = table.as_table_like_mut() else {
        return Ok(text.to_owned());
    };
    let Some(list) = table.get_mut(wanted.name).and_then(Item::as_array_mut) else {
        return Ok(text.to_owned());
    };
    let before = list.len();
    list.retain(|entry| !is_marked(entry));
    if list.len() == before {
        return Ok(text.to_owned());
    }
    if list.is_empty() {
        table.remove(wanted.name);
        if table.is_empty() {
            document.remove(wanted.parent);
        }
    }
    checked_folders(text, &document, wanted)
}

/// Whether an entry of a list stands below weald's comment.
fn is_marked(entry: &toml_edit::Value) -> bool {
    let prefix = entry.decor().prefix().and_then(|prefix| prefix.as_str());
    prefix.is_some_and(|prefix| prefix.contains(MARK))
}

/// The new text, if it means the same as the old one but for weald's folders.
fn checked_folders(old: &str, new: &DocumentMut, wanted: &Folders) -> Result<String, EditError> {
    let new = with_endings_of(old, &new.to_string());
    let rest = |text: &str| -> Result<String, EditError> {
        let document = parse(text)?;
        let list = document
            .get(wanted.parent)
            .and_then(|table| table.get(wanted.name));
        let list = list.and_then(Item::as_array).into_iter().flatten();
        let marked = list
            .filter(|entry| is_marked(entry))
            .filter_map(|entry| entry.as_str());
        let marked: Vec<&str> = marked.collect();
        let parsed = text.parse::<toml::Table>();
        let mut all = parsed.map_err(|_| EditError::Unsafe)?;
        let table = all
            .get_mut(wanted.parent)
            .and_then(toml::Value::as_table_mut);
        if let Some(table) = table {
            let list = table
                .get_mut(wanted.name)
                .and_then(toml::Value::as_array_mut);
            let is_empty = list.is_some_and(|list| {
                list.retain(|entry| entry.as_str().is_none_or(|entry| !marked.contains(&entry)));
                list.is_empty()
            });
            if is_empty {
                table.remove(wanted.name);
            }
            if table.is_empty() {
                all.remove(wanted.parent);
            }
        }
        Ok(all.to_string())
    };
    match rest(old)? == rest(&new)? {
        true => Ok(new),
        false => Err(EditError::Unsafe),
    }
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
            texts.collect::<Array>().into()
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
