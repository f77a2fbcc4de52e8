//! Connections that the launcher makes for the inside.
//!
//! Every `connect` in the sandbox is put to the launcher, which takes a copy of the socket and connects it itself. It never
//! says "go on": between the question and the call another thread could swap the socket or the address. Unix sockets of the
//! host are refused unless they were listed; those inside a writable directory are the run's own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::policy::Policy;
use crate::sys::{self, Question};

/// The longest address of a socket.
const LONGEST: usize = 128;

/// How many connections are made at once; more than that wait.
const AT_ONCE: usize = 64;

struct Broker {
    listener: OwnedFd,
    listed: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

/// Answers questions until the last process inside is gone.
pub fn serve(listener: OwnedFd, policy: &Policy) -> io::Result<()> {
    let mut writable = policy.write.clone();
    let revealed = policy.reveal.iter().filter(|it| it.writable);
    writable.extend(revealed.map(|it| it.path.clone()));
    writable.extend(["/tmp", "/var/tmp", "/run", "/dev/shm"].map(PathBuf::from));
    let broker = Arc::new(Broker {
        listener,
        listed: policy.sockets.clone(),
        writable,
    });
    let serving = move || {
        while let Some(question) = broker.next() {
            Broker::answer_beside(&broker, question);
        }
    };
    thread::Builder::new().spawn(serving).map(drop)
}

impl Broker {
    fn next(&self) -> Option<Question> {
        loop {
            match sys::next_question(&self.listener) {
                Ok(question) => return Some(question),
                // The asker was killed before anybody looked, or a signal came.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                    let ready = sys::poll(&[self.listener.as_raw_fd()], 1_000).ok()?;
                    if ready[0] && self.is_over() {
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
    }

    /// The kernel says "hang up" when no process with the filter is left.
    fn is_over(&self) -> bool {
        sys::hung_up(self.listener.as_raw_fd())
    }

    /// Answers in a thread of its own, because a connect may take its time; if there are too many, or none can be had, here.
    fn answer_beside(broker: &Arc<Self>, question: Question) {
        let beside = Arc::clone(broker);
        let crowded = Arc::strong_count(broker) > AT_ONCE;
        let spawned = !crowded
            && thread::Builder::new()
                .spawn(move || beside.answer(question))
                .is_ok();
        if !spawned {
            broker.answer(question);
        }
    }

    fn answer(&self, question: Question) {
        let result = self.connect(&question);
        // An asker that is gone needs no answer.
        let _ = sys::answer_question(&self.listener, question.id, result);
    }

    fn connect(&self, question: &Question) -> io::Result<()> {
        let process = sys::open_process(thread_group(question.pid)?)?;
        let socket = sys::take_descriptor(&process, question.arguments[0] as i32)?;
        let address = read_address(question)?;
        if !sys::is_waiting(&self.listener, question.id) {
            return Err(io::Error::from_raw_os_error(libc::EINTR));
        }
        match sys::socket_family(&socket)? {
            libc::AF_UNIX => self.connect_unix(question, &socket, &address),
            libc::AF_INET | libc::AF_INET6 => sys::connect(&socket, &address),
            // The launcher may be able to do more than the asker: nothing else is done for it.
            _ => Err(io::Error::from_raw_os_error(libc::EACCES)),
        }
    }

    fn connect_unix(
        &self,
        question: &Question,
        socket: &OwnedFd,
        address: &[u8],
    ) -> io::Result<()> {
        let refused = || io::Error::from_raw_os_error(libc::EACCES);
        let name = address.get(2..).unwrap_or_default();
        let end = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        let path = Path::new(OsStr::from_bytes(&name[..end]));
        // An empty name is an abstract socket, or none.
        if path.as_os_str().is_empty() {
            return Err(refused());
        }
        if self.listed.iter().any(|listed| listed == path) {
            return sys::connect(socket, &unix_address(path)?);
        }
        let base = if path.is_absolute() { "root" } else { "cwd" };
        let base = File::open(format!("/proc/{}/{base}", question.pid))?;
        let handle = sys::open_handle(&base.into(), path)?;
        let allowed = self.is_listed(&handle)?
            || self.own_mounts(question.pid)?.contains(&mount_of(&handle)?);
        match allowed {
            true => sys::connect(
                socket,
                &unix_address(Path::new(&format!("/proc/self/fd/{}", handle.as_raw_fd())))?,
            ),
            false => Err(refused()),
        }
    }

    /// Whether it is a listed socket by another name: a path that is too long for an address is given from its folder.
    fn is_listed(&self, handle: &OwnedFd) -> io::Result<bool> {
        let asked = fs::metadata(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
        let same = |listed: &PathBuf| {
            fs::symlink_metadata(listed).is_ok_and(|listed| {
                (listed.dev(), listed.ino()) == (asked.dev(), asked.ino())
                    && listed.file_type().is_socket()
            })
        };
        Ok(self.listed.iter().any(same))
    }

    /// The mounts in the asker's view that hold its writable directories.
    fn own_mounts(&self, pid: u32) -> io::Result<BTreeSet<u64>> {
        let table = fs::read_to_string(format!("/proc/{pid}/mountinfo"))?;
        let own = table.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let id = fields.next()?.parse().ok()?;
            let place = fields.nth(3)?.replace("\\040", " ");
            self.writable
                .iter()
                .any(|path| path == Path::new(&place))
                .then_some(id)
        });
        Ok(own.collect())
    }
}

/// The process that a thread belongs to.
fn thread_group(thread: u32) -> io::Result<libc::pid_t> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|id| id.trim().parse().ok())
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

fn read_address(question: &Question) -> io::Result<Vec<u8>> {
    let length = question.arguments[2] as usize;
    if !(2..=LONGEST).contains(&length) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut address = vec![0; length];
    let memory = File::open(format!("/proc/{}/mem", question.pid))?;
    memory.read_exact_at(&mut address, question.arguments[1])?;
    Ok(address)
}

/// `struct sockaddr_un`.
fn unix_address(path: &Path) -> io::Result<Vec<u8>> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(path.as_os_str().as_bytes());
    address.push(0);
    match address.len() <= 110 {
        true => Ok(address),
        false => Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG)),
    }
}

fn mount_of(handle: &OwnedFd) -> io::Result<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()))?;
    let line = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    line.and_then(|id| id.trim().parse().ok())
        .ok_or_else(|| io::Error::other("no mount id"))
}
