//! Numbers that may be in somebody's hands, so that none is given out twice.

use std::fs;

use weald_core::id::Seq;
use weald_core::store::{Counter, Durability};

use crate::Upkeep;
use weald_landing::LandError;

/// Where no log tells what was given out, counting goes on this far above what can be seen.
const UNKNOWN: u64 = 1_000;

impl Upkeep<'_> {
    /// Raises every counter above what git and the disk show, and above what `lost` events may have taken.
    pub(super) fn raise_counters(&self, known: Seq, lost: u64) -> Result<(), LandError> {
        let margin = match known {
            Seq(0) => UNKNOWN,
            _ => lost,
        };
        let seen = [
            (Counter::Tree, self.highest_tree()?),
            (Counter::Task, self.highest_task(known)?),
            (Counter::Landing, self.highest_in("landings")),
            (Counter::Agent, self.highest_in("agents")),
            (Counter::Message, 0),
        ];
        self.trees.engine.change(None, Durability::Process, |tx| {
            for (counter, number) in seen {
                tx.raise(counter, number)?;
                if margin > 0 {
                    // One above whatever is there by now.
                    let next = tx.next_number(counter)?;
                    tx.raise(counter, next - 1 + margin)?;
                }
            }
            Ok(())
        })
    }

    fn highest_tree(&self) -> Result<u64, LandError> {
        let named = self.trees_in_vault()?;
        Ok(named.into_keys().max().unwrap_or(0))
    }

    /// Tasks that landed are named in the target's history. That is asked only where no log knows better.
    fn highest_task(&self, known: Seq) -> Result<u64, LandError> {
        let (Seq(0), Some((_, tip))) = (known, &self.trees.target) else {
            return Ok(0);
        };
        let format = "--format=%(trailers:key=Weald-Task,valueonly)";
        let asked = self
            .trees
            .place
            .repository()
            .git("log")
            .args([format, "--end-of-options", tip])
            .output()?;
        let text = String::from_utf8_lossy(&asked.stdout).into_owned();
        let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
        Ok(numbers
            .filter(|number| *number < 1 << 40)
            .max()
            .unwrap_or(0))
    }

    /// The highest number that a name in one of weald's own folders begins with.
    fn highest_in(&self, folder: &str) -> u64 {
        let entries = fs::read_dir(self.trees.place.private().join(folder));
        let names = entries.into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let digits: String = name
                .trim_start_matches('a')
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse::<u64>().ok()
        });
        numbers.max().unwrap_or(0)
    }
}
