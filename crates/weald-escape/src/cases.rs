//! Cases about files, the home, processes and the kernel.

use super::Attempt::{Native, Script};
use super::Effect::{Outside, Success, Victim};
use super::{Attempt, Case, Effect};

pub(super) const fn case(name: &'static str, attempt: Attempt, effect: Effect) -> Case {
    Case {
        name,
        attempt,
        effect,
        landlock: true,
    }
}

/// A case that Landlock alone does not keep in.
const fn full_only(name: &'static str, attempt: Attempt, effect: Effect) -> Case {
    Case {
        name,
        attempt,
        effect,
        landlock: false,
    }
}

/// Files outside, by every way to them.
pub const FILES: &[Case] = &[
    case("overwrite a file", Script("echo x > $OUT/file"), Outside),
    case("append to a file", Script("echo x >> $OUT/file"), Outside),
    case("create a file", Script("echo x > $OUT/new"), Outside),
    case("create a directory", Script("mkdir $OUT/newdir"), Outside),
    case(
        "truncate a file",
        Script("truncate -s 0 $OUT/file"),
        Outside,
    ),
    case("remove a file", Script("rm $OUT/file"), Outside),
    case("remove a directory", Script("rmdir $OUT/empty"), Outside),
    case("remove a tree", Script("rm -rf $OUT/dir"), Outside),
    case(
        "rename a file outside",
        Script("mv $OUT/file $OUT/renamed"),
        Outside,
    ),
    case("move a file in", Script("mv $OUT/file ./stolen"), Outside),
    case("move a file out", Script("mv inside $OUT/moved"), Outside),
    case("copy a file out", Script("cp inside $OUT/copied"), Outside),
    case("exchange two files", Native("exchange"), Outside),
    case(
        "hard-link in and write",
        Script("ln $OUT/file ./link; echo x > link"),
        Outside,
    ),
    case("hard-link out", Script("ln inside $OUT/linked"), Outside),
    case(
        "symlink outside",
        Script("ln -s /etc/passwd $OUT/sym"),
        Outside,
    ),
    case(
        "write through a symlink",
        Script("ln -s $OUT/file s; echo x > s"),
        Outside,
    ),
    case(
        "create through a linked directory",
        Script("ln -s $OUT d; echo x > d/new"),
        Outside,
    ),
    case("write through ..", Script("echo x > ../out/file"), Outside),
    case(
        "leave with cd",
        Script("cd ..; cd out; echo x > file"),
        Outside,
    ),
    case(
        "write through /proc/self/cwd",
        Script("echo x > /proc/self/cwd/../out/file"),
        Outside,
    ),
    case(
        "write through /proc/self/root",
        Script("echo x > /proc/self/root$OUT/file"),
        Outside,
    ),
    case(
        "write through the victim's cwd",
        Script("echo x > /proc/$VICTIM/cwd/file"),
        Outside,
    ),
    case(
        "write through the victim's root",
        Script("echo x > /proc/$VICTIM/root$OUT/file"),
        Outside,
    ),
    case("make a FIFO", Script("mkfifo $OUT/fifo"), Outside),
    case("bind a socket outside", Native("bind-outside"), Outside),
    full_only("touch a file", Script("touch $OUT/file"), Outside),
    full_only(
        "set a file's time back",
        Script("touch -d 2001-01-01 $OUT/file"),
        Outside,
    ),
    full_only("chmod a file", Script("chmod 777 $OUT/file"), Outside),
    full_only("chmod a tree", Script("chmod -R go+w $OUT/dir"), Outside),
    case("set-user-id a file", Script("chmod u+s $OUT/file"), Outside),
    full_only("chown a file", Script("chown 12345 $OUT/file"), Outside),
    full_only("set an extended attribute", Native("setxattr"), Success),
    full_only("set a file's flags", Native("setflags"), Success),
    full_only("utimensat", Native("utimensat"), Outside),
    case(
        "dd into a file",
        Script("dd if=inside of=$OUT/file conv=notrunc"),
        Outside,
    ),
    case(
        "edit in place",
        Script("sed -i s/outside/x/ $OUT/file"),
        Outside,
    ),
    case("tee into a file", Script("echo x | tee $OUT/file"), Outside),
    case(
        "unpack outside",
        Script("tar -cf a.tar inside; tar -xf a.tar -C $OUT"),
        Outside,
    ),
    case("truncate(2)", Native("truncate"), Outside),
    case("open with O_TRUNC", Native("open-trunc"), Outside),
    case("link an O_TMPFILE out", Native("tmpfile-link"), Outside),
    case(
        "rename over a file",
        Script("mv -f inside $OUT/file"),
        Outside,
    ),
    case("mknod a FIFO outside", Native("mknod-fifo"), Outside),
    case("use an inherited file", Native("inherited-file"), Outside),
    case(
        "use an inherited directory",
        Native("inherited-directory"),
        Outside,
    ),
    full_only(
        "leave a file in /tmp",
        Script("echo x > /tmp/$(basename $ROOT)-leak"),
        Outside,
    ),
    full_only(
        "leave a file in /var/tmp",
        Script("echo x > /var/tmp/$(basename $ROOT)-leak"),
        Outside,
    ),
    full_only(
        "leave a file in /dev/shm",
        Script("echo x > /dev/shm/$(basename $ROOT)-leak"),
        Outside,
    ),
];

/// The agents' and the user's own settings.
pub const HOME: &[Case] = &[
    case(
        "Claude's settings",
        Script("echo '{\"hooks\":{}}' > $HOME/.claude/settings.json"),
        Outside,
    ),
    case(
        "Claude's state",
        Script("echo '{}x' > $HOME/.claude.json"),
        Outside,
    ),
    case(
        "a new hook of Claude's",
        Script("mkdir $HOME/.claude/hooks"),
        Outside,
    ),
    case(
        "a new plugin of Claude's",
        Script("echo x > $HOME/.claude/plugin.json"),
        Outside,
    ),
    case(
        "Codex's settings",
        Script("echo x >> $HOME/.codex/config.toml"),
        Outside,
    ),
    case(
        "Codex's hooks",
        Script("echo x >> $HOME/.codex/hooks.json"),
        Outside,
    ),
    case("MCP servers", Script("echo x >> $HOME/.mcp.json"), Outside),
    case(
        "git's settings",
        Script("git config --global alias.x '!sh'"),
        Outside,
    ),
    case(
        "git's other settings",
        Script("echo x >> $HOME/.config/git/config"),
        Outside,
    ),
    case(
        "the shell's start-up",
        Script("echo x >> $HOME/.bashrc"),
        Outside,
    ),
    case(
        "the login's start-up",
        Script("echo x >> $HOME/.profile"),
        Outside,
    ),
    case(
        "ssh keys",
        Script("echo x >> $HOME/.ssh/authorized_keys"),
        Outside,
    ),
    case(
        "cargo's settings",
        Script("echo x >> $HOME/.cargo/config.toml"),
        Outside,
    ),
    case(
        "read a hidden store",
        Script("grep -q secret $HOME/.ssh/id"),
        Success,
    ),
    case(
        "read a hidden store by another name",
        Script("mv $HOME/.ssh $HOME/x; grep -q secret $HOME/x/id"),
        Success,
    ),
    case(
        "read a hidden store by a hard link",
        Script("ln $HOME/.ssh/id $HOME/link; grep -q secret $HOME/link"),
        Success,
    ),
    case(
        "read a hidden store by a symbolic link",
        Script("ln -s $HOME/.ssh $HOME/link; grep -q secret $HOME/link/id"),
        Success,
    ),
    case(
        "read a hidden store through /proc",
        Script("grep -q secret /proc/self/root$HOME/.ssh/id"),
        Success,
    ),
    case(
        "read a hidden file outside of the home",
        Script("grep -q secret $OUT/hidden/key"),
        Success,
    ),
    case(
        "lock a hidden file",
        Script("flock -n $OUT/hidden/key true"),
        Success,
    ),
    case("npm's settings", Script("echo x >> $HOME/.npmrc"), Outside),
    case(
        "a program on the path",
        Script("echo x > $HOME/.local/bin/git"),
        Outside,
    ),
    case(
        "weald's settings",
        Script("mkdir -p $HOME/.config/weald; echo x > $HOME/.config/weald/config.toml"),
        Outside,
    ),
    case(
        "a desktop autostart",
        Script("mkdir -p $HOME/.config/autostart"),
        Outside,
    ),
    case(
        "a systemd unit",
        Script("mkdir -p $HOME/.config/systemd/user"),
        Outside,
    ),
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
    case("ptrace attach", Native("ptrace-attach"), Success),
    case("ptrace seize", Native("ptrace-seize"), Success),
    case("read its memory", Native("process-vm-read"), Success),
    case(
        "write its memory by call",
        Native("process-vm-write"),
        Success,
    ),
    case("open its memory", Native("proc-mem"), Success),
    case("take its descriptors", Native("pidfd-getfd"), Success),
    case("compare its resources", Native("kcmp"), Success),
    full_only(
        "read its environment",
        Script("cat /proc/$VICTIM/environ | grep -q ."),
        Success,
    ),
    full_only("see it", Script("test -d /proc/$VICTIM"), Success),
    case("set its scheduler", Native("setscheduler"), Success),
    case("set its processors", Native("setaffinity"), Success),
    case("connect to a socket", Native("connect-stream"), Success),
    case(
        "connect to a socket in the home",
        Native("connect-home"),
        Success,
    ),
    case(
        "connect through a link",
        Native("connect-through-link"),
        Success,
    ),
    case(
        "send to a datagram socket",
        Native("send-datagram"),
        Success,
    ),
    case(
        "send from a datagram pair",
        Native("send-from-pair"),
        Success,
    ),
    case(
        "connect to an abstract socket",
        Native("connect-abstract"),
        Success,
    ),
    case("System V shared memory", Native("sysv-shm"), Success),
    case("System V messages", Native("sysv-msg"), Success),
    case("take a message from a queue", Native("queue-take"), Success),
    case("move others' waiters", Native("futex-requeue"), Success),
    case(
        "move others' waiters by a new call",
        Native("futex-requeue-2"),
        Success,
    ),
    case(
        "keep a terminal to itself",
        Native("terminal-exclusive"),
        Success,
    ),
    case(
        "change a terminal's discipline",
        Native("terminal-discipline"),
        Success,
    ),
    case("hand its core to the host", Native("core-limit"), Success),
];

pub const KERNEL: &[Case] = &[
    case("a new user namespace", Native("unshare-user"), Success),
    case("a namespace by clone", Native("clone-user"), Success),
    case("a namespace by clone3", Native("clone3-user"), Success),
    case("a mount namespace", Native("unshare-mount"), Success),
    case("the victim's namespaces", Native("setns"), Success),
    case("mount in a new namespace", Native("mount"), Success),
    case("mount", Native("mount-direct"), Success),
    case("copy a mount", Native("open-tree"), Success),
    case("chroot", Native("chroot"), Success),
    case("open by handle", Native("open-by-handle"), Success),
    case("name a handle", Native("name-to-handle"), Success),
    case("io_uring", Native("io-uring"), Success),
    case("add a key", Native("add-key"), Success),
    case("use a keyring", Native("keyctl"), Success),
    case("userfaultfd", Native("userfaultfd"), Success),
    case("bpf", Native("bpf"), Success),
    case("perf events", Native("perf"), Success),
    case("fanotify", Native("fanotify"), Success),
    case("personality", Native("personality"), Success),
    case("sethostname", Native("sethostname"), Success),
    case("a device node", Script("mknod device c 1 3"), Success),
    case("a set-user-id file", Native("set-user-id-chmod"), Success),
    case(
        "a set-user-id file by its descriptor",
        Native("set-user-id-fchmod"),
        Success,
    ),
    case(
        "a set-user-id file by fchmodat2",
        Native("set-user-id-fchmodat2"),
        Success,
    ),
    case(
        "a file created set-user-id",
        Native("set-user-id-open"),
        Success,
    ),
    case(
        "a file created set-user-id by openat2",
        Native("set-user-id-openat2"),
        Success,
    ),
    case(
        "a nameless file created set-user-id",
        Native("set-user-id-tmpfile"),
        Success,
    ),
    case(
        "a node created set-user-id",
        Native("set-user-id-mknod"),
        Success,
    ),
    case(
        "a file created set-group-id",
        Native("set-group-id-open"),
        Success,
    ),
    case(
        "a file with capabilities",
        Native("file-capabilities"),
        Success,
    ),
    case("attributes by a new call", Native("file-setattr"), Success),
    full_only("read the disk", Native("read-disk"), Success),
    case(
        "write the kernel's log",
        Script("echo weald-escape-test > /dev/kmsg"),
        Success,
    ),
    case(
        "write a sysctl",
        Script("v=$(cat /proc/sys/vm/swappiness); echo $v > /proc/sys/vm/swappiness"),
        Success,
    ),
    case(
        "write the core pattern",
        Script(
            "v=$(cat /proc/sys/kernel/core_pattern); echo \"$v\" > /proc/sys/kernel/core_pattern",
        ),
        Success,
    ),
    case(
        "write to /sys",
        Script("v=$(cat /sys/kernel/mm/ksm/run); echo $v > /sys/kernel/mm/ksm/run"),
        Success,
    ),
    case("make a cgroup", Native("make-cgroup"), Success),
    case("a hypervisor socket", Native("vsock"), Success),
    case("system log", Native("syslog"), Success),
];
