//! Random histories: what pruning leaves out, merging every pair would not have found either.

use std::collections::BTreeMap;
use std::path::Path;

use weald_git::{Git, MergePair, PairMerged, merge_pairs};
use weald_testkit::full_scale;

use super::Radar;
use super::memory::Memory;
use super::pairs::{Side, settle};

/// Names are few, so that what is a file here is a folder there.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Mode and lines of each file.
type Files = BTreeMap<String, (&'static str, Vec<String>)>;

/// The same sequence for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn path(&mut self) -> String {
        let parts: Vec<_> = (0..=self.below(3))
            .map(|_| NAMES[self.below(NAMES.len())])
            .collect();
        parts.join("/")
    }

    fn lines(&mut self) -> Vec<String> {
        (0..8)
            .map(|_| format!("line {}", self.below(1_000_000)))
            .collect()
    }

    fn file(&mut self, files: &Files) -> Option<String> {
        let place = self.below(files.len().max(1));
        files.keys().nth(place).cloned()
    }

    /// A folder that something is in.
    fn folder(&mut self, files: &Files) -> Option<String> {
        let path = self.file(files)?;
        let ends: Vec<usize> = path.match_indices('/').map(|(end, _)| end).collect();
        let end = ends.get(self.below(ends.len().max(1)))?;
        Some(path[..*end].to_owned())
    }
}

/// Puts a file into its place; whatever is in the way goes.
fn put(files: &mut Files, path: &str, file: (&'static str, Vec<String>)) {
    let below = format!("{path}/");
    files.retain(|known, _| !known.starts_with(&below) && !path.starts_with(&format!("{known}/")));
    files.insert(path.to_owned(), file);
}

fn change(random: &mut Random, files: &mut Files) {
    let new = random.path();
    match random.below(16) {
        0..=4 => {
            if let Some((_, lines)) = random.file(files).and_then(|path| files.get_mut(&path)) {
                let place = random.below(lines.len());
                lines[place] = format!("line {}", random.below(1_000_000));
            }
        }
        5..=6 => {
            let lines = random.lines();
            put(files, &new, ("100644", lines));
        }
        7 => drop(random.file(files).and_then(|path| files.remove(&path))),
        8..=9 => {
            if let Some(file) = random.file(files).and_then(|path| files.remove(&path)) {
                put(files, &new, file);
            }
        }
        10 => {
            if let Some((mode, _)) = random.file(files).and_then(|path| files.get_mut(&path)) {
                *mode = if *mode == "100644" {
                    "100755"
                } else {
                    "100644"
                };
            }
        }
        11 => put(files, &new, ("120000", vec![random.path()])),
        // Something new beside others.
        12 => {
            if let Some(folder) = random.folder(files) {
                let path = format!("{folder}/new{}", random.below(100));
                let lines = random.lines();
                put(files, &path, ("100644", lines));
            }
        }
        // A whole folder goes elsewhere, perhaps to the top.
        _ => {
            let Some(folder) = random.folder(files) else {
                return;
            };
            let below = format!("{folder}/");
            let to = if random.below(4) == 0 {
                String::new()
            } else {
                format!("{new}/")
            };
            let moved: Vec<_> = files
                .keys()
                .filter(|path| path.starts_with(&below))
                .cloned()
                .collect();
            let moved: Vec<_> = moved
                .into_iter()
                .filter_map(|path| files.remove(&path).map(|file| (path, file)))
                .collect();
            for (path, file) in moved {
                put(files, &format!("{to}{}", &path[below.len()..]), file);
            }
        }
    }
}

/// A history in the making, as fast-import reads it.
#[derive(Default)]
struct History {
    text: String,
    commits: Vec<Files>,
}

impl History {
    /// Answers the number of the commit.
    fn commit(&mut self, parents: &[usize], files: Files) -> usize {
        let number = self.commits.len() + 1;
        self.text.push_str(&format!(
            "commit refs/heads/c{number}\nmark :{number}\ncommitter T <t@t> {} +0000\ndata 1\nm\n",
            1_700_000_000 + number
        ));
        for (place, parent) in parents.iter().enumerate() {
            let word = if place == 0 { "from" } else { "merge" };
            self.text.push_str(&format!("{word} :{parent}\n"));
        }
        self.text.push_str("deleteall\n");
        for (path, (mode, lines)) in &files {
            let content = lines.join("\n");
            let size = content.len();
            self.text
                .push_str(&format!("M {mode} inline {path}\ndata {size}\n{content}\n"));
        }
        self.commits.push(files);
        number
    }

    fn changed(&mut self, random: &mut Random, parents: &[usize], changes: usize) -> usize {
        let mut files = self.commits[parents[0] - 1].clone();
        (0..changes).for_each(|_| change(random, &mut files));
        self.commit(parents, files)
    }

    /// Writes it all; answers the commits by number.
    fn write(&self, git_dir: &Path) -> Vec<String> {
        Git::new(git_dir, "fast-import")
            .args(["--quiet"])
            .input(self.text.clone())
            .run()
            .unwrap();
        let named = (1..=self.commits.len()).map(|number| format!("refs/heads/c{number}\n"));
        let answer = Git::new(git_dir, "cat-file")
            .args(["--batch-check=%(objectname)"])
            .input(named.collect::<String>())
            .run()
            .unwrap();
        let text = String::from_utf8(answer).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// A random history with so many branches: the target's tip, and the branches.
fn grow(random: &mut Random, git_dir: &Path, branches: usize) -> (String, Vec<Side>) {
    let mut files = Files::new();
    for _ in 0..30 {
        let (path, lines) = (random.path(), random.lines());
        put(&mut files, &path, ("100644", lines));
    }
    let mut history = History::default();
    let mut main = vec![history.commit(&[], files)];
    for _ in 0..3 {
        let tip = main[main.len() - 1];
        main.push(history.changed(random, &[tip], 1));
    }
    let mut heads: Vec<usize> = Vec::new();
    for _ in 0..branches {
        let fork = main[random.below(main.len())];
        let mut head = history.changed(random, &[fork], 2);
        // Some bring another one in, whatever comes of it; so there are criss-crosses.
        if random.below(4) == 0 && !heads.is_empty() {
            let other = heads[random.below(heads.len())];
            head = history.changed(random, &[head, other], 1);
        }
        heads.push(head);
    }
    let ids = history.write(git_dir);
    let sides = heads.iter().enumerate().map(|(place, head)| Side {
        name: format!("t{place}"),
        head: ids[head - 1].clone(),
        commit: ids[head - 1].clone(),
        landed: None,
        is_wanted: true,
    });
    (ids[main[main.len() - 1] - 1].clone(), sides.collect())
}

/// Pairs by name: where they conflict, or that git can't merge them.
type Found = BTreeMap<(String, String), Option<Vec<String>>>;

/// Every pair merged by git.
fn merge_everything(git_dir: &Path, tip: &str, sides: &[Side]) -> (Found, usize) {
    let mut names = Vec::new();
    let mut pairs = Vec::new();
    let mut order = |a: &Side, name: &str, theirs: &str| {
        names.push((a.name.clone(), name.to_owned()));
        pairs.push(MergePair {
            ours: a.commit.clone(),
            theirs: theirs.to_owned(),
            base: None,
        });
    };
    for (place, a) in sides.iter().enumerate() {
        order(a, "main", tip);
        for b in &sides[place + 1..] {
            order(a, &b.name, &b.commit);
        }
    }
    let merged = merge_pairs(git_dir, tip, &pairs);
    let found = names.into_iter().zip(merged);
    let found = found.filter_map(|(pair, merged)| match merged {
        PairMerged::Clean => None,
        PairMerged::Conflict { paths, .. } => {
            let text = |path| String::from_utf8(path).unwrap();
            Some((pair, Some(paths.into_keys().map(text).collect())))
        }
        // git 2.47 stops at some of them by an assertion of its own.
        PairMerged::Failed(_) => Some((pair, None)),
    });
    (found.collect(), pairs.len())
}

/// What a case came to: conflicts, pairs, and how many of those were merged.
fn check(seed: u64, branches: usize) -> (usize, usize, usize) {
    let directory = tempfile::tempdir().unwrap();
    let git_dir = directory.path();
    Git::outside(git_dir, "init")
        .args(["-q", "--bare", "."])
        .run()
        .unwrap();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (tip, sides) = grow(&mut random, git_dir, branches);
    let (expected, pairs) = merge_everything(git_dir, &tip, &sides);
    let (mut radar, mut memory) = (Radar::default(), Memory::default());
    settle(git_dir, "main", Some(tip), sides, &mut memory, &mut radar);
    let clashes = radar
        .pairs
        .into_iter()
        .map(|clash| ((clash.a, clash.b), Some(clash.paths)));
    let unknown = radar
        .unknown
        .into_iter()
        .map(|one| ((one.tree, one.with.unwrap_or_default()), None));
    let found: Found = clashes.chain(unknown).collect();
    assert_eq!(found, expected, "seed {seed}");
    (expected.len(), pairs, radar.merged)
}

#[test]
fn pruning_loses_no_conflict_of_random_histories() {
    let seeds = if full_scale() { 300 } else { 30 };
    let (mut conflicts, mut pairs, mut merged) = (0, 0, 0);
    for seed in 1..=seeds {
        let (some, all, real) = check(seed, 8);
        (conflicts, pairs, merged) = (conflicts + some, pairs + all, merged + real);
    }
    // It finds something, and it leaves something out.
    assert!(conflicts * 20 > pairs, "{conflicts} of {pairs}");
    assert!(merged * 10 < pairs * 9, "{merged} of {pairs}");
}
