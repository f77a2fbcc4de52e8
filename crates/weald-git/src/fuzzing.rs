//! What must hold for any bytes that an agent may leave for the host to read. The targets in `fuzz/` call these functions,
//! and a test replays their corpus.

use std::collections::{BTreeMap, BTreeSet};

use crate::ref_name::RefName;
use crate::reference::{Commit, Reference};
use crate::{CheckoutIndex, Door, EntryKind, NewEntry, ref_files, ref_tables};

/// An index, read in both formats, and compared with the checkout behind `door`.
pub fn checkout_index(data: &[u8], door: &Door) {
    for sha256 in [false, true] {
        let Some(index) = CheckoutIndex::parse(data.to_vec(), sha256) else {
            continue;
        };
        let id_length = if sha256 { 32 } else { 20 };
        let mut last: Option<&[u8]> = None;
        for (place, entry) in index.entries().enumerate() {
            assert!(last < Some(entry.path), "entries are sorted");
            last = Some(entry.path);
            assert_eq!(index.find(entry.path), Ok(place));
            assert_eq!(entry.id.len(), id_length);
            let path = String::from_utf8_lossy(entry.path).to_ascii_lowercase();
            let mut parts = path.split('/');
            assert!(
                parts.all(|part| !["", ".", "..", ".git"].contains(&part)),
                "{path:?} stays in the checkout"
            );
        }
        let tree = index.tree();
        assert!(tree.is_none_or(|id| Commit::parse(&id).is_some() && id.len() == 2 * id_length));
        let _ = door.is_as_indexed(&index, i64::MAX).unwrap();
        rewritten(&index, sha256);
    }
}

/// What is written from an index is read back as the same entries.
fn rewritten(index: &CheckoutIndex, sha256: bool) {
    let bytes = index.to_bytes();
    let read = |bytes| CheckoutIndex::parse(bytes, sha256).expect("it was written by weald");
    assert_eq!(read(bytes.clone()).to_bytes(), bytes);
    let unchanged = index.edited(&BTreeMap::new());
    assert_eq!(unchanged.map(|index| index.to_bytes()), Some(bytes));
    let all: BTreeSet<_> = index.entries().map(|entry| entry.path).collect();
    let part = index.part(&all, |_| false).expect("all of it is a part");
    assert!(part.entries().map(|entry| entry.path).eq(all));
    let Some(first) = index.entries().next() else {
        return;
    };
    let entry = NewEntry {
        kind: EntryKind::Link,
        id: first.id.to_vec(),
    };
    for change in [None, Some(entry)] {
        let is_there = change.is_some();
        let changes = BTreeMap::from([(first.path.to_vec(), change)]);
        // An odd cached tree can't be edited.
        if let Some(edited) = index.edited(&changes) {
            assert_eq!(edited.find(first.path).is_ok(), is_there);
            assert_eq!(edited.len() + usize::from(!is_there), index.len());
            read(edited.to_bytes());
        }
    }
}

/// One table of refs, and a stack that has it twice.
pub fn ref_table(data: &[u8]) {
    let stack = [data.to_vec(), data.to_vec()];
    let _ = ref_tables::lookup_in(&stack, "HEAD");
    let Some(listed) = ref_tables::list_in(&stack[..1], &["refs/"]) else {
        return;
    };
    assert!(listed.is_sorted_by(|one, next| one.name < next.name));
    assert_eq!(
        ref_tables::list_in(&stack, &["refs/"]).as_ref(),
        Some(&listed)
    );
    for known in &listed {
        assert!(RefName::parse(&known.name).is_some(), "{known:?}");
        assert!(Commit::parse(&known.commit).is_some(), "{known:?}");
    }
    for known in listed.into_iter().take(8) {
        let expected = match known.symbolic {
            Some(to) => Some(Reference::Symbolic(to)),
            None => Commit::parse(&known.commit).map(Reference::Direct),
        };
        let found = ref_tables::lookup_in(&stack, &known.name);
        assert_eq!(found, Some(expected), "{}", known.name);
    }
}

/// A loose ref, a HEAD, and a file of packed refs.
pub fn ref_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(reference) = Reference::parse(text) {
        assert_eq!(Reference::parse(&reference.to_text()), Some(reference));
    }
    let mut found = BTreeMap::new();
    if ref_files::packed_in(text, &["refs/"], &mut found).is_some() {
        for (name, known) in found {
            assert_eq!(name, known.name);
            assert!(RefName::parse(&name).is_some(), "{known:?}");
            let mut ids = known.peeled.iter().chain([&known.commit]);
            assert!(ids.all(|id| Commit::parse(id).is_some()), "{known:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn replay(target: &str, mut check: impl FnMut(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        for file in fs::read_dir(folder.join(target)).unwrap() {
            check(&fs::read(file.unwrap().path()).unwrap());
        }
    }

    #[test]
    fn what_was_found_by_fuzzing_stays_fixed() {
        let home = tempfile::tempdir().unwrap();
        let door = Door::open(home.path()).unwrap();
        replay("checkout_index", |data| checkout_index(data, &door));
        replay("ref_table", ref_table);
        replay("ref_file", ref_file);
    }
}
