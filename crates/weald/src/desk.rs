//! The host's end of the broker, as the command line opens it: who a run speaks for, how errors are told, how it lands.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weald_app::agents::drivers::has_driver;
use weald_app::{Engine, LandRequest, Landings, OwnProgram, RecordError, RunRequest, Trees};
use weald_core::agent::{FinalReport, Verification};
use weald_core::agent_rules::AgentRefusal;
use weald_core::id::LandingId;
use weald_core::name::SessionName;
use weald_core::tree::Tree;
use weald_server::broker::{
    Authority, Broker, Desk, DeskError, Face, Fault, LandWish, Mandate, NotAllowed, Reply,
};

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
            asked: Mutex::default(),
        };
        let source = ground.place.source();
        let desk = Desk::new(&ground.engine, trees, source, authority, &face);
        self.broker.serve_while(&desk, || {
            let done = work();
            // The mandate ends with the run: what it asked for and is not being moved yet does not land.
            let asked = face.end_mandate();
            let _ = Landings::new(trees).withdraw(&asked);
            done
        })
    }
}

/// For whom a plain run in a tree speaks: for nobody, never for its caller. An agent that weald knows gets a session of
/// its own, which ends with the run.
pub struct Guest(Option<SessionName>);

impl Guest {
    /// Registers the session of an agent that weald has a driver for.
    pub fn arrive(engine: &Engine, program: &str, tree: &Tree) -> Result<Self, Failure> {
        let agent = Path::new(program)
            .file_name()
            .and_then(|name| name.to_str());
        let Some(agent) = agent.filter(|agent| has_driver(agent)) else {
            return Ok(Self(None));
        };
        let name = engine.register_guest(agent, &tree.name, std::process::id())?;
        Ok(Self(Some(name)))
    }

    /// Says inside who it is, if it is anybody.
    pub fn grant(&self, request: &mut RunRequest) {
        let name = self.0.as_ref().map(|name| name.as_str().into());
        let variable = name.map(|name| ("WEALD_SESSION".into(), name));
        request.environment.extend(variable);
    }

    /// What it may ask: nothing in its caller's name, and no landing.
    pub fn authority(&self, tree: &Tree) -> Authority {
        Authority {
            session: self.0.clone(),
            task: tree.task.clone(),
            token: None,
            tree: tree.name.clone(),
            agent: None,
            mandate: Mandate::Run,
        }
    }

    pub fn leave(self, engine: &Engine) {
        if let Some(name) = self.0 {
            // A session whose process is gone counts as dead all the same.
            let _ = engine.end(&name);
        }
    }
}

/// What a run asked to land.
#[derive(Default)]
struct Asked {
    /// Whether the run is over: nothing more is queued.
    ended: bool,
    landings: Vec<LandingId>,
}

struct Host<'a> {
    /// Says nothing on the terminal: the run has it.
    ui: Ui,
    context: &'a Context<'a>,
    /// Held while a landing is queued, so that the end of the run comes before or after that, and never between.
    asked: Mutex<Asked>,
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
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on nothing is queued; the answer is what was.
    fn end_mandate(&self) -> Vec<LandingId> {
        let mut asked = self.asked();
        asked.ended = true;
        asked.landings.clone()
    }

    /// As the agent's own call would be: nothing that its owner loosened for this run counts.
    fn landed(&self, authority: &Authority, wish: &LandWish) -> Result<Reply, Failure> {
        let session = authority.session.as_ref().ok_or(NotAllowed::Nobody)?;
        let context = self.context.for_agent(&self.ui, session);
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
            true => Landings::new(&ground.trees(&context)?).dry_run(&request)?,
            false => {
                let ids = self.queue(authority, &ground.trees(&context)?, &request)?;
                let mode = if wish.no_wait {
                    Mode::Queue
                } else {
                    Mode::Work
                };
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

    /// Queues what was asked for, unless the run is over by now.
    fn queue(
        &self,
        authority: &Authority,
        trees: &Trees<'_>,
        request: &LandRequest,
    ) -> Result<Vec<LandingId>, Failure> {
        let mut asked = self.asked();
        if asked.ended {
            return Err(authority.no_mandate().into());
        }
        let queued = Landings::new(trees).queue_landings(request)?;
        let ids: Vec<_> = queued.iter().map(|landing| landing.id).collect();
        asked.landings.extend(&ids);
        Ok(ids)
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
            Ok(_) | Err(RecordError::Refused(AgentRefusal::Reported { .. })) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
