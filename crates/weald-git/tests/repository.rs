//! git is the authority on git: what we read of a repository is what git says of it.

use std::fs;
use std::path::{Path, PathBuf};

use weald_git::{Blob, DiscoverError, Git, Reference, Repository, delete_branch, list_refs};
use weald_testkit::skipped;

struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    fn new(init: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let lab = Self { directory };
        fs::create_dir(lab.repo()).unwrap();
        Git::outside(&lab.repo(), "init")
            .args(["-q", "-b", "main"])
            .args(init)
            .args(["."])
            .run()
            .unwrap();
        lab.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        lab
    }

    fn repo(&self) -> PathBuf {
        self.directory.path().join("app with space")
    }

    fn git_in(&self, directory: &Path, args: &[&str]) -> String {
        let out = Git::outside(directory, args[0])
            .args(&args[1..])
            .env("GIT_AUTHOR_NAME", "T")
            .env("GIT_AUTHOR_EMAIL", "t@example.com")
            .env("GIT_COMMITTER_NAME", "T")
            .env("GIT_COMMITTER_EMAIL", "t@example.com")
            .run()
            .unwrap();
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

    fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args)
    }

    fn discover(&self, from: &Path) -> Repository {
        Repository::discover(from, None).unwrap()
    }
}

fn supported(init: &[&str]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    Git::outside(directory.path(), "init")
        .args(["-q"])
        .args(init)
        .run()
        .is_ok()
}

fn assert_same_as_git(lab: &Lab, from: &Path) {
    let found = lab.discover(from);
    let git = |what| {
        let said = lab.git_in(from, &["rev-parse", "--path-format=absolute", what]);
        fs::canonicalize(said).unwrap()
    };
    assert_eq!(found.common_dir(), git("--git-common-dir"));
    assert_eq!(fs::canonicalize(found.git_dir()).unwrap(), git("--git-dir"));
    let names = lab.git_in(from, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    for line in names.lines() {
        let (name, id) = line.split_once(' ').unwrap();
        assert_eq!(found.resolve(name).unwrap().unwrap().as_str(), id, "{name}");
    }
    let head = lab.git_in(from, &["rev-parse", "HEAD"]);
    assert_eq!(found.resolve("HEAD").unwrap().unwrap().as_str(), head);
    assert_eq!(found.resolve("refs/heads/nosuch").unwrap(), None);
}

#[test]
fn discovery_and_refs_agree_with_git_in_every_kind_of_repository() {
    for init in [
        &[][..],
        &["--object-format=sha256"],
        &["--ref-format=reftable"],
    ] {
        if !supported(init) {
            skipped(&format!("this git knows no {init:?}"));
            continue;
        }
        let lab = Lab::new(init);
        lab.git(&["branch", "topic/a"]);
        lab.git(&["tag", "-a", "-m", "x", "v1"]);
        let deep = lab.repo().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        assert_same_as_git(&lab, &lab.repo());
        assert_same_as_git(&lab, &deep);
        lab.git(&["pack-refs", "--all"]);
        lab.git(&["branch", "loose"]);
        assert_same_as_git(&lab, &lab.repo());
        let linked = lab.directory.path().join("linked");
        lab.git(&[
            "worktree",
            "add",
            "-q",
            "-b",
            "wt",
            linked.to_str().unwrap(),
        ]);
        assert_same_as_git(&lab, &linked);
        let bare = lab.directory.path().join("bare.git");
        lab.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        assert_same_as_git(&lab, &bare);
    }
}

#[test]
fn k12_a_directory_without_a_repository_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let error = Repository::discover(directory.path(), None).unwrap_err();
    assert!(
        matches!(error, DiscoverError::NotARepository { .. }),
        "{error}"
    );
    let inside = directory.path().join("sub");
    fs::create_dir(&inside).unwrap();
    for pointer in ["gitdir: /nonexistent\n", "nonsense", ""] {
        fs::write(inside.join(".git"), pointer).unwrap();
        let error = Repository::discover(&inside, None).unwrap_err();
        assert!(
            matches!(error, DiscoverError::Broken { .. }),
            "{pointer:?}: {error}"
        );
    }
}

#[test]
fn x14_a_bare_repository_that_a_clone_brought_is_refused_and_the_users_own_is_not() {
    let lab = Lab::new(&[]);
    let brought = lab.repo().join("sub/x");
    let own = lab.repo().join("own.git");
    for place in [&brought, &own] {
        lab.git(&["clone", "-q", "--bare", ".", place.to_str().unwrap()]);
    }
    fs::write(brought.join("refs/heads/.kept"), "").unwrap();
    lab.git(&["add", "-f", "sub"]);
    for from in [brought.clone(), brought.join("refs/heads")] {
        let error = Repository::discover(&from, None).unwrap_err();
        let DiscoverError::Embedded { path, outer } = error else {
            panic!("{from:?}: {error}");
        };
        assert_eq!((path, outer), (brought.clone(), lab.repo()));
    }
    assert_same_as_git(&lab, &own);
    assert_same_as_git(&lab, &lab.repo().join(".git"));
    assert_same_as_git(&lab, &lab.repo().join("sub"));
}

#[test]
fn x14_a_directory_of_another_user_that_leads_to_an_own_repository_is_refused() {
    let lab = Lab::new(&[]);
    let foreign = lab.directory.path().join("foreign");
    let git_dir = foreign.join(".git");
    fs::create_dir_all(git_dir.join("objects")).unwrap();
    fs::create_dir(git_dir.join("refs")).unwrap();
    fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let common = lab.repo().join(".git");
    fs::write(git_dir.join("commondir"), common.to_str().unwrap()).unwrap();
    assert_eq!(lab.discover(&foreign).common_dir(), common);
    for place in [&git_dir, &foreign] {
        if std::os::unix::fs::chown(place, Some(12345), None).is_err() {
            return skipped("only root gives files away");
        }
        let refused = Repository::discover(&foreign, None);
        assert!(
            matches!(refused, Err(DiscoverError::ForeignOwner { .. })),
            "{refused:?}"
        );
        std::os::unix::fs::chown(place, Some(0), None).unwrap();
    }
}

#[test]
fn the_target_is_origins_default_then_main_then_master_then_current() {
    let lab = Lab::new(&[]);
    let target = || {
        lab.discover(&lab.repo())
            .default_target()
            .unwrap()
            .map(|target| target.branch)
    };
    assert_eq!(target().as_deref(), Some("main"));
    lab.git(&["branch", "-m", "main", "trunk"]);
    assert_eq!(target().as_deref(), Some("trunk"));
    lab.git(&["branch", "master"]);
    assert_eq!(target().as_deref(), Some("master"));
    lab.git(&["update-ref", "refs/remotes/origin/trunk", "HEAD"]);
    lab.git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/trunk",
    ]);
    assert_eq!(target().as_deref(), Some("trunk"));
    lab.git(&["update-ref", "refs/remotes/origin/far", "HEAD"]);
    lab.git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/far",
    ]);
    assert_eq!(
        target().as_deref(),
        Some("far"),
        "a branch that only origin has"
    );
    let head = lab.discover(&lab.repo()).reference("HEAD").unwrap();
    assert_eq!(head, Some(Reference::Symbolic("refs/heads/trunk".into())));
    let empty = tempfile::tempdir().unwrap();
    Git::outside(empty.path(), "init")
        .args(["-q", "."])
        .run()
        .unwrap();
    assert_eq!(lab.discover(empty.path()).default_target().unwrap(), None);
}

#[test]
fn what_a_linked_worktree_is_on_is_no_target() {
    let lab = Lab::new(&[]);
    lab.git(&["branch", "-m", "main", "trunk"]);
    let linked = lab.directory.path().join("linked");
    lab.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "wt/x",
        linked.to_str().unwrap(),
    ]);
    assert_eq!(
        lab.discover(&linked)
            .default_target()
            .unwrap()
            .unwrap()
            .branch,
        "trunk"
    );
}

#[test]
fn blobs_are_read_from_a_commit_and_not_from_the_checkout() {
    let lab = Lab::new(&[]);
    fs::write(lab.repo().join("weald.toml"), "profile = 'jkz'\n").unwrap();
    lab.git(&["add", "weald.toml"]);
    lab.git(&["commit", "-q", "-m", "config"]);
    fs::write(lab.repo().join("weald.toml"), "changed").unwrap();
    let repository = lab.discover(&lab.repo());
    let tip = repository.resolve("refs/heads/main").unwrap().unwrap();
    let read = |path, limit| repository.blob_at(tip.as_str(), path, limit).unwrap();
    assert_eq!(
        read("weald.toml", 1000),
        Blob::Content(
            b"profile = 'jkz'
"
            .to_vec()
        )
    );
    assert_eq!(read("weald.toml", 3), Blob::TooLarge);
    assert_eq!(read("nosuch.toml", 1000), Blob::Absent);
}

#[test]
fn refs_are_listed_as_git_lists_them() {
    let home = tempfile::tempdir().unwrap();
    let work = home.path();
    let git = |args: &[&str]| {
        let git = Git::outside(work, args[0]).args(&args[1..]);
        let git = git
            .env("GIT_AUTHOR_NAME", "T")
            .env("GIT_AUTHOR_EMAIL", "t@example.com");
        let git = git
            .env("GIT_COMMITTER_NAME", "T")
            .env("GIT_COMMITTER_EMAIL", "t@example.com");
        git.run().unwrap()
    };
    git(&["init", "-q", "-b", "main", "."]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&["tag", "plain"]);
    git(&["tag", "-a", "-m", "annotated", "noted"]);
    git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
    ]);
    let by_git = || {
        let format = "--format=%(objectname) %(*objectname) %(symref) %(refname)";
        let told = git(&["for-each-ref", format, "refs/remotes/", "refs/tags/"]);
        String::from_utf8(told).unwrap()
    };
    let listed = || {
        let listed = list_refs(&work.join(".git"), &["refs/remotes/", "refs/tags/"]).unwrap();
        let line = |known: &weald_git::MainRef| {
            let text = |part: &Option<String>| part.clone().unwrap_or_default();
            let (peeled, symbolic) = (text(&known.peeled), text(&known.symbolic));
            format!("{} {peeled} {symbolic} {}\n", known.commit, known.name)
        };
        listed.iter().map(line).collect::<String>()
    };
    // Loose, packed, and both.
    assert_eq!(listed(), by_git());
    git(&["pack-refs", "--all"]);
    assert_eq!(listed(), by_git());
    git(&["commit", "-q", "--allow-empty", "-m", "two"]);
    git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    git(&["update-ref", "refs/remotes/origin/dev", "HEAD"]);
    assert_eq!(listed(), by_git());
}

/// Deletes a branch as a removal does, and says whether it went.
fn is_deleted(lab: &Lab, branch: &str, commit: &str) -> bool {
    let workshop = lab.directory.path().join("workshop");
    let git_dir = lab.repo().join(".git");
    let deleted = delete_branch(&git_dir, &workshop, branch, commit, "test");
    let left = fs::read_dir(&workshop).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{branch}");
    let listed = lab.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    let is_gone = !listed.lines().any(|listed| listed == branch);
    assert_eq!(deleted.is_ok(), is_gone, "{branch}: {deleted:?}");
    is_gone
}

#[test]
fn a_branch_is_deleted_as_git_deletes_it() {
    let lab = Lab::new(&[]);
    let git_dir = lab.repo().join(".git");
    let first = lab.git(&["rev-parse", "HEAD"]);
    for branch in ["wt/a", "wt/b", "wt/deep/c", "packed", "both"] {
        lab.git(&["branch", branch]);
    }
    assert!(is_deleted(&lab, "wt/a", &first));
    assert!(is_deleted(&lab, "wt/deep/c", &first));
    for gone in ["refs/heads/wt/deep", "logs/refs/heads/wt/deep"] {
        assert!(!git_dir.join(gone).exists(), "{gone}");
    }
    assert!(!git_dir.join("logs/refs/heads/wt/a").exists());
    assert!(git_dir.join("logs/refs/heads/wt/b").exists());
    lab.git(&["pack-refs", "--all"]);
    lab.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let second = lab.git(&["rev-parse", "HEAD"]);
    lab.git(&["branch", "-f", "both", &second]);
    assert!(is_deleted(&lab, "packed", &first));
    assert!(is_deleted(&lab, "both", &second));
    assert_eq!(lab.git(&["branch", "--list", "wt/*"]), "  wt/b");
    lab.git(&["fsck", "--strict"]);
}

#[test]
fn a_branch_that_others_have_to_do_with_stays() {
    let lab = Lab::new(&[]);
    let git_dir = lab.repo().join(".git");
    let first = lab.git(&["rev-parse", "HEAD"]);
    lab.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    lab.git(&["branch", "moved"]);
    assert!(!is_deleted(&lab, "moved", &first), "somebody moved it");
    assert!(git_dir.join("logs/refs/heads/moved").exists());
    lab.git(&["branch", "held", &first]);
    for lock in ["refs/heads/held.lock", "packed-refs.lock"] {
        fs::write(git_dir.join(lock), "").unwrap();
        assert!(!is_deleted(&lab, "held", &first), "{lock}");
        fs::remove_file(git_dir.join(lock)).unwrap();
    }
    assert!(is_deleted(&lab, "held", &first));
}

#[test]
fn packed_refs_are_found_next_to_a_name_that_is_no_utf_8() {
    let lab = Lab::new(&[]);
    let first = lab.git(&["rev-parse", "HEAD"]);
    lab.git(&["pack-refs", "--all"]);
    let file = lab.repo().join(".git/packed-refs");
    let text = fs::read_to_string(&file).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let odd = [first.as_bytes(), b" refs/heads/caf\xe9"].concat();
    let packed = [header.as_bytes(), &odd, rest.as_bytes()].join(&b'\n');
    fs::write(&file, packed).unwrap();
    let found = lab
        .discover(&lab.repo())
        .resolve("refs/heads/main")
        .unwrap();
    assert_eq!(found.map(|found| found.as_str().to_owned()), Some(first));
}
