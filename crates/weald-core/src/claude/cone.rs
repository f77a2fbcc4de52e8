//! Folders as patterns of a sparse checkout, in git's cone form.

use std::collections::BTreeSet;
use std::path::{Component, Path};

/// Why a path is no folder of a sparse checkout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can't be part of a sparse checkout: it is not a path inside the repository")]
pub struct ConeError(pub String);

/// The text of `info/sparse-checkout` that has these folders with all that is in them, and the files beside the way to them.
pub fn cone(folders: &[String]) -> Result<String, ConeError> {
    let mut wanted = BTreeSet::new();
    for text in folders {
        let odd = || ConeError(text.clone());
        let path = Path::new(text.trim_start_matches("./").trim_end_matches('/'));
        let parts = path.components().map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        });
        let parts: Option<Vec<_>> = parts.collect();
        let parts = parts.filter(|parts| !parts.is_empty()).ok_or_else(odd)?;
        if text.chars().any(char::is_control) || parts[0] == ".git" {
            return Err(odd());
        }
        wanted.insert(parts.join("/"));
    }
    // What is below a wanted folder comes with it.
    let folders: Vec<_> = wanted
        .iter()
        .filter(|folder| !above(folder).any(|above| wanted.contains(above)))
        .collect();
    let on_the_way: BTreeSet<&str> = folders.iter().flat_map(|folder| above(folder)).collect();
    let mut lines: BTreeSet<String> = BTreeSet::new();
    for folder in on_the_way {
        let folder = escaped(folder);
        lines.insert(format!("/{folder}/\n!/{folder}/*/\n"));
    }
    lines.extend(
        folders
            .iter()
            .map(|folder| format!("/{}/\n", escaped(folder))),
    );
    Ok(["/*\n!/*/\n".to_owned()].into_iter().chain(lines).collect())
}

/// The folders above one.
fn above(folder: &str) -> impl Iterator<Item = &str> {
    let ends = folder.match_indices('/').map(|(at, _)| at);
    ends.map(|end| &folder[..end])
}

fn escaped(folder: &str) -> String {
    let mut text = String::new();
    for c in folder.chars() {
        if matches!(c, '*' | '?' | '[' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folders: &[&str]) -> Result<String, ConeError> {
        let folders: Vec<_> = folders.iter().map(|&folder| folder.to_owned()).collect();
        cone(&folders)
    }

    #[test]
    fn folders_become_a_cone() {
        for (folders, text) in [
            (&["src"][..], "/*\n!/*/\n/src/\n"),
            (&["./src/", "src"], "/*\n!/*/\n/src/\n"),
            (&["a/b"], "/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n"),
            (&["a", "a/b"], "/*\n!/*/\n/a/\n"),
            (
                &["a/b", "a/c/d"],
                "/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n/a/c/\n!/a/c/*/\n/a/c/d/\n",
            ),
            (&["x*y"], "/*\n!/*/\n/x\\*y/\n"),
        ] {
            assert_eq!(of(folders).unwrap(), text, "{folders:?}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for folder in ["", "/", "/etc", "..", "a/../b", ".git/x", "a\nb", "."] {
            assert_eq!(of(&["a", folder]), Err(ConeError(folder.to_owned())));
        }
    }
}
