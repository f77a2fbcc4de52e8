//! The network by name: a run reaches the hosts that are listed, and no others.
//!
//! The run has a network of its own with nothing but loopback, as when the network is off. A resolver of weald's answers
//! for listed names with addresses that exist in that network alone. The launcher is asked about every connect anyway: it
//! finds the name behind the address, dials outside, and connects the run's socket to a listener of its own inside, from
//! which it passes bytes on.
//!
//! It does not hand the outer socket into the run, which would be faster. A socket of the host's network can be led
//! elsewhere by calls that ask nobody, and programs lose what they set on their own socket (options, epoll, copies of its
//! number). This way nothing that a run can call reaches the host's network, and a mistake about a socket costs no more than
//! one connection to a host that is listed.
//!
//! What is dialed is decided by the launcher's copy of the address, and again by what a name stands for at that moment.

mod dialing;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod names;
mod refusals;
mod relay;
mod resolver;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::OFlags;
use rustix::net::sockopt::socket_type;
use rustix::net::{AddressFamily, SocketType};

use crate::policy::{Host, Policy};
use crate::sys;
use dialing::Destination;
use names::Names;

pub use refusals::{Refusal, Refusals};

/// Where the resolver is, inside.
const RESOLVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);

/// How long a socket that does not wait is kept waiting, to get the true answer. After that it is connected before the outer
/// side is, and reset if that fails.
const SHORT: Duration = Duration::from_millis(150);

/// Longer than dialing ever takes.
const LONG: Duration = Duration::from_secs(120);

/// How long it takes at most to connect the run's socket to the relay.
const ENTERING: Duration = Duration::from_secs(2);

/// The system's library needs room to look a name up: it may load modules for that.
const DIALING_STACK: usize = 1024 * 1024;

/// How many connections there are at once: each takes two of the descriptors that the launcher may have.
const MOST: usize = 128;

/// How many askers of the resolver are remembered.
const ASKERS: usize = 64;

/// What the first process inside prepares and hands out: made before it gives up its rights, in the run's network.
pub(crate) struct Doors {
    datagrams: UdpSocket,
    streams: TcpListener,
    /// Where connections come out.
    relay: TcpListener,
}

impl Doors {
    /// Opens them. The network is new, and has a loopback interface.
    pub(crate) fn open() -> io::Result<Self> {
        sys::add_loopback_address(names::FIRST, names::MASK)?;
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        Ok(Self {
            datagrams: UdpSocket::bind(RESOLVER)?,
            streams: TcpListener::bind(RESOLVER)?,
            // A kernel without IPv6 has the other one alone.
            relay: TcpListener::bind(any)
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?,
        })
    }

    /// Sends them to the launcher.
    pub(crate) fn send(self, launcher: &OwnedFd) -> io::Result<()> {
        let sent: [OwnedFd; 3] = [
            self.datagrams.into(),
            self.streams.into(),
            self.relay.into(),
        ];
        sent.iter()
            .try_for_each(|door| sys::send_descriptor(launcher, door))
    }

    /// The launcher's end of [`Doors::send`]; `None` if the other end closed before.
    pub(crate) fn receive(from: &OwnedFd) -> io::Result<Option<Self>> {
        let next = || sys::receive_descriptor(from);
        Ok(match (next()?, next()?, next()?) {
            (Some(datagrams), Some(streams), Some(relay)) => Some(Self {
                datagrams: datagrams.into(),
                streams: streams.into(),
                relay: relay.into(),
            }),
            _ => None,
        })
    }
}

/// Decides where a run connects to, and does it.
pub(crate) struct Gateway {
    hosts: Vec<Host>,
    names: Mutex<Names>,
    relay: Mutex<TcpListener>,
    relay_port: u16,
    connections: AtomicUsize,
    /// Programs that talk to the resolver, by the port they talk from.
    askers: Mutex<VecDeque<(u16, String)>>,
    refusals: Refusals,
    /// Closed at its other end when the run has ended.
    over: io::PipeReader,
}

/// What a connect is for.
enum Meant {
    /// Something in the run's own network.
    Own,
    Outside(Destination),
    /// Nothing that is listed: what to call it.
    Refused(String),
}

impl Gateway {
    /// Starts to serve a run; the resolver ends when the returned end of a pipe is dropped.
    pub(crate) fn start(
        policy: &Policy,
        doors: Doors,
        refusals: Refusals,
    ) -> io::Result<(Arc<Self>, io::PipeWriter)> {
        let relay_port = doors.relay.local_addr()?.port();
        let (over, end) = io::pipe()?;
        let gateway = Arc::new(Self {
            hosts: policy.hosts.clone(),
            names: Mutex::default(),
            relay: Mutex::new(doors.relay),
            relay_port,
            connections: AtomicUsize::new(0),
            askers: Mutex::default(),
            refusals,
            over: over.try_clone()?,
        });
        resolver::serve(&gateway, doors.datagrams, doors.streams, over)?;
        Ok((gateway, end))
    }

    /// Connects a socket of the run's, which `process` asked for.
    pub(crate) fn connect(
        self: &Arc<Self>,
        process: u32,
        socket: &OwnedFd,
        address: &[u8],
    ) -> io::Result<()> {
        // What is no address of the internet leads nowhere from here, as the kernel will say.
        let Some(to) = address_in(address) else {
            return sys::connect(socket, address);
        };
        if socket_type(socket)? != SocketType::STREAM {
            return self.connect_datagrams(process, socket, to, address);
        }
        let view = TcpStream::from(socket.try_clone()?);
        if view.peer_addr().is_ok() {
            return Err(io::Error::from_raw_os_error(libc::EISCONN));
        }
        match self.meant(to) {
            Meant::Own if is_own(to.ip()) && to.port() == self.relay_port => {
                Err(io::ErrorKind::ConnectionRefused.into())
            }
            Meant::Own => sys::connect(socket, address),
            Meant::Outside(destination) => self.reach(process, socket, to, destination),
            Meant::Refused(name) => {
                self.refuse(process, name, to.port(), "tcp");
                Err(io::Error::from_raw_os_error(libc::EACCES))
            }
        }
    }

    /// Only the run's own network has datagrams.
    fn connect_datagrams(
        &self,
        process: u32,
        socket: &OwnedFd,
        to: SocketAddr,
        address: &[u8],
    ) -> io::Result<()> {
        let is_inside = is_own(to.ip()) || names::is_synthetic(to.ip());
        if !is_inside {
            self.refuse(process, to.ip().to_string(), to.port(), "udp");
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        sys::connect(socket, address)?;
        if to == RESOLVER {
            let own = UdpSocket::from(socket.try_clone()?).local_addr()?;
            let mut askers = lock(&self.askers);
            askers.push_back((own.port(), program_of(process)));
            if askers.len() > ASKERS {
                askers.pop_front();
            }
        }
        Ok(())
    }

    fn meant(&self, to: SocketAddr) -> Meant {
        let (ip, port) = (to.ip(), to.port());
        if is_own(ip) {
            // A service of the host's takes the place of the run's own only if it is listed with its port.
            let listed = |host: &&Host| {
                host.port == Some(port) && (host.is_address(ip) || host.name == "localhost")
            };
            return match self.hosts.iter().find(listed) {
                Some(host) if host.name == "localhost" => {
                    Meant::Outside(Destination::named("localhost", port, true))
                }
                Some(_) => Meant::Outside(Destination::Address(to)),
                None => Meant::Own,
            };
        }
        if names::is_synthetic(ip) {
            let Some(name) = lock(&self.names).name_of(ip) else {
                return Meant::Refused(ip.to_string());
            };
            return match self.hosts.iter().any(|host| host.allows(&name, port)) {
                true => {
                    let is_exact = |host: &&Host| host.port == Some(port) && host.name == name;
                    let is_explicit = self.hosts.iter().any(|host| is_exact(&host));
                    Meant::Outside(Destination::named(&name, port, is_explicit))
                }
                false => Meant::Refused(name),
            };
        }
        let is_listed =
            |host: &Host| host.is_address(ip) && host.port.is_none_or(|known| known == port);
        match self.hosts.iter().any(is_listed) {
            true => Meant::Outside(Destination::Address(to)),
            false => Meant::Refused(ip.to_string()),
        }
    }

    /// Dials in a thread, which passes bytes on afterwards, and connects the run's socket to it.
    fn reach(
        self: &Arc<Self>,
        process: u32,
        socket: &OwnedFd,
        to: SocketAddr,
        destination: Destination,
    ) -> io::Result<()> {
        let waits = !rustix::fs::fcntl_getfl(socket)?.contains(OFlags::NONBLOCK);
        let place = Place::take(self)?;
        let (dialed_in, dialed) = std::sync::mpsc::channel();
        let (inner_in, inner) = std::sync::mpsc::channel::<TcpStream>();
        let gateway = Arc::clone(self);
        let dial_and_pass_on = move || {
            let _place = place;
            let outer = destination.dial().inspect_err(|failed| {
                if let dialing::Failed::Kept(address) = failed {
                    let (name, port) = (destination.name(), destination.port());
                    gateway.refusals.note(Refusal {
                        address: Some(address.to_string()),
                        ..refusal(name, Some(port), "tcp", program_of(process))
                    });
                }
            });
            match outer {
                Ok(outer) => {
                    let _ = dialed_in.send(Ok(()));
                    if let Ok(inner) = inner.recv() {
                        relay::pass_on(inner, outer, &gateway.over);
                    }
                }
                Err(failed) => {
                    let _ = dialed_in.send(Err(failed.into_error()));
                    if let Ok(inner) = inner.recv() {
                        relay::reset(&inner);
                    }
                }
            }
        };
        thread::Builder::new()
            .stack_size(DIALING_STACK)
            .spawn(dial_and_pass_on)?;
        match dialed.recv_timeout(if waits { LONG } else { SHORT }) {
            Ok(Err(error)) => return Err(error),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            Ok(Ok(())) | Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
        }
        let (connected, accepted) = self.enter(socket, to, waits)?;
        let _ = inner_in.send(accepted);
        connected
    }

    /// Connects the run's socket to the relay; answers what the run is told, and the other end.
    fn enter(
        &self,
        socket: &OwnedFd,
        to: SocketAddr,
        waits: bool,
    ) -> io::Result<(io::Result<()>, TcpStream)> {
        let is_six = rustix::net::sockopt::socket_domain(socket)? == AddressFamily::INET6;
        let inside = match to.ip() {
            // The address that it asked for is the one that it sees at the other end.
            ip if names::is_synthetic(ip) => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let relay = lock(&self.relay);
        let deadline = Instant::now() + ENTERING;
        // What the run put there without asking would keep the connection waiting.
        while accept_until(&relay, Instant::now())?.is_some() && Instant::now() < deadline {}
        let address = bytes_of(SocketAddr::new(inside, self.relay_port), is_six);
        let mut connected = connect_until(socket, &address, deadline);
        match &connected {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(io::Error::from_raw_os_error(
                    error.raw_os_error().unwrap_or(libc::ECONNREFUSED),
                ));
            }
            _ => {}
        }
        let own = TcpStream::from(socket.try_clone()?).local_addr()?;
        while let Some((accepted, peer)) = accept_until(&relay, deadline)? {
            // Anything else got here without being asked about, and goes nowhere.
            if plain(peer) == plain(own) {
                if waits {
                    connected = Ok(());
                }
                return Ok((connected, accepted));
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        Err(io::Error::from_raw_os_error(libc::ETIMEDOUT))
    }

    /// The address that stands for a name inside, if the name is listed.
    fn resolve(&self, name: &str) -> Option<Ipv4Addr> {
        if name == "localhost" || name.ends_with(".localhost") {
            return Some(Ipv4Addr::LOCALHOST);
        }
        let is_listed = self.hosts.iter().any(|host| host.has_name(name));
        is_listed.then(|| lock(&self.names).address_of(name))?
    }

    /// Notes that a name was asked for which is not listed.
    fn refuse_name(&self, asker: u16, name: &str) {
        let program = lock(&self.askers)
            .iter()
            .rev()
            .find(|(port, _)| *port == asker)
            .map_or_else(String::new, |(_, program)| program.clone());
        let refused = refusal(name.to_owned(), None, "dns", program);
        self.refusals.note(refused);
    }

    fn refuse(&self, process: u32, name: String, port: u16, protocol: &str) {
        let program = program_of(process);
        let refused = refusal(name, Some(port), protocol, program);
        self.refusals.note(refused);
    }
}

/// The next connection to the relay; `None` if none comes before the deadline.
fn accept_until(
    relay: &TcpListener,
    deadline: Instant,
) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if sys::poll(&[relay.as_fd()], left.as_millis() as i32)?[0] {
            return relay.accept().map(Some);
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
    }
}

/// Connects a socket, and stops waiting at the deadline. The limit is set on the run's own socket and restored; clearing its
/// blocking flag instead would break the run's other threads that use it.
fn connect_until(socket: &OwnedFd, address: &[u8], deadline: Instant) -> io::Result<()> {
    let view = TcpStream::from(socket.try_clone()?);
    let before = view.write_timeout()?;
    let left = deadline.saturating_duration_since(Instant::now());
    let left = left.max(Duration::from_millis(1));
    view.set_write_timeout(Some(before.map_or(left, |before| before.min(left))))?;
    let connected = sys::connect(socket, address);
    view.set_write_timeout(before)?;
    connected
}

fn refusal(host: String, port: Option<u16>, protocol: &str, program: String) -> Refusal {
    Refusal {
        host,
        address: None,
        port,
        protocol: protocol.to_owned(),
        program,
        count: 1,
    }
}

/// One of the connections that there may be at once.
struct Place(Arc<Gateway>);

impl Place {
    fn take(gateway: &Arc<Gateway>) -> io::Result<Self> {
        let before = gateway.connections.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(gateway));
        match before < MOST {
            true => Ok(place),
            false => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Host {
    /// Whether it lists this name, whatever the port.
    fn has_name(&self, name: &str) -> bool {
        match self.below {
            true => name
                .strip_suffix(self.name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => self.name == name,
        }
    }

    fn allows(&self, name: &str, port: u16) -> bool {
        self.has_name(name) && self.port.is_none_or(|known| known == port)
    }

    fn is_address(&self, address: IpAddr) -> bool {
        !self.below && self.name.parse() == Ok(address)
    }
}

/// Whether an address is this network's own without a name: where the run's own servers listen.
fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || address == IpAddr::V4(names::FIRST)
}

/// An address without the clothes of the other version.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The address that a process wants to be connected to, if it is one of the internet.
fn address_in(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip: IpAddr = match libc::c_int::from(family) {
        libc::AF_INET if bytes.len() >= 16 => {
            Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?).into()
        }
        libc::AF_INET6 if bytes.len() >= 24 => {
            Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?).into()
        }
        _ => return None,
    };
    Some(plain(SocketAddr::new(ip, port)))
}

/// An address as a socket of one version takes it.
fn bytes_of(address: SocketAddr, is_six: bool) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    let six = match (address.ip(), is_six) {
        (IpAddr::V4(ip), false) => {
            let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
            bytes.extend(port);
            bytes.extend(ip.octets());
            bytes.extend([0; 8]);
            return bytes;
        }
        (IpAddr::V4(ip), true) => ip.to_ipv6_mapped(),
        (IpAddr::V6(ip), _) => ip,
    };
    let mut bytes = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
    bytes.extend(port);
    bytes.extend([0; 4]);
    bytes.extend(six.octets());
    bytes.extend([0; 4]);
    bytes
}

/// What people call the program of a process. The run chooses it, so it is for reading only.
fn program_of(process: u32) -> String {
    let path = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    refusals::plain_text(name.trim_end_matches(" (deleted)"), 32)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, below: bool, port: Option<u16>) -> Host {
        Host {
            name: name.to_owned(),
            below,
            port,
        }
    }

    #[test]
    fn a16_a_rule_lists_its_own_name_and_port_and_a_wildcard_what_lies_below() {
        let exact = host("example.com", false, Some(443));
        assert!(exact.allows("example.com", 443));
        assert!(!exact.allows("example.com", 80));
        assert!(!exact.allows("a.example.com", 443));
        let below = host("example.com", true, None);
        for (name, wanted) in [
            ("a.example.com", true),
            ("b.a.example.com", true),
            ("example.com", false),
            (".example.com", false),
            ("badexample.com", false),
            ("example.com.evil.org", false),
        ] {
            assert_eq!(below.allows(name, 1), wanted, "{name}");
        }
        assert!(!host("10.0.0.1", true, None).is_address("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a16_a_full_backlog_of_the_relay_holds_a_connection_up_for_its_time_and_no_longer() {
        let relay = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // With less room than the library gives it.
        rustix::net::listen(&relay, 0).unwrap();
        let at = relay.local_addr().unwrap();
        let _held = TcpStream::connect(at).unwrap();
        let address = bytes_of(at, false);
        let kind = SocketType::STREAM;
        let socket = rustix::net::socket(AddressFamily::INET, kind, None).unwrap();
        let began = Instant::now();
        let limit = Duration::from_millis(200);
        let connected = connect_until(&socket, &address, began + limit);
        assert_eq!(
            connected.unwrap_err().raw_os_error(),
            Some(libc::EINPROGRESS)
        );
        assert!(began.elapsed() < limit * 20);
        let view = TcpStream::from(socket);
        assert_eq!(view.write_timeout().unwrap(), None);
        assert!(accept_until(&relay, Instant::now()).unwrap().is_some());
        assert!(accept_until(&relay, Instant::now()).unwrap().is_none());
    }

    #[test]
    fn a16_addresses_are_read_as_the_kernel_reads_them() {
        let four = SocketAddr::from(([198, 18, 0, 7], 443));
        for is_six in [false, true] {
            assert_eq!(address_in(&bytes_of(four, is_six)), Some(four));
        }
        let six: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
        assert_eq!(address_in(&bytes_of(six, true)), Some(six));
        for short in [
            &[][..],
            &[2],
            &[2, 0, 1],
            &[2, 0, 0, 80, 1, 2, 3, 4],
            &[0; 16],
        ] {
            assert_eq!(address_in(short), None);
        }
    }
}
