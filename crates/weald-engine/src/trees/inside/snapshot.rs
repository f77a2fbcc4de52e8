//! A snapshot: one commit that holds everything, byte for byte, without any filter.
//!
//! Its tree: `files/` the work tree (known to git or not, but not ignored), `index` the index file as it is, `staged/`
//! the blobs that only the index knows, `head` what HEAD says. Its parent is HEAD. It is made in a repository of its own
//! in the private /tmp, so nothing in the tree is written.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use weald_git::Git;

use super::look::send_file;
use super::{InsideError, Reply, Request, SnapshotLimits, TIME_LIMIT, read_capped, say, scratch};

/// The largest index that is kept.
const INDEX_LIMIT: u64 = 256 << 20;

impl Request {
    pub(super) fn snapshot(&self, limits: SnapshotLimits) -> Result<(), InsideError> {
        let changes = self.changes()?;
        let head = self
            .git("rev-parse")
            .args(["-q", "--verify", "HEAD^{commit}"])
            .output()?;
        let head = String::from_utf8_lossy(&head.stdout).trim_end().to_owned();
        let mut stream = Stream::new(limits);
        if !head.is_empty() {
            let tree = self
                .git("rev-parse")
                .args([format!("{head}^{{tree}}")])
                .run()?;
            let tree = String::from_utf8_lossy(&tree).trim_end().to_owned();
            stream.begin(&format!(
                "from {head}\ndeleteall\nM 040000 {tree} \"files\"\n"
            ));
        } else {
            stream.begin("");
        }
        for path in &changes.paths {
            stream.take(&self.work_tree, &OsString::from_vec(path.clone()))?;
        }
        for (mode, id) in &changes.staged {
            writeln!(stream.text, "M {mode} {id} \"staged/{id}-{mode}\"")?;
        }
        let small = |file: &str| read_capped(&self.git_dir.join(file), INDEX_LIMIT);
        stream.inline("100644", b"index", &small("index").unwrap_or_default())?;
        stream.inline("100644", b"head", &small("HEAD").unwrap_or_default())?;
        let repository = self.own_repository(&head)?;
        let made = Git::new(&repository, "fast-import")
            .args(["--quiet", "--done", "--date-format=now"])
            .config("fastimport.unpackLimit", "0")
            .limit(TIME_LIMIT)
            .input({
                stream.text.extend_from_slice(b"done\n");
                stream.text
            })
            .run();
        made?;
        let commit = Git::new(&repository, "rev-parse")
            .args(["refs/heads/snapshot"])
            .run()?;
        say(&Reply {
            snapshot: Some(String::from_utf8_lossy(&commit).trim_end().to_owned()),
            paths: stream.left_out,
            ..Reply::default()
        })?;
        let packs = fs::read_dir(repository.join("objects/pack"))?;
        for entry in packs.flatten() {
            if entry.path().extension().is_some_and(|kind| kind == "pack") {
                send_file(&entry.path())?;
            }
        }
        Ok(())
    }

    /// A repository in /tmp that borrows from the tree's.
    fn own_repository(&self, head: &str) -> Result<PathBuf, InsideError> {
        let path = scratch()?.join("snapshot.git");
        let format = if head.len() == 64 { "sha256" } else { "sha1" };
        Git::outside(&scratch()?, "init")
            .args(["-q", "--bare", "--template=", "--object-format", format])
            .args([&path])
            .run()?;
        let mut line = self.objects().into_os_string().into_vec();
        line.push(b'\n');
        fs::write(path.join("objects/info/alternates"), line)?;
        Ok(path)
    }

    pub(super) fn restore_snapshot(&self, commit: &str) -> Result<(), InsideError> {
        let parent = self
            .git("rev-parse")
            .args(["-q", "--verify", &format!("{commit}^1")])
            .output()?;
        let parent = String::from_utf8_lossy(&parent.stdout)
            .trim_end()
            .to_owned();
        let index = self.git_dir.join("index");
        self.set_operation_aside()?;
        if !parent.is_empty() {
            self.put_head(commit, &parent)?;
            self.git("read-tree")
                .args(["--reset", "-u", "--no-recurse-submodules", &parent])
                .run()?;
        }
        let from = match parent.is_empty() {
            true => self
                .git("hash-object")
                .args(["-t", "tree", "/dev/null"])
                .run()?,
            false => format!("{parent}^{{tree}}").into_bytes(),
        };
        let from = String::from_utf8_lossy(&from).trim_end().to_owned();
        let differences = self
            .git("diff-tree")
            .args([
                "-r",
                "-z",
                "--no-renames",
                &from,
                &format!("{commit}:files"),
            ])
            .run()?;
        let mut parts = differences
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty());
        while let (Some(meta), Some(path)) = (parts.next(), parts.next()) {
            let meta = String::from_utf8_lossy(meta).into_owned();
            let fields: Vec<_> = meta.split(' ').collect();
            let [_, mode, _, id, _] = fields[..] else {
                continue;
            };
            let full = self.work_tree.join(OsString::from_vec(path.to_vec()));
            self.put(&full, mode, id)?;
        }
        let kept = self
            .git("cat-file")
            .args(["blob", &format!("{commit}:index")])
            .run()?;
        let building = self.git_dir.join("index.weald");
        fs::write(&building, kept)?;
        fs::rename(&building, &index)?;
        Ok(say(&Reply::default())?)
    }

    /// A directory where a file was, or a file where a directory was, goes aside.
    fn clear_way(&self, full: &Path) -> Result<(), InsideError> {
        let within = full.strip_prefix(&self.work_tree).unwrap_or(full);
        let above = within
            .ancestors()
            .skip(1)
            .filter(|path| !path.as_os_str().is_empty());
        let mut above: Vec<_> = above.map(|path| self.work_tree.join(path)).collect();
        above.reverse();
        for path in above {
            if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                move_away(&path, &beside(&path))?;
            }
        }
        if full.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            move_away(full, &beside(full))?;
        }
        Ok(())
    }

    /// HEAD as it was: on its branch, which goes back to its commit, or on the commit alone. Other branches stay.
    fn put_head(&self, commit: &str, parent: &str) -> Result<(), InsideError> {
        let kept = self
            .git("cat-file")
            .args(["blob", &format!("{commit}:head")])
            .run()?;
        let kept = String::from_utf8_lossy(&kept).trim_end().to_owned();
        match kept
            .strip_prefix("ref: ")
            .filter(|name| name.starts_with("refs/heads/"))
        {
            Some(branch) => {
                self.git("symbolic-ref").args(["HEAD", branch]).run()?;
                self.git("update-ref").args([branch, parent]).run()?;
            }
            None => {
                self.git("update-ref")
                    .args(["--no-deref", "HEAD", parent])
                    .run()?;
            }
        }
        Ok(())
    }

    /// A merge or rebase that is going on belongs to what is replaced; its files are kept beside.
    fn set_operation_aside(&self) -> Result<(), InsideError> {
        let aside = self.git_dir.join("weald-before-restore");
        for name in OPERATIONS {
            let file = self.git_dir.join(name);
            if file.symlink_metadata().is_ok() {
                fs::create_dir_all(&aside)?;
                move_away(&file, &aside.join(name))?;
            }
        }
        Ok(())
    }

    /// Writes one file of a snapshot as it was.
    fn put(&self, full: &Path, mode: &str, id: &str) -> Result<(), InsideError> {
        self.clear_way(full)?;
        let _ = fs::remove_file(full);
        if mode == "000000" || mode == "160000" {
            return Ok(());
        }
        if let Some(parent) = full.parent() {
            fs::create_dir_all(parent)?;
        }
        let content = self.git("cat-file").args(["blob", id]).run()?;
        if mode == "120000" {
            std::os::unix::fs::symlink(OsString::from_vec(content), full)?;
            return Ok(());
        }
        fs::write(full, content)?;
        let bits = if mode == "100755" { 0o755 } else { 0o644 };
        Ok(fs::set_permissions(full, fs::Permissions::from_mode(bits))?)
    }
}

/// What a merge, rebase, cherry-pick, revert or bisect leaves while it goes on.
const OPERATIONS: [&str; 9] = [
    "rebase-merge",
    "rebase-apply",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "AUTO_MERGE",
    "sequencer",
];

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-restore");
    path.with_file_name(name)
}

/// Renames to a name that nobody has.
fn move_away(from: &Path, to: &Path) -> io::Result<()> {
    let free = (0..1000_u32)
        .map(|number| match number {
            0 => to.to_owned(),
            number => to.with_extension(format!("{number}")),
        })
        .find(|path| path.symlink_metadata().is_err());
    match free {
        Some(free) => fs::rename(from, free),
        None => Err(io::Error::other("too much is in the way")),
    }
}

/// A stream for fast-import in the making.
struct Stream {
    text: Vec<u8>,
    limits: SnapshotLimits,
    left_out: Vec<String>,
}

impl Stream {
    fn new(limits: SnapshotLimits) -> Self {
        Self {
            text: Vec::new(),
            limits,
            left_out: Vec::new(),
        }
    }

    /// `start` names the parent, whose own paths are not wanted, only its tree in `files/`.
    fn begin(&mut self, start: &str) {
        let head = "commit refs/heads/snapshot\ncommitter weald <weald@localhost> now\ndata 9\nsnapshot\n\n";
        self.text.extend_from_slice(head.as_bytes());
        self.text.extend_from_slice(start.as_bytes());
    }

    /// Takes a path that differs from HEAD, as it is now.
    fn take(&mut self, root: &Path, path: &OsString) -> io::Result<()> {
        let full = root.join(path);
        let name = [b"files/", path.as_bytes()].concat();
        let name = name.strip_suffix(b"/").unwrap_or(&name).to_vec();
        let Ok(found) = full.symlink_metadata() else {
            self.text.extend_from_slice(b"D ");
            quoted(&mut self.text, &name);
            self.text.push(b'\n');
            return Ok(());
        };
        if found.is_dir() {
            return self.take_nested(root, Path::new(path));
        }
        let room = self.limits.all.saturating_sub(self.text.len() as u64);
        if found.is_symlink() {
            return self.inline(
                "120000",
                &name,
                fs::read_link(&full)?.as_os_str().as_bytes(),
            );
        }
        if !found.is_file() || found.len() > self.limits.file.min(room) {
            self.left_out.push(path.to_string_lossy().into_owned());
            return Ok(());
        }
        let mode = if found.permissions().mode() & 0o111 != 0 {
            "100755"
        } else {
            "100644"
        };
        let content = read_capped(&full, self.limits.file).unwrap_or_default();
        self.inline(mode, &name, &content)
    }

    /// A repository in the tree: its files, not its `.git`.
    fn take_nested(&mut self, root: &Path, directory: &Path) -> io::Result<()> {
        for entry in fs::read_dir(root.join(directory))?.flatten() {
            if entry.file_name() != ".git" {
                self.take(root, &directory.join(entry.file_name()).into_os_string())?;
            }
        }
        Ok(())
    }

    fn inline(&mut self, mode: &str, name: &[u8], content: &[u8]) -> io::Result<()> {
        write!(self.text, "M {mode} inline ")?;
        quoted(&mut self.text, name);
        write!(self.text, "\ndata {}\n", content.len())?;
        self.text.extend_from_slice(content);
        self.text.push(b'\n');
        Ok(())
    }
}

/// A path as fast-import reads it.
fn quoted(text: &mut Vec<u8>, path: &[u8]) {
    text.push(b'"');
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => text.push(*byte),
            other => text.extend_from_slice(format!("\\{other:03o}").as_bytes()),
        }
    }
    text.push(b'"');
}
