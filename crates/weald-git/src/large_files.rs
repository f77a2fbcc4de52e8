//! Large files of Git LFS: the pointers in history, and the folder that holds what they stand for.
//!
//! A pointer names content by its SHA-256 and its length. Content is stored only after both were checked here, and it is on
//! disk under its final name before anybody may name it. Nothing here starts git-lfs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sha2::{Digest, Sha256};

use crate::door::Door;
use crate::process::{Git, GitError};

/// Where versions of pointers come from; the later ones are what git-lfs itself still reads.
const VERSIONS: [&str; 3] = [
    "https://git-lfs.github.com/spec/v1",
    "https://hawser.github.com/spec/v1",
    "http://git-media.io/v/2",
];

/// No pointer is longer.
pub const POINTER_LIMIT: u64 = 1024;

/// How much is read at once.
const PORTION: usize = 1 << 16;

/// What a pointer stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LargeFile {
    id: String,
    size: u64,
}

impl LargeFile {
    /// `None` if that is no SHA-256, or no length a file can have.
    pub fn new(id: &str, size: u64) -> Option<Self> {
        let is_digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let fits = id.len() == 64 && id.bytes().all(is_digit) && size <= i64::MAX as u64;
        fits.then(|| Self {
            id: id.to_owned(),
            size,
        })
    }

    pub fn from_pointer(blob: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(blob).ok()?;
        let mut lines = text.lines();
        let version = lines.next()?.strip_prefix("version ")?;
        if !VERSIONS.contains(&version) {
            return None;
        }
        let (mut id, mut size) = (None, None);
        for line in lines {
            match line.split_once(' ')? {
                ("oid", value) if id.is_none() => id = Some(value.strip_prefix("sha256:")?),
                ("size", value) if size.is_none() => size = Some(value.parse().ok()?),
                ("oid" | "size", _) => return None,
                _ => {}
            }
        }
        Self::new(id?, size?)
    }

    /// Its SHA-256, in hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where it lies in the folder of a repository's large files.
    pub fn place(&self) -> String {
        format!("objects/{}/{}/{}", &self.id[..2], &self.id[2..4], self.id)
    }
}

/// Blobs that are pointers, by their id, among everything that `revisions` (one a line, as `git rev-list --stdin` reads
/// them) lead to. `git` starts commands of the repository. Blobs are read one by one: an agent may have made millions.
pub fn list_pointers(
    git: impl Fn(&str) -> Git,
    revisions: &str,
) -> Result<BTreeMap<String, LargeFile>, GitError> {
    let not_started = |source| GitError::NotStarted { source };
    let (ids, listed) = io::pipe().map_err(not_started)?;
    let (blobs, read) = io::pipe().map_err(not_started)?;
    let walk = git("rev-list")
        .args(["--objects", "--no-object-names", "--ignore-missing"])
        .args(["--missing=allow-any", "--filter-provided-objects"])
        .args(["--filter=combine:object:type=blob+blob:limit=1k", "--stdin"])
        .input(revisions);
    let cat = git("cat-file").args(["--batch"]).input_from(ids);
    thread::scope(|scope| {
        let walk = scope.spawn(move || walk.output_to(listed));
        let cat = scope.spawn(move || cat.output_to(read));
        let found = pointers_in(&mut BufReader::new(blobs)).map_err(not_started);
        for (name, thread) in [("rev-list", walk), ("cat-file", cat)] {
            let lost = |_| GitError::unexpected(name, "a thread was lost");
            let output = thread.join().map_err(lost)??;
            if !output.status.success() {
                return Err(output.failure(name));
            }
        }
        found
    })
}

/// The answer of `cat-file --batch`: `<id> <type> <size>`, that many bytes, and the end of the line.
fn pointers_in(answer: &mut impl BufRead) -> io::Result<BTreeMap<String, LargeFile>> {
    let mut found = BTreeMap::new();
    let (mut head, mut content) = (String::new(), Vec::new());
    while answer.read_line(&mut head)? > 0 {
        let fields: Vec<_> = head.trim_end().split(' ').collect();
        if let [id, _, size] = fields[..] {
            let size: u64 = size.parse().unwrap_or(0);
            content.clear();
            answer
                .take(size.min(POINTER_LIMIT))
                .read_to_end(&mut content)?;
            let rest = size.saturating_sub(POINTER_LIMIT) + 1;
            io::copy(&mut answer.take(rest), &mut io::sink())?;
            if let Some(file) = LargeFile::from_pointer(&content) {
                found.insert(id.to_owned(), file);
            }
        }
        head.clear();
    }
    Ok(found)
}

/// Why content was not stored.
#[derive(Debug, thiserror::Error)]
pub enum LargeFileError {
    /// The stream ended early.
    #[error("it ended early")]
    Short,
    /// It is not what the pointer names.
    #[error("its content is not what its pointer names")]
    Differs,
    /// It can't be written.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// The folder of a repository's large files (`lfs.storage`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeFileStore {
    root: PathBuf,
}

impl LargeFileStore {
    /// The one at `root`, which need not exist.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it was ever used.
    pub fn exists(&self) -> bool {
        self.root.join("objects").is_dir()
    }

    /// Whether it has a file, as git-lfs judges that. Nobody needs content that is empty.
    pub fn holds(&self, file: &LargeFile) -> bool {
        let found = self.root.join(file.place()).symlink_metadata();
        file.size == 0 || found.is_ok_and(|found| found.is_file() && found.len() == file.size)
    }

    /// Stores the next `file.size()` bytes of a stream, if they are what the pointer names; all of them are read either way.
    pub fn receive(&self, file: &LargeFile, from: &mut impl Read) -> Result<(), LargeFileError> {
        fs::create_dir_all(&self.root)?;
        // The folder itself may be a link of the user's; nothing in it is followed.
        let door = Door::open(&self.root.canonicalize()?)?;
        door.place(&building(), &file.place(), |to| {
            copy_checked(file, from, to)
        })
    }

    /// Copies a file of another folder, sharing content only where the file system makes that invisible: never by a link.
    /// A copy can be made again, so it is not waited for until it is on disk.
    pub fn copy_from(&self, other: &Self, file: &LargeFile) -> io::Result<()> {
        let place = self.root.join(file.place());
        let building = self.root.join(building());
        for folder in [place.parent(), building.parent()].into_iter().flatten() {
            fs::create_dir_all(folder)?;
        }
        let mut from = File::open(other.root.join(file.place()))?;
        let copied = File::create_new(&building)
            .and_then(|mut to| io::copy(&mut from, &mut to))
            .and_then(|_| fs::rename(&building, &place));
        copied.inspect_err(|_| {
            let _ = fs::remove_file(&building);
        })
    }
}

/// Where the next file is written before it gets its name; git-lfs empties this folder of what is an hour old.
fn building() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("tmp/weald-{}-{number}", std::process::id())
}

fn copy_checked(
    file: &LargeFile,
    from: &mut impl Read,
    to: &mut File,
) -> Result<(), LargeFileError> {
    let mut digest = Sha256::new();
    let mut portion = vec![0; PORTION];
    let mut left = file.size;
    while left > 0 {
        let wanted = usize::try_from(left).map_or(PORTION, |left| left.min(PORTION));
        let read = match from.read(&mut portion[..wanted]) {
            Ok(0) => return Err(LargeFileError::Short),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        digest.update(&portion[..read]);
        to.write_all(&portion[..read])?;
        left -= read as u64;
    }
    match hex::encode(digest.finalize()) == file.id {
        true => Ok(()),
        false => Err(LargeFileError::Differs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn pointer(more: &str) -> String {
        format!("version https://git-lfs.github.com/spec/v1\n{more}oid sha256:{ABC}\nsize 3\n")
    }

    #[test]
    fn y1_only_what_git_lfs_takes_for_a_pointer_is_one() {
        let file = LargeFile::from_pointer(pointer("").as_bytes()).unwrap();
        assert_eq!((file.id(), file.size()), (ABC, 3));
        assert_eq!(file.place(), format!("objects/ba/78/{ABC}"));
        let extended = pointer(&format!("ext-0-foo sha256:{ABC}\n"));
        assert_eq!(LargeFile::from_pointer(extended.as_bytes()), Some(file));
        for odd in [
            String::new(),
            "version 1\n".to_owned(),
            pointer("").replace("spec/v1", "spec/v9"),
            pointer("").replace("sha256:", "md5:"),
            pointer("").replace(ABC, &ABC.to_uppercase()),
            pointer("").replace(ABC, "../../../../etc/passwd"),
            pointer("").replace("size 3", "size -3"),
            pointer("").replace("size 3", "size 99999999999999999999"),
            pointer("").replace("size 3\n", ""),
            pointer("size 4\n"),
            pointer("noise\n"),
        ] {
            assert_eq!(LargeFile::from_pointer(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn y1_content_is_stored_only_if_it_is_what_the_pointer_names() {
        let folder = tempfile::tempdir().unwrap();
        let store = LargeFileStore::at(folder.path().join("lfs"));
        let file = LargeFile::new(ABC, 3).unwrap();
        let mut stream = &b"abdabcabcd"[..];
        let refused = store.receive(&file, &mut stream).unwrap_err();
        assert!(matches!(refused, LargeFileError::Differs) && !store.holds(&file));
        store.receive(&file, &mut stream).unwrap();
        assert!(store.holds(&file));
        assert_eq!(stream, b"abcd", "no more was read than the pointer says");
        let longer = LargeFile::new(ABC, 5).unwrap();
        let refused = store.receive(&longer, &mut stream).unwrap_err();
        assert!(matches!(refused, LargeFileError::Short) && !store.holds(&longer));
        assert_eq!(fs::read(store.root().join(file.place())).unwrap(), b"abc");
        let left = fs::read_dir(store.root().join("tmp")).unwrap().count();
        assert_eq!(left, 0, "nothing half-written is left");
    }

    #[test]
    fn y1_a_link_in_the_folder_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        let store = LargeFileStore::at(folder.path().join("lfs"));
        fs::create_dir_all(store.root().join("objects")).unwrap();
        std::os::unix::fs::symlink(&outside, store.root().join("objects/ba")).unwrap();
        let file = LargeFile::new(ABC, 3).unwrap();
        let refused = store.receive(&file, &mut &b"abc"[..]).unwrap_err();
        assert!(matches!(refused, LargeFileError::File(_)));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
