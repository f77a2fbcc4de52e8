//! The field: a tree to be confined in, and everything around it that must not change.
//!
//! `tree` is writable and holds a private repository that borrows objects from `main`; `main`, `sibling`, `home` and `out` are
//! outside. A victim process works in `out`; a server listens on sockets there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::native::ATTEMPT_ARGUMENT;
use super::pattern::Pattern;
use super::servers::Servers;
use super::surroundings::{
    INHERITED_DIRECTORY, INHERITED_FILE, abstract_name, command, fresh_root, queue_name,
};
use super::{Attempt, Case, Effect};
use weald_sandbox::{Ended, Host, Invocation, Level, Network, Policy, Revealed, launch};

/// How long an attempt may take.
const TIME: Duration = Duration::from_secs(10);

/// A field. Everything in it goes when it is dropped.
pub struct Field {
    root: PathBuf,
    victim: Child,
    shared: SystemV,
    _sockets: [UnixListener; 3],
    _datagrams: UnixDatagram,
    servers: Option<Servers>,
}

/// A segment and queues of the host's.
struct SystemV {
    key: i32,
    segment: i32,
    queue: i32,
}

impl SystemV {
    fn make() -> Self {
        let key = 0x7765_0000 + (std::process::id() & 0xffff) as i32;
        let flags = libc::IPC_CREAT | 0o600;
        let creating = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC;
        let none = std::ptr::null_mut::<libc::mq_attr>();
        // SAFETY: the name outlives the call; the rest takes numbers only. A descriptor that is not there can be closed, too.
        unsafe {
            let posix = libc::mq_open(queue_name(key.into()).as_ptr(), creating, 0o600, none);
            libc::mq_send(posix, c"secret".as_ptr(), 6, 0);
            libc::mq_close(posix);
            Self {
                key,
                segment: libc::shmget(key, 4096, flags),
                queue: libc::msgget(key, flags),
            }
        }
    }
}

impl Drop for SystemV {
    fn drop(&mut self) {
        // SAFETY: removal takes no structure, and the name outlives the call.
        unsafe {
            libc::mq_unlink(queue_name(self.key.into()).as_ptr());
            libc::shmctl(self.segment, libc::IPC_RMID, std::ptr::null_mut());
            libc::msgctl(self.queue, libc::IPC_RMID, std::ptr::null_mut());
        }
    }
}

/// What can be seen of a file from outside.
type Seen = (u32, u32, u32, i64, i64, u64, Vec<u8>);

impl Field {
    /// Builds a field below the current directory's file system, not below /tmp, which is private inside.
    pub fn build(pattern: &Pattern) -> io::Result<Self> {
        let root = fresh_root()?;
        pattern.copy_to(&root)?;
        for directory in [
            "tree/sub",
            "out/dir",
            "out/empty",
            "home/.claude",
            "home/.codex",
            "home/.ssh",
            "home/.config/git",
            "home/.cargo",
            "home/.local/bin",
            "out/hidden",
        ] {
            fs::create_dir_all(root.join(directory))?;
        }
        for (file, text) in [
            ("out/file", "outside\n"),
            ("out/other", "other\n"),
            ("out/dir/deep", "deep\n"),
            ("home/.claude/settings.json", "{}\n"),
            ("home/.claude.json", "{}\n"),
            ("home/.codex/config.toml", "\n"),
            ("home/.codex/hooks.json", "{}\n"),
            ("home/.gitconfig", "[user]\n"),
            ("home/.bashrc", "\n"),
            ("home/.profile", "\n"),
            ("home/.ssh/authorized_keys", "\n"),
            ("home/.config/git/config", "\n"),
            ("home/.cargo/config.toml", "\n"),
            ("home/.npmrc", "\n"),
            ("home/.mcp.json", "{}\n"),
            ("home/.ssh/id", "secret\n"),
            ("out/hidden/key", "secret\n"),
        ] {
            fs::write(root.join(file), text)?;
        }
        let sockets = [
            UnixListener::bind(root.join("out/stream.sock"))?,
            UnixListener::bind(root.join("home/stream.sock"))?,
            abstract_listener(&root)?,
        ];
        let datagrams = UnixDatagram::bind(root.join("out/datagram.sock"))?;
        let victim = command("sleep")
            .arg("600")
            .current_dir(root.join("out"))
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self {
            root,
            victim,
            shared: SystemV::make(),
            _sockets: sockets,
            _datagrams: datagrams,
            servers: None,
        })
    }

    /// Tries a case, free or confined; true if it had its effect.
    pub fn attempt(mut self, case: &Case, level: Option<Level>, helper: &Path) -> io::Result<bool> {
        if case.by_name {
            self.servers = Some(Servers::start()?);
        }
        let before = manifest(&self.root)?;
        let argv = argv(case, helper);
        let ended_well = match level {
            None => self.run_free(&argv)?,
            Some(level) => self.run_confined(&argv, level, helper)?,
        };
        Ok(match case.effect {
            Effect::Outside => manifest(&self.root)? != before,
            Effect::Success => ended_well,
            Effect::Victim => !self.victim_is_well(),
        })
    }

    fn run_free(&self, argv: &[OsString]) -> io::Result<bool> {
        let (file, directory) = self.inherited()?;
        let numbers = [
            (file.as_raw_fd(), INHERITED_FILE),
            (directory.as_raw_fd(), INHERITED_DIRECTORY),
        ];
        let mut command = command(&argv[0]);
        command
            .args(&argv[1..])
            .env_clear()
            .envs(self.environment())
            .current_dir(self.root.join("tree"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: async-signal-safe calls only.
        unsafe {
            command.pre_exec(move || {
                numbers
                    .iter()
                    .try_for_each(|(from, to)| duplicate_to(*from, *to))
            });
        }
        Ok(command.status()?.success())
    }

    fn run_confined(&self, argv: &[OsString], level: Level, helper: &Path) -> io::Result<bool> {
        // Open without "close on exec", as a careless launcher would have them.
        let (file, directory) = self.inherited()?;
        duplicate_to(file.as_raw_fd(), INHERITED_FILE)?;
        duplicate_to(directory.as_raw_fd(), INHERITED_DIRECTORY)?;
        let mut policy = Policy::new(self.root.join("tree"));
        policy.level = level;
        policy.debugs = true;
        if let Some(servers) = &self.servers {
            policy.network = match level {
                Level::Full => Network::Allow,
                Level::Landlock => Network::Off,
            };
            policy.hosts = vec![Host {
                name: "127.0.0.1".to_owned(),
                below: false,
                port: Some(servers.listed),
            }];
        }
        policy.home = Some(self.root.join("home"));
        policy.home_layer = Some(self.root.join("layer"));
        policy.hidden = ["home/.ssh", "layer", "out/hidden"]
            .map(|name| self.root.join(name))
            .into();
        let weald = self.root.join("main/.git/weald");
        policy.mask = ["private", "runs", "homes"]
            .map(|name| weald.join(name))
            .into();
        policy.reveal = [("runs/own", false), ("homes/own/agent", true)]
            .map(|(name, writable)| Revealed {
                path: weald.join(name),
                writable,
            })
            .into();
        // Also where all of it lies below /tmp, which is private inside: what is seen must be refused, not missing.
        policy.show = vec![self.root.clone()];
        policy.show.extend(helper.parent().map(Path::to_owned));
        let tmp = self.root.join("tmp");
        fs::create_dir_all(&tmp)?;
        policy.tmp = Some(tmp);
        let invocation = Invocation {
            helper: helper.to_owned(),
            command: argv.to_vec(),
            directory: self.root.join("tree"),
            environment: self.environment(),
            streams: [Stdio::null(), Stdio::null(), Stdio::null()],
        };
        let running = launch(&policy, invocation).map_err(io::Error::other)?;
        Ok(running.wait(Some(TIME))? == Ended::Code(0))
    }

    fn inherited(&self) -> io::Result<(File, File)> {
        let file = fs::OpenOptions::new()
            .append(true)
            .open(self.root.join("out/file"))?;
        Ok((file, File::open(self.root.join("out/dir"))?))
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = |name: &str| self.root.join(name).into_os_string();
        #[expect(clippy::disallowed_methods, reason = "programs have to be found")]
        let search = std::env::var_os("PATH").unwrap_or_default();
        let mut all = vec![
            ("PATH".into(), search),
            ("VICTIM".into(), self.victim.id().to_string().into()),
        ];
        if let Some(servers) = &self.servers {
            all.push(("LISTED_PORT".into(), servers.listed.to_string().into()));
            all.push(("OUTSIDE_PORT".into(), servers.outside.to_string().into()));
        }
        all.push(("KEY".into(), self.shared.key.to_string().into()));
        for (name, value) in [
            ("ROOT", ""),
            ("TREE", "tree"),
            ("OUT", "out"),
            ("MAIN", "main"),
            ("SIBLING", "sibling"),
            ("HOME", "home"),
        ] {
            all.push((name.into(), path(value)));
        }
        for name in [
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
        ] {
            all.push((name.into(), "x@example.com".into()));
        }
        all.push(("GIT_CONFIG_NOSYSTEM".into(), "1".into()));
        all
    }

    /// Alive, not stopped, with the priority and the score that it got from this process.
    fn victim_is_well(&mut self) -> bool {
        let fields = self.settled();
        let alive = matches!(self.victim.try_wait(), Ok(None));
        let score =
            |process: &str| fs::read_to_string(format!("/proc/{process}/oom_score_adj")).ok();
        let limits =
            fs::read_to_string(format!("/proc/{}/limits", self.victim.id())).unwrap_or_default();
        let limited = limits
            .lines()
            .any(|line| line.starts_with("Max core file size") && line.contains(" 4096 "));
        alive
            && fields.first().is_some_and(|state| state == "S")
            && fields.get(16) == stat_of("self").get(16)
            && score(&self.victim.id().to_string()) == score("self")
            && !limited
    }

    /// What the kernel says of the victim once it sleeps, is stopped or has ended: a busy machine may not have let it run
    /// yet, and then a signal it was sent has not had its effect either.
    fn settled(&self) -> Vec<String> {
        let victim = self.victim.id().to_string();
        let deadline = Instant::now() + TIME;
        loop {
            let fields = stat_of(&victim);
            let runs = matches!(fields.first().map(String::as_str), Some("R" | "D"));
            if !runs || Instant::now() > deadline {
                return fields;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What `/proc/PROCESS/stat` holds behind the name.
fn stat_of(process: &str) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_ascii_whitespace().map(str::to_owned).collect()
}

impl Drop for Field {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn argv(case: &Case, helper: &Path) -> Vec<OsString> {
    match case.attempt {
        Attempt::Script(script) => vec!["sh".into(), "-ec".into(), script.into()],
        Attempt::Native(name) => vec![helper.into(), ATTEMPT_ARGUMENT.into(), name.into()],
    }
}

fn abstract_listener(root: &Path) -> io::Result<UnixListener> {
    use std::os::linux::net::SocketAddrExt;
    let name = abstract_name(root);
    UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)
}

/// Everything outside the tree, as it can be seen.
fn manifest(root: &Path) -> io::Result<BTreeMap<PathBuf, Seen>> {
    let mut seen = BTreeMap::new();
    let mut open: Vec<_> = ["out", "main", "sibling", "home"]
        .iter()
        .map(|name| root.join(name))
        .collect();
    while let Some(path) = open.pop() {
        let found = fs::symlink_metadata(&path)?;
        let content = match found.is_file() {
            true => fs::read(&path).unwrap_or_default(),
            false if found.is_symlink() => {
                fs::read_link(&path)?.into_os_string().into_encoded_bytes()
            }
            false => Vec::new(),
        };
        let mode = found.permissions().mode();
        let times = (found.mtime(), found.mtime_nsec());
        seen.insert(
            path.clone(),
            (
                mode,
                found.uid(),
                found.gid(),
                times.0,
                times.1,
                found.nlink(),
                content,
            ),
        );
        if found.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        }
    }
    // What a private directory would have kept to itself.
    for leak in ["/tmp", "/var/tmp", "/dev/shm"] {
        let path = Path::new(leak).join(format!(
            "{}-leak",
            root.file_name().unwrap_or_default().display()
        ));
        if path.exists() {
            let _ = fs::remove_file(&path);
            seen.insert(path, (0, 0, 0, 0, 0, 0, Vec::new()));
        }
    }
    Ok(seen)
}

/// `dup2`, for use between fork and exec.
fn duplicate_to(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: takes no pointer; async-signal-safe.
    match unsafe { libc::dup2(from, to) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
