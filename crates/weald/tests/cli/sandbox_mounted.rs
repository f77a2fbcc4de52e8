//! What is hidden stays hidden where it is mounted a second time, where the host replaces it, and in large folders. Each in a
//! mount namespace of its own, which needs root.

use std::process::{Command, Stdio};

use crate::sandbox::{is_root, own_home};
use weald_testkit::skipped;

/// Runs a script in a home with the binary in it, and in a mount namespace where mounts can be made; `None` (said aloud) where
/// there is none. `$OUT` is a folder beside the home. Both are on a disk of their own: the suite's may lie below /tmp, which
/// runs have for themselves.
fn with_mounts(name: &str, script: &str) -> Option<String> {
    let free = || Command::new("unshare").args(["-m", "true"]).output();
    if !is_root() || !free().is_ok_and(|output| output.status.success()) {
        skipped("mounting something needs root");
        return None;
    }
    let home = own_home(name);
    let begin =
        "mount -t tmpfs tmpfs /mnt; mkdir /mnt/home /mnt/out; cp weald /mnt/home; cd /mnt/home\n";
    let script = format!("{begin}export HOME=/mnt/home OUT=/mnt/out\n{script}");
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-ec", &script])
        .current_dir(&home);
    command.env_clear().env(
        "PATH",
        "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin",
    );
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    let _ = std::fs::remove_dir_all(&home);
    Some(said)
}

#[test]
fn x16_what_is_hidden_is_hidden_wherever_it_is_mounted_again() {
    let script = r#"
mkdir -p .ssh/keys again disk tree "$OUT/keys" "$OUT/whole" "$OUT/queues"; touch "$OUT/id"
echo hunter2 > .ssh/keys/key; echo hunter2 > .ssh/id
mount --bind .ssh "$OUT/whole"; mount --bind .ssh/keys "$OUT/keys"; mount --bind .ssh/id "$OUT/id"
mount --bind "$HOME" disk; mount --bind .ssh/keys again
mount -t mqueue none "$OUT/queues"; touch "$OUT/queues/queue-$$"
all="$OUT/whole/id $OUT/whole/keys/key $OUT/keys/key $OUT/id disk/.ssh/id disk/.ssh/keys/key again/key"
[ "$(cat $all | grep -c hunter2)" = 7 ] || { echo "the test reads nothing"; exit 1; }
for level in full landlock; do
    ./weald sandbox exec --level $level --write tree -- sh -c "cd; cat $all; cat disk/weald | head -c 4; echo over $level" 2>&1
done
./weald sandbox exec --write tree -- sh -c "cat $OUT/queues/queue-$$; true" 2>&1
rm "$OUT/queues/queue-$$"
"#;
    let Some(said) = with_mounts("x16-mounts", script) else {
        return;
    };
    assert!(!said.contains("hunter2"), "{said}");
    assert_eq!(said.matches("ELFover").count(), 2, "{said}");
    assert!(!said.contains("QSIZE"), "a queue of the host's: {said}");
}

/// What a chroot has: a second /dev and a second /proc.
#[test]
fn x16_devices_and_processes_of_the_host_are_out_of_reach_wherever_they_are_mounted() {
    let script = r#"
mkdir tree "$OUT/dev" "$OUT/proc"; mount --rbind /dev "$OUT/dev"; mount -t proc proc "$OUT/proc"
mknod "$OUT/zero" c 1 5; cp -a "$OUT/zero" zero
sleep 987.5 & look="grep -l 987 $OUT/proc/*/cmdline; head -c 3 $OUT/dev/zero | wc -c; head -c 3 $OUT/zero | wc -c"
sh -c "$look" > "$OUT/outside" 2>&1 || true
[ "$(grep -c '^3$' "$OUT/outside")" = 2 ] && grep -q cmdline "$OUT/outside" || { cat "$OUT/outside"; exit 1; }
./weald sandbox exec --write tree -- sh -c "$look; cat zero | head -c 3 | wc -c; head -c 3 /dev/zero | wc -c; echo x > /dev/null && echo own" 2>&1
kill $!
"#;
    let Some(said) = with_mounts("x16-devices", script) else {
        return;
    };
    let lines: Vec<_> = said.lines().map(str::trim).collect();
    let count = |wanted: &str| lines.iter().filter(|line| **line == wanted).count();
    assert_eq!((count("3"), count("0"), count("own")), (1, 3, 1), "{said}");
    assert!(!said.contains("cmdline\n"), "{said}");
}

#[test]
fn x16_secrets_of_root_and_of_large_folders_stay_hidden_when_they_are_replaced() {
    let script = r#"
mkdir -p tree "$OUT/many"; cp -a /etc "$OUT/etc"; mount --bind "$OUT/etc" /etc
(cd "$OUT/many"; seq 1 4200 | xargs touch; echo plain > open)
for level in full landlock; do
    rm -f tree/*; echo old > "$OUT/many/key"
    for file in /etc/shadow "$OUT/many/key"; do echo hunter2 > $file; done
    ./weald sandbox exec --level $level --write tree --mask "$OUT/many/key" -- sh -c "touch ready
        cat /etc/shadow $OUT/many/key; until [ -e go ]; do sleep 0.02; done
        cat /etc/shadow /etc/gshadow $OUT/many/key $OUT/many/open; echo read-$(head -c 4 /etc/passwd)" > "$OUT/said-$level" 2>&1 &
    n=0; until [ -e tree/ready ]; do n=$((n+1)); [ $n -lt 3000 ] || { cat "$OUT/said-$level"; exit 1; }; sleep 0.02; done
    for file in /etc/shadow /etc/gshadow "$OUT/many/key"; do echo hunter2 > $file.new; mv $file.new $file; done
    touch tree/go; wait
done
cat "$OUT"/said-*
./weald sandbox explain tree
(cd "$OUT/many"; seq 1 21000 | xargs touch)
./weald sandbox exec --write tree --mask "$OUT/many/key" -- cat "$OUT/many/key" 2>&1 || echo "code $?"
"#;
    let Some(said) = with_mounts("x16-replaced", script) else {
        return;
    };
    assert!(!said.contains("hunter2"), "{said}");
    for open in ["plain", "read-root"] {
        assert_eq!(said.matches(open).count(), 2, "{open}: {said}");
    }
    let refused = "move it into a folder of its own";
    assert!(said.contains(refused) && said.contains("code "), "{said}");
    let explained = said
        .lines()
        .filter(|line| line.trim_end().ends_with("/etc/shadow"));
    assert_eq!(explained.count(), 1, "{said}");
}

/// At level landlock: over a pattern that is mounted the kernel makes no /proc of the run's own.
#[test]
fn i2_no_core_reaches_a_program_of_the_hosts_whatever_limit_a_run_sets() {
    let script = r#"
mkdir tree; echo '|/bin/false' > "$OUT/pattern"; mount --bind "$OUT/pattern" /proc/sys/kernel/core_pattern
more=$(prlimit --core=0:0 prlimit --core=1:1 true 2> /dev/null && echo 0:0) || echo "SKIPPED: nobody raises limits here"
for limit in unlimited:unlimited $more; do
    prlimit --core=$limit ./weald sandbox exec --level landlock --write tree -- \
        sh -c 'ulimit -c 0 && ulimit -c unlimited; grep "core file" /proc/self/limits' 2>&1
done
"#;
    let Some(said) = with_mounts("i2-cores", script) else {
        return;
    };
    if said.contains("SKIPPED") {
        skipped("nobody raises limits here");
    }
    let limits = said.lines().filter(|line| line.starts_with("Max"));
    let limits = limits.map(|line| line.split_whitespace().collect());
    let limits: Vec<Vec<_>> = limits.collect();
    let kept = ["Max", "core", "file", "size", "1", "1", "bytes"];
    assert!(!limits.is_empty(), "{said}");
    assert!(limits.iter().all(|found| *found == kept), "{said}");
}

/// Another process of the host's takes the number of one that asked for a connection and was killed. The time between the
/// launcher's looks is widened by strace.
#[test]
fn x9_no_socket_is_connected_for_a_process_that_is_gone() {
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if !has("strace") || !has("python3") {
        return skipped("strace and python3 are needed");
    }
    let script = r#"
mkdir tree; mount -t tmpfs tmpfs /run
cat > asker.py <<'END'
import os, socket, time
child = os.fork()
if child == 0:
    socket.socket(socket.AF_UNIX).connect('/run/host.sock')
    os._exit(0)
time.sleep(1.5); os.kill(child, 9); os.waitpid(child, 0); time.sleep(5)
END
cat > server.py <<'END'
import socket
s = socket.socket(socket.AF_UNIX); s.bind('/run/host.sock'); s.listen(); s.settimeout(12)
try: s.accept(); print('reached', flush=True)
except OSError: pass
END
cat > taker.py <<'END'
import ctypes, os, struct, time
def is_asker(pid):
    try: words = open(f'/proc/{pid}/cmdline').read().split('\0')
    except OSError: return False
    return words[0] == 'python3' and words[1].endswith('asker.py')
askers, end = [], time.time() + 20
while len(askers) < 2 and time.time() < end:
    askers = [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and is_asker(pid)]
child = max(askers)
while os.path.exists(f'/proc/{child}') and time.time() < end: time.sleep(0.002)
number = ctypes.c_int(child)
asked = struct.pack('11Q', 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(number), 1, 0)
taken = -1
while taken < 0 and time.time() < end: taken = ctypes.CDLL(None).syscall(435, asked, len(asked))
if taken == 0: time.sleep(6); os._exit(0)
print('taken', taken == child, flush=True)
END
python3 server.py &
strace -f -qq -o /dev/null -e trace=getsockopt -e inject=getsockopt:delay_exit=4000000 \
    ./weald sandbox exec --write tree -- python3 "$HOME/asker.py" &
python3 taker.py; wait
"#;
    let Some(said) = with_mounts("x9-gone", script) else {
        return;
    };
    if !said.contains("taken True") {
        skipped(&format!("the number could not be taken: {said}"));
    }
    assert!(!said.contains("reached"), "{said}");
}
