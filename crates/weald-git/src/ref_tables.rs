//! Refs in tables (git's reftable format), read without git, because a process costs more than a whole command may.
//!
//! A stack is a folder with a list of tables, the newest last. A table is never changed once it is listed, so reading needs no
//! lock; one that was compacted away meanwhile is looked for in the list again. Whatever is odd is `None`, and git is asked.
//! Only refs are read, not their logs, and nothing is ever written.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::git_files::read_small;
use crate::process::{Git, GitError};
use crate::ref_name::is_readable;
use crate::reference::{Commit, MainRef, Reference};

/// How often a list is read again because a table in it is gone.
const ATTEMPTS: usize = 5;

/// The largest table that is read without git.
const TABLE_LIMIT: u64 = 64 << 20;

/// The most that the tables of a stack may be together, and the refs in them in memory: what a name shares with the one before is
/// not written out, so a small table can hold long ones without number.
const STACK_LIMIT: u64 = 2 * TABLE_LIMIT;

/// What a ref takes besides its name, counted with the names: in a table it can be a few bytes.
const OVERHEAD: u64 = 256;

/// The longest name of a ref that is read without git.
const NAME_LIMIT: usize = 4096;

/// Whether a git directory keeps its refs in tables.
pub(crate) fn has_tables(git_dir: &Path) -> bool {
    git_dir.join("reftable").is_dir()
}

/// Reads one ref of a git directory that keeps its refs in tables; a worktree's own refs (`HEAD`) are in its own.
pub fn tabled_ref(git_dir: &Path, name: &str) -> Result<Option<Reference>, GitError> {
    if !is_readable(name) {
        return Ok(None);
    }
    match lookup(git_dir, name) {
        Some(found) => Ok(found),
        None => ask_git(git_dir, name),
    }
}

/// Every ref below `prefixes`, sorted by name.
pub(crate) fn list(git_dir: &Path, prefixes: &[&str]) -> Option<Vec<MainRef>> {
    list_in(&stack(git_dir)?, prefixes)
}

/// The same of tables, the oldest first.
pub(crate) fn list_in(tables: &[Vec<u8>], prefixes: &[&str]) -> Option<Vec<MainRef>> {
    let mut found: BTreeMap<Vec<u8>, Value> = BTreeMap::new();
    let mut length = 0;
    for bytes in tables {
        Table::open(bytes)?.scan(|name, value| {
            length += name.len() as u64 + OVERHEAD;
            match value {
                _ if length > STACK_LIMIT => return ControlFlow::Break(()),
                Value::Deleted => drop(found.remove(name)),
                value => drop(found.insert(name.to_owned(), value)),
            }
            ControlFlow::Continue(())
        })?;
    }
    (length <= STACK_LIMIT).then_some(())?;
    let mut listed = Vec::new();
    for (name, value) in &found {
        let name = std::str::from_utf8(name)
            .ok()
            .filter(|name| is_readable(name))?;
        if !prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let (held, symbolic) = match value {
            Value::Symbolic(to) => (found.get(to.as_bytes())?, Some(to.clone())),
            value => (value, None),
        };
        let Value::Direct(commit, peeled) = held else {
            return None;
        };
        listed.push(MainRef {
            name: name.to_owned(),
            commit: commit.as_str().to_owned(),
            peeled: match symbolic {
                Some(_) => None,
                None => peeled.as_ref().map(|peeled| peeled.as_str().to_owned()),
            },
            symbolic,
        });
    }
    Some(listed)
}

/// One ref; `None` if the tables can't be read here, `Some(None)` if there is no such ref.
fn lookup(git_dir: &Path, name: &str) -> Option<Option<Reference>> {
    lookup_in(&stack(git_dir)?, name)
}

/// The same of tables, the oldest first.
pub(crate) fn lookup_in(tables: &[Vec<u8>], name: &str) -> Option<Option<Reference>> {
    for bytes in tables.iter().rev() {
        let mut found = None;
        Table::open(bytes)?.scan(|known, value| match known == name.as_bytes() {
            true => {
                found = Some(value);
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        })?;
        match found {
            Some(Value::Deleted) => return Some(None),
            Some(Value::Direct(commit, _)) => return Some(Some(Reference::Direct(commit))),
            Some(Value::Symbolic(to)) => return Some(Some(Reference::Symbolic(to))),
            None => {}
        }
    }
    Some(None)
}

fn ask_git(git_dir: &Path, name: &str) -> Result<Option<Reference>, GitError> {
    let symbolic = Git::new(git_dir, "symbolic-ref")
        .args(["-q", name])
        .output()?;
    match symbolic.status.code() {
        Some(0) => return Ok(Some(Reference::Symbolic(line(&symbolic.stdout)))),
        Some(1) => {}
        _ => return Err(symbolic.failure("symbolic-ref")),
    }
    direct_by_git(git_dir, name)
}

/// The commit that a name holds or leads to, as git sees it.
pub(crate) fn direct_by_git(git_dir: &Path, name: &str) -> Result<Option<Reference>, GitError> {
    let direct = Git::new(git_dir, "rev-parse")
        .args(["-q", "--verify", "--end-of-options", name])
        .output()?;
    let commit = Commit::parse(&line(&direct.stdout)).filter(|_| direct.status.success());
    Ok(commit.map(Reference::Direct))
}

pub(crate) fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// The tables of a stack, the oldest first.
fn stack(git_dir: &Path) -> Option<Vec<Vec<u8>>> {
    let folder = git_dir.join("reftable");
    for _ in 0..ATTEMPTS {
        let list = String::from_utf8(read_small(&folder.join("tables.list")).ok()?).ok()?;
        let mut left = STACK_LIMIT;
        let tables = list.lines().map(|name| table(&folder, name, &mut left));
        let read: io::Result<Vec<_>> = tables.collect();
        match read {
            Ok(tables) => return Some(tables),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}

/// One table; `left` is what may still be read of its stack.
fn table(folder: &Path, name: &str, left: &mut u64) -> io::Result<Vec<u8>> {
    if name.contains('/') {
        return Err(io::Error::other("it is in another folder"));
    }
    // Opened first and judged then: another process that may write here could put a pipe in its place in between.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(folder.join(name))?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > TABLE_LIMIT {
        return Err(io::Error::other("it is no table"));
    }
    let mut bytes = Vec::new();
    file.take(TABLE_LIMIT).read_to_end(&mut bytes)?;
    *left = left
        .checked_sub(bytes.len() as u64)
        .ok_or_else(|| io::Error::other("the tables are too large"))?;
    Ok(bytes)
}

/// What a table says of a ref.
enum Value {
    Deleted,
    Direct(Commit, Option<Commit>),
    Symbolic(String),
}

/// A table's bytes, and how they are laid out.
struct Table<'t> {
    bytes: &'t [u8],
    /// Where its footer begins.
    end: usize,
    header: usize,
    block_size: usize,
    id_length: usize,
}

impl<'t> Table<'t> {
    /// Reads the header, which stands again at the start of the footer.
    fn open(bytes: &'t [u8]) -> Option<Self> {
        let (header, footer) = match bytes.get(..5)? {
            b"REFT\x01" => (24, 68),
            b"REFT\x02" => (28, 72),
            _ => return None,
        };
        let id_length = match (header, bytes.get(24..28)) {
            (24, _) | (_, Some(b"sha1")) => 20,
            (_, Some(b"s256")) => 32,
            _ => return None,
        };
        let end = bytes.len().checked_sub(footer)?;
        let is_whole = end >= header && bytes[..header] == bytes[end..end + header];
        is_whole.then_some(Self {
            bytes,
            end,
            header,
            block_size: number(&bytes[5..8]),
            id_length,
        })
    }

    /// Passes every ref, by name, until `each` has enough.
    fn scan(&self, mut each: impl FnMut(&[u8], Value) -> ControlFlow<()>) -> Option<()> {
        let mut start = 0;
        let mut last = Vec::new();
        loop {
            // The first block begins with the header.
            let kind = start + if start == 0 { self.header } else { 0 };
            if kind + 4 > self.end || self.bytes[kind] != b'r' {
                return Some(());
            }
            let length = number(&self.bytes[kind + 1..kind + 4]);
            // A block has its own start and the number of its restarts at least, so the next one is further on.
            let ends = kind + 6..=self.end;
            let end = start.checked_add(length).filter(|end| ends.contains(end))?;
            let restarts = number(self.bytes.get(end.checked_sub(2)?..end)?);
            let mut records = Records {
                bytes: self.bytes.get(..end.checked_sub(2 + 3 * restarts)?)?,
                at: kind + 4,
                id_length: self.id_length,
                name: Vec::new(),
            };
            let first = records.at;
            while records.at < records.bytes.len() {
                let is_first = records.at == first;
                let value = records.next()?;
                // Git finds a name by halving, and another one in a table that is not sorted.
                (!is_first || last < records.name).then_some(())?;
                if each(&records.name, value).is_break() {
                    return Some(());
                }
            }
            if !records.name.is_empty() {
                last = records.name;
            }
            // A short block is padded with zeros, or the next one follows at once.
            let is_padded = self.bytes.get(end) == Some(&0);
            start = match length < self.block_size && is_padded {
                true => start + self.block_size,
                false => end,
            };
        }
    }
}

/// The records of one block: each name is what it shares with the one before, and the rest.
struct Records<'t> {
    bytes: &'t [u8],
    at: usize,
    id_length: usize,
    name: Vec<u8>,
}

impl Records<'_> {
    fn next(&mut self) -> Option<Value> {
        let shared = self.varint()?;
        let (rest, kind) = self.varint().map(|both| (both >> 3, both & 7))?;
        (shared <= self.name.len() && shared.checked_add(rest)? <= NAME_LIMIT).then_some(())?;
        let rest = self.take(rest)?.to_owned();
        (self.name[shared..] < *rest).then_some(())?;
        self.name.truncate(shared);
        self.name.extend_from_slice(&rest);
        // When it was written.
        self.varint()?;
        match kind {
            0 => Some(Value::Deleted),
            1 => Some(Value::Direct(self.id()?, None)),
            2 => Some(Value::Direct(self.id()?, Some(self.id()?))),
            3 => {
                let length = self.varint()?;
                let to = self.take(length)?.to_owned();
                String::from_utf8(to).ok().map(Value::Symbolic)
            }
            _ => None,
        }
    }

    fn id(&mut self) -> Option<Commit> {
        let bytes = self.take(self.id_length)?;
        Commit::parse(&hex::encode(bytes))
    }

    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for number in 0..5 {
            let byte = usize::from(self.take(1)?[0]);
            if number > 0 {
                value += 1;
            }
            value = value << 7 | byte & 0x7f;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

/// The number that bytes are, the largest first.
fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::refs::list_refs_by_git;

    /// A repository whose git makes tables of `format`, with a commit.
    fn repository(home: &Path, format: &str) -> (PathBuf, String) {
        let format = format!("--object-format={format}");
        Git::outside(home, "init")
            .args(["-q", "--bare", "-b", "main", "--ref-format=reftable"])
            .args([&format, "."])
            .run()
            .unwrap();
        let tree = run(home, "mktree", &[]);
        let commit = run(home, "commit-tree", &[&tree, "-m", "one"]);
        (home.to_owned(), commit)
    }

    fn run(git_dir: &Path, name: &str, args: &[&str]) -> String {
        let mut git = Git::new(git_dir, name).args(args);
        for role in ["AUTHOR", "COMMITTER"] {
            git = git.env(format!("GIT_{role}_NAME"), "a");
            git = git.env(format!("GIT_{role}_EMAIL"), "a@b");
        }
        let said = git.run().unwrap();
        String::from_utf8(said).unwrap().trim().to_owned()
    }

    fn write(git_dir: &Path, lines: impl Iterator<Item = String>) {
        let text: String = lines.collect();
        let update = Git::new(git_dir, "update-ref").args(["--stdin"]);
        update.input(text).run().unwrap();
    }

    #[test]
    fn y32_refs_in_tables_are_read_as_git_reads_them() {
        for format in ["sha1", "sha256"] {
            let home = tempfile::tempdir().unwrap();
            let (path, commit) = repository(home.path(), format);
            // Several blocks, several tables, long and short names, deletions, tags and symbolic refs.
            let name =
                |number: usize| format!("refs/heads/x{}/{number}", "long".repeat(number % 9));
            write(
                &path,
                (1..700).map(|number| format!("create {} {commit}\n", name(number))),
            );
            run(&path, "tag", &["-a", "-m", "told", "v1", &commit]);
            run(&path, "tag", &["plain", &commit]);
            write(
                &path,
                (1..700)
                    .step_by(3)
                    .map(|number| format!("delete {}\n", name(number))),
            );
            let update = format!("update refs/remotes/origin/main {commit}\n");
            write(&path, [update].into_iter());
            let origin = "refs/remotes/origin/HEAD";
            run(&path, "symbolic-ref", &[origin, "refs/remotes/origin/main"]);
            let prefixes = ["refs/heads/", "refs/tags/", "refs/remotes/"];
            let listed = list(&path, &prefixes).expect("the tables can be read");
            assert!(listed.len() > 400);
            assert_eq!(listed, list_refs_by_git(&path, &prefixes).unwrap());
            for (name, expected) in [
                ("HEAD", Some(Reference::Symbolic("refs/heads/main".into()))),
                (&name(2), Commit::parse(&commit).map(Reference::Direct)),
                (&name(4), None),
                ("refs/heads/none", None),
            ] {
                assert_eq!(lookup(&path, name), Some(expected.clone()), "{name}");
                assert_eq!(ask_git(&path, name).unwrap(), expected, "{name}");
            }
        }
    }

    /// A deleted ref that shares `shared` bytes with the one before.
    fn record(shared: u8, rest: &str) -> Vec<u8> {
        let (high, low) = (rest.len() >> 4, (rest.len() & 15) << 3);
        let mut length = vec![low as u8];
        let mut high = high;
        while high > 0 {
            high -= 1;
            length.insert(0, 0x80 | (high & 0x7f) as u8);
            high >>= 7;
        }
        [&[shared][..], &length, rest.as_bytes(), &[0]].concat()
    }

    /// Records that are short as they are written, and long names together.
    fn long_names() -> Vec<u8> {
        let mut records = record(0, &format!("refs/heads/{}", "a".repeat(4000 - 11)));
        for number in 0..40_000 {
            // 4000 of the bytes before, as two bytes say it.
            records.extend([0x9e, 0x20]);
            records.extend(&record(0, &format!("{number:06}"))[1..]);
        }
        records
    }

    /// Refs of a few bytes each.
    fn short_refs(numbers: std::ops::Range<u32>) -> Vec<u8> {
        let mut records = Vec::new();
        for number in numbers.clone() {
            let shared = if number == numbers.start { 0 } else { 11 };
            let name = &format!("refs/heads/{number:06}")[shared..];
            let mut record = record(shared as u8, name);
            // Of the kind that holds an id.
            let kind = record.len() - 1 - name.len() - 1;
            record[kind] |= 1;
            records.extend(record);
            records.extend([7; 20]);
        }
        records
    }

    /// A table of unaligned blocks.
    fn table_of(blocks: &[Vec<u8>]) -> Vec<u8> {
        let header = [&b"REFT\x01"[..], &[0; 19]].concat();
        let mut bytes = header.clone();
        for (number, records) in blocks.iter().enumerate() {
            let before = if number == 0 { 24 } else { 0 };
            let length = (before + 4 + records.len() + 2) as u32;
            bytes.push(b'r');
            bytes.extend(&length.to_be_bytes()[1..]);
            bytes.extend(records);
            bytes.extend([0, 0]);
        }
        [&bytes[..], &header, &[0; 44]].concat()
    }

    /// Whether a stack of one table can be listed without git.
    fn list_of(git_dir: &Path, table: &[u8]) -> bool {
        fs::write(git_dir.join("reftable/odd.ref"), table).unwrap();
        fs::write(git_dir.join("reftable/tables.list"), "odd.ref\n").unwrap();
        list(git_dir, &["refs/"]).is_some()
    }

    #[test]
    fn y32_a_table_that_was_cut_or_changed_is_left_to_git() {
        let home = tempfile::tempdir().unwrap();
        let (path, commit) = repository(home.path(), "sha256");
        let lines = (0..40).map(|number| format!("create refs/heads/b{number} {commit}\n"));
        write(&path, lines);
        let bytes = stack(&path).unwrap().pop().unwrap();
        for length in 0..bytes.len() {
            assert!(Table::open(&bytes[..length]).is_none(), "{length} bytes");
        }
        // Nothing that a table may hold makes the reader fall.
        for place in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut odd = bytes.clone();
                odd[place] = value;
                if let Some(table) = Table::open(&odd) {
                    table.scan(|_, _| ControlFlow::Continue(()));
                }
            }
        }
        let (a, b) = (&record(0, "refs/heads/a"), &record(0, "refs/heads/b"));
        for (blocks, is_read) in [
            (vec![record(0, "refs/heads/a")], true),
            (vec![record(0, "refs/heads/a"), Vec::new()], true),
            (
                vec![record(0, &format!("refs/heads/{}", "a".repeat(5000)))],
                false,
            ),
            (vec![long_names()], false),
            (vec![short_refs(0..1000)], true),
            (
                vec![short_refs(0..300_000), short_refs(300_000..600_000)],
                false,
            ),
            // Not sorted: in a block, and from one to the next.
            (vec![[&b[..], a].concat()], false),
            (vec![[&a[..], a].concat()], false),
            (vec![b.clone(), a.clone()], false),
            (vec![a.clone(), Vec::new(), a.clone()], false),
            (vec![a.clone(), b.clone()], true),
        ] {
            assert_eq!(list_of(&path, &table_of(&blocks)), is_read);
        }
        // A block that says that it ends where it begins, or before its records.
        for length in 0..6 {
            let mut odd = table_of(&[record(0, "refs/heads/a"), Vec::new()]);
            // The second block ends with its length and that it has no restarts.
            let place = odd.len() - 68 - 3;
            assert_eq!(odd[place - 3..=place], [b'r', 0, 0, 6]);
            odd[place] = length;
            assert!(!list_of(&path, &odd), "length {length}");
        }
        // A table that lies elsewhere.
        fs::remove_file(path.join("reftable/odd.ref")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path.join("reftable/odd.ref")).unwrap();
        assert!(stack(&path).is_none());
        // The same table again and again.
        fs::write(path.join("reftable/tables.list"), "x.ref\n".repeat(9000)).unwrap();
        fs::write(path.join("reftable/x.ref"), vec![0; 1 << 20]).unwrap();
        assert!(stack(&path).is_none());
        fs::write(path.join("reftable/tables.list"), "gone.ref\n").unwrap();
        assert_eq!(lookup(&path, "HEAD"), None);
        assert!(tabled_ref(&path, "HEAD").is_err());
    }
}
