//! Receipts: what was green once need not run again on the same files, command and environment.
//!
//! Red is never kept. A file that can't be read, or that does not say exactly what was asked, is no receipt. They lie in
//! weald's private folder, which no run can see.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use weald_core::landing::GateReceipt;
use weald_git::Digest;

use super::log::keep_newest;
use super::{GateRequest, LandError};
use crate::Landings;
use weald_control::files;

/// Made anew when a gate's tree or its sandbox changes in a way that tests could see.
const FORMAT: &str = "1";

const LIMIT: u64 = 1 << 20;

/// Keys that decide what a run finds.
const KEYS: [&str; 10] = [
    "sandbox.level",
    "sandbox.network",
    "sandbox.hosts",
    "sandbox.memory",
    "sandbox.processes",
    "sandbox.cpu_seconds",
    "sandbox.file_size",
    "sandbox.tmp",
    "tree.share",
    "tree.share_paths",
];

impl Landings<'_> {
    /// Everything that decides a verdict, in one text.
    pub(crate) fn gate_key(
        &self,
        tree: &str,
        request: &GateRequest<'_>,
    ) -> Result<String, LandError> {
        let mut key = Digest::default();
        for text in [FORMAT, tree, request.command] {
            key.add(text.as_bytes());
        }
        // Line ends, filters, a sparse checkout: how the files of a tree look.
        key.add(
            self.trees
                .pool_settings(request.candidate)?
                .files
                .as_bytes(),
        );
        for name in KEYS {
            key.add(self.trees.config.get(name).0.to_string().as_bytes());
        }
        let commands = self.trees.setup_commands()?;
        key.add(commands.len().to_string().as_bytes());
        for command in commands {
            key.add(command.as_bytes());
        }
        for (name, value) in self.stable_environment() {
            key.add(name.as_encoded_bytes());
            key.add(value.as_encoded_bytes());
        }
        Ok(key.finish())
    }

    fn receipt_file(&self, key: &str) -> PathBuf {
        let folder = self.trees.place.private().join("receipts");
        folder.join(format!("{key}.json"))
    }

    /// The receipt of an earlier run, if there is one that says exactly this.
    pub(super) fn load_receipt(&self, key: &str, tree: &str, command: &str) -> Option<GateReceipt> {
        let text = files::read_small(&self.receipt_file(key), LIMIT).ok()??;
        let known: GateReceipt = serde_json::from_str(&text).ok()?;
        let fits = known.key == key && known.tree == tree && known.command == command;
        let known = GateReceipt {
            cached: true,
            log: known.log.filter(|log| log.is_file()),
            ..known
        };
        fits.then_some(known)
    }

    /// Keeps a receipt. One that can't be kept costs another run, nothing else.
    pub(super) fn keep_receipt(&self, receipt: &GateReceipt) {
        if let Ok(text) = serde_json::to_string(receipt) {
            let file = self.receipt_file(&receipt.key);
            let _ = write(&file, text.as_bytes());
            let _ = file.parent().map(keep_newest);
        }
    }
}

/// Written beside its place, on disk, then renamed there.
fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    // Two threads may have tested the same.
    let mut building = tempfile::NamedTempFile::new_in(folder)?;
    building.write_all(text)?;
    building.as_file().sync_all()?;
    building.persist(file)?;
    File::open(folder)?.sync_all()
}
