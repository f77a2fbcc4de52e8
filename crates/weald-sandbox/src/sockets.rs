//! What the launcher does for the inside.
//!
//! Every `connect` in the sandbox is put to the launcher, which takes a copy of the socket and connects it itself. It never
//! says "go on" to one: between the question and the call another thread could swap the socket or the address. Unix sockets
//! of the host are refused unless they were listed; those inside a writable directory are the run's own. Which abstract ones
//! are, the kernel decides: see [`crate::connector`].
//!
//! It makes pairs of datagram sockets, which could send to any address if they were what they are called.
//!
//! It is also asked who a peer is, and about files that are opened for writing: see [`peers`] and [`own_files`]. There it
//! says "go on" to everything that is not its business, because nothing is decided by that.

mod own_files;
mod peers;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rustix::net::AddressFamily;
use rustix::net::sockopt::socket_domain;

use crate::connector;
use crate::gateway::Gateway;
use crate::policy::{Network, Policy};
use crate::sys::{self, Question, Verdict};
use peers::Peers;

/// The longest address of a socket.
const LONGEST: usize = 128;

/// How many connections are made at once; more than that wait.
const AT_ONCE: usize = 64;

struct Broker {
    listener: OwnedFd,
    peers: Peers,
    listed: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    /// The home, and where what is written to it is kept. Sockets of the host's that are seen through the layer are other
    /// files to the kernel, so nobody listens at them.
    home: Option<(PathBuf, PathBuf)>,
    /// Where connections to abstract sockets are made: see [`crate::connector`].
    connector: OwnedFd,
    /// The run is in the launcher's network, so that a socket of the launcher's reveals nothing new.
    online: bool,
    /// Where the network goes by name.
    gateway: Option<Arc<Gateway>>,
}

/// Answers questions until the last process inside is gone. `queries` answers about sockets, `connector` connects abstract
/// ones. A gateway comes with what ends it.
pub fn serve(
    listener: OwnedFd,
    queries: OwnedFd,
    connector: OwnedFd,
    gateway: Option<(Arc<Gateway>, io::PipeWriter)>,
    policy: &Policy,
) -> io::Result<()> {
    let (gateway, end) = gateway.unzip();
    let broker = Arc::new(Broker {
        listener,
        peers: Peers::new(queries),
        connector,
        listed: policy.sockets.clone(),
        writable: own_directories(policy),
        home: policy.home.clone().zip(policy.home_layer.clone()),
        online: policy.network == Network::On,
        gateway,
    });
    let serving = move || {
        let _end = end;
        while let Some(question) = next_question(&broker.listener) {
            Broker::answer_in_thread(&broker, question);
        }
    };
    thread::Builder::new().spawn(serving).map(drop)
}

/// Directories where sockets are the run's own.
fn own_directories(policy: &Policy) -> Vec<PathBuf> {
    let mut writable = policy.write.clone();
    let revealed = policy.reveal.iter().filter(|it| it.writable);
    writable.extend(revealed.map(|it| it.path.clone()));
    writable.extend(["/tmp", "/var/tmp", "/run", "/dev/shm"].map(PathBuf::from));
    writable
}

/// Waits for the next question; `None` when no process with the filter is left.
pub(crate) fn next_question(listener: &OwnedFd) -> Option<Question> {
    loop {
        match sys::next_question(listener) {
            Ok(question) => return Some(question),
            // The asker was killed before anybody looked, or a signal came.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                let ready = sys::poll(&[listener.as_fd()], 1_000).ok()?;
                if ready[0] && sys::hung_up(listener.as_fd()) {
                    return None;
                }
            }
            Err(_) => return None,
        }
    }
}

impl Broker {
    /// Answers a connect, which may take its time, in a thread of its own; if there are too many, or none can be had, here.
    fn answer_in_thread(broker: &Arc<Self>, question: Question) {
        if !question.is_connect() {
            return broker.answer(question);
        }
        let broker_there = Arc::clone(broker);
        let crowded = Arc::strong_count(broker) > AT_ONCE;
        let spawned = !crowded
            && thread::Builder::new()
                .spawn(move || broker_there.answer(question))
                .is_ok();
        if !spawned {
            broker.answer(question);
        }
    }

    fn answer(&self, question: Question) {
        let verdict = match i64::from(question.call) {
            libc::SYS_connect => match self.connect(&question) {
                Ok(()) => Verdict::Done,
                Err(error) => Verdict::Failed(error),
            },
            libc::SYS_socketpair => match self.pair(&question) {
                Ok(()) => Verdict::Done,
                Err(error) => Verdict::Failed(error),
            },
            libc::SYS_getsockopt => self.peer(&question).unwrap_or(Verdict::GoOn),
            // Answered already, if it is one of those.
            _ => match self.open(&question) {
                Some(Ok(())) => return,
                Some(Err(error)) => Verdict::Failed(error),
                None => Verdict::GoOn,
            },
        };
        // An asker that is gone needs no answer.
        let _ = sys::answer_question(&self.listener, question.id, verdict);
    }

    /// A copy of the socket that a question is about.
    fn socket_of(&self, question: &Question) -> io::Result<OwnedFd> {
        let process = sys::open_process(thread_group(question.pid)?)?;
        sys::take_descriptor(&process, question.arguments[0] as i32)
    }

    /// Errors if what was read of the asker may belong to another process by now.
    fn check_waiting(&self, question: &Question) -> io::Result<()> {
        match sys::is_waiting(&self.listener, question.id) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::EINTR)),
        }
    }

    /// Tells who a peer is, where the kernel would say that it is the launcher.
    fn peer(&self, question: &Question) -> io::Result<Verdict> {
        let Some(peer) = self.peers.of(&self.socket_of(question)?)? else {
            return Ok(Verdict::GoOn);
        };
        let [_, _, _, place, size_place, _] = question.arguments;
        let memory = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{}/mem", question.pid))?;
        self.check_waiting(question)?;
        let mut size = [0; 4];
        memory.read_exact_at(&mut size, size_place)?;
        let words = [peer.pid as u32, peer.uid, peer.gid].map(u32::to_ne_bytes);
        let length = words.as_flattened().len();
        if (u32::from_ne_bytes(size) as usize) < length {
            return Ok(Verdict::GoOn);
        }
        memory.write_all_at(words.as_flattened(), place)?;
        memory.write_all_at(&(length as u32).to_ne_bytes(), size_place)?;
        Ok(Verdict::Done)
    }

    /// A pair of datagram sockets: one of packets, which have their borders, too, and go to nobody but the other end.
    fn pair(&self, question: &Question) -> io::Result<()> {
        let [family, kind, _, place, ..] = question.arguments;
        if family as libc::c_int != libc::AF_UNIX || !self.online {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        let has = |flag: libc::c_int| kind as libc::c_int & flag != 0;
        let (one, two) = sys::packet_pair(!has(libc::SOCK_NONBLOCK))?;
        let asker = number_inside(question.pid, "NStgid:").unwrap_or(0);
        let memory = File::options()
            .write(true)
            .open(format!("/proc/{}/mem", question.pid))?;
        self.check_waiting(question)?;
        let mut numbers = [0; 2];
        for (number, end) in numbers.iter_mut().zip([&one, &two]) {
            self.peers.remember(end, asker)?;
            let closes = has(libc::SOCK_CLOEXEC);
            *number = sys::hand_over(&self.listener, question.id, end, closes, false)?;
        }
        memory.write_all_at(numbers.map(i32::to_ne_bytes).as_flattened(), place)
    }

    /// Opens a file of /proc for the process that it is about; `None` for any other.
    fn open(&self, question: &Question) -> Option<io::Result<()>> {
        let path = own_files::meant(question)?;
        let flags = question.open().flags;
        let opened = || {
            let reads = flags & libc::O_ACCMODE == libc::O_RDWR;
            let file = File::options().read(reads).write(true).open(path)?;
            self.check_waiting(question)?;
            let closes = flags & libc::O_CLOEXEC != 0;
            sys::hand_over(&self.listener, question.id, &file, closes, true).map(drop)
        };
        Some(opened())
    }

    fn connect(&self, question: &Question) -> io::Result<()> {
        let socket = self.socket_of(question)?;
        let address = read_address(question)?;
        self.check_waiting(question)?;
        match socket_domain(&socket)? {
            AddressFamily::UNIX => self.connect_unix(question, &socket, &address),
            AddressFamily::INET | AddressFamily::INET6 => match &self.gateway {
                Some(gateway) => gateway.connect(question.pid, &socket, &address),
                None => sys::connect(&socket, &address),
            },
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
            let asker = self.asker(question);
            self.check_waiting(question)?;
            self.peers.remember(socket, asker)?;
            return connector::ask(&self.connector, socket, address);
        }
        if self.listed.iter().any(|listed| listed == path) {
            return sys::connect(socket, &unix_address(path)?);
        }
        let base = if path.is_absolute() { "root" } else { "cwd" };
        let base = File::open(format!("/proc/{}/{base}", question.pid))?;
        let handle = sys::open_handle(&base.into(), path)?;
        let allowed = self.is_listed(&handle)?
            || self.own_mounts(question.pid)?.contains(&mount_of(&handle)?);
        let asker = self.asker(question);
        // Root, mounts and number are the asker's only if it is still there: another process may have got its number.
        self.check_waiting(question)?;
        match allowed {
            true => {
                let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
                self.peers.remember(socket, asker)?;
                sys::connect(socket, &unix_address(Path::new(&path))?)
            }
            false => Err(refused()),
        }
    }

    /// The asker as it is called inside: the owner of the other socket may ask who this one was connected for.
    fn asker(&self, question: &Question) -> i32 {
        number_inside(question.pid, "NStgid:").unwrap_or(0)
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

    /// Whether a mount at this place is the private layer over the home, and no mount of the host's.
    fn is_layer(&self, place: &Path, line: &str) -> bool {
        let Some((home, layer)) = &self.home else {
            return false;
        };
        let options = line.split_once(" - overlay ").map_or("", |(_, rest)| rest);
        let upper = options
            .split([' ', ','])
            .find_map(|option| option.strip_prefix("upperdir="));
        let upper = upper.map(|path| path.replace("\\040", " "));
        place == home && upper.is_some_and(|path| Path::new(&path).starts_with(layer))
    }

    /// The mounts in the asker's view that hold its writable directories.
    fn own_mounts(&self, pid: u32) -> io::Result<BTreeSet<u64>> {
        let table = fs::read_to_string(format!("/proc/{pid}/mountinfo"))?;
        let own = table.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let id = fields.next()?.parse().ok()?;
            let place = fields.nth(3)?.replace("\\040", " ");
            let place = Path::new(&place);
            let is_own = self.writable.iter().any(|path| path == place);
            (is_own || self.is_layer(place, line)).then_some(id)
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

/// The number that a process or thread has in its innermost namespace; which of them `line` says.
fn number_inside(process: u32, line: &str) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let numbers = status.lines().find_map(|it| it.strip_prefix(line))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
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

pub(crate) fn unix_address(path: &Path) -> io::Result<Vec<u8>> {
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
