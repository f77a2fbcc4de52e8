//! Ways to a protected name that are not spelled like one: links, the folders and files that programs on the host run or
//! obey by configuration, and folders that git takes for a repository.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Protection;

/// More names than this for one path are not followed: the path counts as protected.
const NAMES: usize = 1000;

/// No program opens a longer path.
const LENGTH: usize = 4096;

/// How much may be looked at for all paths together, in pieces of a name; once it is used up every path counts as protected.
const WORK: usize = 400_000;

/// So many bytes of a name are one piece of work.
const PIECE: usize = 16;

/// How many links the kernel follows on one way.
const HOPS: usize = 40;

/// What a commit, and the host around its checkout, hold that gives files further names.
#[derive(Debug, Clone, Default)]
pub struct Ways {
    /// Where the checkout is, by the parts of its path.
    root: Vec<String>,
    links: Vec<(String, String)>,
    folders: BTreeSet<String>,
    files: BTreeSet<String>,
    heads: BTreeSet<String>,
    objects: BTreeSet<String>,
    refs: BTreeSet<String>,
    shared: BTreeSet<String>,
}

impl Ways {
    pub fn at(root: &str) -> Self {
        Self {
            root: parts(root).map(str::to_owned).collect(),
            ..Self::default()
        }
    }

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

    /// Notes a link, and what it says.
    pub fn link(&mut self, path: &str, leads_to: &str) {
        self.links.push((path.to_owned(), leads_to.to_owned()));
    }

    /// Notes a folder, from the top, whose files programs on the host run.
    pub fn folder(&mut self, path: &str) {
        self.folders.insert(joined(parts(path)));
    }

    /// Notes a file, from the top, that programs on the host run or obey.
    pub fn file(&mut self, path: &str) {
        self.files.insert(joined(parts(path)));
    }

    /// Follows the links, for questions about single paths.
    pub fn reach<'w>(&'w self, protection: &'w Protection) -> Reach<'w> {
        Reach::new(self, protection)
    }

    /// The path from the top.
    fn below_top(&self, place: &[String]) -> Option<String> {
        let below = place.strip_prefix(&self.root[..])?;
        Some(joined(below.iter().map(String::as_str)))
    }

    /// Whether git takes a folder above the path for a repository, and so obeys the settings in it.
    fn is_in_repository(&self, path: &str) -> bool {
        if self.heads.is_empty() {
            return false;
        }
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.chain([""]).any(|folder| {
            let has = |names: &BTreeSet<String>| names.contains(folder);
            has(&self.heads) && (has(&self.shared) || (has(&self.objects) && has(&self.refs)))
        })
    }

    /// Whether the host runs or obeys what is at a name, below it, or in a folder that it is in.
    fn is_run(&self, name: &str) -> bool {
        let mut above = name.match_indices('/').map(|(end, _)| &name[..end]);
        self.folders.contains("")
            || above.any(|folder| self.folders.contains(folder))
            || has_below(&self.folders, name)
            || has_below(&self.files, name)
    }
}

/// The names of paths, by all the links.
#[derive(Debug)]
pub struct Reach<'w> {
    ways: &'w Ways,
    protection: &'w Protection,
    /// Links by the path that they lead to, from the top.
    targets: HashMap<String, Vec<usize>>,
    /// Links by every path that they depend on: what they lead to, and what `..` leaves again on the way.
    places: BTreeMap<String, Vec<usize>>,
    outside: Vec<(String, String)>,
    left: usize,
}

impl<'w> Reach<'w> {
    fn new(ways: &'w Ways, protection: &'w Protection) -> Self {
        let texts = ways.links.iter();
        let texts: HashMap<_, _> = texts.map(|(path, text)| (&path[..], &text[..])).collect();
        let mut reach = Self {
            ways,
            protection,
            targets: HashMap::new(),
            places: BTreeMap::new(),
            outside: Vec::new(),
            left: WORK,
        };
        for (number, (path, text)) in ways.links.iter().enumerate() {
            let (target, passed) = reach.follow(&texts, path, text);
            for place in passed {
                reach.places.entry(place).or_default().push(number);
            }
            let Some(target) = target else {
                continue;
            };
            match ways.below_top(&target) {
                Some(target) => {
                    let places = reach.places.entry(target.clone()).or_default();
                    places.push(number);
                    reach.targets.entry(target).or_default().push(number);
                }
                None => reach
                    .outside
                    .push((path.clone(), format!("/{}", target.join("/")))),
            }
        }
        reach
    }

    /// Links that lead out of the checkout as they are spelled, and where: perhaps that is a link back into it.
    pub fn outside(&self) -> &[(String, String)] {
        &self.outside
    }

    /// Whether a changed path, by any of its names, needs a person's word.
    pub fn protects(&mut self, path: &str) -> bool {
        let (mut known, mut open) = (BTreeSet::new(), vec![path.to_owned()]);
        while let Some(name) = open.pop() {
            let is_odd = known.len() > NAMES || self.left == 0 || name.len() > LENGTH;
            if is_odd
                || self.ways.is_in_repository(&name)
                || self.protection.protects(&name)
                || self.ways.is_run(&name)
            {
                return true;
            }
            let Some(further) = self.names_of(&name) else {
                return true;
            };
            for further in further {
                if !known.contains(&further) {
                    open.push(further);
                }
            }
            known.insert(name);
        }
        false
    }

    /// The names that single links give to a path, and the links themselves if it is on their way; `None` if there are too
    /// many.
    fn names_of(&mut self, path: &str) -> Option<Vec<String>> {
        let mut found = Vec::new();
        let ends = path.match_indices('/').map(|(end, _)| end);
        for end in [0].into_iter().chain(ends) {
            let Some(links) = self.targets.get(&path[..end]) else {
                continue;
            };
            let rest = path[end..].trim_start_matches('/');
            for link in links {
                let link = &self.ways.links[*link].0;
                // A link that leads to a folder above itself gives every name another one, without end.
                let is_above = is_below(link, &path[..end]);
                if !(is_above && is_below(path, link)) {
                    found.push(format!("{link}/{rest}"));
                }
                if found.len() > NAMES {
                    self.left = self.left.saturating_sub(NAMES);
                    return None;
                }
            }
        }
        let below = format!("{path}/");
        let exact = self.places.get(path).into_iter();
        let within = self.places.range(below.clone()..);
        let within = within.take_while(|(place, _)| place.starts_with(&below));
        for links in exact.chain(within.map(|(_, links)| links)) {
            found.extend(links.iter().map(|link| self.ways.links[*link].0.clone()));
            if found.len() > NAMES {
                self.left = self.left.saturating_sub(found.len());
                return None;
            }
        }
        let work: usize = found.iter().map(|name| 1 + name.len() / PIECE).sum();
        self.left = self.left.saturating_sub(work);
        Some(found)
    }

    /// Where a link leads, and places inside the checkout on its way that `..` leaves again. `..` leads out of the folder
    /// that a link before it leads to, not of the one that the link is in.
    fn follow(
        &mut self,
        texts: &HashMap<&str, &str>,
        path: &str,
        text: &str,
    ) -> (Option<Vec<String>>, Vec<String>) {
        let mut passed = Vec::new();
        let mut here = self.base(path, text);
        // So many parts lead through no link.
        let mut plain = here.len();
        for name in parts(text) {
            if name != ".." {
                here.push(name.to_owned());
                continue;
            }
            if here.len() > plain {
                passed.extend(self.ways.below_top(&here));
                match self.real(texts, &here) {
                    Some(real) if real == here => {}
                    Some(real) => {
                        passed.extend(self.ways.below_top(&real));
                        here = real;
                    }
                    None => return (None, passed),
                }
            }
            here.pop();
            plain = here.len();
        }
        (Some(here), passed)
    }

    /// Where a link's text begins.
    fn base(&self, path: &str, text: &str) -> Vec<String> {
        if text.starts_with('/') {
            return Vec::new();
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let below = parts(folder).map(str::to_owned);
        self.ways.root.iter().cloned().chain(below).collect()
    }

    /// A place with every link on its way followed.
    fn real(&mut self, texts: &HashMap<&str, &str>, place: &[String]) -> Option<Vec<String>> {
        let mut open: Vec<String> = place.iter().rev().cloned().collect();
        let (mut here, mut hops) = (Vec::new(), 0);
        while let Some(name) = open.pop() {
            if name == ".." {
                here.pop();
                continue;
            }
            here.push(name);
            let Some(path) = self.ways.below_top(&here) else {
                continue;
            };
            let work = 1 + path.len() / PIECE;
            self.left = self.left.checked_sub(work).or_else(|| {
                self.left = 0;
                None
            })?;
            if let Some(text) = texts.get(&path[..]) {
                hops += 1;
                (hops <= HOPS).then_some(())?;
                here = self.base(&path, text);
                open.extend(parts(text).rev().map(str::to_owned));
            }
        }
        Some(here)
    }
}

/// The names that a path is made of, `..` among them.
fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

fn joined<'p>(names: impl Iterator<Item = &'p str>) -> String {
    names.collect::<Vec<_>>().join("/")
}

/// Whether a set has a path or something below it.
fn has_below(paths: &BTreeSet<String>, path: &str) -> bool {
    let below = format!("{path}/");
    paths.contains(path)
        || paths
            .range(below.clone()..)
            .next()
            .is_some_and(|first| first.starts_with(&below))
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
        let protection = Protection::new([".claude", ".envrc", "infra/prod"]);
        ways.reach(&protection).protects(path)
    }

    #[test]
    fn y7_what_a_protected_link_leads_to_is_protected() {
        let mut ways = Ways::at("/home/u/r");
        ways.link(".claude", "agents/claude");
        ways.link("sub/.envrc", "../dev/env");
        ways.link("dev", "./config");
        ways.link("infra", "deploy");
        ways.link("a/.envrc", "odd/../b");
        ways.link("loop", ".");
        ways.link("x/.claude", "/etc");
        ways.link("aa", "deep/er");
        ways.link("y/.claude", "../aa/../z");
        ways.link("v/.claude", "../../r/back");
        ways.link("w/.claude", "/home/u/r/full/./x");
        ways.link("round/l", "../round2");
        ways.link("round2/m", "../round");
        for path in [
            "agents/claude/settings.json",
            "agents/claude",
            "agents",
            "config/env",
            "dev",
            "deploy/prod/x",
            "a/b",
            "a/odd",
            "deep/z/settings.json",
            "deep/er",
            "aa",
            "back/x",
            "full/x",
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
            "z/settings.json",
            "src/main.rs",
        ] {
            assert!(!protected(&ways, path), "{path}");
        }
    }

    #[test]
    fn y7_a_folder_that_git_takes_for_a_repository_is_protected() {
        let mut ways = Ways::at("/home/u/r");
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
        let mut ways = Ways::at("/home/u/r");
        ways.folder("./tools/hooks/");
        ways.link("tools", "real");
        assert!(protected(&ways, "tools/hooks/pre-commit"));
        assert!(protected(&ways, "real/hooks/pre-commit"));
        assert!(protected(&ways, "tools"));
        assert!(!protected(&ways, "tools/x"));
    }

    #[test]
    fn y7_a_file_that_is_run_is_protected_alone() {
        let mut ways = Ways::at("/r");
        ways.file("scripts/fmt.sh");
        ways.link("scripts", "real");
        for path in ["scripts/fmt.sh", "scripts", "real/fmt.sh", "real"] {
            assert!(protected(&ways, path), "{path}");
        }
        for path in ["scripts/x", "real/fmt.sh2", "fmt.sh"] {
            assert!(!protected(&ways, path), "{path}");
        }
    }

    #[test]
    fn y7_links_upon_links_take_no_time_and_hide_nothing() {
        let mut ways = Ways::at("/r");
        ways.link("c0", "t");
        for number in 1..900 {
            ways.link(&format!("c{number}"), &format!("c{}", number - 1));
        }
        let protection = Protection::new([".claude"]);
        let started = std::time::Instant::now();
        let mut reach = ways.reach(&protection);
        assert!(!reach.protects("t/0"));
        let odd = (1..3000).filter(|number| reach.protects(&format!("t/{number}")));
        // Once there was enough work every path is protected.
        assert!(odd.count() > 2000);
        // Deep ways that lead back again and again.
        let mut ways = Ways::at("/r");
        let text = format!("{}{}x", "a/".repeat(680), "../".repeat(680));
        for number in 0..200 {
            ways.link(&format!("l{number}"), &text);
        }
        ways.reach(&protection).protects("a/x");
        assert!(started.elapsed().as_secs() < 60);
        // A loop leads nowhere.
        let mut ways = Ways::at("/r");
        ways.link("a", "b/../c");
        ways.link("b", "b/x");
        assert!(!ways.reach(&protection).protects("c"));
    }
}
