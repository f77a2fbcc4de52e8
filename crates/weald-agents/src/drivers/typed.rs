//! What somebody typed after an agent's name, taken apart: its flags with their values, its prompt, its subcommand.
//!
//! What is typed wins over what weald would add, so weald has to know which flags are there. A flag that the table does
//! not know takes no value: write `--flag=value` for those.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How many of the words after a flag belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    One,
    /// One, unless the next word is a flag.
    Perhaps,
    /// All up to the next flag.
    Many,
}

/// What the flags of a program take, by their names without dashes, separated by spaces. Others take nothing.
pub(super) struct Flags {
    pub(super) one: &'static str,
    pub(super) perhaps: &'static str,
    pub(super) many: &'static str,
    /// Short flags with their long names: `m=model`.
    pub(super) short: &'static str,
}

impl Flags {
    fn takes(&self, name: &str) -> Option<Takes> {
        let has = |list: &str| list.split(' ').any(|known| known == name);
        match () {
            () if has(self.one) => Some(Takes::One),
            () if has(self.perhaps) => Some(Takes::Perhaps),
            () if has(self.many) => Some(Takes::Many),
            () => None,
        }
    }

    /// The long name of a short flag; itself where there is none.
    fn long(&self, short: &str) -> String {
        let pairs = self
            .short
            .split(' ')
            .filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(known, _)| *known == short);
        named.next().map_or(short, |(_, long)| long).to_owned()
    }
}

/// A flag with its values, or a word that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The long name without dashes; empty for a word that is no flag.
    pub(super) name: String,
    pub(super) words: Vec<OsString>,
}

impl Part {
    fn is_flag(&self) -> bool {
        !self.name.is_empty()
    }

    /// What it was given: behind a `=`, or as the next word.
    fn value(&self) -> Option<&OsStr> {
        let first = self.words.first()?.as_bytes();
        match first.iter().position(|byte| *byte == b'=') {
            Some(at) if first.starts_with(b"--") => Some(OsStr::from_bytes(&first[at + 1..])),
            _ => self.words.get(1).map(OsString::as_os_str),
        }
    }
}

/// The words after the program, in the order in which they were typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) parts: Vec<Part>,
}

impl Typed {
    pub(super) fn parse(words: &[OsString], flags: &Flags) -> Self {
        let mut parts = Vec::new();
        let mut rest = words.iter().peekable();
        let plain = |word: &OsString| Part {
            name: String::new(),
            words: vec![word.clone()],
        };
        while let Some(word) = rest.next() {
            let bytes = word.as_bytes();
            if bytes == b"--" {
                parts.extend(rest.by_ref().map(plain));
            } else if let Some(long) = bytes.strip_prefix(b"--") {
                let end = long.iter().position(|byte| *byte == b'=');
                let name = String::from_utf8_lossy(&long[..end.unwrap_or(long.len())]);
                let mut part = Part {
                    name: name.into_owned(),
                    words: vec![word.clone()],
                };
                let takes = flags.takes(&part.name).filter(|_| end.is_none());
                take_values(&mut part, takes, &mut rest);
                parts.push(part);
            } else if bytes.len() > 1 && bytes[0] == b'-' {
                shorts(bytes, flags, &mut rest, &mut parts);
            } else {
                parts.push(plain(word));
            }
        }
        Self { parts }
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        let mut known = self.parts.iter().map(|part| part.name.as_str());
        known.any(|name| names.contains(&name))
    }

    /// The value of the last flag of this name.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let mut named = self.parts.iter().rev().filter(|part| part.name == name);
        named.next()?.value()?.to_str()
    }

    /// Takes flags away.
    pub(super) fn drop(&mut self, names: &[&str]) {
        self.parts
            .retain(|part| !names.contains(&part.name.as_str()));
    }

    /// The first word that is no flag.
    pub(super) fn first_plain(&self) -> Option<&str> {
        let mut plain = self.parts.iter().filter(|part| !part.is_flag());
        plain.next()?.words.first()?.to_str()
    }

    /// The parts before the first word that is no flag, and those behind it.
    pub(super) fn split(&self) -> (Self, Self) {
        let at = self.parts.iter().position(|part| !part.is_flag());
        let at = at.unwrap_or(self.parts.len());
        let behind = self.parts.get(at + 1..).unwrap_or_default();
        let of = |parts: &[Part]| Self {
            parts: parts.to_vec(),
        };
        (of(&self.parts[..at]), of(behind))
    }

    /// Takes the words out that are no flags: together they are a prompt.
    pub(super) fn take_prompt(&mut self) -> Option<String> {
        let (flags, plain): (Vec<_>, Vec<_>) = std::mem::take(&mut self.parts)
            .into_iter()
            .partition(Part::is_flag);
        self.parts = flags;
        let words = plain.iter().flat_map(|part| &part.words);
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        Some(words.join(" ")).filter(|prompt| !prompt.trim().is_empty())
    }

    /// Adds a value to a flag that takes many; false where nobody typed it.
    pub(super) fn add_value(&mut self, name: &str, value: &OsStr) -> bool {
        let Some(part) = self.parts.iter_mut().find(|part| part.name == name) else {
            return false;
        };
        if let ([only], Some(given)) = (&part.words[..], part.value().map(OsStr::to_owned)) {
            debug_assert!(only.as_bytes().starts_with(b"--"), "{only:?}");
            part.words = vec![format!("--{name}").into(), given];
        }
        part.words.push(value.to_owned());
        true
    }

    /// As somebody would type them.
    pub(super) fn into_words(self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut is_behind = false;
        for part in self.parts {
            let looks_like_one = part.words.first().is_some_and(is_flag);
            if !is_behind && !part.is_flag() && looks_like_one {
                words.push("--".into());
                is_behind = true;
            }
            words.extend(part.words);
        }
        words
    }
}

/// Short flags, which may be written as one: `-pc`, `-mopus`.
fn shorts<'w>(
    bytes: &[u8],
    flags: &Flags,
    rest: &mut std::iter::Peekable<impl Iterator<Item = &'w OsString>>,
    parts: &mut Vec<Part>,
) {
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        let short = char::from(*byte).to_string();
        let name = flags.long(&short);
        let takes = flags.takes(&name);
        let attached = &bytes[at + 1..];
        let mut part = Part {
            name,
            words: vec![format!("-{short}").into()],
        };
        match takes {
            Some(_) if !attached.is_empty() => {
                let value = attached.strip_prefix(b"=").unwrap_or(attached);
                part.words.push(OsString::from_vec(value.to_vec()));
                parts.push(part);
                return;
            }
            _ => take_values(&mut part, takes.filter(|_| attached.is_empty()), rest),
        }
        parts.push(part);
    }
}

fn is_flag(word: &OsString) -> bool {
    word.len() > 1 && word.as_bytes()[0] == b'-'
}

fn take_values<'w>(
    part: &mut Part,
    takes: Option<Takes>,
    rest: &mut std::iter::Peekable<impl Iterator<Item = &'w OsString>>,
) {
    match takes {
        None => {}
        Some(Takes::One) => part.words.extend(rest.next().cloned()),
        Some(Takes::Perhaps) => {
            let next = rest.next_if(|word| !is_flag(word));
            part.words.extend(next.cloned());
        }
        Some(Takes::Many) => {
            while let Some(word) = rest.next_if(|word| !is_flag(word)) {
                part.words.push(word.clone());
            }
        }
    }
}

/// weald's prompt, and behind it what the user typed, which has the last word.
pub(super) fn joined(prompt: &str, typed: Option<&str>) -> String {
    match typed {
        None => prompt.to_owned(),
        Some(typed) => format!(
            "{prompt}\n\nThe user also typed the text below; it overrides anything above:\n\n{typed}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: Flags = Flags {
        one: "model name",
        perhaps: "resume",
        many: "tools",
        short: "m=model p=print r=resume c=continue",
    };

    fn parse(line: &str) -> Typed {
        let words: Vec<_> = shlex::split(line).unwrap();
        let words: Vec<_> = words.into_iter().map(OsString::from).collect();
        Typed::parse(&words, &FLAGS)
    }

    #[test]
    fn a1_flags_values_and_prompts_are_told_apart() {
        for (line, prompt, flags) in [
            ("", None, ""),
            ("'do it'", Some("do it"), ""),
            ("--model opus 'do it'", Some("do it"), "--model opus"),
            ("--model=opus do it", Some("do it"), "--model=opus"),
            ("-m opus -p x", Some("x"), "-m opus -p"),
            ("-mopus x", Some("x"), "-m opus"),
            ("-pc x", Some("x"), "-p -c"),
            ("--resume x", None, "--resume x"),
            ("--resume -p x", Some("x"), "--resume -p"),
            ("--tools a b -p x", Some("x"), "--tools a b -p"),
            ("-p -- --model", Some("--model"), "-p"),
            ("--new value", Some("value"), "--new"),
            ("--model", None, "--model"),
            ("-", Some("-"), ""),
        ] {
            let mut typed = parse(line);
            assert_eq!(typed.take_prompt().as_deref(), prompt, "{line}");
            let words = typed.into_words();
            let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(words.join(" "), flags, "{line}");
        }
    }

    #[test]
    fn a1_a_flag_is_found_by_either_name() {
        let mut typed = parse("-m opus --name=x -r");
        assert!(typed.has(&["model"]) && typed.has(&["resume"]) && !typed.has(&["print"]));
        assert_eq!(typed.value("model"), Some("opus"));
        assert_eq!(typed.value("name"), Some("x"));
        assert_eq!(typed.value("resume"), None);
        typed.drop(&["model"]);
        assert_eq!(typed.value("model"), None);
        for line in ["--tools a", "--tools=a"] {
            let mut typed = parse(line);
            assert!(typed.add_value("tools", OsStr::new("b")));
            assert_eq!(typed.parts[0].words, ["--tools", "a", "b"]);
        }
        assert!(!parse("x").add_value("tools", OsStr::new("b")));
        assert_eq!(parse("-p -- a --b").into_words(), ["-p", "a", "--", "--b"]);
        let (before, behind) = parse("-m a exec -p").split();
        assert!(before.has(&["model"]) && behind.has(&["print"]));
    }
}
