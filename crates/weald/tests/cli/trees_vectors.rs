//! Hostile trees: the vectors, each with a program that plain git runs.

/// A name, how it is planted in a tree (`$E` is its program), and what makes plain git run it.
pub type Vector = (&'static str, &'static str, &'static str);

/// What a configuration, hooks and attributes name.
pub const CONFIGURED: [Vector; 26] = [
    (
        "include",
        "printf \"[alias]\\n\\tinc = !$E\\n\" > inc; git config include.path $PWD/inc",
        "git inc",
    ),
    (
        "includeif",
        "printf \"[alias]\\n\\tincif = !$E\\n\" > incif; git config includeIf.gitdir:/.path $PWD/incif",
        "git incif",
    ),
    ("alias", "git config alias.zz \"!$E\"", "git zz"),
    (
        "hook-index",
        "git config --unset-all core.hooksPath || true; mkdir -p $H/hooks; cp $E $H/hooks/post-index-change",
        "git add -A",
    ),
    (
        "hook-refs",
        "cp $E $H/hooks/reference-transaction",
        "git update-ref refs/heads/zz HEAD",
    ),
    (
        "hook-commit",
        "cp $E $H/hooks/pre-commit",
        "git commit -q --allow-empty -m x",
    ),
    (
        "hook-message",
        "cp $E $H/hooks/prepare-commit-msg",
        "git commit -q --allow-empty -m x",
    ),
    (
        "hook-checkout",
        "cp $E $H/hooks/post-checkout",
        "git checkout -q --detach",
    ),
    (
        "hook-merge",
        "cp $E $H/hooks/pre-merge-commit",
        "git reset -q --hard; git -c commit.gpgsign=false merge -q --no-ff --no-edit -s ours main",
    ),
    (
        "hook-rebase",
        "cp $E $H/hooks/pre-rebase",
        "git reset -q --hard; git rebase main",
    ),
    (
        "hook-rewrite",
        "cp $E $H/hooks/post-rewrite",
        "git -c commit.gpgsign=false commit -q --amend -m y",
    ),
    (
        "hook-gc",
        "cp $E $H/hooks/pre-auto-gc",
        "for i in 1 2 3; do git -c commit.gpgsign=false commit -q --allow-empty -m z; git repack -q; done; git -c gc.auto=1 -c gc.autoPackLimit=1 -c gc.autoDetach=false gc --auto",
    ),
    (
        "clean",
        "git config filter.clean.clean \"$E; cat\"; echo f-clean.txt filter=clean >> .gitattributes",
        "git add f-clean.txt",
    ),
    (
        "smudge",
        "git config filter.smudge.smudge \"$E; cat\"; echo f-smudge.txt filter=smudge >> .gitattributes",
        "rm f-smudge.txt; git checkout -q -- f-smudge.txt",
    ),
    (
        "command",
        "git config diff.command.command $E; echo f-command.txt diff=command >> .gitattributes",
        "git diff f-command.txt",
    ),
    (
        "textconv",
        "git config diff.textconv.textconv $E; echo f-textconv.txt diff=textconv >> .gitattributes",
        "git diff f-textconv.txt",
    ),
    (
        "merge",
        "git config merge.merge.driver $E; echo f-merge.txt merge=merge >> .gitattributes",
        "git reset -q --hard; git merge --no-edit main",
    ),
    (
        "gpg",
        "git config gpg.program $E; git config commit.gpgsign true",
        "git commit -q --allow-empty -m x",
    ),
    (
        "ssh",
        "git config core.sshCommand $E; git config remote.ssh.url ssh://localhost/x",
        "git fetch ssh",
    ),
    (
        "uploadpack",
        "git config remote.up.url .; git config remote.up.uploadpack $E",
        "git fetch up",
    ),
    (
        "ext",
        "git config protocol.ext.allow always; git config remote.origin.url \"ext::$E\"",
        "git fetch origin",
    ),
    (
        "pager",
        "git config core.pager $E",
        "script -qec \"git log\" /dev/null",
    ),
    (
        "editor",
        "git config core.editor $E",
        "git -c commit.gpgsign=false commit -q --allow-empty",
    ),
    (
        "credential",
        "git config credential.helper \"!$E\"",
        "echo url=https://localhost | git credential fill",
    ),
    (
        "askpass",
        "git config core.askPass $E",
        "echo url=https://localhost | git -c credential.helper= credential fill",
    ),
    (
        "trailer",
        "git config trailer.t.cmd $E; git config trailer.t.key T",
        "echo x | git interpret-trailers --trailer t=1",
    ),
];

/// The same, for those that hide others from plain git.
pub const ALONE: [Vector; 2] = [
    ("fsmonitor", "git config core.fsmonitor $E", "git status"),
    (
        "process",
        "git config filter.process.process $E; echo f-process.txt filter=process >> .gitattributes",
        "git add f-process.txt",
    ),
];

/// Repositories in the tree, and other places for a configuration.
pub const NESTED: [Vector; 10] = [
    (
        "hookspath",
        "mkdir hooks; cp $E hooks/post-index-change; git config core.hooksPath $PWD/hooks",
        "git add -A",
    ),
    (
        "embedded",
        "git init -q emb; git -C emb commit -q --allow-empty -m e; echo x > emb/x; git -C emb config core.fsmonitor $E",
        "git -C emb status",
    ),
    (
        "gitlink",
        "git init -q link; git -C link commit -q --allow-empty -m e; git add link 2> /dev/null; git -C link config core.fsmonitor $E; echo x > link/x",
        "git status",
    ),
    (
        "gitlink-diff",
        "git init -q two; echo a > two/t; git -C two add t; git -C two commit -qm e; git add two 2> /dev/null; git -C two config diff.external $E; echo b > two/t",
        "git -C two diff",
    ),
    (
        "submodule",
        "git init -q sub; git -C sub commit -q --allow-empty -m e; git add sub 2> /dev/null; git config submodule.sub.url ./sub; git config submodule.sub.update \"!$E\"; printf \"[submodule \\\"sub\\\"]\\n\\tpath = sub\\n\\turl = ./sub\\n\" > .gitmodules; git -C sub commit -q --allow-empty -m f",
        "git submodule update",
    ),
    (
        "module-dir",
        "git init -q mod; git -C mod commit -q --allow-empty -m e; git add mod 2> /dev/null; mkdir -p m; mv mod/.git m/mod; echo \"gitdir: ../m/mod\" > mod/.git; git --git-dir=m/mod config core.worktree ../../mod; git --git-dir=m/mod config core.fsmonitor $E",
        "git status",
    ),
    (
        "bare",
        "git init -q --bare bare; git -C bare config core.bare false; git -C bare config core.worktree ..; git -C bare config core.fsmonitor $E",
        "cd bare; git status",
    ),
    (
        "attributes-file",
        "echo \"f-attr.txt filter=attr\" > atts; git config core.attributesFile $PWD/atts; git config filter.attr.clean \"$E; cat\"",
        "git add f-attr.txt",
    ),
    (
        "info-attributes",
        "mkdir -p $H/info; echo \"f-info.txt filter=info\" >> $H/info/attributes; git config filter.info.clean \"$E; cat\"",
        "git add f-info.txt",
    ),
    (
        "external",
        "git config diff.external $E",
        "git diff f-external.txt",
    ),
];

/// What the user's own configuration defines and the tree's attributes pick.
pub const USERS: [Vector; 4] = [
    (
        "user",
        "git config --global filter.user.clean \"$E; cat\"; git config --global filter.user.smudge cat; git config --global filter.user.required true; echo f-user.txt filter=user >> .gitattributes",
        "git add f-user.txt",
    ),
    (
        "usertext",
        "git config --global diff.usertext.textconv $E; echo f-usertext.txt diff=usertext >> .gitattributes",
        "git diff f-usertext.txt",
    ),
    (
        "usermerge",
        "git config --global merge.usermerge.driver $E; echo f-merge.txt merge=usermerge >> .gitattributes",
        "git reset -q --hard; git merge --no-edit main",
    ),
    (
        "userfsmonitor",
        "git config --global core.fsmonitor $E",
        "git status",
    ),
];

/// A sealed tree whose `.git` is no longer what it was, with a configuration elsewhere.
pub const REPLACED: [Vector; 6] = [
    (
        "git-file",
        "git config core.fsmonitor $E; mv .git other; echo gitdir: other > .git",
        "git status",
    ),
    (
        "git-link",
        "git config core.fsmonitor $E; mv .git other; ln -s other .git",
        "git status",
    ),
    (
        "commondir",
        "cp -a .git other; git --git-dir=other config core.fsmonitor $E; echo ../other > .git/commondir",
        "git status",
    ),
    (
        "worktree-config",
        "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $E",
        "git status",
    ),
    (
        "config-link",
        "cp .git/config conf; git config -f conf core.fsmonitor $E; ln -sf ../conf .git/config",
        "git status",
    ),
    (
        "objects-link",
        "git config core.fsmonitor $E; mv .git/objects objs; ln -s ../objs .git/objects",
        "git status",
    ),
];
