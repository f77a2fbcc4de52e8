//! Who hears the newest line of what takes its time.

use std::fmt;
use std::sync::Arc;

type Hearer = dyn Fn(&str) + Send + Sync;

/// Passes lines on, or drops them.
#[derive(Clone, Default)]
pub struct Lines(Option<Arc<Hearer>>);

impl Lines {
    pub fn to(hearer: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hearer)))
    }

    /// Passes on the last line in a piece of output.
    pub fn of_output(&self, bytes: &[u8]) {
        let Some(hearer) = &self.0 else { return };
        let mut lines = bytes.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
        if let Some(line) = lines.find(|line| !line.trim_ascii().is_empty()) {
            hearer(String::from_utf8_lossy(line).trim());
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lines").field(&self.0.is_some()).finish()
    }
}
