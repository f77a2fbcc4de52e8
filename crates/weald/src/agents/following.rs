//! Following an agent: its output as it comes, until it is over. A Ctrl-C asks it to stop; a closed terminal changes nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anstream::AutoStream;
use weald_app::agents::drivers::{Driver, Observed, driver_for};
use weald_app::{LOG_FILE, RecordError, agent_folder, open_own};
use weald_core::agent::{Agent, AgentId, AgentStatus, Goal, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_sandbox::interrupted;

use crate::agents::launching::SUPERVISOR_LOG;
use crate::context::{Context, Ground};
use crate::errors::Failure;
use crate::ui::{Form, Screen, clean};

/// How often the log is looked at.
const POLL: Duration = Duration::from_millis(100);

/// What is shown of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    Output,
    /// Nothing: it is waited for.
    Nothing,
}

/// Shows an agent's output until it is over; answers how it stands then.
pub fn follow(
    context: &Context<'_>,
    ground: &Ground,
    id: AgentId,
    show: Show,
) -> Result<Agent, Failure> {
    let mut is_asked = false;
    let mut tail = match show {
        Show::Output => Some(Tail::new(context, ground, id)?),
        Show::Nothing => None,
    };
    let mut narration = Narration::of(ground, id);
    let mut show = || match &mut tail {
        Some(tail) => narration.show().and_then(|()| tail.show()),
        None => Ok(()),
    };
    loop {
        let agent = ground.engine.agent(id)?;
        show()?;
        if agent.status.is_over() {
            show()?;
            return Ok(agent);
        }
        if let Some(signal) = interrupted().filter(|_| !is_asked) {
            is_asked = true;
            let stop = Wanted::Stop {
                why: format!("stopped from its terminal (signal {signal})"),
                release: true,
            };
            // What is said is what it answers: it may have come to its end since it was looked at.
            match ground.engine.decide_agent(id, AgentInput::Want(stop)) {
                Ok(_) => context
                    .ui
                    .note(&format!("asking {id} to stop; what it wrote is kept")),
                Err(RecordError::Refused(_)) => {
                    let lands = match agent.goal {
                        Goal::Land => " and lands",
                        _ => "",
                    };
                    if ground.engine.agent(id)?.status == AgentStatus::Finishing {
                        context
                            .ui
                            .note(&format!("{id} is finishing{lands}; Ctrl-C again leaves it"));
                    }
                }
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        if ground.engine.is_orphaned(&agent) {
            ground.engine.reap_agents()?;
            continue;
        }
        thread::sleep(POLL);
    }
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
        let _ = io::stderr().write_all(clean(&text).as_bytes());
        Ok(())
    }
}

/// How a log is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A stream as its driver understands it, anything else as it came, with its colours.
    Told,
    /// The same without colours.
    Cleaned,
    /// Every byte, where no terminal reads it.
    Raw,
}

/// The end of an agent's log.
pub struct Tail {
    path: PathBuf,
    file: Option<(File, u64)>,
    driver: Option<Box<dyn Driver>>,
    line: Vec<u8>,
    form: Shape,
    /// Where the older half is, until it was read.
    older: Option<PathBuf>,
    screen: Screen<Box<dyn Write>>,
}

impl Tail {
    /// The log of an agent, from its beginning.
    pub fn new(context: &Context<'_>, ground: &Ground, id: AgentId) -> Result<Self, Failure> {
        let agent = ground.engine.agent(id)?;
        let driver = driver_for(ground.config(), Some(&agent.driver), &[]).ok();
        let driver = driver.filter(|driver| driver.has_stream());
        Ok(Self {
            path: agent_folder(&ground.place, id).join(LOG_FILE),
            file: None,
            driver,
            line: Vec::new(),
            form: Shape::Told,
            older: None,
            // The answer of `--json` is one object, so what an agent says goes beside it.
            screen: Screen::new(
                match context.ui.is_json() {
                    true => Box::new(AutoStream::auto(io::stderr())),
                    false => Box::new(AutoStream::auto(io::stdout())),
                },
                Form::Text,
            ),
        })
    }

    /// The same with what was put aside, without colours unless it is wanted as it came.
    pub fn whole(self, raw: bool) -> Self {
        Self {
            form: if raw { Shape::Raw } else { Shape::Cleaned },
            older: Some(self.path.with_extension("log.1")),
            ..self
        }
    }

    /// Shows what came since the last time.
    pub fn show(&mut self) -> Result<(), Failure> {
        let news = self.news()?;
        self.write(&news)
    }

    /// Shows the last whole lines of what is there, all of them without a number; `show` goes on behind them.
    pub fn begin_with(&mut self, lines: Option<usize>) -> Result<(), Failure> {
        let all = self.news()?;
        self.write(last_lines(&all, lines))
    }

    /// Shows the last lines of what is there; all of them without a number.
    pub fn show_last(&mut self, lines: Option<usize>) -> Result<(), Failure> {
        let mut all = self.news()?;
        all.append(&mut self.line);
        self.write(last_lines(&all, lines))
    }

    /// The same as text.
    pub fn text(&mut self, lines: Option<usize>) -> Result<String, Failure> {
        let mut all = self.news()?;
        all.append(&mut self.line);
        Ok(String::from_utf8_lossy(last_lines(&all, lines)).into_owned())
    }

    fn news(&mut self) -> Result<Vec<u8>, Failure> {
        let mut news = Vec::new();
        if let Some(older) = self.older.take()
            && let Ok(bytes) = std::fs::read(older)
        {
            news.extend(self.formed(bytes));
        }
        loop {
            if self.file.is_none() {
                let Ok(file) = open_own(OpenOptions::new().read(true), &self.path) else {
                    return Ok(news);
                };
                let number = file.metadata()?.ino();
                self.file = Some((file, number));
            }
            let Some((file, number)) = &mut self.file else {
                return Ok(news);
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let is_current = std::fs::metadata(&self.path).is_ok_and(|now| now.ino() == *number);
            news.extend(self.formed(bytes));
            if is_current {
                return Ok(news);
            }
            // It was put aside for a new one.
            self.file = None;
            if !self.path.exists() {
                return Ok(news);
            }
        }
    }

    /// What is shown of these bytes; the start of a line waits for its end.
    fn formed(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let is_plain = self.driver.is_none() && self.form == Shape::Told;
        if self.form == Shape::Raw || is_plain {
            return bytes;
        }
        self.line.extend(bytes);
        let whole = self.line.iter().rposition(|byte| *byte == b'\n');
        let rest = self.line.split_off(whole.map_or(0, |end| end + 1));
        let lines = std::mem::replace(&mut self.line, rest);
        match &self.driver {
            None => clean(&String::from_utf8_lossy(&lines)).into_bytes(),
            Some(driver) => {
                let lines = lines.split_inclusive(|byte| *byte == b'\n');
                let told = lines.map(|line| told(driver.as_ref(), line));
                told.collect::<String>().into_bytes()
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match self.form == Shape::Raw && !io::stdout().is_terminal() {
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

/// A line of a stream, for people.
fn told(driver: &dyn Driver, line: &[u8]) -> String {
    let mut text = String::new();
    for one in driver.read(line) {
        match one {
            Observed::Said(said) => text.push_str(&format!("{}\n", clean(&said))),
            Observed::Action(action) => text.push_str(&format!("  > {}\n", clean(&action))),
            // Not of the stream: what it says beside it, of errors mostly.
            Observed::Raw if !line.starts_with(b"{") => {
                let line = String::from_utf8_lossy(line);
                text.push_str(&format!("{}\n", clean(line.trim_end())));
            }
            _ => {}
        }
    }
    text
}

fn last_lines(bytes: &[u8], lines: Option<usize>) -> &[u8] {
    let Some(lines) = lines else { return bytes };
    let ends = bytes
        .iter()
        .enumerate()
        .rev()
        .skip_while(|(place, _)| *place + 1 == bytes.len())
        .filter(|(_, byte)| **byte == b'\n');
    match (
        lines,
        ends.map(|(place, _)| place).nth(lines.saturating_sub(1)),
    ) {
        (0, _) => &[],
        (_, Some(place)) => &bytes[place + 1..],
        (_, None) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_are_counted_from_the_end() {
        let all = b"one\ntwo\nthree\n";
        assert_eq!(last_lines(all, None), all);
        assert_eq!(last_lines(all, Some(2)), b"two\nthree\n");
        assert_eq!(last_lines(all, Some(9)), all);
        assert_eq!(last_lines(all, Some(0)), b"");
        assert_eq!(last_lines(b"one\ntwo", Some(1)), b"two");
        assert_eq!(last_lines(b"", Some(3)), b"");
    }
}
