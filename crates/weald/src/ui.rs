//! Printing: the answer on stdout, the narration on stderr, both by way of a [`Screen`].

pub mod examples;
mod fields;
mod finished;
pub mod help;
mod pager;
mod progress;
mod proposal;
pub mod reference;
mod review;
mod size;
mod style;
mod table;
mod time;

pub use fields::Fields;
pub use finished::print_kept_changes;
pub use progress::Above;
pub use proposal::print_proposal;
pub use review::short;
pub use size::size;
pub use style::{ACCENT, DIM, ERROR, HEADING, WARNING, paint, status_style};
pub use table::Table;
pub use time::{ago, left, took};
pub use weald_app::screen::{Form, Screen, because, clean, clean_line};

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use anstream::AutoStream;
use clap::ColorChoice;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use weald_app::progress::{FinishedTask, LogReader, LogView, Output, Shown, Stage};
use weald_app::{
    Failure, Ground, ProjectProposal, ProposedSetting, Reader, Review, ShownDiff, exit,
};
use weald_core::agent::AgentId;
use weald_core::attention::Attention;
use weald_core::config::NotifyBy;
use weald_core::name::SessionName;
use weald_terminal::Left;

use self::progress::Progress;
use self::review::print_review;
use crate::{attaching, following};

/// For whom to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Plain,
    Json,
}

/// Where everything is printed.
pub struct Ui {
    format: Format,
    color: anstream::ColorChoice,
    /// No progress is shown.
    is_quiet: bool,
}

/// The answer's stream; styles are taken out where they are not wanted, and whatever else a terminal would obey.
pub type Out = Screen<Above<AutoStream<io::StdoutLock<'static>>>>;

impl weald_app::progress::Progress for Ui {
    fn note(&self, text: &str) {
        self.narrate("", text);
    }

    fn warn(&self, text: &str) {
        self.narrate("warning: ", text);
    }

    fn call_person(&self, attention: &Attention, how: NotifyBy) {
        if self.format != Format::Plain || !io::stderr().is_terminal() {
            return;
        }
        let mut screen = Screen::new(io::stderr().lock(), Form::Text);
        // A terminal that does not take it has nothing to be told.
        let _ = match how {
            NotifyBy::Off => Ok(()),
            NotifyBy::Bell => screen.control("\x07"),
            NotifyBy::Osc9 => screen
                .control("\x1b]9;")
                .and_then(|()| write!(screen, "weald: {}", attention.text))
                .and_then(|()| screen.flush())
                .and_then(|()| screen.control("\x07")),
        };
        let _ = screen.flush();
    }

    fn begins(&self, text: &str) {
        if !self.is_json() && !self.is_quiet {
            self.note(text);
        }
    }

    fn stage(&self, what: &'static str) -> Arc<dyn Stage> {
        Arc::new(match self.is_json() || self.is_quiet {
            true => Progress::Silent,
            false => Progress::start(what),
        })
    }

    fn output_of(&self, ground: &Ground, id: AgentId) -> Result<Shown, Failure> {
        following::output_of(self, ground, id)
    }

    fn output(&self) -> Output {
        let mut out = self.out();
        Box::new(
            move |bytes| match out.write_all(bytes).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
                other => Ok(other.map(|()| !nobody_reads())?),
            },
        )
    }

    fn log_of(
        &self,
        ground: &Ground,
        id: AgentId,
        view: LogView,
    ) -> Result<Box<dyn LogReader>, Failure> {
        following::log_of(self, ground, id, view)
    }

    fn terminal(
        &self,
        id: AgentId,
        host: UnixStream,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Left, Failure> {
        attaching::require_terminal()?;
        self.note(&format!(
            "Attached to {id}; Ctrl-\\ detaches and leaves it running"
        ));
        attaching::show(host, is_stopped)
    }

    fn review(&self, review: &Review, diff: Option<&ShownDiff>) -> Result<(), Failure> {
        match diff {
            _ if self.is_json() => Ok(()),
            Some(diff) => self.page(diff, |out| {
                print_review(out, review)?;
                writeln!(out)
            }),
            None => {
                let mut out = self.out();
                print_review(&mut out, review)?;
                Ok(out.flush()?)
            }
        }
    }

    fn choose(&self, project: &ProjectProposal) -> Result<Vec<ProposedSetting>, Failure> {
        proposal::choose(&mut self.err(), project)
    }

    /// Whatever is not a clear yes is a no.
    fn confirm(&self, question: &str) -> Result<bool, Failure> {
        if self.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(true);
        }
        let mut err = self.err();
        write!(err, "{question} [y/N] ")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().lock().take(100).read_line(&mut answer)?;
        progress::begin_line();
        let answer = answer.trim();
        Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
    }

    fn finished(&self, worker: &SessionName, done: &FinishedTask) -> Result<(), Failure> {
        let printed = self.answer(
            || finished::finished_fields(done),
            |out| finished::print_finished(out, worker, done),
        );
        printed.map(drop)
    }
}

impl Ui {
    pub fn new(format: Format, color: ColorChoice) -> Self {
        let color = match color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        // What others say is printed by streams that nobody hands a printer to.
        color.write_global();
        Self {
            format,
            color,
            is_quiet: false,
        }
    }

    /// The same without progress.
    pub fn quiet(self, is_quiet: bool) -> Self {
        Self { is_quiet, ..self }
    }

    /// True when a program reads.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    pub fn out(&self) -> Out {
        self.out_as(match self.format {
            Format::Plain => Form::Text,
            Format::Json => Form::Json,
        })
    }

    /// The same for an answer that is JSON whatever is asked for.
    pub fn json_out(&self) -> Out {
        self.out_as(Form::Json)
    }

    fn out_as(&self, form: Form) -> Out {
        let stream = AutoStream::new(io::stdout().lock(), self.color);
        Screen::new(Above::new(stream, io::stdout().is_terminal()), form)
    }

    /// The person who reads a diff here; `None` for a program that asks for JSON.
    pub fn reader(&self) -> Option<Reader> {
        let color = match self.color {
            anstream::ColorChoice::Auto => None,
            anstream::ColorChoice::Never => Some(false),
            _ => Some(true),
        };
        (!self.is_json()).then(|| Reader {
            is_terminal: io::stdout().is_terminal(),
            color,
            width: line_width(),
        })
    }

    /// Prints a diff after what `before` writes: page by page if the reader has a pager for it.
    pub fn page(
        &self,
        diff: &ShownDiff,
        before: impl Fn(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut head = Vec::new();
        before(&mut head)?;
        if !diff.is_colored {
            head = anstream::adapter::strip_bytes(&head).into_vec();
        }
        let print = |out: &mut dyn Write| {
            out.write_all(&head)?;
            out.write_all(diff.text.as_deref().unwrap_or_default().as_bytes())?;
            match diff.truncated {
                true => writeln!(out, "[… truncated]"),
                false => Ok(()),
            }
        };
        if let Some(pager) = &diff.pager {
            return pager::show(pager, line_width(), print);
        }
        // Its colours were decided on with the user's configuration, so all that are in it stay.
        let stdout = io::stdout();
        let above = Above::new(stdout.lock(), stdout.is_terminal());
        let mut out = Screen::new(above, Form::Text);
        print(&mut out)?;
        Ok(out.flush()?)
    }

    fn err(&self) -> Screen<Above<AutoStream<io::StderrLock<'static>>>> {
        let stream = AutoStream::new(io::stderr().lock(), self.color);
        Screen::new(Above::new(stream, io::stderr().is_terminal()), Form::Text)
    }

    /// Prints the answer: one JSON object, or what `plain` writes.
    pub fn answer(
        &self,
        fields: impl FnOnce() -> Fields,
        plain: impl FnOnce(&mut Out) -> io::Result<()>,
    ) -> Result<u8, Failure> {
        let mut out = self.out();
        match self.format {
            Format::Json => writeln!(out, "{}", fields().finish())?,
            Format::Plain => plain(&mut out)?,
        }
        out.flush()?;
        Ok(exit::DONE)
    }

    /// Prints the answer of an operation: its object, or what `plain` writes.
    pub fn show(
        &self,
        answer: &impl Serialize,
        plain: impl FnOnce(&mut Out) -> io::Result<()>,
    ) -> Result<u8, Failure> {
        self.answer(|| Fields::of_answer(answer), plain)
    }

    fn narrate(&self, prefix: &str, text: &str) {
        let mut err = self.err();
        let prefix = match prefix {
            "" => String::new(),
            prefix => paint(WARNING, prefix),
        };
        // Whole lines: who reads both streams gets none in the middle of another.
        let line = format!("{prefix}{}\n", clean(text));
        // With stderr closed there is nobody to tell.
        let _ = err.write_all(line.as_bytes());
    }

    /// Prints an error and gives its exit code.
    pub fn failure(&self, failure: &Failure) -> u8 {
        if failure.message.is_empty() {
            return failure.exit;
        }
        // If the stream is closed the exit code has to say it all.
        let _ = match self.format {
            Format::Json => writeln!(
                self.json_out(),
                "{}",
                Fields::new().with("error", &error_object(failure)).finish()
            ),
            Format::Plain => self.plain_failure(failure),
        };
        failure.exit
    }

    fn plain_failure(&self, failure: &Failure) -> io::Result<()> {
        let mut err = self.err();
        let message = clean(&failure.message);
        writeln!(err, "{} {message}", paint(ERROR, "error:"))?;
        match &failure.hint {
            Some(hint) => writeln!(err, "  {} {}", paint(DIM, "hint:"), clean(hint)),
            None => Ok(()),
        }
    }
}

/// Whether the reader of the answer has gone.
pub fn nobody_reads() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().intersects(gone)
}

fn error_object(failure: &Failure) -> serde_json::Value {
    let mut error = serde_json::json!({"code": failure.code, "message": failure.message});
    if let Some(hint) = &failure.hint {
        error["hint"] = hint.as_str().into();
    }
    error["details"] = (*failure.details).clone();
    error
}

/// Text of others of several lines, where there is room: each further line is indented by so many columns.
pub fn indented(text: &str, columns: usize) -> String {
    let line = format!("\n{}", " ".repeat(columns));
    clean(text).trim_end().replace('\n', &line)
}

/// The same for a text of several lines that has one line: one behind the other.
pub fn joined(text: &str) -> String {
    let text = clean(text).replace('\t', " ");
    let lines = text.lines().map(str::trim);
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

/// As much of a text as fits into the rest of a line of which `used` columns are taken; all of it for programs.
pub fn within(text: &str, used: usize) -> String {
    match line_width() {
        Some(width) => table::cut(text, width.saturating_sub(used).max(10)),
        None => text.to_owned(),
    }
}

/// The end of a path that fits in the same way.
pub fn path_within(path: &str, used: usize) -> String {
    match line_width() {
        Some(width) => table::cut_path(path, width.saturating_sub(used).max(10)),
        None => path.to_owned(),
    }
}

/// The same text on as many lines as it takes, each further one indented by so many columns; not wrapped for programs.
pub fn wrapped(text: &str, columns: usize) -> String {
    let room = line_width().map_or(usize::MAX, |width| width.saturating_sub(columns).max(20));
    let mut lines = Vec::new();
    for paragraph in clean(text).trim_end().split('\n') {
        let mut line = String::new();
        for word in paragraph.split([' ', '\t']) {
            if !line.is_empty() && line.width() + 1 + word.width() > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join(&format!("\n{}", " ".repeat(columns)))
}

/// How wide a line may be: the terminal's width; programs get all of it.
pub fn line_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    Some(size.map_or(80, |size| usize::from(size.ws_col)).max(40))
}
