//! A language model that says what a test wants, so that real agents run without one.
//!
//! It speaks Anthropic's Messages API and OpenAI's Responses API on loopback. A scenario is chosen by a text that the user
//! said in the conversation, a turn by how many results of tools are in it: so agents at once don't disturb each
//! other, and one that is started again goes on where it was. Every request is kept.

mod answers;
mod http;
mod outage;

use std::fmt;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use self::outage::Outage;

/// How long anything waits for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the model does in one conversation.
#[derive(Debug, Clone)]
pub struct Scenario {
    about: String,
    turns: Vec<Turn>,
}

impl Scenario {
    /// For conversations in which the user said `about`. After the last turn it says `done`.
    pub fn new(about: &str, turns: impl Into<Vec<Turn>>) -> Self {
        Self {
            about: about.to_owned(),
            turns: turns.into(),
        }
    }
}

/// What the model does next.
#[derive(Debug, Clone)]
pub enum Turn {
    /// Runs a command with the agent's own tool for that.
    Shell(String),
    /// Uses a tool of the agent.
    Tool { name: String, input: Value },
    /// Says something, which ends the agent's turn.
    Say(String),
    /// Thinks until the gate is opened.
    Hold(Gate, Box<Turn>),
    /// Is refused while a usage limit or a login is in the way.
    Refuse(Outage, Box<Turn>),
}

impl Turn {
    pub fn shell(command: impl Into<String>) -> Self {
        Self::Shell(command.into())
    }

    pub fn say(text: impl Into<String>) -> Self {
        Self::Say(text.into())
    }

    /// The same turn, once nothing refuses it any more.
    pub fn after(self, outage: &Outage) -> Self {
        Self::Refuse(outage.clone(), Box::new(self))
    }

    /// The same turn, once the gate is open.
    pub fn behind(self, gate: &Gate) -> Self {
        Self::Hold(gate.clone(), Box::new(self))
    }
}

/// What a turn waits for, and what a test opens.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<Passage>, Condvar)>);

#[derive(Debug, Default)]
struct Passage {
    arrived: usize,
    is_open: bool,
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everybody through from now on.
    pub fn open(&self) {
        self.change(|passage| passage.is_open = true);
    }

    /// Waits until an agent waits at it.
    #[track_caller]
    pub fn wait_for_arrival(&self) {
        let arrived = self.wait_until(|passage| passage.arrived > 0);
        assert!(arrived, "no agent came to the gate");
    }

    fn pass(&self) {
        self.change(|passage| passage.arrived += 1);
        self.wait_until(|passage| passage.is_open);
    }

    fn change(&self, change: impl FnOnce(&mut Passage)) {
        let (passage, changed) = &*self.0;
        change(&mut passage.lock().expect("no panic"));
        changed.notify_all();
    }

    /// False when it took too long.
    fn wait_until(&self, is_so: impl Fn(&Passage) -> bool) -> bool {
        let (passage, changed) = &*self.0;
        let passage = passage.lock().expect("no panic");
        let (_passage, waited) = changed
            .wait_timeout_while(passage, PATIENCE, |passage| !is_so(passage))
            .expect("no panic");
        !waited.timed_out()
    }
}

/// One request of an agent for what comes next.
#[derive(Clone)]
pub struct Request {
    /// The whole conversation, as the agent's API has it.
    pub body: Value,
}

/// Without the pages of instructions that agents send along.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("said", &self.said())
            .field("results", &self.results())
            .finish_non_exhaustive()
    }
}

impl Request {
    /// What the user said, each thing alone.
    pub fn said(&self) -> Vec<String> {
        answers::said(&self.body)
    }

    /// What tools answered, in order.
    pub fn results(&self) -> Vec<String> {
        answers::results(&self.body)
    }

    fn is_about(&self, about: &str) -> bool {
        self.said().iter().any(|said| said.contains(about))
    }
}

/// The model, listening until the test's process ends.
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    scenarios: Vec<Scenario>,
    requests: Mutex<Vec<Request>>,
}

impl ScriptedModel {
    pub fn start(scenarios: impl Into<Vec<Scenario>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            scenarios: scenarios.into(),
            requests: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = Arc::clone(&serving);
                // An agent that went away is no error.
                thread::spawn(move || serving.serve(&stream));
            }
        });
        Self { address, shared }
    }

    /// Where it listens: `http://127.0.0.1:40000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests of conversations in which the user said `about`.
    pub fn requests(&self, about: &str) -> Vec<Request> {
        let requests = self.shared.requests.lock().expect("no panic");
        let about_it = requests.iter().filter(|request| request.is_about(about));
        about_it.cloned().collect()
    }

    /// What tools answered in the longest of these conversations.
    pub fn results(&self, about: &str) -> Vec<String> {
        let requests = self.requests(about);
        let results = requests.iter().map(Request::results);
        results.max_by_key(Vec::len).unwrap_or_default()
    }

    /// Waits until so many requests of such conversations came.
    #[track_caller]
    pub fn wait_for_requests(&self, about: &str, count: usize) {
        let begun = Instant::now();
        while self.requests(about).len() < count {
            assert!(begun.elapsed() < PATIENCE, "{count} requests about {about}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Shared {
    /// Answers requests of one connection until one of them ends.
    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = std::io::BufReader::new(stream);
        loop {
            let asked = http::read(&mut reader)?;
            let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
            match answers::Api::of(&asked.path) {
                Some(api) => {
                    let turn = match self.turn(&body) {
                        Turn::Refuse(outage, turn) => match outage.refuses(&asked.token) {
                            true => {
                                outage.write(stream, api)?;
                                continue;
                            }
                            false => *turn,
                        },
                        turn => turn,
                    };
                    let is_streamed = api.is_streamed(&body);
                    let events = api.answer(&body, &turn);
                    match is_streamed {
                        true => return http::write_events(stream, &events),
                        false => http::write_json(stream, &answers::whole(&body, &turn))?,
                    }
                }
                None if asked.path.contains("count_tokens") => {
                    http::write_json(stream, &serde_json::json!({"input_tokens": 1}))?;
                }
                None => {
                    http::write_json(stream, &serde_json::json!({"data": [], "models": []}))?;
                }
            }
        }
    }

    /// What comes next in a conversation. A request without tools is a side question of the agent's own.
    fn turn(&self, body: &Value) -> Turn {
        let request = Request { body: body.clone() };
        let done = Turn::say("done");
        let has_tools = answers::tools(body).next().is_some();
        let known = self.scenarios.iter();
        let mut about_it = known.filter(|scenario| request.is_about(&scenario.about));
        let turn = match about_it.next() {
            Some(scenario) if has_tools => scenario.turns.get(request.results().len()).cloned(),
            _ => None,
        };
        if has_tools {
            self.requests.lock().expect("no panic").push(request);
        }
        match turn.unwrap_or(done) {
            Turn::Hold(gate, then) => {
                gate.pass();
                *then
            }
            turn => turn,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use serde_json::json;

    use super::*;

    fn ask(model: &ScriptedModel, path: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(model.address).unwrap();
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {}", body.len());
        write!(stream, "{head}\r\n\r\n{body}").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_turn_is_the_number_of_results() {
        let gate = Gate::new();
        gate.open();
        let turns = [Turn::shell("ls"), Turn::say("that was all").behind(&gate)];
        let model = ScriptedModel::start([Scenario::new("fix-a", turns)]);
        let tools = json!([{"name": "Bash"}, {"name": "exec_command"}]);
        let user = json!({"role": "user", "content": [{"type": "text", "text": "do fix-a"}]});
        let result =
            json!({"role": "user", "content": [{"type": "tool_result", "content": "a.txt"}]});
        let output = json!({"type": "function_call_output", "output": "b.txt"});
        for (path, body, found) in [
            (
                "/v1/messages?beta=true",
                json!({"messages": [user], "tools": tools}),
                "ls",
            ),
            (
                "/v1/messages",
                json!({"messages": [user, result], "tools": tools, "stream": true}),
                "that was all",
            ),
            ("/v1/messages", json!({"messages": [user]}), "done"),
            (
                "/v1/messages",
                json!({"messages": [], "tools": tools}),
                "done",
            ),
            (
                "/v1/responses",
                json!({"input": [user], "tools": [{"name": "exec_command"}]}),
                "ls",
            ),
            (
                "/v1/responses",
                json!({"input": [user, output], "tools": tools}),
                "that was all",
            ),
            ("/v1/messages/count_tokens", json!({}), "input_tokens"),
        ] {
            let answer = ask(&model, path, &body);
            assert!(answer.contains(found), "{path} {body}: {answer}");
        }
        assert_eq!(model.requests("fix-a").len(), 4);
        assert_eq!(model.results("fix-a"), ["b.txt"]);
        assert!(model.requests("fix-b").is_empty());
    }
}
