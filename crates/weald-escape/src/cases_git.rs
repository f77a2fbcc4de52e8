//! Cases about the main repository, the control plane in it, and siblings.

use super::Case;
use super::cases::{failing, full_only, script};

/// A case that Landlock alone does not keep in: it hides nothing.
const fn hidden(name: &'static str, line: &'static str) -> Case {
    full_only(failing(name, line))
}

pub const GIT: &[Case] = &[
    script(
        "commit in main",
        "git -C $MAIN commit -q --allow-empty -m x",
    ),
    script("reset main", "git -C $MAIN reset -q --hard HEAD~1"),
    script("check out in main", "git -C $MAIN checkout -q -f side"),
    script("make a branch in main", "git -C $MAIN branch evil"),
    script("delete a branch in main", "git -C $MAIN branch -D side"),
    script(
        "move a branch in main",
        "git -C $MAIN update-ref refs/heads/side main~1",
    ),
    script("tag in main", "git -C $MAIN tag evil"),
    script(
        "configure main",
        "git -C $MAIN config core.fsmonitor ./evil",
    ),
    script("stash in main", "git -C $MAIN stash -q"),
    script("clean main", "git -C $MAIN clean -qfdx"),
    script("collect main's garbage", "git -C $MAIN gc -q --prune=now"),
    script("pack main's refs", "git -C $MAIN pack-refs --all"),
    script(
        "add a worktree to main",
        "git -C $MAIN worktree add -q -b w $TREE/w",
    ),
    script("push to main", "git push -q $MAIN HEAD:refs/heads/evil"),
    script(
        "add to main's index",
        "git --git-dir=$MAIN/.git --work-tree=. add -A",
    ),
    script(
        "commit with GIT_DIR",
        "GIT_DIR=$MAIN/.git git commit -q --allow-empty -m x",
    ),
    script(
        "write main's index",
        "GIT_INDEX_FILE=$MAIN/.git/index git read-tree HEAD",
    ),
    script(
        "write main's objects",
        "echo x | GIT_OBJECT_DIRECTORY=$MAIN/.git/objects git hash-object -w --stdin",
    ),
    script(
        "plant a hook",
        "mkdir -p $MAIN/.git/hooks; echo x > $MAIN/.git/hooks/post-checkout",
    ),
    script("destroy main's objects", "rm -rf $MAIN/.git/objects"),
    // The chmod in it is what Landlock alone does not keep in.
    full_only(script(
        "overwrite a borrowed object",
        "f=$(ls $MAIN/.git/objects/??/* | head -1); chmod u+w $f; echo x > $f",
    )),
    script("overwrite main's config", "echo x > $MAIN/.git/config"),
    script(
        "plant attributes",
        "mkdir -p $MAIN/.git/info; echo '* filter=x' > $MAIN/.git/info/attributes",
    ),
    script("overwrite packed-refs", "echo x > $MAIN/.git/packed-refs"),
    script(
        "overwrite HEAD",
        "echo ref: refs/heads/side > $MAIN/.git/HEAD",
    ),
    script("lock main's index", "echo > $MAIN/.git/index.lock"),
    script(
        "write a ref by hand",
        "cp $MAIN/.git/refs/heads/side $MAIN/.git/refs/heads/evil",
    ),
    script("remove a ref by hand", "rm $MAIN/.git/refs/heads/side"),
    script(
        "point main elsewhere",
        "echo $TREE/.git > $MAIN/.git/commondir",
    ),
    script("edit main's checkout", "echo x >> $MAIN/a"),
    script("edit by an absolute path", "sed -i s/2/x/ $MAIN/a"),
    script(
        "write the control plane",
        "echo x > $MAIN/.git/weald/private/weald.db",
    ),
    script("remove the control plane", "rm -rf $MAIN/.git/weald"),
    hidden(
        "read the control plane",
        "cat $MAIN/.git/weald/private/secret",
    ),
    hidden(
        "list the control plane",
        "ls $MAIN/.git/weald/private | grep -q secret",
    ),
    script(
        "write in the run's own folder",
        "echo x > $MAIN/.git/weald/runs/own/secret",
    ),
    script(
        "empty the run's own folder",
        "rm $MAIN/.git/weald/runs/own/secret",
    ),
    script(
        "write in another run's folder",
        "echo x > $MAIN/.git/weald/runs/other/secret",
    ),
    script(
        "write in another agent's home",
        "echo x > $MAIN/.git/weald/homes/other/agent/settings",
    ),
    script(
        "put the own home elsewhere",
        "mv $MAIN/.git/weald/homes/own $MAIN/.git/weald/homes/x",
    ),
    script(
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
    script("write in a sibling", "echo x > $SIBLING/new"),
    script(
        "commit in a sibling",
        "git -C $SIBLING commit -q --allow-empty -m x",
    ),
    script("configure a sibling", "git -C $SIBLING config x.y z"),
    script("remove a sibling", "rm -rf $SIBLING/.git"),
    script("clone over a sibling", "git clone -q $MAIN $SIBLING/clone"),
];
