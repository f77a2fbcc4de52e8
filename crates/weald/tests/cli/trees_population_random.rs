//! Random repositories and histories: a tree equals `git worktree add`, also from a spare that was made before.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use weald_testkit::{TestEnv, full_scale};

use crate::env;
use crate::trees_create::KINDS;
use crate::trees_population::{SPARE, assert_same, by_git, fill, populated};

/// The same sequence for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Few names, so that what is a file now is a directory or a link later.
    fn path(&mut self) -> PathBuf {
        let names = ["a", "b c", "c.txt", "d.txt", "e.bat", "f.loud", "g.id"];
        (0..=self.below(3)).map(|_| self.pick(&names)).collect()
    }
}

/// What attributes say here or there. All of them leave a blob as it is: they only change what is checked out.
const ATTRIBUTES: [&str; 8] = [
    "* text=auto\n",
    "*.txt text eol=crlf\n",
    "*.txt text eol=lf\n",
    "*.bat text eol=crlf\n*.txt -text\n",
    "* text eol=crlf\n",
    "*.loud filter=loud\n",
    "*.id ident\n",
    "",
];

/// Makes way for a file: whatever is in the place, or above it and not a folder, goes.
fn clear(root: &Path, name: &Path) {
    let mut path = root.to_owned();
    for part in name {
        path.push(part);
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() && path != root.join(name) => {}
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path).unwrap(),
            Ok(_) => fs::remove_file(&path).unwrap(),
            Err(_) => {}
        }
    }
    fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
}

/// One change of the main checkout.
fn change(random: &mut Random, root: &Path) {
    let name = random.path();
    let path = root.join(&name);
    match random.below(20) {
        0..=8 => {
            clear(root, &name);
            let lines = random.below(4);
            let text: String = (0..lines)
                .map(|_| format!("line {}\n$Id$\n", random.below(50)))
                .collect();
            fs::write(&path, text).unwrap();
            let mode = random.pick(&[0o644, 0o755]);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        9..=11 => {
            clear(root, &name);
            let target = random.pick(&["a", "b/a", "nowhere", "/etc/hostname", ".", "../x"]);
            symlink(target, &path).unwrap();
        }
        12..=13 => clear(root, &name),
        14..=16 => {
            let mode = random.pick(&[0o644, 0o755]);
            let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_file());
            if is_file(&path) {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        17..=18 => {
            let to = random.path();
            let apart = !to.starts_with(&name) && !name.starts_with(&to);
            if path.symlink_metadata().is_ok() && apart {
                clear(root, &to);
                // Clearing the way may have taken it.
                let _ = fs::rename(&path, root.join(&to));
            }
        }
        _ => {
            let folder = match random.below(3) {
                0 => name,
                _ => PathBuf::new(),
            };
            let file = folder.join(".gitattributes");
            clear(root, &file);
            fs::write(root.join(file), random.pick(&ATTRIBUTES)).unwrap();
        }
    }
}

/// Some changes and a commit whose blobs are as the attributes want them.
fn commit(env: &TestEnv, random: &mut Random, changes: usize) {
    for _ in 0..changes {
        change(random, &env.repo());
    }
    // Attributes that are gone or new must not leave blobs that no checkout can be clean with.
    env.git(&["add", "-A"]);
    env.git(&["add", "-A", "--renormalize", "."]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
    env.git(&["reset", "-q", "--hard"]);
}

fn history(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let env = env();
    for (key, program) in [("clean", "tr A-Z a-z"), ("smudge", "tr a-z A-Z")] {
        env.git(&["config", "--global", &format!("filter.loud.{key}"), program]);
    }
    commit(&env, &mut random, 60);
    for step in 0..4 {
        let kind = KINDS[(seed as usize + step) % 2];
        let what = format!("seed {seed}, step {step}, {kind}");
        // The base moves on after the pool was filled; in the first step it stays.
        fill(&env, 1);
        if step > 0 {
            let changes = 1 + random.below(6);
            commit(&env, &mut random, changes);
        }
        let reference = by_git(&env, &format!("by-git-{step}"));
        for (name, args, population) in [
            ("spare", vec!["--kind", kind], Some(SPARE)),
            ("next", vec!["--kind", kind], None),
            ("checkout", vec!["--kind", kind, "--no-pool"], None),
        ] {
            let name = format!("{name}-{step}");
            let (tree, way) = populated(&env, &name, &args);
            let what = format!("{what}: {name} by {way}");
            assert_same(&env, &tree, &reference, &[], &what);
            if step == 0 {
                assert!(population.is_none_or(|expected| way == expected), "{what}");
            }
        }
    }
}

#[test]
fn k16_random_repositories_are_as_git_makes_them() {
    let count = if full_scale() { 60 } else { 4 };
    for seed in 1..=count {
        history(seed);
    }
}
