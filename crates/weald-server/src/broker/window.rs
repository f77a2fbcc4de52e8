//! The broker as a window of weald-app: for whom the run speaks, and how it lands.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weald_app::landing::{Mode, exit_of, work_landings};
use weald_app::operations::Caller;
use weald_app::operations::landing::{Landed, LandingView};
use weald_app::progress::WordsAlone;
use weald_app::window::{Window, Windows};
use weald_app::{
    Authority, Call, Dirty, Failure, Ground, LandRequest, LandWish, Landings, Mandate, NotAllowed,
    OwnProgram, RecordError, RunRequest, TreeView, Trees, exit,
};
use weald_core::agent::{FinalReport, Verification};
use weald_core::agent_rules::AgentRefusal;
use weald_core::id::LandingId;

use super::desk::{Desk, Lander};
use super::protocol::Reply;
use super::server::Broker;

/// Opens a broker for each run.
pub struct Brokers;

impl Windows for Brokers {
    fn open(&self, trees: &Trees<'_>) -> Result<Box<dyn Window>, Failure> {
        let broker = Broker::open(trees)?;
        let program = trees.link_program(broker.folder())?;
        Ok(Box::new(Open { broker, program }))
    }
}

/// The broker of a run, open until it is dropped.
struct Open {
    broker: Broker,
    program: OwnProgram,
}

impl Window for Open {
    fn folder(&self) -> &Path {
        self.broker.folder()
    }

    fn grant(&self, request: &mut RunRequest) {
        self.program.grant(request);
        self.broker.grant(request);
    }

    fn serve_while(
        &self,
        call: &Call<'_>,
        ground: &Ground,
        trees: &Trees<'_>,
        authority: Authority,
        work: &mut dyn FnMut(),
    ) -> io::Result<Option<LandWish>> {
        let lander = RunsLander {
            call,
            asked: Mutex::default(),
        };
        let source = ground.place.source();
        let desk = Desk::new(&ground.engine, trees, source, authority, &lander);
        self.broker.serve_while(&desk, || {
            work();
            let (asked, wish) = lander.end_mandate();
            let _ = Landings::new(trees).withdraw(&asked);
            wish
        })
    }
}

/// What a run asked to land.
#[derive(Default)]
struct Asked {
    /// Whether the run is over: nothing more is queued.
    ended: bool,
    landings: Vec<LandingId>,
    /// What the person is asked about.
    wish: Option<LandWish>,
}

/// Lands what a run asks for.
struct RunsLander<'a> {
    call: &'a Call<'a>,
    /// Held while a landing is queued, so that the end of the run comes before or after that, and never between.
    asked: Mutex<Asked>,
}

impl Lander for RunsLander<'_> {
    /// As the agent's own call would be: nothing that its owner loosened for this run counts.
    fn land(&self, authority: &Authority, wish: &LandWish) -> Result<Reply, Failure> {
        if authority.mandate == Mandate::Wish {
            return self.note_wish(authority, wish);
        }
        if wish.commit.is_some() {
            return Err(Failure::not_allowed_inside());
        }
        let session = authority.session.as_ref().ok_or(NotAllowed::Nobody)?;
        // The terminal is the run's.
        let progress = &WordsAlone(self.call.progress);
        let app = &self.call.for_agent(session);
        let call = &Call {
            app,
            caller: &Caller::default(),
            progress,
            ..*self.call
        };
        let ground = call.landing_ground()?;
        let configured = ground.config().landing_strategy;
        if wish.strategy.is_some_and(|wish| wish != configured) {
            let configured = configured.as_str();
            return Err(Failure {
                message: format!("from inside a worktree it lands as configured: {configured}"),
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
            message: wish.message.clone(),
            report: wish.report.clone(),
            ..LandRequest::default()
        };
        let landings = match wish.dry_run {
            true => Landings::new(&ground.trees(call)?).dry_run(&request)?,
            false => {
                let ids = self.queue(authority, &ground.trees(call)?, &request)?;
                let mode = if wish.no_wait {
                    Mode::Queue
                } else {
                    Mode::Work
                };
                let worked = work_landings(call, ground, &ids, &request, mode)?;
                self.call.tell(&worked.ground.engine);
                worked.landings
            }
        };
        let exit = exit_of(&landings);
        let views: Vec<_> = landings.into_iter().map(LandingView::ended).collect();
        let mut reply = Reply::new().with("landings", &views);
        reply.exit = exit;
        if reply.exit == 0
            && !wish.dry_run
            && let Some(words) = &wish.report
        {
            self.report(authority, words)?;
        }
        Ok(reply)
    }
}

impl RunsLander<'_> {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on nothing is queued and no wish counts; the answer is what was.
    fn end_mandate(&self) -> (Vec<LandingId>, Option<LandWish>) {
        let mut asked = self.asked();
        asked.ended = true;
        (asked.landings.clone(), asked.wish.take())
    }

    /// Keeps a wish for the person. What could not land as it is now is refused while they can still mend it.
    fn note_wish(&self, authority: &Authority, wish: &LandWish) -> Result<Reply, Failure> {
        let ground = self.call.ground()?;
        let trees = ground.trees(self.call)?;
        require_something(&trees.look(Some(authority.tree.as_str()))?, wish)?;
        let mut asked = self.asked();
        if asked.ended {
            return Err(authority.no_mandate().into());
        }
        asked.wish = Some(wish.clone());
        let landed = Landed {
            wished: true,
            ..Landed::default()
        };
        Ok(Reply::of(&landed))
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
        let engine = self.call.ground()?.engine;
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

/// Refuses a wish that would land nothing, or not all that the person sees.
fn require_something(view: &TreeView, wish: &LandWish) -> Result<(), Failure> {
    let name = &view.tree.name;
    let is_dirty = view.dirty == Dirty::Known(true);
    let refused = |code, message: String| Failure::new(code, exit::REFUSED, message);
    match (is_dirty, wish.commit) {
        (true, None) => Err(refused(
            "tree_dirty",
            format!("{name} has uncommitted changes, which would not land"),
        )
        .hint("commit them, or: weald land --commit=all -m MESSAGE")),
        (false, _) if view.ahead == Some(0) => Err(refused(
            "nothing_to_land",
            format!(
                "nothing to land: {name} has no commits that {} lacks",
                view.tree.target
            ),
        )
        .hint("git status")),
        _ => Ok(()),
    }
}
