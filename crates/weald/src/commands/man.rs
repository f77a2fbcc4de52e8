//! `weald man`

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use weald_app::{Failure, exit};

use crate::cli::Cli;
use crate::context::Context;
use crate::ui::reference;

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
        let command = Cli::command();
        match self.folder {
            None if self.markdown => {
                let page = reference::page(command);
                context.ui.out().write_all(page.as_bytes())?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                context.ui.out().write_all(&page)?;
            }
            Some(folder) => {
                let failed = |source| Failure::file(&folder, &source);
                fs::create_dir_all(&folder).map_err(failed)?;
                clap_mangen::generate_to(command, &folder).map_err(failed)?;
                // What `git weald --help` asks for.
                fs::write(folder.join("git-weald.1"), ".so man1/weald.1\n").map_err(failed)?;
                writeln!(context.ui.out(), "{}", folder.display())?;
            }
        }
        Ok(exit::DONE)
    }
}
