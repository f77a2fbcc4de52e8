//! Blocks of ports: which there are, and in which order a free one is looked for.
//!
//! Ports are handed out in cells of ten, counted from zero, so that repositories with other ranges and counts can't
//! overlap: a block holds every cell it touches. Holding is the engine's job.

use serde::{Deserialize, Serialize};

/// How many ports a cell has.
const CELL: u32 = 10;

/// Consecutive ports that are one tree's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortBlock {
    /// The first of them.
    pub first: u16,
    /// How many there are.
    pub count: u16,
}

impl PortBlock {
    /// The last of them.
    pub fn last(self) -> u16 {
        self.first.saturating_add(self.count.saturating_sub(1))
    }

    /// The cells it holds.
    pub fn cells(self) -> impl Iterator<Item = u32> {
        u32::from(self.first) / CELL..=u32::from(self.last()) / CELL
    }

    /// As a command sees it: `20000-20009`.
    pub fn to_text(self) -> String {
        format!("{}-{}", self.first, self.last())
    }
}

/// Where blocks may lie, and how large they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
    /// Ports of a block.
    pub count: u16,
}

impl PortRange {
    /// How many blocks there are.
    pub fn blocks(self) -> u32 {
        let (start, end) = self.cells();
        match self.count {
            0 => 0,
            _ => end.saturating_sub(start) / self.cells_of_a_block(),
        }
    }

    /// Every block once, in an order that `seed` chooses: two seeds rarely meet.
    pub fn search(self, seed: u64) -> impl Iterator<Item = PortBlock> {
        let blocks = u64::from(self.blocks());
        let start = self.cells().0;
        // Scattered, because seeds are neighbours.
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = mixed >> 32;
        let step = step_through(blocks, mixed & 0xffff_ffff);
        (0..blocks).map(move |number| {
            let chosen = (first % blocks + number * step) % blocks;
            let cell = start + chosen as u32 * self.cells_of_a_block();
            PortBlock {
                first: (cell * CELL) as u16,
                count: self.count,
            }
        })
    }

    fn cells(self) -> (u32, u32) {
        (
            u32::from(self.first).div_ceil(CELL),
            (u32::from(self.last) + 1) / CELL,
        )
    }

    fn cells_of_a_block(self) -> u32 {
        u32::from(self.count).div_ceil(CELL).max(1)
    }
}

/// A step that meets each of `count` places before it meets one again.
fn step_through(count: u64, wanted: u64) -> u64 {
    let common = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let from = wanted % count.max(1);
    (from..from + count)
        .find(|step| common(*step, count) == 1)
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn range(first: u16, last: u16, count: u16) -> PortRange {
        PortRange { first, last, count }
    }

    #[test]
    fn k14_every_block_is_met_once_and_none_overlaps() {
        for (range, blocks) in [
            (range(20_000, 32_000, 10), 1200),
            (range(20_000, 20_099, 10), 10),
            (range(20_005, 20_099, 10), 9),
            (range(20_000, 20_099, 3), 10),
            (range(20_000, 20_099, 25), 3),
            (range(65_000, 65_535, 10), 53),
            (range(20_000, 20_008, 10), 0),
            (range(30_000, 20_000, 10), 0),
            (range(20_000, 32_000, 0), 0),
        ] {
            assert_eq!(range.blocks(), blocks, "{range:?}");
            for seed in [0, 1, 7, u64::MAX] {
                let found: Vec<_> = range.search(seed).collect();
                let cells: HashSet<_> = found.iter().flat_map(|block| block.cells()).collect();
                let held: usize = found.iter().map(|block| block.cells().count()).sum();
                assert_eq!((found.len(), cells.len()), (blocks as usize, held));
                let inside = |block: &PortBlock| {
                    block.first >= range.first
                        && block.last() <= range.last
                        && block.count == range.count
                };
                assert!(found.iter().all(inside), "{range:?}");
            }
        }
    }

    #[test]
    fn neighbours_begin_elsewhere() {
        let starts: HashSet<_> = (0..100)
            .filter_map(|seed| range(20_000, 32_000, 10).search(seed).next())
            .collect();
        assert!(starts.len() > 80, "{}", starts.len());
    }

    #[test]
    fn a_block_reads_as_first_and_last() {
        let block = PortBlock {
            first: 20_010,
            count: 10,
        };
        assert_eq!(block.to_text(), "20010-20019");
    }
}
