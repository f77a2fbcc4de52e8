//! Where the links of a copied folder lead: within the tree, or outside of main, never back into main.

use std::path::{Component, Path, PathBuf};

use crate::claude::normal;

/// What a link that lies at `place` (relative to main's root) says in a tree, if it says `target` in main. A link that stays
/// within main without leaving it stays as it is; one that comes back into main by another way leads to the same place in
/// the tree; any other leads, in full, to where it led.
pub fn relinked(main: &Path, place: &Path, target: &Path) -> PathBuf {
    let directory = place.parent().unwrap_or(Path::new(""));
    if target.is_relative() && stays_inside(directory, target) {
        return target.to_owned();
    }
    let meant = normal(&main.join(directory).join(target));
    match meant.strip_prefix(main) {
        Ok(inside) => up(directory).join(inside),
        Err(_) => meant,
    }
}

/// Whether a path of the configuration can be shared: below main, without a way up, no part of a repository.
pub fn is_shareable(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some()
        && parts.all(|part| matches!(part, Component::Normal(name) if name != ".git"))
}

/// Whether a file of a copied folder is one that names its own place: launchers of package managers, the settings of a
/// Python environment and its ways to sources.
pub fn names_its_place(path: &Path) -> bool {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.and_then(|part| part.to_str()).unwrap_or("").to_owned()
    };
    let directory = text(path.parent().and_then(Path::file_name));
    let extension = text(path.extension());
    matches!(directory.as_str(), "bin" | ".bin")
        || matches!(extension.as_str(), "pth" | "egg-link")
        || path.file_name().is_some_and(|name| name == "pyvenv.cfg")
}

/// The same bytes with `tree` for `main`, where that stands as a path and not as the start of another name; `None` if it
/// stands nowhere.
pub fn renamed(bytes: &[u8], main: &Path, tree: &Path) -> Option<Vec<u8>> {
    let (main, tree) = (
        main.as_os_str().as_encoded_bytes(),
        tree.as_os_str().as_encoded_bytes(),
    );
    let mut out = Vec::with_capacity(bytes.len());
    let (mut at, mut found) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if starts_as_path(rest, main) {
            out.extend_from_slice(tree);
            (at, found) = (at + main.len(), true);
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    found.then_some(out)
}

/// Whether `path` stands at the beginning, as a whole or as a folder.
pub(super) fn starts_as_path(text: &[u8], path: &[u8]) -> bool {
    let goes_on =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@~".contains(&byte) || byte >= 0x80;
    text.starts_with(path) && !text.get(path.len()).is_some_and(|byte| goes_on(*byte))
}

fn stays_inside(directory: &Path, target: &Path) -> bool {
    let mut depth = directory.components().count();
    for part in target.components() {
        match part {
            Component::ParentDir if depth == 0 => return false,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    true
}

/// From a directory up to the root.
fn up(directory: &Path) -> PathBuf {
    match directory.components().count() {
        0 => PathBuf::from("."),
        depth => [".."].repeat(depth).iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k14_no_link_leads_back_into_main() {
        for (place, target, expected) in [
            // As package managers write them.
            (
                "node_modules/.bin/tsc",
                "../typescript/bin/tsc",
                "../typescript/bin/tsc",
            ),
            ("node_modules/lib", "../packages/lib", "../packages/lib"),
            (
                "node_modules/a",
                ".pnpm/a@1/node_modules/a",
                ".pnpm/a@1/node_modules/a",
            ),
            // Into main by its full name, or round about.
            (
                "node_modules/lib",
                "/srv/app/packages/lib",
                "../packages/lib",
            ),
            ("node_modules/all", "/srv/app", ".."),
            ("lib", "/srv/app/packages/lib", "./packages/lib"),
            (
                "node_modules/@x/y",
                "../../../app/packages/y",
                "../../packages/y",
            ),
            ("node_modules/odd", "/srv/other/../app/./src", "../src"),
            // Out of main.
            (".venv/bin/python", "/usr/bin/python3", "/usr/bin/python3"),
            ("node_modules/dev", "../../dev/lib", "/srv/dev/lib"),
            ("node_modules/twin", "/srv/app2/lib", "/srv/app2/lib"),
        ] {
            let found = relinked(Path::new("/srv/app"), Path::new(place), Path::new(target));
            assert_eq!(found, Path::new(expected), "{place} -> {target}");
        }
    }

    #[test]
    fn k14_launchers_name_the_tree() {
        for (text, expected) in [
            (
                "#!/srv/app/.venv/bin/python",
                Some("#!/srv/t/.venv/bin/python"),
            ),
            (
                "NODE_PATH=\"/srv/app/a:/srv/app\"",
                Some("NODE_PATH=\"/srv/t/a:/srv/t\""),
            ),
            ("/srv/app2/x /srv/app-old /srv/app.weald/t", None),
            ("nothing", None),
        ] {
            let found = renamed(text.as_bytes(), Path::new("/srv/app"), Path::new("/srv/t"));
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{text}");
        }
        for (path, expected) in [
            (".venv/bin/pip", true),
            ("node_modules/.bin/tsc", true),
            (".venv/pyvenv.cfg", true),
            (
                ".venv/lib/python3.12/site-packages/__editable__.x.pth",
                true,
            ),
            ("node_modules/x/index.js", false),
        ] {
            assert_eq!(names_its_place(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn only_plain_paths_below_main_are_shared() {
        for (path, expected) in [
            ("node_modules", true),
            ("packages/a/node_modules", true),
            ("", false),
            (".", false),
            ("/etc", false),
            ("../x", false),
            ("a/../../x", false),
            (".git", false),
            (".git/hooks", false),
            ("vendor/x/.git", false),
            (".github", true),
        ] {
            assert_eq!(is_shareable(Path::new(path)), expected, "{path:?}");
        }
    }
}
