//! What other users of the machine can reach of a worktree, and what a run can leave for them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::sandbox::is_root;
use crate::trees_remove::{grow, repository};
use weald_testkit::skipped;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn x17_a_worktree_is_closed_to_other_users_whatever_a_run_does() {
    for kind in ["sealed", "linked"] {
        let env = repository();
        fs::set_permissions(env.repo(), Permissions::from_mode(0o2755)).unwrap();
        let tree = grow(&env, "a", kind);
        assert_eq!(mode(&tree), 0o700, "{kind}: new");
        // One that was made before, or that a run opened.
        fs::set_permissions(&tree, Permissions::from_mode(0o755)).unwrap();
        let script = "stat -c %a . > seen; chmod 2777 .; mkdir shared; chmod 2775 shared";
        let answer = env.weald(&["run", "a", "--", "sh", "-c", script]);
        assert_eq!(answer.code, 0, "{answer:#?}");
        assert_eq!(fs::read_to_string(tree.join("seen")).unwrap(), "700\n");
        assert_eq!(mode(&tree), 0o700, "{kind}: after a run");
        assert_eq!(mode(&tree.join("shared")), 0o2775, "folders may be shared");
        fs::set_permissions(&tree, Permissions::from_mode(0o755)).unwrap();
        env.ok(&["rm", "a", "--discard"]);
        env.ok(&["trash", "restore", "a"]);
        assert_eq!(mode(&tree), 0o700, "{kind}: from the trash");
    }
}

#[test]
fn x17_a_run_leaves_nothing_that_others_run_with_its_rights() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    let script = "cp /bin/cat planted; chmod 755 planted; \
        for mode in 4755 u+s 6755; do chmod $mode planted && exit 3; done; \
        install -m 4755 planted installed && exit 4; umask 0; cp planted copied; \
        tar -cf a.tar --mode=4755 planted; mkdir out; tar -xpf a.tar -C out; true";
    for level in ["full", "landlock"] {
        let run = ["run", "a", "--sandbox", level, "--", "sh", "-c", script];
        let answer = env.weald(&run);
        assert_eq!(answer.code, 0, "{level}: {answer:#?}");
        let mut find = Command::new("find");
        find.arg(&tree).args(["-perm", "/6000", "-type", "f"]);
        let found = find.output().unwrap().stdout;
        assert_eq!(String::from_utf8_lossy(&found), "", "{level}");
        fs::remove_dir_all(tree.join("out")).unwrap();
    }
    if !is_root() {
        return skipped("another local user needs root");
    }
    fs::set_permissions(env.root(), Permissions::from_mode(0o755)).unwrap();
    let mut other = Command::new(tree.join("planted"));
    other.arg("/dev/null").uid(12345).gid(12345);
    assert!(
        other.output().is_err(),
        "another user reaches into a worktree"
    );
}

#[test]
fn x17_a_run_leaves_no_set_group_id_program_where_others_reach_it() {
    let env = repository();
    fs::set_permissions(env.root(), Permissions::from_mode(0o755)).unwrap();
    let shared = env.root().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
    env.ok(&["config", "set", "sandbox.write", shared.to_str().unwrap()]);
    // The user's own, from before.
    let own = shared.join("own");
    fs::write(&own, "").unwrap();
    fs::set_permissions(&own, Permissions::from_mode(0o2755)).unwrap();
    let common = env.repo().join(".git");
    for (kind, level) in [
        ("sealed", "full"),
        ("linked", "full"),
        ("sealed", "landlock"),
    ] {
        let name = format!("{kind}-{level}");
        let tree = grow(&env, &name, kind);
        let mut folders = vec![&shared];
        folders.extend((kind == "linked").then_some(&common));
        for folder in folders {
            let script = format!(
                "cd {} && mkdir -p d/e && cp /usr/bin/id d/planted && chmod 2755 d/planted && \
                 cp d/planted d/e/deep && chmod 2755 d/e/deep && chmod 311 d/e && chmod 2775 d",
                folder.display()
            );
            let run = ["run", &name, "--sandbox", level, "--", "sh", "-c", &script];
            let answer = env.weald(&run);
            assert_eq!(answer.code, 0, "{name}: {answer:#?}");
            assert_eq!(
                mode(&folder.join("d")),
                0o2775,
                "{name}: folders may be shared"
            );
            assert_eq!(mode(&folder.join("d/planted")), 0o755, "{name}");
            let hidden = folder.join("d/e");
            let is_open = mode(&hidden) & 0o077 != 0;
            fs::set_permissions(&hidden, Permissions::from_mode(0o755)).unwrap();
            let is_set = mode(&hidden.join("deep")) & 0o6000 != 0;
            assert!(
                !(is_open && is_set),
                "{name}: others reach what can't be searched"
            );
            fs::remove_dir_all(folder.join("d")).unwrap();
        }
        assert_eq!(mode(&own), 0o2755, "{name}: what was there before stays");
        // In a worktree nobody else reaches it. What comes back from the trash or a snapshot has none.
        let planted = tree.join("planted");
        fs::write(&planted, "").unwrap();
        fs::set_permissions(&planted, Permissions::from_mode(0o6755)).unwrap();
        env.ok(&["rm", &name, "--discard"]);
        env.ok(&["trash", "restore", &name]);
        assert_eq!(mode(&planted), 0o755, "{name}: from the trash");
        env.ok(&["snapshot", "create", &name]);
        fs::set_permissions(&planted, Permissions::from_mode(0o6755)).unwrap();
        env.ok(&["snapshot", "restore", &name]);
        assert_eq!(mode(&planted), 0o755, "{name}: from a snapshot");
    }
}

#[test]
fn x17_a_run_plants_no_set_group_id_program_by_opening_a_folder_or_hiding_it_in_a_closed_one() {
    let env = repository();
    let tree = grow(&env, "a", "sealed");
    for folder in [env.root().to_owned(), env.home()] {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    let closed = env.root().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    env.ok(&["config", "set", "sandbox.write", closed.to_str().unwrap()]);
    let plant = "plant() { mkdir -p $1 && cp /usr/bin/id $1/planted && chmod 2755 $1/planted; }; ";
    let opened = format!(
        "{plant} cd {}; for n in 1 2 3 4 5 6 7 8; do mkdir -p b$n/sub; chmod 400 b$n; done; \
         plant z && plant d/e/f/g && plant . && chmod 400 d/e/f && chmod 755 .",
        closed.display()
    );
    // Nobody forbids `chmod` outside at level landlock, so the way to the tools' own folders can be opened.
    let cached = format!(
        "{plant} plant $XDG_CACHE_HOME; at=$XDG_CACHE_HOME; \
         while [ \"$at\" != \"$HOME\" ]; do chmod 755 $at; at=$(dirname $at); done; echo $XDG_CACHE_HOME > cache"
    );
    for (level, script) in [
        ("full", &opened),
        ("landlock", &opened),
        ("landlock", &cached),
    ] {
        fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        let answer = env.weald(&["run", "a", "--sandbox", level, "--", "sh", "-c", script]);
        assert_eq!(answer.code, 0, "{level}: {answer:#?}");
        let mut planted: Vec<_> = ["planted", "z/planted", "d/e/f/g/planted"]
            .iter()
            .map(|name| closed.join(name))
            .collect();
        let mut chmod = Command::new("chmod");
        chmod.args(["-R", "u+rwX"]).arg(&closed).status().unwrap();
        if script == &cached {
            let cache = fs::read_to_string(tree.join("cache")).unwrap();
            planted = vec![Path::new(cache.trim_end()).join("planted")];
        }
        for path in planted {
            assert_eq!(mode(&path), 0o755, "{level}: {}", path.display());
        }
    }
}
