//! The host's end of the broker, as the command line opens it: who a run speaks for, how errors are told, how it lands.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;

use weald_core::agent::{FinalReport, Verification};
use weald_core::agent_rules::AgentRefusal;
use weald_core::id::LandingId;
use weald_core::name::SessionName;
use weald_core::tree::Tree;
use weald_engine::{AgentError, LandRequest, OwnProgram, RunRequest, Trees};
use weald_server::broker::{Authority, Broker, Desk, DeskError, Face, Fault, LandWish, Reply};

use crate::commands::land::{self, Beside, Mode};
use crate::context::{Context, Ground};
use crate::errors::Failure;
use crate::ui::{Format, Ui};

/// The broker of a run, open until it is dropped.
pub struct Window {
    broker: Broker,
    program: OwnProgram,
}

impl Window {
    /// Opens one.
    pub fn open(trees: &Trees<'_>) -> Result<Self, Failure> {
        let broker = Broker::open(trees)?;
        let program = trees.link_program(broker.folder())?;
        Ok(Self { broker, program })
    }

    /// The run's folder: what lies in it the run can read.
    pub fn folder(&self) -> &Path {
        self.broker.folder()
    }

    /// Lets a run reach it, and find `weald` to do so; the answer is what has to be passed to the run.
    pub fn grant(&mut self, request: &mut RunRequest) -> Result<Option<OwnedFd>, Failure> {
        self.program.grant(request);
        Ok(self.broker.grant(request)?)
    }

    /// Answers the run while `work` goes on.
    pub fn serve_while<T>(
        &self,
        context: &Context<'_>,
        ground: &Ground,
        trees: &Trees<'_>,
        authority: Authority,
        work: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let face = Host {
            ui: Ui::new(Format::Json, clap::ColorChoice::Never),
            context,
            waited_for: Mutex::default(),
        };
        let source = ground.place.source();
        let desk = Desk::new(&ground.engine, trees, source, authority, &face);
        self.broker.serve_while(&desk, || {
            let done = work();
            // Nobody waits any more for what it asked to land; what is not being moved yet does not land now.
            let asked = face.waited_for.lock().map(|asked| asked.clone());
            let _ = trees.withdraw(&asked.unwrap_or_default());
            done
        })
    }
}

/// For whom a plain run in a tree speaks: the caller's session, and the claim that it has on the tree's task.
pub fn authority_of(
    context: &Context<'_>,
    ground: &Ground,
    tree: &Tree,
) -> Result<Authority, Failure> {
    let session: SessionName = context.quiet_session(&ground.engine)?;
    let task = tree.task.clone();
    let lease = match &task {
        Some(id) => ground.engine.task(id)?.task.lease,
        None => None,
    };
    let own = lease.filter(|lease| lease.session == session);
    Ok(Authority {
        session,
        task,
        token: own.map(|lease| lease.token),
        tree: tree.name.clone(),
        agent: None,
    })
}

struct Host<'a> {
    /// Says nothing on the terminal: the run has it.
    ui: Ui,
    context: &'a Context<'a>,
    /// The landings that the run waits for.
    waited_for: Mutex<Vec<LandingId>>,
}

impl Face for Host<'_> {
    fn fault(&self, error: DeskError) -> Fault {
        Failure::from(error).into()
    }

    fn land(&self, authority: &Authority, wish: &LandWish) -> Result<Reply, Box<Fault>> {
        let landed = self.landed(authority, wish);
        landed.map_err(|failure| Box::new(failure.into()))
    }
}

impl Host<'_> {
    /// As the agent's own call would be: nothing that its owner loosened for this run counts.
    fn landed(&self, authority: &Authority, wish: &LandWish) -> Result<Reply, Failure> {
        let context = self.context.for_agent(&self.ui, &authority.session);
        let ground = context.landing_ground()?;
        let configured = ground.config().text("landing.strategy");
        if wish
            .strategy
            .is_some_and(|wish| wish.as_str() != configured)
        {
            return Err(Failure {
                message: format!("from inside a tree it lands as configured: {configured}"),
                ..Failure::not_allowed_inside()
            });
        }
        let request = LandRequest {
            names: vec![authority.tree.to_string()],
            no_wait: wish.no_wait,
            keep: true,
            by_agent: true,
            // An agent's task is completed by its supervisor, at the agent's end.
            interim: authority.agent.is_some(),
            token: authority.task.clone().zip(authority.token),
            report: wish.report.clone(),
            ..LandRequest::default()
        };
        let landings = match wish.dry_run {
            true => ground.trees(&context)?.dry_run(&request)?,
            false => {
                let queued = ground.trees(&context)?.queue_landings(&request)?;
                let ids: Vec<_> = queued.iter().map(|landing| landing.id).collect();
                let mode = if wish.no_wait {
                    Mode::Queue
                } else {
                    Mode::Work
                };
                if mode == Mode::Work
                    && let Ok(mut asked) = self.waited_for.lock()
                {
                    asked.extend(&ids);
                }
                let worked = land::work(&context, ground, &ids, &request, mode)?;
                self.context.tell(&worked.ground.engine);
                worked.landings
            }
        };
        let mut reply = Reply::new().with("landings", &land::listed(&landings, &Beside::default()));
        reply.exit = land::exit_of(&landings);
        if reply.exit == 0
            && let Some(words) = &wish.report
        {
            self.report(authority, words)?;
        }
        Ok(reply)
    }

    /// What an agent says of work that landed is its report. One that has reported already has said it.
    fn report(&self, authority: &Authority, words: &str) -> Result<(), Failure> {
        let (Some(agent), Some(token)) = (authority.agent, authority.token) else {
            return Ok(());
        };
        let engine = self.context.ground()?.engine;
        let report = FinalReport {
            success: true,
            report: words.to_owned(),
            files_changed: Vec::new(),
            verification: Verification::None,
            verified_by: String::new(),
            inferred: false,
            at: engine.now()?,
        };
        match engine.report_agent(agent, token, report) {
            Ok(_) | Err(AgentError::Refused(AgentRefusal::Reported { .. })) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
