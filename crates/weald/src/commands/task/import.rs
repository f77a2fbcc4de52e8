//! `weald task import`

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use weald_core::import::{parse_jsonl, parse_markdown, parse_workflow};

use crate::cli::SessionArg;
use crate::context::Context;
use crate::errors::Failure;
use crate::exit;
use crate::ui::Fields;

/// The largest input.
const LIMIT: u64 = 512 * 1024 * 1024;

/// Take in tasks from a file or stdin
///
/// Lines that can't be read are reported and the others taken; dependencies that go round refuse all.
#[derive(Args)]
pub struct Import {
    /// The file; `-` is stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    /// What the input is (default: markdown for .md files, else jsonl)
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    #[command(flatten)]
    session: SessionArg,
}

/// What an input is.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object a line, as `weald task export` writes them
    Jsonl,
    /// A list: `- [ ] Subject (P1) (id: api) (after: db)`
    Markdown,
    /// The state.json of one workflow
    JeanClaude,
}

impl Import {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let engine = context.engine()?;
        let actor = context.actor(&engine, self.session.session.as_ref())?;
        let input = read(&self.file)?;
        let is_markdown = self.file.extension().is_some_and(|ending| ending == "md");
        let parsed = match self.from {
            Some(Format::JeanClaude) => parse_workflow(&input, context.now()),
            Some(Format::Markdown) => parse_markdown(&input, context.now()),
            None if is_markdown => parse_markdown(&input, context.now()),
            _ => parse_jsonl(&input, context.now()),
        };
        let done = engine.import_tasks(actor.as_ref(), parsed)?;
        context.tell(&engine);
        for warning in &done.warnings {
            context.ui.warn(warning);
        }
        context.ui.answer(
            || {
                Fields::new()
                    .with("imported", &done.imported)
                    .with("ids", &done.ids)
                    .with("errors", &done.errors)
                    .with("warnings", &done.warnings)
            },
            |out| {
                for error in &done.errors {
                    writeln!(
                        out,
                        "line {}: {} ({})",
                        error.line, error.message, error.code
                    )?;
                }
                writeln!(
                    out,
                    "imported {}, left out {}",
                    done.imported,
                    done.errors.len()
                )
            },
        )?;
        Ok(if done.errors.is_empty() {
            exit::DONE
        } else {
            exit::REFUSED
        })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut input = Vec::new();
    if file == Path::new("-") {
        if io::stdin().is_terminal() {
            return Err(Failure::new(
                "usage",
                exit::USAGE,
                "nothing to import: stdin is a terminal",
            )
            .hint("weald task import tasks.md"));
        }
        io::stdin().lock().take(LIMIT + 1).read_to_end(&mut input)?;
    } else {
        let opened = File::open(file).map_err(|source| Failure::file(file, &source))?;
        opened
            .take(LIMIT + 1)
            .read_to_end(&mut input)
            .map_err(|source| Failure::file(file, &source))?;
    }
    match input.len() as u64 > LIMIT {
        true => Err(Failure::new(
            "input_too_large",
            exit::REFUSED,
            "an import has at most 512 MiB",
        )),
        false => Ok(input),
    }
}
