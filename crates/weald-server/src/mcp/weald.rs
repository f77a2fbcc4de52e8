//! How a tool does its work: an operation that needs the store and nothing else in this process, any other, and a command
//! whose output is the answer, by this binary, started again.
//!
//! A process of its own has no way to print into the protocol, goes through the broker inside a sandbox, and is judged as
//! every other call of an agent is. It costs a few milliseconds.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use weald_app::ShownDiff;
use weald_app::operations::sessions::{EndSession, Heartbeat};
use weald_app::operations::{Caller, Done, Operation};
use weald_app::{Failure, MCP_MARK};
use weald_sandbox::Cancel;

use super::child::{self, Cut, Ended, GRACE, Lasts, Limits, Progress, left, nobody_waits, ticks};
use super::host::{Heard, Host};
use super::kept::Kept;
use super::tool::Audience;
use super::words::{self, too_long};
use crate::broker::{CONNECTIONS, Fault};

/// The longest answer of a command that is read.
const ANSWER: usize = 32 << 20;

/// How many calls are at work at once; further ones wait for their turn. Long ones have places of their own: somebody
/// who waits for an answer must not be in the way of whoever gives it.
const AT_ONCE: usize = 16;

/// The same inside a sandbox: the broker refuses more connections than it has, and the agent's own commands want one, too.
const AT_ONCE_INSIDE: usize = (CONNECTIONS - 1) / 2;

/// Who calls, and where.
pub struct Weald {
    pub program: PathBuf,
    /// Flags that every command gets.
    pub flags: Vec<String>,
    /// Who calls, if that was said.
    pub session: Option<String>,
    /// Who the caller is to weald.
    pub audience: Audience,
    /// Whose names tools have beside their own; see `mcp.aliases`.
    pub aliases: String,
    /// Where operations are done that need no process of their own.
    pub host: Option<Arc<Host>>,
    /// Who calls, once that was found out.
    pub(super) known: OnceCell<Known>,
    short_calls: Semaphore,
    long_calls: Semaphore,
}

/// What is known of the caller's session.
#[derive(Debug)]
pub(super) enum Known {
    /// Commands find it out by themselves.
    ByItself,
    /// A session of the server's own.
    Own(String),
}

impl Weald {
    /// For whoever started the server.
    pub fn new(program: PathBuf, flags: Vec<String>, audience: Audience) -> Self {
        let at_once = match audience {
            Audience::Confined => AT_ONCE_INSIDE,
            Audience::Teammate | Audience::Lead => AT_ONCE,
        };
        Self {
            program,
            flags,
            session: None,
            audience,
            aliases: String::new(),
            host: None,
            known: OnceCell::new(),
            short_calls: Semaphore::new(at_once),
            long_calls: Semaphore::new(at_once),
        }
    }

    /// weald again, for whoever calls.
    fn command(&self, flags: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the command is weald's own; nothing else is started here"
        )]
        let mut command = Command::new(&self.program);
        command.args(flags).args(&self.flags).envs(self.variables());
        command
    }

    /// What says that a command is a tool's, and for whom.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let mark = (MCP_MARK, self.audience.as_str().to_owned());
        let name = self.acting().map(|name| ("WEALD_SESSION", name));
        [Some(mark), name].into_iter().flatten().collect()
    }

    /// Does an operation in this process, on a thread of its own.
    async fn do_here(
        &self,
        host: &Arc<Host>,
        caller: Caller,
        (name, request): (&'static str, Value),
        heard: Arc<Heard>,
        cancel: Cancel,
    ) -> Result<Done, Failure> {
        let (host, variables) = (Arc::clone(host), self.variables());
        let perform = move || host.perform(name, request, &caller, &variables, (&heard, &cancel));
        let done = spawn_blocking(perform).await;
        // Whatever broke the thread may have happened after a change: it is not done again.
        done.unwrap_or_else(|_| Err(Failure::bug()))
    }

    /// Says every now and then that the caller lives, and holds its tasks for longer: an agent that thinks for an hour
    /// calls no tool.
    pub(super) async fn beat(&self, every: Duration) {
        let Some(host) = &self.host else { return };
        loop {
            tokio::time::sleep(every).await;
            if !self.known.initialized() {
                continue;
            }
            let beat = Heartbeat {
                name: None,
                task: None,
                tree: None,
                renew: true,
            };
            // What is wrong with it, the next call will say.
            let (caller, cancel) = (Caller::default(), Cancel::by_caller());
            let beat = (Heartbeat::NAME, json!(beat));
            let _ = self
                .do_here(host, caller, beat, Arc::default(), cancel)
                .await;
        }
    }

    /// Ends a session that is the server's own: what it holds is given back.
    pub(super) async fn take_leave(&self) {
        let Some(Known::Own(_)) = self.known.get() else {
            return;
        };
        let mut command = self.command(&["--json", "operate", EndSession::NAME]);
        let nothing = Stdio::null;
        command.stdin(Stdio::piped());
        command.stdout(nothing()).stderr(nothing());
        let wanted = wanted(&EndSession { name: None }, &Caller::default());
        // What it could not give back, others take over when the claim is over.
        let _ = timeout(GRACE, async {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(wanted.to_string().as_bytes()).await?;
            }
            child.wait().await
        })
        .await;
    }

    /// The name that commands are told to act under.
    fn acting(&self) -> Option<String> {
        match self.known.get() {
            Some(Known::Own(name)) => Some(name.clone()),
            _ => self.session.clone(),
        }
    }
}

/// One call of a tool.
#[derive(Clone)]
pub struct Call<'a> {
    /// Who calls, and where.
    pub weald: &'a Weald,
    /// The request, for progress and cancellation.
    pub context: &'a RequestContext<RoleServer>,
    /// How many progress notifications the request has got.
    pub told: Arc<AtomicU32>,
    /// Becomes true when the client has left.
    pub gone: watch::Receiver<bool>,
    /// Whether it is interrupted when nobody waits for it.
    pub lasts: Lasts,
}

impl<'a> Call<'a> {
    /// Waits for a place among those that are at work. Whoever takes the call back meanwhile finds nothing done.
    pub async fn turn(&self) -> Result<SemaphorePermit<'a>, Fault> {
        let places = match self.lasts {
            Lasts::Shortly => &self.weald.short_calls,
            Lasts::Long => &self.weald.long_calls,
        };
        let mut gone = self.gone.clone();
        let is_long = self.lasts == Lasts::Long;
        tokio::select! {
            biased;
            () = self.context.ct.cancelled() => Err(taken_back()),
            () = left(&mut gone), if is_long => Err(taken_back()),
            place = places.acquire() => place.map_err(|_| taken_back()),
        }
    }

    /// Does an operation, and answers its object.
    pub async fn perform<O: Operation>(&self, request: O) -> Result<JsonObject, Fault> {
        self.perform_as(Caller::default(), request).await
    }

    /// The same for what the caller says of itself. An operation that needs the store alone is done on a thread of this
    /// process; any other in a process of its own, which gets the request on its stdin.
    pub async fn perform_as<O: Operation>(
        &self,
        caller: Caller,
        request: O,
    ) -> Result<JsonObject, Fault> {
        let here = request.needs_only_the_store();
        let wanted = wanted(&request, &caller);
        self.perform_named(O::NAME, here, caller, wanted).await
    }

    /// The same for a request as JSON: one future for all operations, which keeps the program small.
    async fn perform_named(
        &self,
        name: &'static str,
        here: bool,
        caller: Caller,
        mut wanted: Value,
    ) -> Result<JsonObject, Fault> {
        words::fit(&wanted)?;
        if let Some(host) = self.weald.host.as_ref().filter(|_| here) {
            let request = (name, wanted["request"].take());
            return self.perform_here(host, caller, request).await;
        }
        let input = wanted.to_string().into_bytes();
        let words = ["operate", name];
        let ended = self.begin(&words, Limits::answer(), Some(input));
        answer_of(&ended.await?)
    }

    /// Does an operation on a thread of this process. A long one is cancelled when nobody waits for it any more.
    async fn perform_here(
        &self,
        host: &Arc<Host>,
        caller: Caller,
        request: (&'static str, Value),
    ) -> Result<JsonObject, Fault> {
        let (heard, cancel) = (Arc::<Heard>::default(), Cancel::by_caller());
        let work = self
            .weald
            .do_here(host, caller, request, heard.clone(), cancel.clone());
        let (mut work, mut gone) = (pin!(work), self.gone.clone());
        let (mut progress, mut tick) = (Progress::of(self.context, &self.told), ticks());
        let mut is_awaited = true;
        let done = loop {
            let may_cancel = is_awaited && self.lasts == Lasts::Long;
            tokio::select! {
                biased;
                done = &mut work => break done,
                () = nobody_waits(self.context, &mut gone), if may_cancel => {
                    is_awaited = false;
                    cancel.ask();
                }
                _ = tick.tick() => {
                    let (total, line) = heard.newest();
                    progress.tell(total, || Some(line)).await;
                }
            }
        };
        let (total, line) = heard.newest();
        progress.tell_news(total, || Some(line)).await;
        match is_awaited {
            true => Ok(done?.answer),
            false => Err(taken_back()),
        }
    }

    /// What changed, as a patch of so many bytes at most, and whether something was left out.
    pub async fn patch(
        &self,
        wanted: impl Operation<Output = ShownDiff>,
        most: usize,
    ) -> Result<(String, bool), Fault> {
        let answer = self.perform(wanted).await?;
        let text = answer.get("text").and_then(Value::as_str);
        let mut patch = Kept::new(most, 0);
        patch.push(text.unwrap_or_default().as_bytes());
        let is_cut = patch.left_out() > 0 || answer.get("truncated") == Some(&true.into());
        Ok((patch.text(), is_cut))
    }

    /// Runs a command, whatever it prints and however it ends.
    pub async fn start(&self, words: &[&str], limits: Limits) -> Result<Ended, Fault> {
        words.iter().try_for_each(|word| words::fit_text(word))?;
        self.begin(words, limits, None).await
    }

    async fn begin(
        &self,
        words: &[&str],
        limits: Limits,
        input: Option<Vec<u8>>,
    ) -> Result<Ended, Fault> {
        let mut command = self.weald.command(&["--json"]);
        if self.lasts == Lasts::Long {
            command.arg(format!("--ends-with={}", std::process::id()));
        }
        command.args(words);
        let gone = self.gone.clone();
        let progress = Progress::of(self.context, &self.told);
        let ended = child::run(&mut command, input, limits, self.lasts, progress, gone).await;
        ended.map_err(|cut| match cut {
            Cut::Cancelled => taken_back(),
            Cut::Failed(error) if error.raw_os_error() == Some(E2BIG) => too_long(ARGUMENTS),
            Cut::Failed(error) => not_started(&error),
        })
    }
}

/// What `weald operate` reads.
fn wanted(request: &impl Operation, caller: &Caller) -> Value {
    json!({"request": request, "caller": caller})
}

fn taken_back() -> Fault {
    Fault::new("cancelled", 130, "the call was cancelled")
        .hint("call the tool again; what was finished by then is kept")
}

/// The machine has no room for one more process, or weald is gone.
fn not_started(error: &io::Error) -> Fault {
    let message = format!("weald could not be started: {error}");
    let fault = Fault::new("not_started", 125, message);
    match error.kind() {
        io::ErrorKind::NotFound => fault.hint("was weald moved or removed? Start the server again"),
        _ => fault.hint("nothing was done; try again when other calls have ended"),
    }
}

/// Too many words for a process to be started with.
const E2BIG: i32 = rustix::io::Errno::TOOBIG.raw_os_error();
/// About what all of them together may have.
const ARGUMENTS: usize = 2 << 20;

impl Limits {
    /// For an answer that is read as a whole.
    pub fn answer() -> Self {
        Self {
            head: ANSWER,
            tail: 0,
            is_told: false,
        }
    }
}

/// The object that a command printed: its answer, or its error.
pub fn answer_of(ended: &Ended) -> Result<JsonObject, Fault> {
    let bytes = ended.stdout.whole().ok_or_else(too_much)?;
    let mut answer: JsonObject = serde_json::from_slice(&bytes).map_err(|error| {
        let said = ended.stderr.text();
        Fault::new("bad_answer", 70, format!("{error}: {}", said.trim()))
    })?;
    match answer.remove("error") {
        None => Ok(answer),
        Some(error) => Err(fault(error, exit_of(ended))),
    }
}

/// The exit code of a command.
pub fn exit_of(ended: &Ended) -> u8 {
    let code = ended.status.code().unwrap_or(70);
    u8::try_from(code).unwrap_or(70)
}

fn too_much() -> Fault {
    Fault::new("answer_too_long", 1, "the answer is too long").hint("ask for less: give a limit")
}

fn fault(mut error: Value, code: u8) -> Fault {
    if let Some(fields) = error.as_object_mut() {
        fields.insert("exit".to_owned(), code.into());
    }
    match serde_json::from_value(error) {
        Ok(fault) => fault,
        Err(error) => {
            let message = format!("an error could not be parsed: {error}");
            Fault::new("bad_answer", 70, message)
        }
    }
}
