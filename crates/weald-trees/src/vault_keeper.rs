//! The vault as this process holds it: known by name to whoever waits, and not waiting for ever for a stopped process.

use std::fs::{self, File};
use std::sync::Arc;

use weald_core::session::ProcessIdentity;
use weald_git::{Keeper, Vault};

use super::Trees;
use weald_control::files::{described, holder_pid};
use weald_control::machine::end_process;

impl Trees<'_> {
    pub fn vault(&self) -> Vault {
        Vault::of(self.place.repository().common_dir()).kept_by(self.keeper())
    }

    /// The vault of a submodule.
    pub fn vault_of_submodule(&self, name: &str) -> Vault {
        let common_dir = self.place.repository().common_dir();
        Vault::of_submodule(common_dir, name).kept_by(self.keeper())
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
