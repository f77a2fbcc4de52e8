//! Switches that turn clean-up off, whatever the flags say: variables of the caller.
//!
//! A switch is written `NAME`, which is on unless the variable is empty or says no, or `NAME=value`, which is on at exactly
//! that value. What is not understood counts as on: then nothing is taken away.

/// Turns `weald clean` off.
pub const CLEAN: &str = "WEALD_CLEAN_DISABLE";

/// Turns `weald sweep` off.
pub const SWEEP: &str = "WEALD_SWEEP_DISABLE";

const OFF: [&str; 5] = ["", "0", "false", "no", "off"];

/// The variable of the first switch that is on.
pub fn switched_on<'s>(
    switches: impl IntoIterator<Item = &'s str>,
    value_of: impl Fn(&str) -> Option<String>,
) -> Option<&'s str> {
    switches.into_iter().find_map(|switch| {
        let (name, wanted) = match switch.split_once('=') {
            Some((name, wanted)) => (name, Some(wanted)),
            None => (switch, None),
        };
        let value = value_of(name)?;
        let is_on = match wanted {
            Some(wanted) => value == wanted,
            None => !OFF.contains(&value.trim().to_ascii_lowercase().as_str()),
        };
        is_on.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l8_a_switch_is_on_at_its_value_or_at_any_that_is_no_no() {
        for (switch, value, is_on) in [
            ("A", None, false),
            ("A", Some(""), false),
            ("A", Some("0"), false),
            ("A", Some(" False "), false),
            ("A", Some("off"), false),
            ("A", Some("1"), true),
            ("A", Some("yes"), true),
            ("A", Some("what?"), true),
            ("A=0", None, false),
            ("A=0", Some("0"), true),
            ("A=0", Some("1"), false),
            ("A=", Some(""), true),
            ("", Some("1"), false),
        ] {
            let value_of = |name: &str| value.filter(|_| name == "A").map(str::to_owned);
            let found = switched_on([switch], value_of);
            assert_eq!(found, is_on.then_some("A"), "{switch} at {value:?}");
        }
    }

    #[test]
    fn l8_the_first_switch_that_is_on_is_named() {
        let value_of = |name: &str| match name {
            "B" => Some("0".to_owned()),
            "C" | "D" => Some("1".to_owned()),
            _ => None,
        };
        assert_eq!(switched_on(["A", "B", "C", "D"], value_of), Some("C"));
    }
}
