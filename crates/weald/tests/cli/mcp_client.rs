//! A plain client of `weald mcp`: lines in, lines out, nothing of an SDK.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Value, json};
use weald_testkit::TestEnv;

/// A server with somebody to talk to.
pub struct McpClient {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// What every request carries in `_meta`; clients of 2025 carry nothing.
    meta: Option<Value>,
    next: u64,
    /// Notifications that came between answers.
    pub heard: Vec<Value>,
}

impl McpClient {
    /// Starts `weald mcp` with these arguments; nothing is said yet.
    pub fn start(env: &TestEnv, args: &[&str]) -> Self {
        let mut command = env.weald_command(&[&["mcp"], args].concat());
        Self::of(&mut command)
    }

    /// Starts a server that a test prepared.
    pub fn of(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            meta: None,
            next: 1,
            heard: Vec::new(),
        }
    }

    /// A client that has shaken hands, as in 2025.
    pub fn open(env: &TestEnv) -> Self {
        let mut client = Self::start(env, &[]);
        client.initialize();
        client
    }

    /// The handshake of 2025.
    pub fn initialize(&mut self) -> Value {
        let answer = self.request(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer["result"].clone()
    }

    /// A client of 2026: no handshake, everything with each request.
    pub fn stateless(env: &TestEnv) -> Self {
        let mut client = Self::start(env, &[]);
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        client
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Writes one message.
    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// The next line.
    #[track_caller]
    pub fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request and does not wait; answers its id.
    pub fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if let (Some(meta), Some(params)) = (self.meta.clone(), params.as_object_mut()) {
            params.entry("_meta").or_insert(meta);
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The answer to a request; what else comes is heard.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.line();
            if line["id"] == id {
                return line;
            }
            self.heard.push(line);
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool; answers the result.
    #[track_caller]
    pub fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", params)["result"].clone()
    }

    /// Calls a tool that has to succeed; answers its object.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result:#}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that has to refuse; answers its error.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value, code: &str) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result:#}");
        assert_eq!(result.get("structuredContent"), None, "{tool}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let told: Value = serde_json::from_str(text).unwrap();
        let error = told["error"].clone();
        assert_eq!(error["code"], code, "{tool}: {result:#}");
        error
    }

    /// Says nothing more; what comes can still be read.
    pub fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Leaves: nothing more is said, and the server ends.
    pub fn leave(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }

    /// Is gone from one moment to the next, with both streams; the server is left.
    pub fn vanish(self) -> Child {
        self.child
    }
}
