//! Sizes for people.

/// Bytes in the largest unit that leaves something before the point: `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut power = 0;
    while power + 1 < units.len() && bytes >> (10 * (power + 1)) > 0 {
        power += 1;
    }
    match power {
        0 => format!("{bytes} B"),
        _ => format!(
            "{:.1} {}",
            bytes as f64 / (1_u64 << (10 * power)) as f64,
            units[power]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 << 20, "1.5 GiB"),
            (5000 << 40, "5000.0 TiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
