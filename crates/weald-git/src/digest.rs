//! A fingerprint of several texts.

use sha2::{Digest as _, Sha256};

/// Texts, one after the other; the same texts in the same order give the same fingerprint.
#[derive(Debug, Clone, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// Adds a text.
    pub fn add(&mut self, text: &[u8]) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text);
    }

    /// The fingerprint.
    pub fn finish(self) -> String {
        let bytes = self.0.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
