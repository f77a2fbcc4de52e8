//! What must hold for any bytes that come out of a sandbox or lie in a worktree. The targets in `fuzz/` call these functions,
//! and a test replays their corpus.

use std::io::Read;

use weald_git::Commit;

use super::glance::{logs_alone, packed_refs};
use super::inside::{Look, Reply, judging};
use super::untrusted;
use super::visit::first_line;

/// The answer of a visit: a line, and perhaps a pack.
pub fn visit_reply(data: &[u8]) {
    let mut rest = data;
    let Some(reply) = first_line(&mut rest) else {
        return;
    };
    let mut pack = Vec::new();
    rest.read_to_end(&mut pack).unwrap();
    let end = data.iter().position(|byte| *byte == b'\n');
    assert_eq!(pack, end.map_or(&[][..], |end| &data[end + 1..]));
    is_checked(&reply);
    let said = serde_json::to_value(&reply).unwrap();
    let again = untrusted::checked(reply).expect("what was checked is accepted");
    assert_eq!(serde_json::to_value(again).unwrap(), said);
}

fn is_checked(reply: &Reply) {
    let is_id = |id: &String| Commit::parse(id).is_some();
    let is_name = |name: &String| {
        let is_odd = |c: char| c.is_control() || c == ' ';
        let leads_away = |part: &str| part.is_empty() || part.starts_with('.');
        !name.contains(is_odd) && !name.split('/').any(leads_away)
    };
    let is_message = |text: &String| {
        let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
        !text.contains(is_odd) && text.chars().count() <= 4096
    };
    assert!(reply.snapshot.iter().all(is_id));
    assert!(reply.error.iter().all(is_message));
    if let Some(look) = &reply.look {
        let Look { head, branch, .. } = look;
        assert!(head.iter().all(is_id) && branch.iter().all(is_name));
        let _ = look.is_changed();
    }
    if let Some(tips) = &reply.tips {
        assert!(
            tips.refs
                .iter()
                .all(|(name, id)| is_name(name) && is_id(id))
        );
        let lists = [&tips.stash, &tips.reflog, &tips.worktrees];
        assert!(lists.into_iter().flatten().chain(&tips.staged).all(is_id));
    }
    let paths = [&reply.paths, &reply.aside, &reply.ignored];
    assert!(paths.into_iter().flatten().all(|path| !path.contains('\0')));
    // What the host adds up does not overflow.
    let sum = |numbers: &mut dyn Iterator<Item = u64>| {
        numbers.fold(0_u64, |sum, number| sum.checked_add(number).expect("a sum"))
    };
    sum(&mut reply.files.iter().filter_map(|file| file.added));
    sum(&mut reply.files.iter().filter_map(|file| file.deleted));
    assert!(reply.size.is_none_or(|size| size.bytes <= 1 << 50));
    if let Some(usage) = &reply.usage {
        sum(&mut usage.ranges.iter().map(|(_, length)| *length));
        assert!(usage.bytes <= 1 << 50 && usage.shared.is_none_or(|shared| shared <= 1 << 50));
        let mut ranges = usage.ranges.windows(2);
        assert!(ranges.all(|pair| pair[0].0.saturating_add(pair[0].1) < pair[1].0));
        let mut folders = usage.regenerable.iter();
        assert!(folders.all(|folder| folder.frees <= folder.bytes && folder.bytes <= 1 << 50));
    }
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
    fn what_was_found_by_fuzzing_stays_fixed() {
        replay("visit_reply", visit_reply);
        replay("glance_file", glance_file);
    }
}
