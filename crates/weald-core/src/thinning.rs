//! Which snapshots of a tree stay: the newest, then one an hour, then one a day.
//!
//! Hours and days are counted by those that have a snapshot, not by the calendar: a tree that nobody touches loses none.

use std::collections::BTreeSet;

use crate::Timestamp;

/// So many of the newest stay.
pub const NEWEST: usize = 20;

/// Of the older ones the newest of so many hours stay.
pub const HOURS: usize = 24;

/// Of those that are older still, the newest of so many days.
pub const DAYS: usize = 14;

/// A snapshot, as far as thinning cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its number; later ones have higher numbers.
    pub id: u64,
    /// When it was taken.
    pub at: Timestamp,
    /// Whether something in the trash can only come back with it.
    pub needed: bool,
}

/// The numbers of those that may go, oldest first.
pub fn superfluous(snapshots: &[Taken]) -> Vec<u64> {
    let mut all = snapshots.to_vec();
    all.sort_by_key(|taken| taken.id);
    let hour = |taken: &Taken| taken.at.as_second().div_euclid(3600);
    let (mut hours, mut days) = (BTreeSet::new(), BTreeSet::new());
    let mut going = Vec::new();
    for taken in all.iter().rev().skip(NEWEST) {
        let (hour, day) = (hour(taken), hour(taken).div_euclid(24));
        let stays = if hours.len() < HOURS || hours.contains(&hour) {
            hours.insert(hour)
        } else {
            days.len() < DAYS && days.insert(day)
        };
        if !stays && !taken.needed {
            going.push(taken.id);
        }
    }
    going.reverse();
    going
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Snapshots so many minutes apart, the last one at a fixed time; the first has number 1.
    fn every(minutes: i64, count: u64) -> Vec<Taken> {
        let last = 1_900_000_000 - 1_900_000_000 % 86_400 + 86_399;
        let at = |id: u64| last - i64::try_from(count - id).unwrap() * minutes * 60;
        let taken = |id| Taken {
            id,
            at: Timestamp::from_second(at(id)).unwrap(),
            needed: false,
        };
        (1..=count).map(taken).collect()
    }

    fn staying(snapshots: &[Taken]) -> Vec<u64> {
        let going = superfluous(snapshots);
        let ids = snapshots.iter().map(|taken| taken.id);
        ids.filter(|id| !going.contains(id)).collect()
    }

    #[test]
    fn z4_the_newest_stay_then_one_an_hour_then_one_a_day() {
        for (minutes, count, stay, why) in [
            (5, 0, 0, "none"),
            (5, 20, 20, "few"),
            (5, 21, 21, "the first of an hour"),
            // 24 of them in the last two hours: 20, then one an hour.
            (5, 24, 21, "four of one hour"),
            (60, 44, 44, "an hour each"),
            (60, 45, 45, "and a day"),
            (24 * 60, 58, 58, "a day each"),
            (24 * 60, 100, 58, "more than are kept"),
            (
                1,
                10_000,
                20 + 24 + 6,
                "a week of minutes, the last day of it by the hour",
            ),
        ] {
            assert_eq!(staying(&every(minutes, count)).len(), stay, "{why}");
        }
    }

    #[test]
    fn z4_the_newest_of_an_hour_stays_and_thinning_again_changes_nothing() {
        let all = every(5, 200);
        let stay = staying(&all);
        assert_eq!(stay[stay.len() - 20..], (181..=200).collect::<Vec<_>>());
        // 5 minutes: twelve an hour, and the last of them is at the end of an hour.
        assert_eq!(stay[..stay.len() - 20].last(), Some(&180));
        assert!(
            stay[..stay.len() - 20]
                .iter()
                .all(|id| *id == 180 || (200 - id) % 12 == 0)
        );
        let kept: Vec<_> = all
            .iter()
            .filter(|one| stay.contains(&one.id))
            .copied()
            .collect();
        assert!(superfluous(&kept).is_empty());
    }

    #[test]
    fn z4_what_the_trash_needs_stays() {
        let mut all = every(1, 100);
        assert!(superfluous(&all).contains(&30));
        all[29].needed = true;
        assert!(!superfluous(&all).contains(&30));
        assert!(superfluous(&all).contains(&31), "and no other");
    }

    #[test]
    fn z4_the_order_in_which_they_are_told_does_not_matter() {
        let all = every(7, 300);
        let mut turned = all.clone();
        turned.reverse();
        assert_eq!(superfluous(&all), superfluous(&turned));
    }
}
