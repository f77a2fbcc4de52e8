//! Output of which the start and the end are kept, however long it gets.

use std::collections::VecDeque;

/// Bytes with a hole in the middle if there were too many.
#[derive(Debug)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most: (usize, usize),
    total: u64,
}

impl Kept {
    /// At most so much from the start and from the end.
    pub fn new(head: usize, tail: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            most: (head, tail),
            total: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.most.0 - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let older = self.tail.len().saturating_sub(self.most.1);
        self.tail.drain(..older);
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// How much was left out.
    pub fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// All of it, if nothing was left out.
    pub fn whole(&self) -> Option<Vec<u8>> {
        let all = || self.head.iter().chain(&self.tail).copied().collect();
        (self.left_out() == 0).then(all)
    }

    /// As text, with a mark where something was left out.
    pub fn text(&self) -> String {
        if let Some(all) = self.whole() {
            return String::from_utf8_lossy(&all).into_owned();
        }
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        format!(
            "{}\n[… {} bytes left out …]\n{}",
            String::from_utf8_lossy(&self.head),
            self.left_out(),
            String::from_utf8_lossy(&tail)
        )
    }

    /// The last line that says something.
    pub fn last_line(&self) -> Option<String> {
        let end: Vec<u8> = match self.tail.is_empty() {
            true => self.head.iter().rev().take(1024).rev().copied().collect(),
            false => self.tail.iter().rev().take(1024).rev().copied().collect(),
        };
        let text = String::from_utf8_lossy(&end);
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(line.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_and_the_end_are_kept() {
        let mut kept = Kept::new(4, 3);
        kept.push(b"ab");
        assert_eq!((kept.text().as_str(), kept.left_out()), ("ab", 0));
        kept.push(b"cdefg");
        assert_eq!(kept.whole().as_deref(), Some(&b"abcdefg"[..]));
        kept.push(b"hi");
        assert_eq!(kept.text(), "abcd\n[… 2 bytes left out …]\nghi");
        assert_eq!((kept.total(), kept.left_out(), kept.whole()), (9, 2, None));
        assert_eq!(kept.last_line().as_deref(), Some("ghi"));
    }
}
