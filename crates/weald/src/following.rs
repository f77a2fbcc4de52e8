//! Showing an agent's output as it comes.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anstream::AutoStream;
use weald_app::progress::{LogReader, LogView, Shown};
use weald_app::screen::{Form, Screen, clean};
use weald_app::supervision::{Look, SUPERVISOR_LOG, Tail};
use weald_app::{Failure, Ground, agent_folder, open_own};
use weald_core::agent::AgentId;

use crate::ui::{Above, Ui, line_width, nobody_reads};

/// Shows an agent's output, and what its supervisor says, as far as it is new.
pub fn output_of(ui: &Ui, ground: &Ground, id: AgentId) -> Result<Shown, Failure> {
    let mut log = Log::new(ui, ground, id)?;
    let mut narration = Narration::of(ground, id);
    Ok(Box::new(move || {
        narration.show()?;
        log.show()
    }))
}

/// What a supervisor says beside its agent's output, for whoever follows.
struct Narration {
    path: PathBuf,
    file: Option<File>,
}

impl Narration {
    fn of(ground: &Ground, id: AgentId) -> Self {
        Self {
            path: agent_folder(&ground.place, id).join(SUPERVISOR_LOG),
            file: None,
        }
    }

    fn show(&mut self) -> Result<(), Failure> {
        if self.file.is_none() {
            self.file = open_own(OpenOptions::new().read(true), &self.path).ok();
        }
        let mut text = String::new();
        if let Some(file) = &mut self.file {
            // What is no text is not shown; it is in the file.
            let _ = file.read_to_string(&mut text);
        }
        // With stderr closed there is nobody to tell.
        let mut stderr = Above::new(io::stderr(), io::stderr().is_terminal());
        let _ = stderr.write_all(clean(&text).as_bytes());
        Ok(())
    }
}

/// An agent's log on the terminal.
struct Log {
    tail: Tail,
    screen: Screen<Box<dyn Write>>,
    typed: Receiver<String>,
}

/// Begins to show a log, and to read what is typed if it is shown as it grows.
pub fn log_of(
    ui: &Ui,
    ground: &Ground,
    id: AgentId,
    view: LogView,
) -> Result<Box<dyn LogReader>, Failure> {
    let mut log = Log::new(ui, ground, id)?;
    let shown = match view {
        LogView::Growing(lines) => {
            log.typed = typed_lines();
            log.tail.news_of(lines)?
        }
        LogView::Kept { lines, raw, full } => {
            log.tail = log.tail.whole(raw).shown(Look { full, ..look(ui) });
            log.tail.all_of(lines)?
        }
    };
    log.write(&shown)?;
    Ok(Box::new(log))
}

impl LogReader for Log {
    fn show(&mut self) -> Result<(), Failure> {
        let news = self.tail.news()?;
        self.write(&news)
    }

    fn typed(&mut self) -> Vec<String> {
        let lines = self.typed.try_iter();
        lines.filter(|line| !line.trim().is_empty()).collect()
    }

    fn has_left(&self) -> bool {
        nobody_reads()
    }
}

/// How an agent's output is shown where it goes.
fn look(ui: &Ui) -> Look {
    Look {
        width: line_width().filter(|_| !ui.is_json()),
        full: false,
        // A stream that goes to no terminal takes them off.
        colours: true,
    }
}

/// What is typed, line by line; nothing comes where nothing can be read.
fn typed_lines() -> Receiver<String> {
    let (lines, typed) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    typed
}

impl Log {
    /// From its beginning.
    fn new(ui: &Ui, ground: &Ground, id: AgentId) -> Result<Self, Failure> {
        Ok(Self {
            tail: Tail::new(ground, id)?.shown(look(ui)),
            // The answer of `--json` is one object, so what an agent says goes beside it.
            screen: Screen::new(
                match ui.is_json() {
                    true => Box::new(AutoStream::auto(io::stderr())),
                    false => {
                        let stdout = AutoStream::auto(io::stdout());
                        Box::new(Above::new(stdout, io::stdout().is_terminal()))
                    }
                },
                Form::Text,
            ),
            typed: mpsc::channel().1,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match self.tail.is_raw() && !io::stdout().is_terminal() {
            true => io::stdout().write_all(bytes),
            false => self.screen.write_all(bytes),
        };
        // A colour ends with what was shown: what follows may be weald's own.
        let written = written.and_then(|()| self.screen.end_style());
        match written.and_then(|()| self.screen.flush()) {
            // Whoever read it has seen enough; the agent goes on.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}
