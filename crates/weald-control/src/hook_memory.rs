//! What hooks reported to agents, so that nothing is reported twice: a derived file. A broken one counts as empty.

use crate::files;
use crate::place::Place;

/// How much is remembered.
const KEPT: usize = 2_000;

/// The largest file that is read.
const LIMIT: u64 = 4 << 20;

/// Whether this was not reported before. It counts as reported from now on.
pub fn is_news(place: &Place, report: &str) -> bool {
    let file = place.private().join("told.json");
    let looked = files::edit_alone(&file, || {
        let text = files::read_small(&file, LIMIT).ok().flatten();
        let known = text.and_then(|text| serde_json::from_str(&text).ok());
        let mut known: Vec<String> = known.unwrap_or_default();
        if known.iter().any(|one| one == report) {
            return false;
        }
        known.push(report.to_owned());
        let many = known.len().saturating_sub(KEPT);
        known.drain(..many);
        // A file that can't be written reports twice, nothing else.
        let _ = files::replace(&file, &serde_json::to_string(&known).unwrap_or_default());
        true
    });
    looked.unwrap_or(true)
}
