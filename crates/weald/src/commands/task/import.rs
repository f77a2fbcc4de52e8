//! `weald task import`

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use weald_app::operations::Operation;
use weald_app::operations::transfers::{From, ImportTasks};
use weald_app::{Failure, Imported, exit};

use crate::cli::SessionArg;
use crate::context::Context;
use crate::ui::{Out, clean_line, joined};

const LIMIT: u64 = 512 * 1024 * 1024;

/// Import tasks from a file, stdin or a tracker
///
/// With `--from gh` or `--from beads` and no file, runs `gh` or `bd`. An existing task is updated unless work on it has
/// begun; nothing is reset. Entries that can't be read are reported and skipped; a dependency cycle rejects the whole import.
#[derive(Args)]
pub struct Import {
    /// File to read; `-` is stdin (default: stdin, or the tracker)
    file: Option<PathBuf>,
    /// Input format (default: markdown for .md files, else jsonl)
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// Only issues with this label, for --from gh (may be repeated)
    #[arg(long, value_name = "LABEL", conflicts_with = "file")]
    label: Vec<String>,
    /// Maximum number of issues, for --from gh (default: 200)
    #[arg(long, value_name = "N", conflicts_with = "file")]
    limit: Option<u32>,
    /// Import nothing if an entry can't be read
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    session: SessionArg,
}

/// What an input is.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line, as printed by `weald task export`
    Jsonl,
    /// A list: `- [ ] Subject (P1) (id: api) (after: db)`
    Markdown,
    /// GitHub issues, as printed by `gh issue list --json …`
    Gh,
    /// beads issues, as printed by `bd export` or `bd list --json`
    Beads,
    /// state.json of one workflow
    JeanClaude,
}

impl Import {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let request = ImportTasks {
            from: self.given()?,
            strict: self.strict,
        };
        let done = context.perform_as(&self.session.caller(), request)?;
        context.ui.show(&done, |out| told(out, &done))?;
        Ok(ImportTasks::exit(&done))
    }

    fn given(&self) -> Result<From, Failure> {
        let ending = self.file.as_deref().and_then(Path::extension);
        let is_markdown = ending.is_some_and(|ending| ending == "md");
        let format = self.from.unwrap_or(match is_markdown {
            true => Format::Markdown,
            false => Format::Jsonl,
        });
        if format != Format::Gh && (!self.label.is_empty() || self.limit.is_some()) {
            let told = "--label and --limit are for --from gh";
            return Err(Failure::new("usage", exit::USAGE, told).hint("weald task import --help"));
        }
        let input = || read(self.file.as_deref().unwrap_or(Path::new("-")));
        let issues = || self.file.as_deref().map(read).transpose();
        Ok(match format {
            Format::Jsonl => From::Jsonl { input: input()? },
            Format::Markdown => From::Markdown { input: input()? },
            Format::JeanClaude => From::JeanClaude { input: input()? },
            Format::Beads => From::Beads { input: issues()? },
            Format::Gh => From::Gh {
                input: issues()?,
                labels: self.label.clone(),
                limit: self.limit,
            },
        })
    }
}

fn told(out: &mut Out, done: &Imported) -> io::Result<()> {
    for error in &done.errors {
        let (place, message) = (clean_line(&error.place()), joined(&error.message));
        writeln!(out, "{place}: {message} ({})", error.code)?;
    }
    let (new, updated, same) = (done.imported, done.updated.len(), done.unchanged);
    write!(out, "imported {new}")?;
    if updated + same > 0 {
        write!(out, ", updated {updated}, unchanged {same}")?;
    }
    writeln!(out, ", left out {}", done.errors.len())
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
            "an import can have at most 512 MiB",
        )),
        false => Ok(input),
    }
}
