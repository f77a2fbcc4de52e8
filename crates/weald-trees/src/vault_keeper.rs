//! The vault as this process holds it: known by name to whoever waits, and not waiting for ever for a stopped process.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use weald_core::session::ProcessIdentity;
use weald_git::{Door, Keeper, Vault};

use super::Trees;
use weald_control::files::{described, holder_pid};
use weald_control::machine::end_process;

impl Trees<'_> {
    pub fn vault(&self) -> Vault {
        Vault::of(self.common_dir()).kept_by(self.keeper())
    }

    /// The vault of a submodule.
    pub fn vault_of_submodule(&self, name: &str) -> Vault {
        let common_dir = self.common_dir();
        Vault::of_submodule(common_dir, name).kept_by(self.keeper())
    }

    /// Whether the repository in a directory borrows from this vault: only weald makes such.
    pub fn is_left_from_here(&self, path: &Path) -> bool {
        self.borrows(path, |_| false)
    }

    /// Whether a folder is a repository that borrows from this vault, or would at `home`, where it was.
    pub fn is_borrower(&self, path: &Path, home: &Path) -> bool {
        let written = self.alternates(home);
        self.borrows(path, |line| line.as_bytes() == written.trim_ascii_end())
    }

    fn borrows(&self, path: &Path, is_ours: impl Fn(&str) -> bool) -> bool {
        let door = Door::open(path).ok();
        let text = door.and_then(|door| door.read(".git/objects/info/alternates", 16 * 1024).ok());
        let (Some(text), Ok(vault)) = (text, self.vault().objects().canonicalize()) else {
            return false;
        };
        let objects = path.join(".git/objects");
        let leads_here = |line: &str| {
            objects
                .join(line)
                .canonicalize()
                .is_ok_and(|it| it == vault)
        };
        let text = String::from_utf8_lossy(&text);
        text.lines().any(|line| is_ours(line) || leads_here(line))
    }

    fn keeper(&self) -> Keeper {
        let known = self.known_keeper.get_or_init(|| {
            let (me, cancel) = (self.me(), self.host.cancel.clone());
            let processes = Arc::clone(&self.engine.processes);
            Keeper {
                name: serde_json::to_string(&me).unwrap_or_default(),
                lease: self.config.vault_lease.unsigned_abs(),
                // Who has no name, or is on another machine, can't be ended from here.
                end: Arc::new(move |name| {
                    let holder = serde_json::from_str::<ProcessIdentity>(name).ok();
                    let other = holder.filter(|holder| Some(holder) != me.as_ref());
                    other.is_some_and(|holder| end_process(processes.as_ref(), &holder))
                }),
                stranger: Arc::new(stranger),
                is_interrupted: Arc::new(move || cancel.asked().is_some()),
            }
        });
        known.clone()
    }
}

/// The process that holds the lock, in words, unless it is the one of that name, or the number in that name counts elsewhere.
fn stranger(lock: &File, name: &str) -> Option<String> {
    let pid = holder_pid(lock)?;
    let here = fs::read_link("/proc/self/ns/pid").ok()?;
    let named = serde_json::from_str::<ProcessIdentity>(name).ok();
    let is_it = named.is_some_and(|named| {
        named.pid == pid || here.to_str() != Some(named.pid_namespace.as_str())
    });
    (!is_it).then(|| format!("{}, which is not a weald process", described(pid)))
}
