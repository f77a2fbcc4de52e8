//! From the words of a call to what is asked.
//!
//! To build everything that weald understands takes longer than most commands do. So the enums of commands build nothing
//! before it is asked for (`defer`), and here only the command that the words seem to name is offered to clap. What is
//! not understood that way, help included, is judged once more by the whole command line: nothing that anybody sees
//! comes from a part of it.
//!
//! With `defer`, the doc comment of an `Args` struct wins over that of its variant. A test insists on `defer`.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Error, FromArgMatches};
use weald_app::{Failure, exit};

use crate::cli::Cli;
use crate::ui::help::{self, Extent};

/// What is asked, or what there is to say of the words.
pub fn parse() -> Result<Cli, Error> {
    let words: Vec<_> = std::env::args_os().collect();
    match parse_with(narrow(&words), &words) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => match without_all(&words) {
            Some(words) => parse_with(whole(Extent::All), &words),
            None => parse_whole(&words),
        },
        answer => answer,
    }
}

fn parse_with(command: Command, words: &[OsString]) -> Result<Cli, Error> {
    let matches = command.try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches)
}

/// A command line that makes no sense, as clap puts it.
pub fn failure(error: &Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => "invalid_value",
        _ => "usage",
    };
    let text = error.render().to_string();
    let message = text
        .split("\n\n")
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    Failure::new(code, exit::USAGE, message).hint("weald --help")
}

/// The command line with all its commands, and help for people.
fn whole(extent: Extent) -> Command {
    let mut command = Cli::command();
    command.build();
    help::with_help(command, extent)
}

/// As the whole command line understands it. `weald help lnd` suggests what `weald lnd --help` does: clap's own `help` has
/// no suggestions.
fn parse_whole(words: &[OsString]) -> Result<Cli, Error> {
    let parsed = parse_with(whole(Extent::Everyday), words);
    match (&parsed, words) {
        (Err(error), [weald, help, rest @ ..])
            if help == "help" && error.kind() == ErrorKind::InvalidSubcommand =>
        {
            let flag = OsString::from("--help");
            let words: Vec<_> = [weald]
                .into_iter()
                .chain(rest)
                .chain([&flag])
                .cloned()
                .collect();
            parse_with(whole(Extent::Everyday), &words)
        }
        _ => parsed,
    }
}

/// The words of `weald help --all` without `--all`, which clap's own `help` does not take.
fn without_all(words: &[OsString]) -> Option<Vec<OsString>> {
    let is_all = |word: &&OsString| *word == "--all";
    let is_help = |word: &OsString| ["help", "--help", "-h"].iter().any(|help| word == help);
    let commands = Cli::commands();
    let names_one = |word: &OsString| {
        let found = word
            .to_str()
            .and_then(|word| commands.find_subcommand(word));
        found.is_some()
    };
    let is_meant = words.iter().any(|word| is_all(&word))
        && words.iter().any(is_help)
        && !words.iter().skip(1).any(names_one);
    is_meant.then(|| words.iter().filter(|word| !is_all(word)).cloned().collect())
}

/// The command line with one command at most: the one that the first word to name any names. That word can be the value
/// of a flag; then what follows is not understood, because nothing but a command can stand there.
fn narrow(words: &[OsString]) -> Command {
    let commands = Cli::commands();
    let named = |word: &str| commands.find_subcommand(word);
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str());
    match words.find_map(named) {
        Some(command) => Cli::frame().subcommand(command.clone()),
        None => Cli::frame(),
    }
}

#[cfg(test)]
mod tests {
    use clap::ArgMatches;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// Nothing that a command takes is known before it is asked for.
    fn assert_deferred(command: &Command, path: &str) {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name());
            let built: Vec<_> = inner.get_arguments().map(clap::Arg::get_id).collect();
            assert!(built.is_empty(), "{path} builds {built:?} at every start");
            assert_deferred(inner, &path);
        }
    }

    #[test]
    fn a_start_builds_no_command_that_is_not_asked_for() {
        assert_deferred(&Cli::commands(), "weald");
    }

    #[test]
    fn every_command_is_found_by_each_of_its_names() {
        for command in Cli::commands().get_subcommands() {
            let name = command.get_name();
            for word in command.get_all_aliases().chain([name]) {
                let narrow = narrow(&words(&format!("weald --json {word} x")));
                let offered: Vec<_> = narrow.get_subcommands().map(Command::get_name).collect();
                assert_eq!(offered, [name], "{word}");
            }
        }
    }

    /// What was understood, but for what could have been.
    fn understood(matches: &ArgMatches) -> Vec<(String, Vec<OsString>)> {
        let values = |id: &str| match matches.try_get_raw(id) {
            Ok(Some(values)) => values.map(OsString::from).collect(),
            // A group of arguments has no values of its own.
            _ => Vec::new(),
        };
        let ids = matches.ids().filter(|id| id.as_str() != "Cli");
        let own = ids.map(|id| (id.to_string(), values(id.as_str())));
        let inner = matches.subcommand();
        let inner = inner.map(|(name, inner)| (name.to_owned(), understood(inner)));
        let inner = inner
            .into_iter()
            .flat_map(|(name, inner)| [(name, Vec::new())].into_iter().chain(inner));
        own.chain(inner).collect()
    }

    #[test]
    fn a_part_understands_words_as_the_whole_does() {
        for line in [
            "weald",
            "weald --json",
            "weald ls",
            "weald task show 1 --json",
            "weald --json -C elsewhere task show 1",
            "weald --directory=elsewhere --set lease.ttl=1h task add new --priority P1",
            "weald --color never --set a=b queue",
            "weald run a -C b -- task show --json",
            "weald hook claude session-start",
            "weald merge a --json",
        ] {
            let line = words(line);
            let part = narrow(&line).try_get_matches_from(&line);
            let whole = whole(Extent::Everyday).try_get_matches_from(&line).unwrap();
            let part = part.unwrap_or_else(|error| panic!("{line:?}: {error}"));
            assert_eq!(understood(&part), understood(&whole), "{line:?}");
        }
    }

    #[test]
    fn what_a_part_takes_wrongly_is_left_to_the_whole() {
        for line in [
            "weald -C task list",
            "weald -C new task show 1",
            "weald --set run task show 1",
            "weald task show --no-such-flag",
            "weald task --help",
            "weald help task",
            "weald --help",
            "weald nosuch",
        ] {
            let line = words(line);
            let part = narrow(&line).try_get_matches_from(&line);
            assert!(part.is_err(), "{line:?}: {part:?}");
        }
    }

    /// What looks like a command of weald's in the strings of a source: its words, up to the first that is prose.
    fn commands_in(source: &str, whole: &Command) -> Vec<String> {
        let code = source.split("\n#[cfg(test)]").next().unwrap_or_default();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let mut found = Vec::new();
        for line in lines {
            for (at, _) in line.match_indices("weald ") {
                let before = line[..at].chars().next_back().unwrap_or(' ');
                if before.is_alphanumeric() || "-_/.".contains(before) {
                    continue;
                }
                let text = &line[at + "weald ".len()..];
                let end = text.find(['"', '`', ')', '(', ';', '\\', '|', '<']);
                let (mut command, mut words) = (whole, Vec::new());
                for word in text[..end.unwrap_or(text.len())].split(' ') {
                    // What is put in there is not known.
                    let known = word.split('{').next().unwrap_or_default();
                    let bare = known.trim_end_matches([',', ':', '.']);
                    if bare.is_empty() && known != word {
                        continue;
                    }
                    let inner = command.find_subcommand(bare);
                    let is_value = |c: char| c.is_uppercase() || "-_=.".contains(c);
                    let is_argument = bare.starts_with('-');
                    let is_placeholder = !bare.is_empty() && bare.chars().all(is_value);
                    if bare == "--" || !(inner.is_some() || is_argument || is_placeholder) {
                        break;
                    }
                    command = inner.unwrap_or(command);
                    words.push(bare.to_owned());
                    if bare != word {
                        break;
                    }
                }
                if words
                    .first()
                    .is_some_and(|first| first != "help" && whole.find_subcommand(first).is_some())
                {
                    found.push(words.join(" "));
                }
            }
        }
        found
    }

    /// A message that names a command or an option that does not exist leads nowhere.
    #[test]
    fn y17_commands_that_messages_name_exist_and_take_the_options_named() {
        fn sources(folder: &std::path::Path, all: &mut Vec<std::path::PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => sources(&path, all),
                    false => all.push(path),
                }
            }
        }
        let whole = whole(Extent::Everyday);
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = Vec::new();
        for entry in std::fs::read_dir(crates).unwrap() {
            let folder = entry.unwrap().path().join("src");
            if folder.is_dir() {
                sources(&folder, &mut files);
            }
        }
        let (mut named, mut wrong) = (0, Vec::new());
        for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
            let source = std::fs::read_to_string(file).unwrap();
            for command in commands_in(&source, &whole) {
                named += 1;
                let parsed = parse_with(whole.clone(), &words(&format!("weald {command}")));
                let kind = parsed.map_or_else(|error| Some(error.kind()), |_| None);
                let is_unknown = matches!(
                    kind,
                    Some(ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand)
                );
                if is_unknown {
                    wrong.push(format!("{}: weald {command}", file.display()));
                }
            }
        }
        assert!(named > 150, "only {named} were found");
        assert_eq!(wrong, [""; 0]);
    }
}
