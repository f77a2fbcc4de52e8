//! Following an agent: its output as it comes, until it is over. A Ctrl-C asks it to stop; a closed terminal changes nothing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use weald_core::agent::{Agent, AgentId, Wanted};
use weald_core::agent_rules::AgentInput;
use weald_engine::agents::drivers::{Driver, Observed, driver_for};
use weald_engine::{LOG_FILE, agent_folder};
use weald_sandbox::interrupted;

use crate::context::{Context, Ground};
use crate::errors::Failure;
use crate::ui::clean;

/// How often the log is looked at.
const POLL: Duration = Duration::from_millis(100);

/// What is shown of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Its output.
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
    let mut show = || tail.as_mut().map_or(Ok(()), Tail::show);
    loop {
        let agent = ground.engine.agent(id)?;
        show()?;
        if agent.status.is_over() {
            show()?;
            return Ok(agent);
        }
        if let Some(signal) = interrupted().filter(|_| !is_asked) {
            is_asked = true;
            context
                .ui
                .note(&format!("asking {id} to stop; what it wrote is kept"));
            let stop = Wanted::Stop {
                why: format!("its terminal asked, by signal {signal}"),
                release: true,
            };
            // It may be over by now.
            let _ = ground.engine.decide_agent(id, AgentInput::Want(stop));
        }
        if ground.engine.is_orphaned(&agent) {
            ground.engine.reap_agents()?;
            continue;
        }
        thread::sleep(POLL);
    }
}

/// The end of an agent's log.
pub struct Tail {
    path: PathBuf,
    file: Option<(File, u64)>,
    driver: Option<Box<dyn Driver>>,
    line: Vec<u8>,
    is_json: bool,
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
            is_json: context.ui.is_json(),
        })
    }

    /// Shows what came since the last time.
    pub fn show(&mut self) -> Result<(), Failure> {
        loop {
            if self.file.is_none() {
                let Ok(file) = File::open(&self.path) else {
                    return Ok(());
                };
                let number = file.metadata()?.ino();
                self.file = Some((file, number));
            }
            let Some((file, number)) = &mut self.file else {
                return Ok(());
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let is_current = std::fs::metadata(&self.path).is_ok_and(|now| now.ino() == *number);
            self.print(&bytes)?;
            if is_current {
                return Ok(());
            }
            // It was put aside for a new one.
            self.file = None;
            if !self.path.exists() {
                return Ok(());
            }
        }
    }

    fn print(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.driver.is_none() {
            return self.write(bytes);
        }
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let told = self.told(&line);
            self.write(told.as_bytes())?;
        }
        Ok(())
    }

    /// A line of a stream, for people.
    fn told(&self, line: &[u8]) -> String {
        let observed = self.driver.iter().flat_map(|driver| driver.read(line));
        let mut text = String::new();
        for one in observed {
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

    /// The answer of `--json` is one object, so what an agent says goes beside it.
    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match self.is_json {
            true => io::stderr().write_all(bytes),
            false => io::stdout()
                .write_all(bytes)
                .and_then(|()| io::stdout().flush()),
        };
        match written {
            // Whoever read it has seen enough; the agent goes on.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}
