//! Work whose landing was taken back: in the target's history it looks landed by every way, so only what the target holds
//! now counts.

use weald_core::landed::{Landed, TakenBack};

use super::Ground;
use super::ways::{adds_nothing, count, parting, present};
use crate::TreeError;

impl Ground {
    /// Keeps those of the landings that were taken back whose commits are here and did not land again since.
    pub(super) fn mind_taken_back(&mut self, mut found: Vec<TakenBack>) -> Result<(), TreeError> {
        if found.is_empty() {
            return Ok(());
        }
        let ids = found.iter().flat_map(|one| {
            let others = [&one.onto, &one.undone_at].into_iter().flatten();
            others.chain([&one.head]).map(String::as_str)
        });
        let here = present(&self.place, ids)?;
        found.retain(|one| here.contains(&one.head));
        let recorded: Vec<_> = self.recorded.iter().map(String::as_str).collect();
        for mut one in found {
            if !recorded.is_empty() && count(&self.place, &recorded, &one.head)? == 0 {
                continue;
            }
            one.onto = one.onto.filter(|id| here.contains(id));
            one.undone_at = one.undone_at.filter(|id| here.contains(id));
            self.taken_back.push(one);
        }
        Ok(())
    }

    /// What of a tip was taken back. Not if it has the undoing itself, and the target all of both.
    pub(super) fn taken_back_of(&self, tip: &str) -> Result<Vec<&TakenBack>, TreeError> {
        let mut found = Vec::new();
        for one in &self.taken_back {
            if self.holds(tip, &one.head)? && !self.is_settled(tip, one)? {
                found.push(one);
            }
        }
        Ok(found)
    }

    fn is_settled(&self, tip: &str, one: &TakenBack) -> Result<bool, TreeError> {
        let Some(undone_at) = &one.undone_at else {
            return Ok(false);
        };
        let targets: Vec<_> = self.targets.iter().map(String::as_str).collect();
        Ok(self.holds(tip, undone_at)? && count(&self.place, &targets, tip)? == 0)
    }

    /// Whether a target holds again what was taken back, and all of `tip`: merging either would change nothing.
    pub(super) fn came_again(
        &self,
        undone: &[&TakenBack],
        tip: &str,
    ) -> Result<Option<Landed>, TreeError> {
        for (place, target) in self.targets.iter().enumerate() {
            // A remote that has not heard of the undoing has its work only until it does.
            if (place == 0 || self.knows(target, undone)?) && self.has_all(target, undone, tip)? {
                return Ok(Some(Landed::AddsNothing));
            }
        }
        Ok(None)
    }

    fn knows(&self, target: &str, undone: &[&TakenBack]) -> Result<bool, TreeError> {
        for one in undone {
            let known = match &one.undone_at {
                Some(undone_at) => self.holds(target, undone_at)?,
                None => false,
            };
            if !known {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_all(&self, target: &str, undone: &[&TakenBack], tip: &str) -> Result<bool, TreeError> {
        for one in undone {
            let Some(onto) = &one.onto else {
                return Ok(false);
            };
            // As a landing does it: git would begin behind commits that are in the target's history.
            let base = parting(&self.place, onto, &one.head)?;
            if base.is_empty()
                || !adds_nothing(&self.place, target, Some(&base), &one.head)?
                || !adds_nothing(&self.place, target, Some(&base), tip)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `commit` is in the history of `tip`.
    fn holds(&self, tip: &str, commit: &str) -> Result<bool, TreeError> {
        Ok(count(&self.place, &[tip], commit)? == 0)
    }
}
