//! The known word that somebody most likely meant.

/// The word nearest to the given one, if it is near enough to be a misspelling of it.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: String = given.chars().take(100).collect();
    let far = |word: &str| strsim::damerau_levenshtein(&given, word);
    let near = known.into_iter().min_by_key(|word| far(word))?;
    let most = given.chars().count().max(near.chars().count()).div_ceil(3);
    (far(near) <= most && far(near) < near.chars().count()).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u13_a_misspelling_is_near_and_another_word_is_not() {
        let words = ["squash", "merge", "rebase", "ff"];
        for (given, near) in [
            ("sqash", Some("squash")),
            ("merge", Some("merge")),
            ("reabse", Some("rebase")),
            ("Merge", Some("merge")),
            ("fff", Some("ff")),
            ("xx", None),
            ("", None),
            ("something", None),
        ] {
            assert_eq!(nearest(given, words), near, "{given}");
        }
        assert_eq!(nearest("anything", []), None);
    }
}
