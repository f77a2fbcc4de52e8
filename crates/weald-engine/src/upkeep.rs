//! Upkeep: what is left over goes, what broke is repaired, what was done is taken back.

use crate::landing::Landings;
use crate::trees::Trees;

/// The upkeep of one repository.
pub struct Upkeep<'a> {
    pub(crate) trees: &'a Trees<'a>,
    pub(crate) landings: Landings<'a>,
}

impl<'a> Upkeep<'a> {
    pub fn new(trees: &'a Trees<'a>) -> Self {
        Self {
            trees,
            landings: Landings::new(trees),
        }
    }
}
