//! Addresses that stand for names inside one run.
//!
//! They come from the block for measurements (RFC 2544), which no host on the internet has. All of them are local in the
//! run's network, so what is sent there by a call that asks nobody goes nowhere.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// The run's own address: some programs ask for none where a machine has nothing but 127.0.0.1.
pub(super) const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

pub(super) const MASK: Ipv4Addr = Ipv4Addr::new(255, 254, 0, 0);

/// How many names a run asks for; a wildcard has any number.
const MOST: usize = 16_384;

#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    /// The address of a name, the same every time; `None` if there are too many.
    pub(super) fn address_of(&mut self, name: &str) -> Option<Ipv4Addr> {
        let next = self.names.len() as u32 + 1;
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if self.names.len() >= MOST => return None,
            None => {
                self.numbers.insert(name.to_owned(), next);
                self.names.push(name.to_owned());
                next
            }
        };
        Some(Ipv4Addr::from(u32::from(FIRST) + number))
    }

    pub(super) fn name_of(&self, address: IpAddr) -> Option<String> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        let number = u32::from(address).checked_sub(u32::from(FIRST) + 1)?;
        self.names.get(number as usize).cloned()
    }
}

/// Whether it is one that can stand for a name.
pub(super) fn is_synthetic(address: IpAddr) -> bool {
    let base = u32::from(FIRST) & u32::from(MASK);
    matches!(address, IpAddr::V4(four) if u32::from(four) & u32::from(MASK) == base)
        && address != IpAddr::V4(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a16_a_name_keeps_its_address_and_an_address_its_name() {
        let mut names = Names::default();
        let one = names.address_of("one.example").unwrap();
        let two = names.address_of("two.example").unwrap();
        assert_ne!(one, two);
        assert_eq!(names.address_of("one.example"), Some(one));
        assert_eq!(names.name_of(two.into()).as_deref(), Some("two.example"));
        for other in ["198.18.0.1", "198.18.0.4", "10.0.0.1", "::1"] {
            assert_eq!(names.name_of(other.parse().unwrap()), None, "{other}");
        }
        assert!(is_synthetic(one.into()) && !is_synthetic(FIRST.into()));
        for number in 0..MOST {
            names.address_of(&number.to_string());
        }
        assert_eq!(names.address_of("one more"), None);
        assert_eq!(names.address_of("one.example"), Some(one));
    }
}
