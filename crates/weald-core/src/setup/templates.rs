//! `{{ variables }}` in worktrunk's commands.

/// Replaces `{{ name }}` and `{{ name | sanitize }}` by words that a shell takes as they are; what is not known is named.
pub fn expand(command: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = command;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inner, after) = after
            .split_once("}}")
            .ok_or_else(|| format!("`{command}` has an unclosed {{{{"))?;
        let mut parts = inner.split('|').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let filters: Vec<_> = parts.collect();
        let unknown = || format!("`{{{{{inner}}}}}` in `{command}` is not a known placeholder");
        let found = value(name).ok_or_else(unknown)?;
        let found = match filters[..] {
            [] => found,
            ["sanitize"] => found.replace(['/', '\\'], "-"),
            _ => return Err(unknown()),
        };
        out.push_str(before);
        out.push_str(&quoted(&found));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// A word that a shell takes as it is.
pub(super) fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_variables_are_put_in_as_words() {
        let value = |name: &str| match name {
            "branch" => Some("wt/a b".to_owned()),
            "path" => Some("/srv/$(x)/it's".to_owned()),
            _ => None,
        };
        for (command, expected) in [
            ("npm ci", Some("npm ci")),
            ("echo {{ branch }}!", Some("echo 'wt/a b'!")),
            ("echo {{branch|sanitize}}", Some("echo 'wt-a b'")),
            ("cd {{ path }}", Some("cd '/srv/$(x)/it'\\''s'")),
            ("echo {{ branch | hash_port }}", None),
            ("echo {{ other }}", None),
            ("echo {{ branch", None),
        ] {
            assert_eq!(
                expand(command, value).ok().as_deref(),
                expected,
                "{command}"
            );
        }
    }
}
