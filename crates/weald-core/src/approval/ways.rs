//! Ways to a protected name that are not spelled like one: tracked links, the folder that git runs hooks from, and folders
//! that git takes for a repository.

use std::collections::BTreeSet;

use super::Protection;

/// More names than this for one path are not followed: the path counts as protected.
const NAMES: usize = 1000;

/// What a commit holds that gives files further names.
#[derive(Debug, Clone, Default)]
pub struct Ways {
    links: Vec<Link>,
    folders: Vec<String>,
    heads: BTreeSet<String>,
    objects: BTreeSet<String>,
    refs: BTreeSet<String>,
    shared: BTreeSet<String>,
}

/// A tracked link.
#[derive(Debug, Clone)]
struct Link {
    path: String,
    /// What it leads to, from the top; `None` outside.
    target: Option<String>,
    /// Places on its way that `..` leaves again.
    passed: Vec<String>,
}

impl Ways {
    /// Notes an entry of the commit.
    pub fn entry(&mut self, path: &str) {
        let mut start = 0;
        for name in path.split('/') {
            let known = match name {
                "HEAD" => Some(&mut self.heads),
                "objects" => Some(&mut self.objects),
                "refs" => Some(&mut self.refs),
                "commondir" => Some(&mut self.shared),
                _ => None,
            };
            known.map(|known| known.insert(path[..start].trim_end_matches('/').to_owned()));
            start += name.len() + 1;
        }
    }

    /// Notes a link of the commit.
    pub fn link(&mut self, path: &str, leads_to: &str) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (mut here, mut passed) = (Some(folder.to_owned()), Vec::new());
        if leads_to.starts_with('/') {
            here = None;
        }
        for name in leads_to.split('/') {
            here = match (here, name) {
                (here, "" | ".") => here,
                (Some(above), "..") if above.is_empty() => None,
                (Some(above), "..") => {
                    passed.push(above.clone());
                    Some(above.rsplit_once('/').map_or("", |(up, _)| up).to_owned())
                }
                (Some(above), name) if above.is_empty() => Some(name.to_owned()),
                (Some(above), name) => Some(format!("{above}/{name}")),
                (None, _) => None,
            };
        }
        self.links.push(Link {
            path: path.to_owned(),
            target: here,
            passed,
        });
    }

    /// Notes a folder, from the top, whose files programs on the host run.
    pub fn folder(&mut self, path: &str) {
        let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
        self.folders.push(names.collect::<Vec<_>>().join("/"));
    }

    /// Whether a changed path, by any of its names, needs a person's word.
    pub fn protects(&self, protection: &Protection, path: &str) -> bool {
        if self.is_in_repository(path) {
            return true;
        }
        let (mut known, mut open) = (BTreeSet::new(), vec![path.to_owned()]);
        while let Some(name) = open.pop() {
            let runs = |folder: &String| is_below(&name, folder) || is_below(folder, &name);
            if protection.protects(&name) || self.folders.iter().any(runs) || known.len() > NAMES {
                return true;
            }
            for link in &self.links {
                open.extend(link.name_of(&name).filter(|name| !known.contains(name)));
            }
            known.insert(name);
        }
        false
    }

    /// Whether git takes a folder above the path for a repository, and so obeys the settings in it.
    fn is_in_repository(&self, path: &str) -> bool {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.chain([""]).any(|folder| {
            let has = |names: &BTreeSet<String>| names.contains(folder);
            has(&self.heads) && (has(&self.shared) || (has(&self.objects) && has(&self.refs)))
        })
    }
}

impl Link {
    /// The name that the link gives to a path, or its own if the path is on its way.
    fn name_of(&self, path: &str) -> Option<String> {
        let mut places = self.target.iter().chain(&self.passed);
        if places.any(|place| is_below(place, path)) {
            return Some(self.path.clone());
        }
        let target = self.target.as_ref()?;
        let rest = match target.is_empty() {
            true => path,
            false => path.strip_prefix(target.as_str())?.strip_prefix('/')?,
        };
        // A link that leads to a folder above itself gives every name another one, without end.
        let is_above = is_below(&self.path, target);
        match is_above && is_below(path, &self.path) {
            true => None,
            false => Some(format!("{}/{rest}", self.path)),
        }
    }
}

/// Whether a path is a folder or below it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(ways: &Ways, path: &str) -> bool {
        ways.protects(&Protection::new([".claude", ".envrc", "infra/prod"]), path)
    }

    #[test]
    fn y7_what_a_protected_link_leads_to_is_protected() {
        let mut ways = Ways::default();
        ways.link(".claude", "agents/claude");
        ways.link("sub/.envrc", "../dev/env");
        ways.link("dev", "./config");
        ways.link("infra", "deploy");
        ways.link("a/.envrc", "odd/../b");
        ways.link("loop", ".");
        ways.link("x/.claude", "/etc");
        for path in [
            "agents/claude/settings.json",
            "agents/claude",
            "agents",
            "config/env",
            "dev",
            "deploy/prod/x",
            "a/b",
            "a/odd",
            "loop",
        ] {
            let is_protected = protected(&ways, path);
            assert_eq!(is_protected, path != "loop", "{path}");
        }
        for path in [
            "agents/x",
            "config/other",
            "deploy/test",
            "a/c",
            "src/main.rs",
        ] {
            assert!(!protected(&ways, path), "{path}");
        }
    }

    #[test]
    fn y7_a_folder_that_git_takes_for_a_repository_is_protected() {
        let mut ways = Ways::default();
        for path in [
            "fixtures/r/HEAD",
            "fixtures/r/config",
            "fixtures/r/objects/k",
            "fixtures/r/refs/k",
            "w/HEAD",
            "w/commondir",
            "docs/HEAD",
            "docs/refs/x",
        ] {
            ways.entry(path);
        }
        for path in ["fixtures/r/config", "fixtures/r/hooks/x", "w/config"] {
            assert!(protected(&ways, path), "{path}");
        }
        for path in ["fixtures/x", "docs/refs/x", "config"] {
            assert!(!protected(&ways, path), "{path}");
        }
    }

    #[test]
    fn y7_the_folder_of_hooks_is_protected() {
        let mut ways = Ways::default();
        ways.folder("./tools/hooks/");
        ways.link("tools", "real");
        assert!(protected(&ways, "tools/hooks/pre-commit"));
        assert!(protected(&ways, "real/hooks/pre-commit"));
        assert!(protected(&ways, "tools"));
        assert!(!protected(&ways, "tools/x"));
    }
}
