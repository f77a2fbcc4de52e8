//! Where the remote's target is, before something lands on ours.
//!
//! Whoever works the queue asks once, however much lands; with `try` a remote that did not answer is left alone for
//! `tree.fetch_every`. Only the remote-tracking ref moves here, and nothing is ever pushed.
//!
//! If the remote is ahead, the candidate is made on the remote's tip and the target moves once. So a fast-forward of
//! the target needs no record of its own.

use super::LandError;
use crate::Landings;
use crate::refusal::Refusal;
use weald_core::config::Fetch;
use weald_git::is_ancestor;
use weald_trees::fetching::Upstream;

/// What fetching the target found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FetchedTarget {
    /// The remote's tip, if it is ahead of ours: ours has to follow first.
    pub ahead: Option<String>,
    /// What a person should know.
    pub note: Option<String>,
}

impl Landings<'_> {
    /// Fetches the target as `landing.fetch` says. A target that diverged from the remote's is refused.
    pub(crate) fn fetch_landing_target(&self, target: &str) -> Result<FetchedTarget, LandError> {
        let policy = self.trees.config.landing_fetch;
        if policy == Fetch::Never {
            return Ok(FetchedTarget::default());
        }
        let branch = format!("refs/heads/{target}");
        let Some(upstream) = self.trees.upstream(&branch)? else {
            return match policy {
                Fetch::Require => Err(Refusal::NoUpstream(target.to_owned()).into()),
                _ => Ok(FetchedTarget::default()),
            };
        };
        let note = self.ask_remote(&branch, &upstream, policy)?;
        let ahead = self.remote_ahead(target, &branch, &upstream)?;
        Ok(FetchedTarget { ahead, note })
    }

    /// Asks the remote, if nobody did a moment ago; answers what to tell where it did not answer.
    fn ask_remote(
        &self,
        branch: &str,
        upstream: &Upstream,
        policy: Fetch,
    ) -> Result<Option<String>, LandError> {
        let name = upstream.name();
        let told = |why: &str| {
            Some(format!(
                "{name} could not be fetched, so this lands on the local copy: {why}"
            ))
        };
        if policy != Fetch::Require && self.trees.failed_recently(branch)? {
            return Ok(told("its remote did not answer a moment ago"));
        }
        let fetched = self.trees.fetch(upstream);
        self.trees
            .remember_attempt(branch, upstream, fetched.is_err())?;
        match fetched {
            Ok(()) => Ok(None),
            Err(error) if policy == Fetch::Require => {
                Err(Refusal::NotFetched(name.to_owned(), error.to_string()).into())
            }
            Err(error) => Ok(told(&error.to_string())),
        }
    }

    /// The remote's tip if it holds ours and more.
    fn remote_ahead(
        &self,
        target: &str,
        branch: &str,
        upstream: &Upstream,
    ) -> Result<Option<String>, LandError> {
        let repository = self.trees.place.repository();
        let theirs = repository.resolve(&upstream.tracking)?;
        let (Some(ours), Some(theirs)) = (repository.resolve(branch)?, theirs) else {
            return Ok(None);
        };
        let (ours, theirs) = (ours.as_str(), theirs.as_str());
        let main = repository.common_dir();
        if ours == theirs || is_ancestor(main, theirs, ours)? {
            return Ok(None);
        }
        if is_ancestor(main, ours, theirs)? {
            return Ok(Some(theirs.to_owned()));
        }
        Err(Refusal::TargetDiverged(
            target.to_owned(),
            ours.to_owned(),
            upstream.name().to_owned(),
            theirs.to_owned(),
        )
        .into())
    }

    /// Where a target is.
    pub fn landing_tip(&self, target: &str) -> Result<String, LandError> {
        self.follow_target(target)?;
        let full = format!("refs/heads/{target}");
        match self.trees.place.repository().resolve(&full)? {
            Some(tip) => Ok(tip.as_str().to_owned()),
            None => Err(Refusal::NoTarget(target.to_owned()).into()),
        }
    }
}
