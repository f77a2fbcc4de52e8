//! Any command: typed after `--`, or a line of the configuration.
//!
//! Words stay words: nothing is given to a shell. `{prompt}`, `{prompt_file}`, `{tree}` and `{model}` in a word are
//! replaced, once; what they stand for is not looked into again.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use weald_core::config::PromptBy;

use super::{Brief, Driver, DriverError, Form, Input, Observed, Start, Variable, program};

/// The longest word that Linux passes to a program.
const WORD_LIMIT: usize = 128 * 1024 - 1;

/// How a command without a placeholder gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prompt {
    /// As its last argument.
    Argument,
    /// In a file that is its last argument.
    File,
    /// On its standard input.
    Stdin,
    /// Not at all: it was typed as it is, and finds the file by its variable.
    Variable,
}

impl Prompt {
    /// As the configuration says.
    pub(super) fn of(setting: PromptBy) -> Self {
        match setting {
            PromptBy::File => Self::File,
            PromptBy::Stdin => Self::Stdin,
            PromptBy::Argument => Self::Argument,
        }
    }
}

/// A driver of any command.
pub(super) struct Command {
    name: String,
    words: Vec<OsString>,
    prompt: Prompt,
}

impl Command {
    /// What somebody typed after `--`.
    pub(super) fn typed(words: &[OsString]) -> Self {
        Self {
            name: super::COMMAND.to_owned(),
            words: words.to_vec(),
            prompt: Prompt::Variable,
        }
    }

    /// A line of the configuration; the words after `--` are its arguments.
    pub(super) fn configured(
        key: &'static str,
        name: &str,
        (line, arguments): (&str, &[OsString]),
        prompt: Prompt,
    ) -> Result<Box<dyn Driver>, DriverError> {
        let bad = |why| DriverError::BadCommandLine {
            key,
            line: line.trim().to_owned(),
            why,
        };
        let words = shlex::split(line).ok_or_else(|| bad("has an unclosed quote"))?;
        if words.is_empty() {
            return Err(bad("names no program"));
        }
        let words = words.into_iter().map(OsString::from);
        Ok(Box::new(Self {
            name: name.to_owned(),
            words: words.chain(arguments.iter().cloned()).collect(),
            prompt,
        }))
    }

    fn filled(&self, word: &OsStr, brief: &Brief<'_>) -> Result<OsString, DriverError> {
        let mut out = Vec::new();
        let mut rest = word.as_bytes();
        while let Some(open) = rest.iter().position(|byte| *byte == b'{') {
            out.extend_from_slice(&rest[..open]);
            rest = &rest[open..];
            let end = rest.iter().position(|byte| *byte == b'}');
            match end.and_then(|end| Some((value(&rest[1..end], brief)?, end))) {
                Some((value, end)) => {
                    out.extend_from_slice(value.as_bytes());
                    rest = &rest[end + 1..];
                }
                None => {
                    out.push(b'{');
                    rest = &rest[1..];
                }
            }
        }
        out.extend_from_slice(rest);
        let why = match () {
            () if out.contains(&0) => "contains a NUL byte",
            () if out.len() > WORD_LIMIT => "is longer than 128 KiB",
            () => return Ok(OsString::from_vec(out)),
        };
        Err(DriverError::BadPrompt {
            driver: self.name.clone(),
            why,
        })
    }
}

/// What a placeholder stands for.
fn value<'a>(name: &[u8], brief: &Brief<'a>) -> Option<&'a OsStr> {
    match name {
        b"prompt" => Some(OsStr::new(brief.prompt)),
        b"prompt_file" => Some(brief.prompt_file.as_os_str()),
        b"tree" => Some(brief.tree.as_os_str()),
        b"model" => Some(OsStr::new(brief.model.unwrap_or_default())),
        _ => None,
    }
}

/// Whether a word brings the prompt.
fn has_prompt(word: &OsString) -> bool {
    let has = |name: &[u8]| word.as_bytes().windows(name.len()).any(|part| part == name);
    has(b"{prompt}") || has(b"{prompt_file}")
}

impl Driver for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn has_stream(&self) -> bool {
        false
    }

    fn require(&self, variable: &Variable<'_>) -> Result<(), DriverError> {
        let first = self.words.first().and_then(|word| word.to_str());
        // A path may be one in the worktree, and is tried there.
        match first.filter(|first| !first.contains(['/', '{'])) {
            Some(name) => program::require(&self.name, name, variable),
            None => Ok(()),
        }
    }

    fn program(&self) -> Option<&Path> {
        let first = self.words.first().map(Path::new);
        first.filter(|first| first.is_absolute())
    }

    fn start(&self, brief: &Brief<'_>) -> Result<Start, DriverError> {
        // Its input is the terminal.
        if brief.form == Form::Typed
            || (brief.form == Form::Interactive && self.prompt == Prompt::Stdin)
        {
            return Err(DriverError::NotInteractive {
                driver: self.name.clone(),
            });
        }
        let mut words = self.words.clone();
        let mut input = Input::Nothing;
        if !words.iter().any(has_prompt) {
            match self.prompt {
                Prompt::Argument => words.push("{prompt}".into()),
                Prompt::File => words.push("{prompt_file}".into()),
                Prompt::Stdin => input = Input::Text(brief.prompt.as_bytes().to_vec()),
                Prompt::Variable => {}
            }
        }
        let command = words.iter().map(|word| self.filled(word, brief));
        Ok(Start {
            command: command.collect::<Result<_, _>>()?,
            environment: Vec::new(),
            input,
            notes: Vec::new(),
        })
    }

    fn read(&self, _line: &[u8]) -> Vec<Observed> {
        vec![Observed::Raw]
    }

    fn say(&self, _text: &str) -> Option<Vec<u8>> {
        None
    }
}
