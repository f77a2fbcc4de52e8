//! What must hold for any bytes that a run writes to its broker. A target in `fuzz/` calls this, and a test replays its corpus.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use weald_app::operations::looking::{DiffTree, ShowTree};
use weald_app::operations::making::SyncTree;
use weald_app::operations::snapshots::{ListSnapshots, TakeSnapshot};
use weald_app::{Ask, Authority, Mandate};
use weald_core::id::{TaskId, Token};

use super::authority::permits;
use super::limits;
use super::line::{Line, Lines, Watch};
use super::protocol::{Reply, Request};
use super::server::{request_in, text_of};

/// The secret in the corpus.
const SECRET: &str = "s";

/// The longest line here.
const LINE: usize = 4 << 10;

/// Lines as they come over the socket.
pub fn broker_lines(data: &[u8]) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (over, _end) = io::pipe().unwrap();
    theirs.write_all(data).unwrap();
    theirs.shutdown(Shutdown::Write).unwrap();
    let mut lines = Lines::new(ours).unwrap();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n");
        let expected = match text.unwrap_or(line) {
            text if text.len() > LINE => Line::TooLong,
            _ if text.is_none() => Line::End,
            text => Line::Text(text.to_vec()),
        };
        let read = lines.read(LINE, Duration::from_secs(10), &Watch(&over));
        assert_eq!(read, expected);
        match read {
            Line::Text(text) => request(&text),
            _ => return,
        }
    }
}

fn request(text: &[u8]) {
    let request = match request_in(text, SECRET) {
        Ok(request) => request,
        Err(fault) => {
            let text = text_of(&Reply::fault(&fault));
            assert!(!text.contains(&b'\n') && text.len() <= limits::ANSWER);
            return;
        }
    };
    assert_eq!(request.secret, SECRET);
    let again = serde_json::to_vec(&request).unwrap();
    let again = request_in(&again, SECRET).expect("what was read is a request");
    assert_eq!(
        (again.ask, again.session, again.token),
        (request.ask.clone(), request.session.clone(), request.token)
    );
    permitted(&request);
}

/// Whatever a request says, it gets what the run may do and no more.
fn permitted(request: &Request) {
    let own = Authority {
        session: Some("a".parse().unwrap()),
        task: Some(TaskId::Number(7)),
        token: Some(Token(3)),
        tree: "t".parse().unwrap(),
        branch: "wt/t".to_owned(),
        path: "/repo.weald/t".into(),
        agent: None,
        mandate: Mandate::Run,
    };
    let nobody = Authority {
        session: None,
        token: None,
        ..own.clone()
    };
    for authority in [own, nobody] {
        if let Err(refusal) = permits(&authority, request) {
            let _ = (refusal.to_string(), refusal.hint());
            continue;
        }
        assert!(request.session.is_none() || request.session == authority.session);
        assert!(request.token.is_none() || request.token == authority.token);
        let tree = match &request.ask {
            Ask::TaskClaim { id }
            | Ask::TaskRenew { id }
            | Ask::TaskDone { id, .. }
            | Ask::TaskFail { id, .. } => {
                assert!(authority.session.is_some());
                assert!(id.as_ref().is_none_or(|id| is_own(id.as_str())));
                continue;
            }
            Ask::Land(wish) => {
                assert!(wish.dry_run && authority.session.is_some());
                &wish.tree
            }
            Ask::Status(ShowTree { tree })
            | Ask::Path { tree, .. }
            | Ask::Diff(DiffTree { tree, .. })
            | Ask::SnapshotList(ListSnapshots { tree })
            | Ask::Sync(SyncTree { tree, .. })
            | Ask::SnapshotCreate(TakeSnapshot { tree, .. }) => tree,
            _ => continue,
        };
        assert!(tree.as_deref().is_none_or(is_own));
    }
}

/// Whether a word is one of those that the run's own worktree and task are called by.
fn is_own(word: &str) -> bool {
    let own = [
        "t",
        "7",
        "#7",
        "wt/t",
        "worktree:t",
        "task:7",
        "branch:wt/t",
    ];
    own.contains(&word) || word.contains("repo.weald/t")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_found_by_fuzzing_stays_fixed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        for file in fs::read_dir(folder.join("broker_lines")).unwrap() {
            broker_lines(&fs::read(file.unwrap().path()).unwrap());
        }
    }
}
