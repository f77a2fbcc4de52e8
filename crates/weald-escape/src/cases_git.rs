//! Cases about the main repository, the control plane in it, and siblings.

use super::Attempt::Script;
use super::Effect::{Outside, Success};
use super::{Case, Effect};

const fn case(name: &'static str, script: &'static str) -> Case {
    with(name, script, Outside)
}

const fn with(name: &'static str, script: &'static str, effect: Effect) -> Case {
    Case {
        name,
        attempt: Script(script),
        effect,
        landlock: true,
    }
}

/// A case that Landlock alone does not keep in: it hides nothing.
const fn hidden(name: &'static str, script: &'static str) -> Case {
    Case {
        landlock: false,
        ..with(name, script, Success)
    }
}

pub const GIT: &[Case] = &[
    case(
        "commit in main",
        "git -C $MAIN commit -q --allow-empty -m x",
    ),
    case("reset main", "git -C $MAIN reset -q --hard HEAD~1"),
    case("check out in main", "git -C $MAIN checkout -q -f side"),
    case("make a branch in main", "git -C $MAIN branch evil"),
    case("delete a branch in main", "git -C $MAIN branch -D side"),
    case(
        "move a branch in main",
        "git -C $MAIN update-ref refs/heads/side main~1",
    ),
    case("tag in main", "git -C $MAIN tag evil"),
    case(
        "configure main",
        "git -C $MAIN config core.fsmonitor ./evil",
    ),
    case("stash in main", "git -C $MAIN stash -q"),
    case("clean main", "git -C $MAIN clean -qfdx"),
    case("collect main's garbage", "git -C $MAIN gc -q --prune=now"),
    case("pack main's refs", "git -C $MAIN pack-refs --all"),
    case(
        "add a worktree to main",
        "git -C $MAIN worktree add -q -b w $TREE/w",
    ),
    case("push to main", "git push -q $MAIN HEAD:refs/heads/evil"),
    case(
        "add to main's index",
        "git --git-dir=$MAIN/.git --work-tree=. add -A",
    ),
    case(
        "commit with GIT_DIR",
        "GIT_DIR=$MAIN/.git git commit -q --allow-empty -m x",
    ),
    case(
        "write main's index",
        "GIT_INDEX_FILE=$MAIN/.git/index git read-tree HEAD",
    ),
    case(
        "write main's objects",
        "echo x | GIT_OBJECT_DIRECTORY=$MAIN/.git/objects git hash-object -w --stdin",
    ),
    case(
        "plant a hook",
        "mkdir -p $MAIN/.git/hooks; echo x > $MAIN/.git/hooks/post-checkout",
    ),
    case("destroy main's objects", "rm -rf $MAIN/.git/objects"),
    // The chmod in it is what Landlock alone does not keep in.
    Case {
        landlock: false,
        ..case(
            "overwrite a borrowed object",
            "f=$(ls $MAIN/.git/objects/??/* | head -1); chmod u+w $f; echo x > $f",
        )
    },
    case("overwrite main's config", "echo x > $MAIN/.git/config"),
    case(
        "plant attributes",
        "mkdir -p $MAIN/.git/info; echo '* filter=x' > $MAIN/.git/info/attributes",
    ),
    case("overwrite packed-refs", "echo x > $MAIN/.git/packed-refs"),
    case(
        "overwrite HEAD",
        "echo ref: refs/heads/side > $MAIN/.git/HEAD",
    ),
    case("lock main's index", "echo > $MAIN/.git/index.lock"),
    case(
        "write a ref by hand",
        "cp $MAIN/.git/refs/heads/side $MAIN/.git/refs/heads/evil",
    ),
    case("remove a ref by hand", "rm $MAIN/.git/refs/heads/side"),
    case(
        "point main elsewhere",
        "echo $TREE/.git > $MAIN/.git/commondir",
    ),
    case("edit main's checkout", "echo x >> $MAIN/a"),
    case("edit by an absolute path", "sed -i s/2/x/ $MAIN/a"),
    case(
        "write the control plane",
        "echo x > $MAIN/.git/weald/private/weald.db",
    ),
    case("remove the control plane", "rm -rf $MAIN/.git/weald"),
    hidden(
        "read the control plane",
        "cat $MAIN/.git/weald/private/secret",
    ),
    hidden(
        "list the control plane",
        "ls $MAIN/.git/weald/private | grep -q secret",
    ),
    case(
        "write in the run's own folder",
        "echo x > $MAIN/.git/weald/runs/own/secret",
    ),
    case(
        "empty the run's own folder",
        "rm $MAIN/.git/weald/runs/own/secret",
    ),
    case(
        "write in another run's folder",
        "echo x > $MAIN/.git/weald/runs/other/secret",
    ),
    case(
        "write in another agent's home",
        "echo x > $MAIN/.git/weald/homes/other/agent/settings",
    ),
    case(
        "put the own home elsewhere",
        "mv $MAIN/.git/weald/homes/own $MAIN/.git/weald/homes/x",
    ),
    case(
        "exchange homes",
        "mv $MAIN/.git/weald/homes/own/agent $MAIN/.git/weald/homes/other/mine",
    ),
    hidden(
        "read another run's folder",
        "cat $MAIN/.git/weald/runs/other/secret",
    ),
    hidden("list the runs", "ls $MAIN/.git/weald/runs | grep -q other"),
    hidden(
        "reach another run by ..",
        "cat $MAIN/.git/weald/runs/own/../other/secret",
    ),
    hidden(
        "read another agent's home",
        "cat $MAIN/.git/weald/homes/other/agent/settings",
    ),
    hidden(
        "list the homes",
        "ls $MAIN/.git/weald/homes | grep -q other",
    ),
    case("write in a sibling", "echo x > $SIBLING/new"),
    case(
        "commit in a sibling",
        "git -C $SIBLING commit -q --allow-empty -m x",
    ),
    case("configure a sibling", "git -C $SIBLING config x.y z"),
    case("remove a sibling", "rm -rf $SIBLING/.git"),
    case("clone over a sibling", "git clone -q $MAIN $SIBLING/clone"),
];
