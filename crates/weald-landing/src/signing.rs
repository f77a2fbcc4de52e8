//! Signing what lands: after the gate, with the user's key, by the user's own program on the host.
//!
//! A signature changes the commit and not its git tree, so what was tested is what lands. Commits that weald made are
//! signed: the one of a squash or a revert, a merge commit, each of a rebase. A fast-forward lands commits as they are.

use std::time::Instant;

use weald_core::config::Sign;
use weald_core::landing::{Landing, LandingInput, LandingStatus, Strategy};
use weald_core::name::TreeName;
use weald_core::signature::Signature;
use weald_core::store::Durability;
use weald_git::{GitError, SIGNING_LIMIT, Signer, SigningConfig, reparented};

use super::LandError;
use super::candidate::Candidate;
use super::window::Turn;
use crate::Landings;
use crate::refusal::Refusal;

impl Landings<'_> {
    /// How what weald commits is signed; `None` if nobody wants that.
    pub(super) fn signing(&self) -> Result<Option<&SigningConfig>, LandError> {
        let mode = self.trees.config.landing_sign;
        if mode == Sign::Never {
            return Ok(None);
        }
        let config = match self.known_signing.get() {
            Some(known) => known,
            None => {
                let main = self.trees.place.repository().common_dir();
                let loaded = SigningConfig::load(main, self.trees.host.home.as_deref())?;
                self.known_signing.get_or_init(|| loaded)
            }
        };
        Ok(Some(config).filter(|config| config.is_wanted || mode == Sign::Require))
    }

    fn signature_is_required(&self) -> bool {
        self.trees.config.landing_sign == Sign::Require
    }

    /// Refuses to land commits as they are where everything that lands has to be signed.
    pub(super) fn require_signable(&self, tree: &TreeName) -> Result<(), LandError> {
        match self.signature_is_required() {
            false => Ok(()),
            true => Err(Refusal::FastForwardUnsigned(tree.clone()).into()),
        }
    }

    /// The candidate with the user's signature, if they want one. Where that fails it lands as it is, or not at all.
    pub(super) fn signed(
        &self,
        landing: &Landing,
        candidate: &Candidate,
    ) -> Result<(Candidate, Option<Signature>), LandError> {
        let Some(config) = self.signing()? else {
            return Ok((candidate.clone(), None));
        };
        let unsigned = |why: String| (candidate.clone(), Some(Signature::Unsigned { why }));
        if landing.strategy == Strategy::Ff && landing.reverts.is_none() {
            return Ok(unsigned(
                "a fast-forward lands commits as they are".to_owned(),
            ));
        }
        let vault = self.trees.vault();
        let signer = Signer {
            git_dir: vault.path(),
            config,
            environment: &self.trees.host.environment,
            deadline: Instant::now() + SIGNING_LIMIT,
        };
        match signer.sign_chain(&self.made_commits(candidate)?) {
            Ok(commit) => {
                let signature = Signature::Signed {
                    format: config.format.clone(),
                };
                let onto = candidate.onto.clone();
                Ok((Candidate { onto, commit }, Some(signature)))
            }
            Err(error) if self.signature_is_required() => {
                Err(
                    Refusal::NotSigned(landing.tree.clone(), landing.reverts, error.to_string())
                        .into(),
                )
            }
            Err(error) => Ok(unsigned(error.to_string())),
        }
    }

    /// The commits that weald made for a candidate, oldest first.
    fn made_commits(&self, candidate: &Candidate) -> Result<Vec<String>, GitError> {
        let answer = self
            .trees
            .vault()
            .git("rev-list")
            .args(["--reverse", "--first-parent", &candidate.commit])
            .args([format!("^{}", candidate.onto)])
            .run()?;
        let text = String::from_utf8_lossy(&answer);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The same candidate on top of a commit with the same git tree.
    fn moved_onto(&self, candidate: &Candidate, onto: &str) -> Result<Candidate, LandError> {
        let vault = self.trees.vault();
        let (mut old, mut new) = (candidate.onto.clone(), onto.to_owned());
        for commit in self.made_commits(candidate)? {
            new = reparented(vault.path(), &commit, &old, &new)?;
            old = commit;
        }
        Ok(Candidate {
            onto: onto.to_owned(),
            commit: new,
        })
    }
}

impl Turn<'_, '_> {
    /// What lands next was made on top of `old`, which became `new` by its signature: the same is put on top of that. Its
    /// gate goes on, since the git trees are the same.
    pub(super) fn follow_signature(&mut self, old: &str, new: &str) -> Result<(), LandError> {
        if old == new {
            return Ok(());
        }
        let (mut old, mut new) = (old.to_owned(), new.to_owned());
        for slot in &mut self.window {
            if slot.candidate.onto != old {
                // Made on top of something else: that is found out when its turn comes.
                return Ok(());
            }
            let moved = self.landings.moved_onto(&slot.candidate, &new)?;
            slot.before = new;
            old = std::mem::replace(&mut slot.candidate, moved).commit;
            new = slot.candidate.commit.clone();
            if slot.landing.status != LandingStatus::Testing {
                continue;
            }
            let test = LandingInput::Test {
                old_tip: slot.before.clone(),
                onto: slot.candidate.onto.clone(),
                new_tip: new.clone(),
            };
            let id = slot.landing.id;
            match self
                .landings
                .advance(self.lease, id, Durability::Process, test)
            {
                // Somebody took it out of the queue.
                Ok(_) | Err(LandError::Rule(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
