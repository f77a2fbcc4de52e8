//! What must hold for any bytes that come out of a sandbox or lie in a worktree. The targets in `fuzz/` call these functions,
//! and a test replays their corpus.

use weald_git::Commit;

use super::Diff;
use super::glance::{logs_alone, packed_refs};
use super::inside::{
    self, CommitEnd, CommitReply, EvictReply, FingerprintReply, ForwardReply, InspectReply, Job,
    LargeFilesReply, ListReply, Look, ModuleReply, RestoreReply, Size, SnapshotReply, SyncEnd,
    SyncReply, Tips, UsageReply, every_job, judging,
};
use super::untrusted::{Answer, Reply, first_line};

/// The answer of a visit: a line, and perhaps a pack.
pub fn visit_reply(data: &[u8]) {
    macro_rules! read_as_each {
        ($($file:ident::$kind:ident,)*) => {
            $(read_as::<inside::$kind>(data);)*
        };
    }
    every_job!(read_as_each);
}

/// The same as the answer to one kind of job.
fn read_as<J: Job<Reply: Sound>>(data: &[u8]) {
    let (line, pack) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    // Also what is not exact: what is checked must not depend on that.
    if let Ok(answer) = serde_json::from_slice::<Answer<J::Reply>>(line)
        && let Some(answer) = answer.checked(J::NAME)
    {
        is_checked::<J>(answer);
    }
    let mut rest = data;
    if let Some(answer) = first_line(J::NAME, &mut rest) {
        assert_eq!(rest, pack);
        is_checked::<J>(answer);
    }
}

fn is_checked<J: Job<Reply: Sound>>(answer: Result<J::Reply, String>) {
    match answer {
        Ok(reply) => {
            reply.is_sound();
            let said = serde_json::to_value(&reply).unwrap();
            let again = reply.checked().expect("what was checked is accepted");
            assert_eq!(serde_json::to_value(again).unwrap(), said);
        }
        Err(why) => {
            let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!(!why.contains(is_odd) && why.chars().count() <= 4096);
        }
    }
}

/// A reply of which can be said what holds once it was checked.
trait Sound: Reply {
    fn is_sound(&self);
}

fn is_id(id: impl AsRef<str>) -> bool {
    Commit::parse(id.as_ref()).is_some()
}

fn is_name(name: impl AsRef<str>) -> bool {
    let name = name.as_ref();
    let is_odd = |c: char| c.is_control() || c == ' ';
    let leads_away = |part: &str| part.is_empty() || part.starts_with('.');
    !name.contains(is_odd) && !name.split('/').any(leads_away)
}

fn are_paths(paths: &[String]) {
    assert!(paths.len() <= 20_000 && !paths.iter().any(|path| path.contains('\0')));
}

/// What the host adds up does not overflow.
fn has_sum(mut numbers: impl Iterator<Item = u64>) {
    let sum = numbers.try_fold(0_u64, u64::checked_add);
    assert!(sum.is_some());
}

impl Sound for () {
    fn is_sound(&self) {}
}

impl Sound for Look {
    fn is_sound(&self) {
        assert!(self.head.iter().all(is_id) && self.branch.iter().all(is_name));
        let _ = self.is_changed();
    }
}

impl Sound for Tips {
    fn is_sound(&self) {
        let mut refs = self.refs.iter();
        assert!(refs.all(|(name, id)| is_name(name) && is_id(id)));
        let lists = [&self.stash, &self.reflog, &self.worktrees];
        assert!(lists.into_iter().flatten().chain(&self.staged).all(is_id));
    }
}

impl Sound for InspectReply {
    fn is_sound(&self) {
        self.look.is_sound();
        self.tips.is_sound();
        are_paths(&self.paths);
        self.changed.iter().for_each(|paths| are_paths(paths));
    }
}

impl Sound for SnapshotReply {
    fn is_sound(&self) {
        self.look.is_sound();
        self.tips.is_sound();
        assert!(self.snapshot.iter().all(is_id));
        are_paths(&self.left_out);
        are_paths(&self.ignored);
    }
}

impl Sound for Diff {
    fn is_sound(&self) {
        has_sum(self.files.iter().filter_map(|file| file.added));
        has_sum(self.files.iter().filter_map(|file| file.deleted));
    }
}

impl Sound for Size {
    fn is_sound(&self) {
        assert!(self.bytes <= 1 << 50);
    }
}

impl Sound for UsageReply {
    fn is_sound(&self) {
        let usage = &self.usage;
        has_sum(usage.ranges.iter().map(|(_, length)| *length));
        assert!(usage.bytes <= 1 << 50 && usage.shared.is_none_or(|shared| shared <= 1 << 50));
        let mut ranges = usage.ranges.windows(2);
        assert!(ranges.all(|pair| pair[0].0.saturating_add(pair[0].1) < pair[1].0));
        let mut folders = usage.regenerable.iter();
        assert!(folders.all(|folder| folder.frees <= folder.bytes && folder.bytes <= 1 << 50));
    }
}

impl Sound for ListReply {
    fn is_sound(&self) {
        are_paths(&self.names);
    }
}

impl Sound for ModuleReply {
    fn is_sound(&self) {
        assert!(self.held.len() <= 20_000 && self.held.iter().all(is_id));
    }
}

impl Sound for EvictReply {
    fn is_sound(&self) {
        are_paths(&self.gone);
    }
}

impl Sound for RestoreReply {
    fn is_sound(&self) {
        are_paths(&self.aside);
    }
}

impl Sound for SyncReply {
    fn is_sound(&self) {
        are_paths(&self.aside);
        if let SyncEnd::Conflict(paths) = &self.end {
            are_paths(paths);
        }
    }
}

impl Sound for CommitReply {
    fn is_sound(&self) {
        use CommitEnd::{Committed, Nothing};
        if let Committed { left_out, .. } | Nothing { left_out } = &self.end {
            are_paths(left_out);
        }
        if let Some(found) = &self.found {
            found.is_sound();
        }
    }
}

impl Sound for FingerprintReply {
    fn is_sound(&self) {}
}

impl Sound for ForwardReply {
    fn is_sound(&self) {}
}

impl Sound for LargeFilesReply {
    fn is_sound(&self) {}
}

/// A file of an inner repository that a glance reads: packed refs, the log of HEAD, the configuration.
pub fn glance_file(data: &[u8]) {
    for (name, id) in packed_refs(data.to_vec()).into_iter().flatten() {
        assert!(Commit::parse(&id).is_some() && !name.contains('\n'));
    }
    let head = "1".repeat(40);
    if logs_alone(data, &head) {
        let text = String::from_utf8_lossy(data);
        let fields = text.lines().flat_map(|line| line.split(' ').take(2));
        let mut ids = fields.filter(|field| Commit::parse(field).is_some());
        assert!(ids.all(|id| id == head || id == "0".repeat(id.len())));
    }
    // What says something about a setting is never passed over for its case or its spaces.
    let lines = judging([data.to_vec()].into_iter());
    let shouted = judging([data.to_ascii_uppercase()].into_iter());
    assert_eq!(lines.len(), shouted.len());
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        for file in fs::read_dir(folder.join(target)).unwrap() {
            check(&fs::read(file.unwrap().path()).unwrap());
        }
    }

    #[test]
    fn the_corpus_has_an_exact_answer_of_every_kind() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/visit_reply");
        let files = fs::read_dir(folder).unwrap();
        let all: Vec<_> = files
            .map(|file| fs::read(file.unwrap().path()).unwrap())
            .collect();
        fn is_done<J: Job>(data: &[u8]) -> bool {
            matches!(first_line::<J::Reply>(J::NAME, &mut &*data), Some(Ok(_)))
        }
        macro_rules! look_for_each {
            ($($file:ident::$kind:ident,)*) => {
                $(assert!(all.iter().any(|data| is_done::<inside::$kind>(data)), stringify!($kind));)*
            };
        }
        every_job!(look_for_each);
    }

    #[test]
    fn what_was_found_by_fuzzing_stays_fixed() {
        replay("visit_reply", visit_reply);
        replay("glance_file", glance_file);
    }
}
