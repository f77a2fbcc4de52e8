//! What is wrong with an entry in `worktrees/`, found without git: one broken entry breaks git for everybody.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use crate::git_files::{path_of, read_small};
use crate::reference::Reference;
use crate::registration::Registrations;
use crate::registration_tables::tables_fault;

/// The shortest index: a head, no entry, a checksum.
const SHORTEST_INDEX: u64 = 32;

/// One part of an entry that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFault {
    /// Which file; empty for the entry itself.
    pub file: &'static str,
    /// What is wrong with it.
    pub what: String,
}

impl Registrations {
    /// The names of everything in `worktrees/`, whatever it is.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let folder = self.directory("");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        Ok(names)
    }

    /// Everything that is wrong with one of them.
    pub fn faults(&self, name: &OsStr) -> Vec<EntryFault> {
        let directory = self.directory("").join(name);
        if !directory
            .symlink_metadata()
            .is_ok_and(|found| found.is_dir())
        {
            let what = "it is no directory".to_owned();
            return vec![EntryFault { file: "", what }];
        }
        let common = self.directory("").parent().map(Path::to_owned);
        let common = common.and_then(|common| common.canonicalize().ok());
        let leads_home = |bytes: &[u8]| {
            let to = directory.join(path_of(bytes)).canonicalize().ok();
            to.is_some() && to == common
        };
        let tables = match self.has_tables() {
            true => tables_fault(&directory),
            false => Ok(()),
        };
        let parts: [(&'static str, Result<(), String>); 7] = [
            (
                "gitdir",
                required(&directory, "gitdir", |bytes| {
                    !path_of(bytes).as_os_str().is_empty()
                }),
            ),
            ("commondir", required(&directory, "commondir", leads_home)),
            ("HEAD", head(&directory)),
            ("reftable", tables),
            ("index", index(&directory.join("index"))),
            ("locked", plain(&directory.join("locked"))),
            ("config.worktree", plain(&directory.join("config.worktree"))),
        ];
        let faults = parts.into_iter().filter_map(|(file, state)| {
            let what = state.err()?;
            Some(EntryFault { file, what })
        });
        faults.collect()
    }
}

/// A small file that must be there and say something.
fn required(directory: &Path, file: &str, fits: impl Fn(&[u8]) -> bool) -> Result<(), String> {
    let path = directory.join(file);
    let found = path.symlink_metadata();
    let found = found.map_err(|_| "it is missing".to_owned())?;
    regular(&found)?;
    let bytes = read_small(&path).map_err(|error| error.to_string())?;
    match fits(&bytes) {
        true => Ok(()),
        false if bytes.is_empty() => Err("it is empty".to_owned()),
        false => Err("what it says leads nowhere".to_owned()),
    }
}

fn head(directory: &Path) -> Result<(), String> {
    let is_link = directory.join("HEAD").is_symlink();
    // As old versions of git had it.
    if is_link && fs::read_link(directory.join("HEAD")).is_ok_and(|to| to.starts_with("refs")) {
        return Ok(());
    }
    required(directory, "HEAD", |bytes| {
        Reference::parse(&String::from_utf8_lossy(bytes)).is_some()
    })
}

/// A file that need not be there.
fn plain(path: &Path) -> Result<(), String> {
    match path.symlink_metadata() {
        Ok(found) => regular(&found),
        Err(_) => Ok(()),
    }
}

fn index(path: &Path) -> Result<(), String> {
    let Ok(found) = path.symlink_metadata() else {
        return Ok(());
    };
    regular(&found)?;
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    match read {
        Ok(()) if head == *b"DIRC" && found.len() >= SHORTEST_INDEX => Ok(()),
        _ if found.len() == 0 => Err("it is empty".to_owned()),
        _ => Err("it is no index".to_owned()),
    }
}

fn regular(found: &Metadata) -> Result<(), String> {
    match found.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_symlink() => Err("it is a link".to_owned()),
        kind if kind.is_dir() => Err("it is a directory".to_owned()),
        _ => Err("it is no file".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn z2_each_part_of_an_entry_is_told_by_name() {
        let home = tempfile::tempdir().unwrap();
        let entry = home.path().join("worktrees/a");
        fs::create_dir_all(&entry).unwrap();
        let write = |file: &str, text: &str| fs::write(entry.join(file), text).unwrap();
        let whole = || {
            write("gitdir", "/somewhere/.git\n");
            write("commondir", "../..\n");
            write("HEAD", "ref: refs/heads/a\n");
        };
        let registrations = Registrations::new(home.path(), home.path());
        let told = || -> Vec<_> {
            let faults = registrations.faults(OsStr::new("a"));
            faults.into_iter().map(|fault| fault.file).collect()
        };
        whole();
        assert_eq!(told(), Vec::<&str>::new());
        for file in ["gitdir", "commondir", "HEAD", "index"] {
            write(file, "");
            assert_eq!(told(), [file], "empty");
            fs::remove_file(entry.join(file)).unwrap();
            fs::create_dir(entry.join(file)).unwrap();
            assert_eq!(told(), [file], "a directory");
            fs::remove_dir(entry.join(file)).unwrap();
            symlink("/dev/null", entry.join(file)).unwrap();
            assert_eq!(told(), [file], "a link");
            fs::remove_file(entry.join(file)).unwrap();
            whole();
        }
        write("commondir", "/\n");
        write("HEAD", "\0\0\0\0");
        assert_eq!(told(), ["commondir", "HEAD"]);
        assert_eq!(registrations.faults(OsStr::new("none"))[0].file, "");
    }
}
