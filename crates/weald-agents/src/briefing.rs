//! What an agent needs before it starts: prompt, home, environment, policy.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use weald_core::agent::{Agent, Goal};
use weald_core::config::{Gate, Leftovers};
use weald_core::prompt::{Briefing, Fate, prompt};
use weald_core::secrets::is_login_of;
use weald_core::tree::Tree;
use weald_sandbox::Revealed;

use super::AgentError;
use super::Agents;
use super::by_hand::unseen;
use super::drivers::{Brief, Driver, Form, Start, keep_trusted};
use super::error::at;
use super::homes::AgentHome;
use super::terminals;
use weald_landing::Landings;
use weald_terminal::Size;
use weald_trees::{RunRequest, RunSandbox, use_login_layer};

/// The prompt's name in the folder of a run.
const PROMPT_FILE: &str = "prompt.md";

/// An agent that is ready to start.
pub struct Prepared {
    /// The run in its tree.
    pub request: RunRequest,
    /// How its driver starts it.
    pub start: Start,
    pub driver: Box<dyn Driver>,
    /// Its driver's private state.
    pub home: AgentHome,
    /// What it is asked.
    pub prompt: String,
    /// How large its terminal is at first, if it gets one.
    pub terminal: Option<Size>,
}

impl Agents<'_> {
    /// Prepares an agent's run. `folder` is the run's own, seen inside and not written there.
    pub fn prepare_agent(
        &self,
        agent: &Agent,
        driver: Box<dyn Driver>,
        folder: &Path,
        sandbox: Option<RunSandbox>,
        form: Form,
    ) -> Result<Prepared, AgentError> {
        let mut request = match (agent.in_main, &agent.tree) {
            (true, _) => self.prepare_main()?,
            (false, Some(name)) => self.trees.prepare_run(Some(name.as_str()), sandbox)?,
            (false, None) => {
                return Err(AgentError::NoTree {
                    agent: agent.id.to_string(),
                });
            }
        };
        let text = self.prompt_for(agent, &request.tree)?;
        let prompt_file = folder.join(PROMPT_FILE);
        fs::write(&prompt_file, &text).map_err(at(&prompt_file))?;
        let (home, conversation) = self.home_of(agent, driver.name(), &mut request)?;
        let written = request.policy.as_ref();
        let written = written.map_or(&[][..], |policy| &policy.write);
        self.require_trusted(driver.as_ref(), written)?;
        let untrusted = self.untrusted(written)?;
        if let Some(policy) = &mut request.policy {
            policy.reveal.push(Revealed {
                path: home.path().to_owned(),
                writable: true,
            });
        }
        let arguments: Vec<OsString> = agent.command.iter().map(OsString::from).collect();
        let environment = self.trees.host.environment.clone();
        let variable = |wanted: &str| {
            let found = environment.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        let hidden = request.policy.as_ref().map(unseen).unwrap_or_default();
        let start = driver.start(&Brief {
            form,
            prompt: &text,
            prompt_file: &prompt_file,
            tree: &request.tree.path,
            project: &self.trees.place.root(),
            user_hooks: self.trees.config.agent_user_hooks,
            home: home.path(),
            user_home: self.trees.host.home.as_deref(),
            hidden: &hidden,
            model: agent.model.as_deref(),
            conversation,
            with_tools: self.trees.config.agent_mcp,
            variable: &variable,
        })?;
        request.notes.extend(start.notes.iter().cloned());
        self.give_login(driver.name(), &mut request);
        if let Some(program) = arguments.first().filter(|_| driver.name() == "command") {
            self.trees.allow_login(&mut request, program);
        }
        self.add_environment(agent, &prompt_file, &start, &mut request)?;
        if driver.trusted_program().is_some() {
            let note = keep_trusted(&mut request.environment, &untrusted);
            request.notes.extend(note);
        }
        if agent.interactive {
            terminals::set_variables(&mut request.environment);
        }
        self.expect_verdict(agent, &mut request)?;
        Ok(Prepared {
            request,
            start,
            driver,
            home,
            prompt: text,
            terminal: agent.interactive.then(Size::default),
        })
    }

    /// An agent's driver needs what the agent logs in with; nothing else that looks like a secret comes along.
    fn give_login(&self, driver: &str, request: &mut RunRequest) {
        let all = self.trees.host.environment.iter();
        let login =
            all.filter(|(name, _)| name.to_str().is_some_and(|name| is_login_of(driver, name)));
        request.environment.extend(login.cloned());
        if let Some(policy) = request.policy.as_mut().filter(|_| driver != "command") {
            use_login_layer(policy, driver);
        }
        self.trees.allow_driver(request, driver);
    }

    /// What a command of an agent sees of its task.
    fn add_environment(
        &self,
        agent: &Agent,
        prompt_file: &Path,
        start: &Start,
        request: &mut RunRequest,
    ) -> Result<(), AgentError> {
        let task = self.trees.engine.task(&agent.task)?.task;
        let own: [(OsString, OsString); 6] = [
            ("WEALD_TASK".into(), agent.task.to_string().into()),
            ("WEALD_TASK_SUBJECT".into(), task.subject.into()),
            ("WEALD_PROMPT_FILE".into(), prompt_file.into()),
            ("WEALD_TOKEN".into(), agent.token.to_string().into()),
            ("WEALD_SESSION".into(), agent.session.as_str().into()),
            ("WEALD_AGENT".into(), agent.id.to_string().into()),
        ];
        let given: Vec<_> = own.into_iter().chain(start.environment.clone()).collect();
        let all = &mut request.environment;
        all.retain(|(name, _)| given.iter().all(|(own, _)| own != name));
        all.extend(given);
        Ok(())
    }

    fn prompt_for(&self, agent: &Agent, tree: &Tree) -> Result<String, AgentError> {
        let task = self.trees.engine.task(&agent.task)?.task;
        let mut dependencies = Vec::new();
        for id in &task.blocked_by {
            dependencies.extend(self.trees.engine.look(|tx| tx.task(id))?);
        }
        let before = match agent.resumes.filter(|_| agent.limit.is_none()) {
            Some(id) => Some(self.trees.engine.agent(id)?),
            None => None,
        };
        let before = before.map(|before| match &before.end {
            Some(end) => {
                let how = end.outcome.as_str().replace('_', " ");
                let why = match end.why.as_str() {
                    "" => ".".to_owned(),
                    why => format!(": {why}."),
                };
                format!("Agent {} worked on it before ({how}){why}", before.id)
            }
            None => format!("Agent {} worked on it before.", before.id),
        });
        let interrupted = "You worked on it before, until a usage limit interrupted you.";
        let before = before.or(agent.limit.map(|_| interrupted.to_owned()));
        let setback = match agent.in_main {
            true => None,
            false => Landings::new(self.trees).setback(tree)?,
        };
        Ok(prompt(&Briefing {
            task: &task,
            dependencies: &dependencies,
            tree: &tree.path.display().to_string(),
            branch: &tree.branch,
            target: &tree.target,
            fate: self.fate_of(agent),
            leftovers: match agent.in_main {
                true => Leftovers::Nothing,
                false => self.trees.config.work_commit,
            },
            standing: agent
                .brief
                .as_deref()
                .map(|brief| (agent.session.as_str(), brief)),
            part: self.part_of(agent)?.as_deref(),
            before: before.as_deref(),
            setback: setback.as_ref(),
            feedback: agent.feedback.as_deref(),
            lead: agent.spawned_by.as_ref().map(|lead| lead.as_str()),
        }))
    }

    /// What becomes of an agent's work when it is done, by what was asked for and how this repository is set up.
    fn fate_of(&self, agent: &Agent) -> Fate {
        let tests = !self.trees.config.gate_command.is_empty();
        match agent.goal {
            _ if agent.in_main => Fate::InMain,
            Goal::Stay if agent.entry().is_some() => Fate::Raced,
            Goal::Stay => Fate::Phased,
            Goal::Finish => Fate::Stays,
            Goal::Land => Fate::Lands {
                strategy: self.trees.config.landing_strategy,
                gate: match self.trees.config.policy_gate {
                    Gate::Human => Gate::Human,
                    Gate::Tests if tests => Gate::Tests,
                    _ => Gate::None,
                },
            },
        }
    }

    /// The private state of a tree's agent: nobody else's sandbox shows it, and it is there for the next run. With the
    /// conversation that the agent resumes, if that is there: it does not come along with a copy of the repository.
    fn home_of<'a>(
        &self,
        agent: &'a Agent,
        driver: &str,
        request: &mut RunRequest,
    ) -> Result<(AgentHome, Option<&'a str>), AgentError> {
        let home = self.trees.place.home_of(request.tree.id).join(driver);
        let conversation = agent.conversation.as_deref();
        let found = conversation.filter(|_| home.is_dir());
        if conversation != found {
            let note = "the earlier conversation is not here: the agent starts a new one";
            request.notes.push(note.to_owned());
        }
        Ok((AgentHome::open(home)?, found))
    }
}
