//! What must hold for any bytes that an agent writes to the server. A target in `fuzz/` calls this, and a test replays its corpus.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

/// Lines of a client.
pub fn mcp_lines(data: &[u8]) {
    let mut lines = Lines::new(data, tokio::io::sink(), Arc::default());
    let mut ended = data
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_suffix(b"\n"));
    while at_once(lines.read_line()).unwrap() {
        let line = ended.next().expect("a line of the input");
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        let line = line.trim_ascii();
        let value: Option<Value> = serde_json::from_slice(line).ok();
        match lines.take() {
            Ok(Some(message)) => {
                assert!(value.is_some());
                is_steady(&message);
            }
            Ok(None) => assert!(value.is_some() || line.is_empty()),
            Err(wrong) => {
                let is_parsed = wrong.error.code != ErrorCode::PARSE_ERROR;
                assert_eq!(is_parsed, value.is_some());
                let id = value.as_ref().and_then(|value| value.get("id"));
                let told = wrong
                    .id
                    .as_ref()
                    .map(|id| serde_json::to_value(id).unwrap());
                // 7.0 is the same number as 7.
                let is_same = told.as_ref() == id
                    || told.as_ref().and_then(Value::as_f64) == id.and_then(Value::as_f64);
                assert!(told.is_none() || is_same);
                is_one_line(*wrong);
            }
        }
    }
    assert_eq!(ended.next(), None);
    let (head, tail) = data.split_at(data.len() / 2);
    let id = id_at_the_edge(head, tail);
    is_one_line(*Wrong::new(ErrorCode::INVALID_REQUEST, "too long", id));
}

/// A message that is written and read again is still that message. (One with a field twice is read as of a method that nobody
/// knows, and has it once then.)
fn is_steady(message: &ClientJsonRpcMessage) {
    let written = serde_json::to_value(message).unwrap();
    let again: ClientJsonRpcMessage = serde_json::from_value(written.clone()).unwrap();
    let again = serde_json::to_value(again).unwrap();
    for field in ["jsonrpc", "id", "method"] {
        assert_eq!(again.get(field), written.get(field));
    }
}

fn is_one_line(wrong: Wrong) {
    let text = serde_json::to_vec(&wrong.answer()).unwrap();
    assert!(!text.contains(&b'\n'));
}

/// What is there already need not be waited for.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("all input is there"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_found_by_fuzzing_stays_fixed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        for file in fs::read_dir(folder.join("mcp_lines")).unwrap() {
            mcp_lines(&fs::read(file.unwrap().path()).unwrap());
        }
    }
}
