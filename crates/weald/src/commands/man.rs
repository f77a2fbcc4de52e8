//! `weald man`

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::cli::Cli;
use crate::context::Context;
use crate::errors::Failure;
use crate::exit;

/// Print or write the manual pages
///
/// Print the manual page of weald, or write the pages of all commands into a folder.
#[derive(Args)]
pub struct Man {
    /// Write every page into this folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Man {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let command = Cli::command();
        match self.folder {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                context.ui.out().write_all(&page)?;
            }
            Some(folder) => {
                let failed = |source| Failure::file(&folder, &source);
                fs::create_dir_all(&folder).map_err(failed)?;
                clap_mangen::generate_to(command, &folder).map_err(failed)?;
                writeln!(context.ui.out(), "{}", folder.display())?;
            }
        }
        Ok(exit::DONE)
    }
}
