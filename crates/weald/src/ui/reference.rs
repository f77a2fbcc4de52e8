//! Every command with its options as Markdown, from the same definitions that parse them: `docs/commands.md`.

use std::fmt::Write;

use clap::{Arg, Command};

use super::help::GROUPS;

/// The whole page. Commands are in the groups of `weald --help`.
pub fn page(mut command: Command) -> String {
    command.build();
    let mut page = "# Commands\n\nMade by `weald man --markdown`; a test says when it is old. `weald help COMMAND` tells the same in a terminal.\n".to_owned();
    page.push_str("\n## Options of every command\n\n");
    let global = command
        .get_arguments()
        .filter(|arg| arg.is_global_set() && !arg.is_hide_set());
    options(&mut page, global);
    for (title, names) in GROUPS {
        let _ = write!(page, "\n## {title}\n");
        let found = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        for found in found {
            section(&mut page, found, "weald", 3);
        }
    }
    page
}

fn section(page: &mut String, command: &Command, above: &str, depth: usize) {
    let name = format!("{above} {}", command.get_name());
    let _ = write!(page, "\n{} {name}\n\n", "#".repeat(depth));
    let about = command.get_long_about().or(command.get_about());
    if let Some(about) = about {
        let _ = write!(page, "{}\n\n", about.to_string().trim());
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage: ");
    let _ = write!(page, "    {}\n\n", usage.replace("\n       ", "\n    "));
    let aliases: Vec<_> = command.get_visible_aliases().collect();
    if !aliases.is_empty() {
        let _ = write!(page, "Also: `weald {}`.\n\n", aliases.join("`, `weald "));
    }
    let own = command
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help");
    options(page, own);
    trim(page);
    for inner in command.get_subcommands() {
        if !inner.is_hide_set() && inner.get_name() != "help" {
            section(page, inner, &name, (depth + 1).min(5));
        }
    }
}

/// One line an argument, with what it may be and what it is by itself.
fn options<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    for argument in arguments.filter(|arg| arg.get_id() != "help" && arg.get_id() != "version") {
        let values = argument.get_value_names().unwrap_or_default();
        let values: String = values.iter().map(|name| format!(" <{name}>")).collect();
        let takes = argument.get_action().takes_values();
        let flags = match (argument.get_short(), argument.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long}"),
            (None, Some(long)) => format!("--{long}"),
            (Some(short), None) => format!("-{short}"),
            (None, None) => String::new(),
        };
        let shown = format!("{flags}{}", if takes { values.as_str() } else { "" });
        let help = argument.get_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let _ = write!(page, "- `{}`: {}", shown.trim(), help.trim());
        let choices: Vec<_> = argument
            .get_possible_values()
            .iter()
            .filter(|value| takes && !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        let defaults = argument.get_default_values().iter();
        let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
        let defaults = defaults.join(" ");
        if !choices.is_empty() {
            let _ = write!(page, " ({})", choices.join(", "));
        }
        if takes && !defaults.is_empty() {
            let _ = write!(page, " [default: `{defaults}`]");
        }
        page.push('\n');
    }
}

/// One line end at the end.
fn trim(page: &mut String) {
    page.truncate(page.trim_end().len());
    page.push('\n');
}
