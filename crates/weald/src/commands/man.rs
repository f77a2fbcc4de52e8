//! `weald man`

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};

use weald_app::{Failure, exit};

use crate::cli::Cli;
use crate::context::Context;
use crate::ui::{examples, reference};

/// Print or write the manual pages
///
/// Prints weald's manual page, writes the pages of all commands to a directory, or prints them all as one Markdown page.
#[derive(Args)]
pub struct Man {
    /// Print all commands and options as Markdown
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
    /// Write all pages to this directory
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Man {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        match self.folder {
            None if self.markdown => {
                let page = reference::page(command);
                context.ui.out().write_all(page.as_bytes())?;
            }
            None => {
                context.ui.out().write_all(&page(command, "")?)?;
            }
            Some(folder) => {
                let failed = |source| Failure::file(&folder, &source);
                fs::create_dir_all(&folder).map_err(failed)?;
                write_pages(&folder, command, "").map_err(failed)?;
                // What `git weald --help` asks for.
                fs::write(folder.join("git-weald.1"), ".so man1/weald.1\n").map_err(failed)?;
                writeln!(context.ui.out(), "{}", folder.display())?;
            }
        }
        Ok(exit::DONE)
    }
}

/// Writes the pages of a command and of those below it; `above` is what stands before its name.
fn write_pages(folder: &Path, command: Command, above: &str) -> io::Result<()> {
    let name = format!("{above}{}", command.get_name());
    for inner in command.get_subcommands() {
        if !inner.is_hide_set() {
            write_pages(folder, inner.clone(), &format!("{name} "))?;
        }
    }
    let file = format!("{}.1", name.replace(' ', "-"));
    fs::write(folder.join(file), page(command, above)?)
}

/// The page of a command, with its examples.
fn page(command: Command, above: &str) -> io::Result<Vec<u8>> {
    let name = format!("{above}{}", command.get_name());
    let lines = match name.strip_prefix("weald ") {
        Some(name) => examples::of(name),
        None => &["weald help", "weald"],
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    if !lines.is_empty() {
        page.extend(b".SH EXAMPLES\n.nf\n");
        for line in lines {
            // A hyphen is a minus, so that it can be copied.
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            writeln!(page, "{line}")?;
        }
        page.extend(b".fi\n");
    }
    Ok(page)
}
