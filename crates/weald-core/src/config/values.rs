//! Values: what a key may hold, and how it is written.

use std::fmt;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::kinds::{Key, Kind};
use crate::cost::Budget;
use crate::hosts::HostRule;
use crate::landing_message::check_message;
use crate::naming::check_template;
use crate::nearest::nearest;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Text, template, choice or duration (as written).
    Text(String),
    Switch(bool),
    Number(i64),
    List(Vec<String>),
}

impl Value {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Switch(on) => on.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::List(items) => write!(f, "[{}]", items.join(", ")),
        }
    }
}

/// A value given as text (a variable, a flag, `config set`), as TOML would have held it.
pub fn from_text(key: &Key, text: &str) -> toml::Value {
    match key.kind {
        Kind::Switch | Kind::OwnSwitch => text
            .parse()
            .map_or_else(|_| text.into(), toml::Value::Boolean),
        Kind::Number(..) => text
            .parse()
            .map_or_else(|_| text.into(), toml::Value::Integer),
        Kind::List
        | Kind::OwnList
        | Kind::OwnNames
        | Kind::JoinedList
        | Kind::GrowingList
        | Kind::Hosts => {
            if text.trim_start().starts_with('[')
                && let Ok(table) = format!("list = {text}").parse::<toml::Table>()
                && let Some(list) = table.get("list")
            {
                return list.clone();
            }
            let items = text
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            toml::Value::Array(items.map(|item| item.into()).collect())
        }
        _ => text.into(),
    }
}

/// Checks a value against its key, or says what would be right.
pub fn check_value(key: &Key, raw: &toml::Value) -> Result<Value, String> {
    let text = || raw.as_str().ok_or("expected a quoted string");
    match key.kind {
        Kind::Text | Kind::OwnText => {}
        Kind::Template | Kind::Place => {
            check_template(text()?).map_err(|error| error.to_string())?;
        }
        Kind::Message => check_message(text()?)?,
        Kind::Switch | Kind::OwnSwitch => {
            let switch = raw.as_bool().map(Value::Switch);
            return switch.ok_or_else(|| "expected true or false".to_owned());
        }
        Kind::Number(low, high) => {
            let number = raw
                .as_integer()
                .filter(|number| (low..=high).contains(number));
            let wrong = || format!("expected a number from {low} to {high}");
            return number.map(Value::Number).ok_or_else(wrong);
        }
        Kind::Duration => parse_duration(text()?).map(drop)?,
        Kind::OwnDuration(most) => {
            if parse_duration(text()?)? > SignedDuration::from_secs(most) {
                return Err(format!("expected a duration of at most {most} seconds"));
            }
        }
        Kind::Age => parse_age(text()?).map(drop)?,
        Kind::Interval => match text()? {
            "none" | "0" => return Ok(Value::Text("none".to_owned())),
            given => parse_duration(given).map(drop)?,
        },
        Kind::Choice(known) | Kind::OwnChoice(known) | Kind::Guarded(known) => {
            let given = text()?;
            check_word(given, known)?;
        }
        Kind::Size => match text()? {
            "none" => {}
            size => parse_size(size).map(drop)?,
        },
        Kind::Budget => match text()? {
            "none" => {}
            budget => budget.parse::<Budget>().map(drop)?,
        },
        Kind::List
        | Kind::OwnList
        | Kind::OwnNames
        | Kind::JoinedList
        | Kind::GrowingList
        | Kind::Hosts => {
            let wrong = || "expected a list of strings".to_owned();
            let items = raw.as_array().ok_or_else(wrong)?;
            let is_odd = |item: &&toml::Value| item.as_str().is_some_and(|text| !is_name(text));
            if let (Kind::OwnNames, Some(odd)) = (key.kind, items.iter().find(is_odd)) {
                return Err(format!("{odd} is not a plain folder name"));
            }
            if key.kind == Kind::Hosts {
                for host in items.iter().filter_map(toml::Value::as_str) {
                    host.strip_prefix('!').unwrap_or(host).parse::<HostRule>()?;
                }
            }
            if let Some(known) = key.words() {
                let mut given = items.iter().filter_map(toml::Value::as_str);
                given.try_for_each(|word| check_word(word, &known))?;
            }
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            return texts
                .collect::<Option<_>>()
                .map(Value::List)
                .ok_or_else(wrong);
        }
    }
    Ok(Value::Text(text()?.to_owned()))
}

/// Refuses any other word, and names those that are known.
fn check_word(given: &str, known: &[&'static str]) -> Result<(), String> {
    if known.contains(&given) {
        return Ok(());
    }
    let meant = nearest(given, known.iter().copied());
    let meant = meant.map(|word| format!("; did you mean `{word}`?"));
    let known = known.join(", ");
    Err(format!(
        "`{given}` is not one of {known}{}",
        meant.unwrap_or_default()
    ))
}

/// Whether it names one file or folder, and nothing of a repository.
fn is_name(text: &str) -> bool {
    let is_special = ["", ".", ".."].contains(&text) || text.eq_ignore_ascii_case(".git");
    !is_special && text.trim() == text && !text.contains(['/', '*', '?', '[', '\\', '!'])
}

/// A size in bytes: a number, and K, M, G or T for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: write it as 512M or 2G");
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let power = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << power)
        .filter(|size| *size > 0)
        .ok_or_else(wrong)
}

/// For how long something must have been left alone; `0` asks for nothing.
pub fn parse_age(text: &str) -> Result<SignedDuration, String> {
    match text {
        "0" | "0s" => Ok(SignedDuration::ZERO),
        text => parse_duration(text),
    }
}

/// A duration above zero. `7d` counts days of 24 hours.
pub fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("`{text}` is not a duration: write it as 90s, 15m, 2h 30m or 7d");
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.trim().parse::<i64>().ok());
    let duration = match days {
        Some(days @ -3650..=3650) => SignedDuration::from_hours(days * 24),
        Some(_) => return Err(wrong()),
        None => text.parse().map_err(|_| wrong())?,
    };
    if duration <= SignedDuration::ZERO || duration > SignedDuration::from_hours(24 * 3650) {
        return Err(format!(
            "a duration must be above zero and below ten years, `{text}` is not"
        ));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::find_key;

    #[test]
    fn a12_only_known_words_say_what_to_notify_of() {
        let key = find_key("notify.on").unwrap();
        let check = |text: &str| check_value(key, &from_text(key, text));
        assert!(check(key.default).is_ok() && check("").is_ok());
        let refused = check("red, blue").unwrap_err();
        assert!(refused.starts_with("`blue` is not one of parked, red, "));
        assert!(check("qestion").unwrap_err().contains("`question`"));
    }
}
