//! The words of a command line, made from what a model wrote: nothing it writes is ever taken for a flag.

use std::fmt::Display;

use serde_json::Value;

use crate::broker::Fault;

/// The longest word that a process can be started with, in bytes.
const LONGEST: usize = (128 << 10) - 1;

/// A command line of weald's.
#[derive(Debug, Clone, Default)]
pub struct Words {
    words: Vec<String>,
    rest: Vec<String>,
}

impl Words {
    /// The command itself: words of our own.
    pub fn of(command: &[&str]) -> Self {
        Self {
            words: command.iter().map(|word| (*word).to_owned()).collect(),
            rest: Vec::new(),
        }
    }

    /// A flag with its value, if there is one.
    pub fn flag(mut self, name: &str, value: Option<impl Display>) -> Self {
        let word = value.map(|value| format!("--{name}={value}"));
        self.words.extend(word);
        self
    }

    /// A flag with each of its values.
    pub fn flags<T: Display>(self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter();
        values.fold(self, |words, value| words.flag(name, Some(value)))
    }

    /// What stands alone, after everything else.
    pub fn rest<T: Display>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        self.rest
            .extend(values.into_iter().map(|value| value.to_string()));
        self
    }

    /// All of them in order; refused if no process can be started with them.
    pub fn finish(self) -> Result<Vec<String>, Fault> {
        let mut words = self.words;
        if !self.rest.is_empty() {
            words.push("--".to_owned());
            words.extend(self.rest);
        }
        match words.iter().find(|word| word.len() > LONGEST) {
            Some(word) => return Err(too_long(word.len())),
            None if words.iter().any(|word| word.contains('\0')) => {
                return Err(has_nul());
            }
            None => {}
        }
        Ok(words)
    }
}

/// Refuses a request with text that is too long, or that no process could be started with.
pub fn fit(value: &Value) -> Result<(), Fault> {
    match value {
        Value::String(text) if text.len() > LONGEST => Err(too_long(text.len())),
        Value::String(text) if text.contains('\0') => Err(has_nul()),
        Value::Array(items) => items.iter().try_for_each(fit),
        Value::Object(fields) => fields.values().try_for_each(fit),
        _ => Ok(()),
    }
}

fn has_nul() -> Fault {
    Fault::new("bad_arguments", 2, "an argument contains a NUL byte")
        .hint("leave it out; text has no NUL")
}

/// The refusal of what is too long for a command line.
pub fn too_long(length: usize) -> Fault {
    let message = format!("an argument has {length} bytes, and at most {LONGEST} can be passed");
    Fault::new("argument_too_long", 2, message)
        .hint("shorten it; put long text in a file in the worktree")
}

/// A name that stands where `--` can't go before it.
pub fn plain(name: String) -> Result<String, Fault> {
    match name.starts_with('-') {
        true => Err(Fault::new(
            "bad_arguments",
            2,
            format!("{name} is not a valid name"),
        )),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_writes_is_never_a_flag() {
        let words = Words::of(&["land"])
            .flag("message", Some("--force"))
            .flags("label", ["-x", "y"])
            .rest(["--force"]);
        let words = words.finish().unwrap();
        let expected = [
            "land",
            "--message=--force",
            "--label=-x",
            "--label=y",
            "--",
            "--force",
        ];
        assert_eq!(words, expected);
        assert!(plain("--sandbox=off".to_owned()).is_err());
    }

    #[test]
    fn what_no_process_takes_is_refused() {
        let code = |text: &str| Words::of(&["x"]).rest([text]).finish().unwrap_err().code;
        assert_eq!(code(&"x".repeat(LONGEST + 1)).as_str(), "argument_too_long");
        assert_eq!(code("a\0b").as_str(), "bad_arguments");
        assert!(
            Words::of(&["x"])
                .rest(["x".repeat(LONGEST)])
                .finish()
                .is_ok()
        );
    }
}
