//! `weald task import`

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use weald_app::{BadLines, Failure, Ground, Imported, exit, tracker};
use weald_core::import::{Parsed, parse_jsonl, parse_markdown, parse_workflow};
use weald_core::source::Tracker;

use crate::cli::SessionArg;
use crate::context::Context;
use crate::ui::{Fields, Out, clean_line, joined};

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

/// How many issues gh is asked for.
const ISSUES: u32 = 200;

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
        let ground = context.ground()?;
        let engine = &ground.engine;
        let actor = context.by(&self.session.caller()).actor(engine)?;
        let parsed = self.parse(context, &ground)?;
        let bad_lines = match self.strict {
            true => BadLines::Refuse,
            false => BadLines::Report,
        };
        let done = engine.import_tasks(actor.as_ref(), parsed, bad_lines)?;
        context.tell(engine);
        for warning in &done.warnings {
            context.warn(warning);
        }
        context
            .ui
            .answer(|| fields(&done), |out| told(out, &done))?;
        Ok(match done.errors.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        })
    }

    fn parse(&self, context: &Context<'_>, ground: &Ground) -> Result<Parsed, Failure> {
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
        let now = context.now();
        Ok(match format {
            Format::Jsonl => parse_jsonl(&self.read()?, now),
            Format::Markdown => parse_markdown(&self.read()?, now),
            Format::JeanClaude => parse_workflow(&self.read()?, now),
            Format::Beads => self.issues(context, ground, Tracker::Beads, &[])?,
            Format::Gh => {
                let labels = self.label.iter().map(|label| format!("--label={label}"));
                let limit = format!("--limit={}", self.limit.unwrap_or(ISSUES));
                let more: Vec<_> = labels.chain([limit]).collect();
                self.issues(context, ground, Tracker::Gh, &more)?
            }
        })
    }

    /// The issues in the file, or those that the tracker has.
    fn issues(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        tracker: Tracker,
        more: &[String],
    ) -> Result<Parsed, Failure> {
        let input = match &self.file {
            Some(_) => self.read()?,
            None => tracker::named(context, ground, tracker).list(more)?,
        };
        Ok(tracker::parse(tracker, &input, context.now()))
    }

    fn read(&self) -> Result<Vec<u8>, Failure> {
        read(self.file.as_deref().unwrap_or(Path::new("-")))
    }
}

fn fields(done: &Imported) -> Fields {
    Fields::new()
        .with("imported", &done.imported)
        .with("ids", &done.ids)
        .with("updated", &done.updated)
        .with("unchanged", &done.unchanged)
        .with("errors", &done.errors)
        .with("warnings", &done.warnings)
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
