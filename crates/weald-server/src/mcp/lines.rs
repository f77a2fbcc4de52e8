//! The protocol's lines on stdin and stdout: one message a line, none longer than [`LONGEST`].
//!
//! What is no message is answered with an error, under its own id where that can be told, and the next line is read: no
//! client can end the server by what it writes.
//!
//! The library (rmcp) reads messages but not lines: it skips a line that is too long or no JSON, and it ends at a
//! notification that comes before the first request.

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// The longest message that is read, in bytes.
pub const LONGEST: usize = 16 << 20;

/// How much of a message that is too long is looked at for its id.
const LOOKED_AT: usize = 512;

/// How long the last answers are waited for when nothing more comes.
const LAST: Duration = Duration::from_secs(60);

/// How long whoever reads has for what is written already.
const READING: Duration = Duration::from_secs(2);

pub struct Lines<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// How much of the line did not fit.
    dropped: usize,
    tail: Vec<u8>,
    /// Whether a request has come; what comes before it has nobody to belong to.
    is_open: bool,
    write: Arc<Mutex<W>>,
    /// Becomes true at the end of the input.
    leave: Arc<watch::Sender<bool>>,
    /// Requests that wait for an answer.
    open: watch::Sender<HashSet<RequestId>>,
    /// Until when they are waited for, once the input is at its end.
    last: Option<Instant>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Lines<R, W> {
    /// Over two streams; `leave` is told when the first one is at its end.
    pub fn new(read: R, write: W, leave: Arc<watch::Sender<bool>>) -> Self {
        Self {
            read: BufReader::with_capacity(64 << 10, read),
            line: Vec::new(),
            dropped: 0,
            tail: Vec::new(),
            is_open: false,
            write: Arc::new(Mutex::new(write)),
            leave,
            open: watch::Sender::default(),
            last: None,
        }
    }

    /// Reads on until a line is whole; false at the end. May be dropped and called again at any time.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            let fitting = part.len().min(LONGEST - self.line.len());
            self.line.extend_from_slice(&part[..fitting]);
            let rest = &part[fitting..];
            if !rest.is_empty() {
                self.dropped += rest.len();
                self.tail.extend_from_slice(rest);
                let older = self.tail.len().saturating_sub(LOOKED_AT);
                self.tail.drain(..older);
            }
            let used = part.len() + usize::from(end.is_some());
            self.read.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// What the line says, and makes room for the next one.
    fn take(&mut self) -> Result<Option<ClientJsonRpcMessage>, Box<Wrong>> {
        let line = std::mem::take(&mut self.line);
        let tail = std::mem::take(&mut self.tail);
        if std::mem::take(&mut self.dropped) > 0 {
            let message = format!("a message has at most {LONGEST} bytes");
            let id = id_at_the_edge(&line, &tail);
            return Err(Wrong::new(ErrorCode::INVALID_REQUEST, message, id));
        }
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        match serde_json::from_slice(line) {
            Ok(message) => Ok(self.expected(message)),
            Err(_) => wrong(line).map_or(Ok(None), Err),
        }
    }

    /// The message, unless nobody waits for it: before the first request there is nothing to notify of.
    fn expected(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        self.is_open |= matches!(message, JsonRpcMessage::Request(_));
        self.note(&message);
        Some(message).filter(|_| self.is_open)
    }

    /// Remembers who waits for an answer: whoever takes a request back waits no longer.
    fn note(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => self.open.send_modify(|open| {
                open.insert(request.id.clone());
            }),
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(taken) = &told.notification
                    && let Some(id) = &taken.params.request_id
                {
                    self.answered(id);
                }
            }
            _ => {}
        }
    }

    fn answered(&self, id: &RequestId) {
        self.open.send_modify(|open| {
            open.remove(id);
        });
    }

    /// Nothing more comes. Everybody is told, and what was asked before is answered.
    async fn finish(&mut self) {
        let _ = self.leave.send(true);
        let last = *self.last.get_or_insert_with(|| Instant::now() + LAST);
        let mut open = self.open.subscribe();
        let _ = timeout_at(last, open.wait_for(HashSet::is_empty)).await;
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => self.answered(&response.id),
            JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.answered(id)),
            _ => {}
        }
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.last.is_some() || !matches!(self.read_line().await, Ok(true)) {
                self.finish().await;
                return None;
            }
            match self.take() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(wrong) => self.send(wrong.answer()).await.ok()?,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        let flushing = async { self.write.lock().await.flush().await };
        // Somebody may hold the other end and never read.
        timeout(READING, flushing).await.unwrap_or(Ok(()))
    }
}

/// Why a line is no message.
struct Wrong {
    error: ErrorData,
    id: Option<RequestId>,
}

impl Wrong {
    fn new(code: ErrorCode, message: impl Into<String>, id: Option<RequestId>) -> Box<Self> {
        let error = ErrorData::new(code, message.into(), None);
        Box::new(Self { error, id })
    }

    fn answer(self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(self.error, self.id)
    }
}

/// What is wrong with a line; `None` for a notification that nobody knows, which is passed over.
fn wrong(line: &[u8]) -> Option<Box<Wrong>> {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("not JSON: {error}");
            return Some(Wrong::new(ErrorCode::PARSE_ERROR, message, None));
        }
    };
    let Some(fields) = value.as_object() else {
        let message = "a message is one JSON object";
        return Some(Wrong::new(ErrorCode::INVALID_REQUEST, message, None));
    };
    let id = fields.get("id");
    if id.is_none() && fields.get("method").is_some_and(Value::is_string) {
        return None;
    }
    let id = id.and_then(|id| serde_json::from_value(id.clone()).ok());
    let message = "not a message of the protocol: it needs \"jsonrpc\": \"2.0\", a method with its params, and an id";
    Some(Wrong::new(ErrorCode::INVALID_REQUEST, message, id))
}

/// The id of a request that is too long to read: clients write it before or after the params.
fn id_at_the_edge(line: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(&line[..line.len().min(LOOKED_AT)]);
    let tail = String::from_utf8_lossy(tail);
    let before = head.split("\"params\"").next().unwrap_or_default();
    let after = tail.rsplit(['}', ']']).nth(1);
    let after = after.filter(|_| tail.trim_end().ends_with('}'));
    [before, after.unwrap_or_default()]
        .into_iter()
        .find_map(id_in)
}

fn id_in(text: &str) -> Option<RequestId> {
    let rest = text.split("\"id\"").nth(1)?.trim_start();
    let value = rest.strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
    serde_json::from_value(values.next()?.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_on_either_side_of_the_params() {
        let cases: [(&str, &str, Option<i64>); 5] = [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"#,
                "b\"}}",
                Some(7),
            ),
            (
                r#"{"method":"x","params":{"id":3,"a":"#,
                r#"b"},"jsonrpc":"2.0","id":8}"#,
                Some(8),
            ),
            (
                r#"{"method":"x","params":{"id":3,"a":"#,
                r#"b"},"jsonrpc":"2.0"}"#,
                None,
            ),
            (r#"{"method":"x","params":{"a":"#, r#"b"}"#, None),
            (r#"[[[["#, "]]", None),
        ];
        for (head, tail, id) in cases {
            let found = id_at_the_edge(head.as_bytes(), tail.as_bytes());
            assert_eq!(found, id.map(RequestId::Number), "{head} … {tail}");
        }
    }
}
