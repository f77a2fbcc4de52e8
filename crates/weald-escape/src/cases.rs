//! Cases about files, the home, processes and the kernel.

use super::Attempt::{Native, Script};
use super::Effect::{Outside, Success, Victim};
use super::{Attempt, Case, Effect};

const fn case(name: &'static str, attempt: Attempt, effect: Effect) -> Case {
    Case {
        name,
        attempt,
        effect,
        landlock: true,
        by_name: false,
    }
}

/// A function that must fail.
pub(super) const fn native(name: &'static str, attempt: &'static str) -> Case {
    case(name, Native(attempt), Success)
}

/// A script that must change nothing outside.
pub(super) const fn script(name: &'static str, line: &'static str) -> Case {
    case(name, Script(line), Outside)
}

/// A script that must fail.
pub(super) const fn failing(name: &'static str, line: &'static str) -> Case {
    case(name, Script(line), Success)
}

/// A case that Landlock alone does not keep in.
pub(super) const fn full_only(case: Case) -> Case {
    Case {
        landlock: false,
        ..case
    }
}

/// Files outside, by every way to them.
pub const FILES: &[Case] = &[
    script("overwrite a file", "echo x > $OUT/file"),
    script("append to a file", "echo x >> $OUT/file"),
    script("create a file", "echo x > $OUT/new"),
    script("create a directory", "mkdir $OUT/newdir"),
    script("truncate a file", "truncate -s 0 $OUT/file"),
    script("remove a file", "rm $OUT/file"),
    script("remove a directory", "rmdir $OUT/empty"),
    script("remove a tree", "rm -rf $OUT/dir"),
    script("rename a file outside", "mv $OUT/file $OUT/renamed"),
    script("move a file in", "mv $OUT/file ./stolen"),
    script("move a file out", "mv inside $OUT/moved"),
    script("copy a file out", "cp inside $OUT/copied"),
    case("exchange two files", Native("exchange"), Outside),
    script(
        "hard-link in and write",
        "ln $OUT/file ./link; echo x > link",
    ),
    script("hard-link out", "ln inside $OUT/linked"),
    script("symlink outside", "ln -s /etc/passwd $OUT/sym"),
    script("write through a symlink", "ln -s $OUT/file s; echo x > s"),
    script(
        "create through a linked directory",
        "ln -s $OUT d; echo x > d/new",
    ),
    script("write through ..", "echo x > ../out/file"),
    script("leave with cd", "cd ..; cd out; echo x > file"),
    script(
        "write through /proc/self/cwd",
        "echo x > /proc/self/cwd/../out/file",
    ),
    script(
        "write through /proc/self/root",
        "echo x > /proc/self/root$OUT/file",
    ),
    script(
        "write through the victim's cwd",
        "echo x > /proc/$VICTIM/cwd/file",
    ),
    script(
        "write through the victim's root",
        "echo x > /proc/$VICTIM/root$OUT/file",
    ),
    script("make a FIFO", "mkfifo $OUT/fifo"),
    case("bind a socket outside", Native("bind-outside"), Outside),
    full_only(script("touch a file", "touch $OUT/file")),
    full_only(script(
        "set a file's time back",
        "touch -d 2001-01-01 $OUT/file",
    )),
    full_only(script("chmod a file", "chmod 777 $OUT/file")),
    full_only(script("chmod a tree", "chmod -R go+w $OUT/dir")),
    script("set-user-id a file", "chmod u+s $OUT/file"),
    full_only(script("chown a file", "chown 12345 $OUT/file")),
    full_only(native("set an extended attribute", "setxattr")),
    full_only(native("set a file's flags", "setflags")),
    full_only(case("utimensat", Native("utimensat"), Outside)),
    script("dd into a file", "dd if=inside of=$OUT/file conv=notrunc"),
    script("edit in place", "sed -i s/outside/x/ $OUT/file"),
    script("tee into a file", "echo x | tee $OUT/file"),
    script(
        "unpack outside",
        "tar -cf a.tar inside; tar -xf a.tar -C $OUT",
    ),
    case("truncate(2)", Native("truncate"), Outside),
    case("open with O_TRUNC", Native("open-trunc"), Outside),
    case("link an O_TMPFILE out", Native("tmpfile-link"), Outside),
    script("rename over a file", "mv -f inside $OUT/file"),
    case("mknod a FIFO outside", Native("mknod-fifo"), Outside),
    case("use an inherited file", Native("inherited-file"), Outside),
    case(
        "use an inherited directory",
        Native("inherited-directory"),
        Outside,
    ),
    full_only(script(
        "leave a file in /tmp",
        "echo x > /tmp/$(basename $ROOT)-leak",
    )),
    full_only(script(
        "leave a file in /var/tmp",
        "echo x > /var/tmp/$(basename $ROOT)-leak",
    )),
    full_only(script(
        "leave a file in /dev/shm",
        "echo x > /dev/shm/$(basename $ROOT)-leak",
    )),
];

/// The agents' and the user's own settings.
pub const HOME: &[Case] = &[
    script(
        "Claude's settings",
        "echo '{\"hooks\":{}}' > $HOME/.claude/settings.json",
    ),
    script("Claude's state", "echo '{}x' > $HOME/.claude.json"),
    script("a new hook of Claude's", "mkdir $HOME/.claude/hooks"),
    script(
        "a new plugin of Claude's",
        "echo x > $HOME/.claude/plugin.json",
    ),
    script("Codex's settings", "echo x >> $HOME/.codex/config.toml"),
    script("Codex's hooks", "echo x >> $HOME/.codex/hooks.json"),
    script("MCP servers", "echo x >> $HOME/.mcp.json"),
    script("git's settings", "git config --global alias.x '!sh'"),
    script("git's other settings", "echo x >> $HOME/.config/git/config"),
    script("the shell's start-up", "echo x >> $HOME/.bashrc"),
    script("the login's start-up", "echo x >> $HOME/.profile"),
    script("ssh keys", "echo x >> $HOME/.ssh/authorized_keys"),
    script("cargo's settings", "echo x >> $HOME/.cargo/config.toml"),
    failing("read a hidden store", "grep -q secret $HOME/.ssh/id"),
    failing(
        "read a hidden store by another name",
        "mv $HOME/.ssh $HOME/x; grep -q secret $HOME/x/id",
    ),
    failing(
        "read a hidden store by a hard link",
        "ln $HOME/.ssh/id $HOME/link; grep -q secret $HOME/link",
    ),
    failing(
        "read a hidden store by a symbolic link",
        "ln -s $HOME/.ssh $HOME/link; grep -q secret $HOME/link/id",
    ),
    failing(
        "read a hidden store through /proc",
        "grep -q secret /proc/self/root$HOME/.ssh/id",
    ),
    failing(
        "read a hidden file outside of the home",
        "grep -q secret $OUT/hidden/key",
    ),
    failing("lock a hidden file", "flock -n $OUT/hidden/key true"),
    script("npm's settings", "echo x >> $HOME/.npmrc"),
    script("a program on the path", "echo x > $HOME/.local/bin/git"),
    script(
        "weald's settings",
        "mkdir -p $HOME/.config/weald; echo x > $HOME/.config/weald/config.toml",
    ),
    script("a desktop autostart", "mkdir -p $HOME/.config/autostart"),
    script("a systemd unit", "mkdir -p $HOME/.config/systemd/user"),
];

pub const PROCESSES: &[Case] = &[
    case("kill -TERM", Script("kill -TERM $VICTIM"), Victim),
    case("kill -KILL", Script("kill -KILL $VICTIM"), Victim),
    case("kill its group", Script("kill -KILL -$VICTIM"), Victim),
    case("stop it", Script("kill -STOP $VICTIM"), Victim),
    case("signal by pidfd", Native("pidfd-signal"), Victim),
    case("signal with a value", Native("sigqueue"), Victim),
    case("signal a thread", Native("tgkill"), Victim),
    case("renice it", Script("renice -n 5 -p $VICTIM"), Victim),
    case("limit it", Native("prlimit"), Victim),
    case(
        "make it the one to kill",
        Script("echo 500 > /proc/$VICTIM/oom_score_adj"),
        Victim,
    ),
    native("ptrace attach", "ptrace-attach"),
    native("ptrace seize", "ptrace-seize"),
    native("read its memory", "process-vm-read"),
    native("write its memory by call", "process-vm-write"),
    native("open its memory", "proc-mem"),
    native("take its descriptors", "pidfd-getfd"),
    native("compare its resources", "kcmp"),
    full_only(failing(
        "read its environment",
        "cat /proc/$VICTIM/environ | grep -q .",
    )),
    full_only(failing("see it", "test -d /proc/$VICTIM")),
    native("set its scheduler", "setscheduler"),
    native("set its processors", "setaffinity"),
    native("connect to a socket", "connect-stream"),
    native("connect to a socket in the home", "connect-home"),
    native("connect through a link", "connect-through-link"),
    native("send to a datagram socket", "send-datagram"),
    native("send from a datagram pair", "send-from-pair"),
    native("connect to an abstract socket", "connect-abstract"),
    native("System V shared memory", "sysv-shm"),
    native("System V messages", "sysv-msg"),
    native("take a message from a queue", "queue-take"),
    native("move others' waiters", "futex-requeue"),
    native("move others' waiters by a new call", "futex-requeue-2"),
    native("keep a terminal to itself", "terminal-exclusive"),
    native("change a terminal's discipline", "terminal-discipline"),
    native("hand its core to the host", "core-limit"),
];

pub const KERNEL: &[Case] = &[
    native("a new user namespace", "unshare-user"),
    native("a namespace by clone", "clone-user"),
    native("a namespace by clone3", "clone3-user"),
    native("a mount namespace", "unshare-mount"),
    native("the victim's namespaces", "setns"),
    native("mount in a new namespace", "mount"),
    native("mount", "mount-direct"),
    native("copy a mount", "open-tree"),
    native("chroot", "chroot"),
    native("open by handle", "open-by-handle"),
    native("name a handle", "name-to-handle"),
    native("io_uring", "io-uring"),
    native("add a key", "add-key"),
    native("use a keyring", "keyctl"),
    native("userfaultfd", "userfaultfd"),
    native("bpf", "bpf"),
    native("perf events", "perf"),
    native("fanotify", "fanotify"),
    native("personality", "personality"),
    native("sethostname", "sethostname"),
    failing("a device node", "mknod device c 1 3"),
    native("a set-user-id file", "set-user-id-chmod"),
    native("a set-user-id file by its descriptor", "set-user-id-fchmod"),
    native("a set-user-id file by fchmodat2", "set-user-id-fchmodat2"),
    native("a file created set-user-id", "set-user-id-open"),
    native(
        "a file created set-user-id by openat2",
        "set-user-id-openat2",
    ),
    native("a nameless file created set-user-id", "set-user-id-tmpfile"),
    native("a node created set-user-id", "set-user-id-mknod"),
    native("a file created set-group-id", "set-group-id-open"),
    native("a file with capabilities", "file-capabilities"),
    native("attributes by a new call", "file-setattr"),
    full_only(native("read the disk", "read-disk")),
    failing(
        "write the kernel's log",
        "echo weald-escape-test > /dev/kmsg",
    ),
    failing(
        "write a sysctl",
        "v=$(cat /proc/sys/vm/swappiness); echo $v > /proc/sys/vm/swappiness",
    ),
    failing(
        "write the core pattern",
        "v=$(cat /proc/sys/kernel/core_pattern); echo \"$v\" > /proc/sys/kernel/core_pattern",
    ),
    failing(
        "write to /sys",
        "v=$(cat /sys/kernel/mm/ksm/run); echo $v > /sys/kernel/mm/ksm/run",
    ),
    native("make a cgroup", "make-cgroup"),
    native("a hypervisor socket", "vsock"),
    native("system log", "syslog"),
];
