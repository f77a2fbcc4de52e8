//! What is shown while something takes its time. On a terminal it is one line below everything else: what goes on, for how
//! long, and what was printed last; gone at its end. Elsewhere it is a line for each stage that begins.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anstream::AutoStream;
use unicode_width::UnicodeWidthStr;
use weald_app::progress::Stage;
use weald_app::screen::{Form, Screen, clean_line};

use super::table::cut;
use super::{ACCENT, DIM, paint, took};

/// When the line first shows.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often it is drawn.
const TICK: Duration = Duration::from_millis(100);

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What is at the terminal's cursor. Whoever takes it holds the lock of stderr before.
static CURSOR: Mutex<Cursor> = Mutex::new(Cursor {
    lines: 0,
    is_drawn: false,
    is_in_line: false,
});

struct Cursor {
    /// How many lines of progress may be drawn.
    lines: usize,
    /// The line of progress is there.
    is_drawn: bool,
    /// Something else began a line and did not end it.
    is_in_line: bool,
}

impl Cursor {
    /// Whatever began a line has come to its end.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_in_line) {
            let _ = io::stderr().write_all(b"\n");
        }
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

fn with_cursor<T>(act: impl FnOnce(&mut Cursor) -> T) -> T {
    let _stderr = io::stderr().lock();
    let mut cursor = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
    act(&mut cursor)
}

/// What was typed ended the line of a question.
pub fn begin_line() {
    with_cursor(|cursor| cursor.is_in_line = false);
}

/// A stream that shares the terminal with the line of progress: what is written there stands above that line.
pub struct Above<W> {
    inner: W,
    is_terminal: bool,
}

impl<W: Write> Above<W> {
    /// `is_terminal` says whether the stream goes to one.
    pub fn new(inner: W, is_terminal: bool) -> Self {
        Self { inner, is_terminal }
    }
}

impl<W: Write> Write for Above<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.inner.write(bytes);
        }
        with_cursor(|cursor| {
            cursor.erase();
            let written = self.inner.write(bytes)?;
            if let Some(last) = bytes[..written].last() {
                cursor.is_in_line = *last != b'\n';
            }
            // Drawn again only after this is on the screen.
            match cursor.lines {
                0 => Ok(written),
                _ => self.inner.flush().map(|()| written),
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Something that goes on. Dropping it takes the line away.
pub enum Progress {
    Silent,
    /// Each stage gets a line.
    Lines,
    Live(Option<(Sender<News>, JoinHandle<()>)>),
}

pub enum News {
    Stage(String),
    Line(String),
}

impl Progress {
    /// Begins, on a terminal or beside a program that reads.
    pub fn start(what: &'static str) -> Self {
        if !io::stderr().is_terminal() {
            return Self::Lines;
        }
        with_cursor(|cursor| cursor.lines += 1);
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut line = Line {
                what: what.to_owned(),
                since: Instant::now(),
                newest: String::new(),
                frame: 0,
            };
            let mut next = Instant::now() + PATIENCE;
            loop {
                match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(News::Stage(what)) => {
                        with_cursor(Cursor::end_line);
                        let since = Instant::now();
                        let newest = String::new();
                        line = Line {
                            what,
                            since,
                            newest,
                            ..line
                        };
                    }
                    Ok(News::Line(newest)) => line.newest = newest,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        line.draw();
                        next = Instant::now() + TICK;
                    }
                }
            }
            with_cursor(Cursor::erase);
        });
        Self::Live(Some((sender, thread)))
    }

    fn send(&self, news: News) {
        if let Self::Live(Some((sender, _))) = self {
            let _ = sender.send(news);
        }
    }
}

impl Stage for Progress {
    fn is_shown(&self) -> bool {
        !matches!(self, Self::Silent)
    }

    fn begins(&self, what: &str) {
        match self {
            Self::Lines => {
                let line = format!("{}\n", clean_line(what));
                // With stderr closed there is nobody to show it to.
                let _ = Screen::new(io::stderr().lock(), Form::Text).write_all(line.as_bytes());
            }
            _ => self.send(News::Stage(what.to_owned())),
        }
    }

    fn line(&self, text: &str) {
        self.send(News::Line(text.to_owned()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Live(live) = self
            && let Some((sender, thread)) = live.take()
        {
            drop(sender);
            let _ = thread.join();
            with_cursor(|cursor| cursor.lines -= 1);
        }
    }
}

struct Line {
    what: String,
    since: Instant,
    newest: String,
    frame: usize,
}

impl Line {
    fn draw(&mut self) {
        self.frame += 1;
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let width = size.map(|size| usize::from(size.ws_col));
        // One that says no width may have any.
        let text = self.text(width.filter(|width| *width > 0).unwrap_or(80));
        with_cursor(|cursor| {
            if cursor.is_in_line {
                return;
            }
            let stderr = BufWriter::new(io::stderr().lock());
            let mut screen = Screen::new(stderr, Form::Text);
            // One that can't be drawn is missed by nobody.
            let _ = screen
                .control("\r\x1b[K")
                .and_then(|()| screen.write_all(text.as_bytes()))
                .and_then(|()| screen.flush());
            cursor.is_drawn = true;
        });
    }

    /// As much as fits, with a column to spare: a line that reaches the edge would wrap.
    fn text(&self, width: usize) -> String {
        let time = match self.since.elapsed() {
            time if time.as_secs() == 0 => String::new(),
            time => format!("  {}", took(time)),
        };
        let room = width.saturating_sub(3 + time.width());
        let (what, newest) = (clean_line(&self.what), clean_line(&self.newest));
        let what = match newest.is_empty() {
            true => cut(&what, room),
            false => cut(&what, room.saturating_sub(room / 3)),
        };
        let left = room.saturating_sub(what.width() + 2);
        let newest = match newest.is_empty() || left < 8 {
            true => String::new(),
            false => format!("  {}", cut(&newest, left)),
        };
        let spinner = SPINNER[self.frame % SPINNER.len()];
        let styled = AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
        match styled {
            true => format!(
                "{} {what}{}{}",
                paint(ACCENT, spinner),
                paint(DIM, time),
                paint(DIM, newest)
            ),
            false => format!("{spinner} {what}{time}{newest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u3_the_line_of_progress_fits_every_terminal() {
        let line = |what: &str, newest: &str| Line {
            what: what.to_owned(),
            since: Instant::now() - Duration::from_secs(75),
            newest: newest.to_owned(),
            frame: 3,
        };
        let tests = "test session::renewal::a_lease_that_ends_is_given_back ... ok 日本語";
        for width in [10, 20, 40, 60, 80, 120] {
            for what in [
                "Testing",
                &"Testing a worktree of a long name: `npm test`".repeat(3),
            ] {
                for newest in ["", tests, &tests.repeat(4)] {
                    let text = line(what, newest).text(width);
                    let shown = anstream::adapter::strip_str(&text).to_string();
                    assert!(shown.width() < width.max(18), "{width}: {shown}");
                }
            }
        }
        let text = line("Testing fix", "ok 12\x1b[2J\nok 13").text(60);
        let shown = anstream::adapter::strip_str(&text).to_string();
        assert!(shown.contains("Testing fix  1 min 15 s  ok 12"), "{shown}");
        assert!(
            !text.contains("\x1b[2J") && !text.contains('\n'),
            "{text:?}"
        );
    }
}
