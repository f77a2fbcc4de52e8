//! Dialing a listed host from the host's network.
//!
//! A name is looked up at each dial. Who runs its servers can make it stand for anything, also for an address behind the
//! user's firewall, or for this very machine: those are dialed only for a name that is listed with its port, and some not
//! even then.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::sys;

/// How long one address has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many addresses of a name are tried.
const TRIED: usize = 6;

#[derive(Debug, Clone)]
pub(super) enum Destination {
    /// Listed as it is.
    Address(SocketAddr),
    Name {
        name: String,
        port: u16,
        /// This very name is listed with this very port.
        is_explicit: bool,
    },
}

/// Why nothing was reached.
pub(super) enum Failed {
    /// The name stands for an address that is kept from runs.
    Kept(IpAddr),
    System(io::Error),
}

impl Failed {
    pub(super) fn into_error(self) -> io::Error {
        match self {
            Self::Kept(_) => io::Error::from_raw_os_error(libc::EACCES),
            Self::System(error) => {
                io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(match error.kind() {
                    io::ErrorKind::TimedOut => libc::ETIMEDOUT,
                    // The name does not exist, or nobody could be asked.
                    _ => libc::EHOSTUNREACH,
                }))
            }
        }
    }
}

impl Destination {
    pub(super) fn named(name: &str, port: u16, is_explicit: bool) -> Self {
        let name = name.to_owned();
        Self::Name {
            name,
            port,
            is_explicit,
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Address(address) => address.ip().to_string(),
            Self::Name { name, .. } => name.clone(),
        }
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name { port, .. } => *port,
        }
    }

    pub(super) fn dial(&self) -> Result<TcpStream, Failed> {
        let (name, port, is_explicit) = match self {
            Self::Address(address) => return dial(&[*address], true),
            Self::Name {
                name,
                port,
                is_explicit,
            } => (name, *port, *is_explicit),
        };
        let found = (name.as_str(), port).to_socket_addrs();
        let found: Vec<_> = found.map_err(Failed::System)?.collect();
        let near = Near::list();
        let may = |address: &&SocketAddr| match near.reach_of(address.ip()) {
            Reach::Public => true,
            Reach::Private => is_explicit,
            Reach::Never => false,
        };
        let mut allowed: Vec<_> = found.iter().filter(may).copied().collect();
        // The run was told an address of version 4, and hosts with a broken version 6 are common.
        allowed.sort_by_key(SocketAddr::is_ipv6);
        allowed.truncate(TRIED);
        match (allowed.is_empty(), found.first()) {
            (true, Some(kept)) => Err(Failed::Kept(kept.ip())),
            _ => dial(&allowed, is_explicit),
        }
    }
}

fn dial(addresses: &[SocketAddr], is_explicit: bool) -> Result<TcpStream, Failed> {
    let mut failed = io::Error::from_raw_os_error(libc::EHOSTUNREACH);
    for address in addresses {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(stream) if !is_explicit && ends_here(&stream).map_err(Failed::System)? => {
                return Err(Failed::Kept(address.ip()));
            }
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(Failed::System(failed))
}

/// Whether a connection leads to this machine, by an address that no interface shows (a route can make any address local).
fn ends_here(stream: &TcpStream) -> io::Result<bool> {
    let (own, peer) = (stream.local_addr()?.ip(), stream.peer_addr()?.ip());
    Ok(own.to_canonical() == peer.to_canonical())
}

/// What this machine's interfaces reach without a router: addresses and masks. `None` if that is unknown.
struct Near(Option<Vec<(IpAddr, IpAddr)>>);

impl Near {
    fn list() -> Self {
        Self(sys::interface_addresses().ok())
    }

    /// A public address of this machine or of a neighbour is as private as any other of theirs; if the interfaces are
    /// unknown, all are.
    fn reach_of(&self, address: IpAddr) -> Reach {
        let address = address.to_canonical();
        let has = |address: IpAddr| {
            let Some(all) = &self.0 else {
                return true;
            };
            all.iter()
                .any(|(own, mask)| is_on_link(address, *own, *mask))
        };
        let translated = translated(address).map(IpAddr::V4);
        match reach_of(address) {
            Reach::Public if has(address) || translated.is_some_and(has) => Reach::Private,
            reach => reach,
        }
    }
}

fn is_on_link(address: IpAddr, own: IpAddr, mask: IpAddr) -> bool {
    match (address, own, mask) {
        (IpAddr::V4(address), IpAddr::V4(own), IpAddr::V4(mask)) => address & mask == own & mask,
        (IpAddr::V6(address), IpAddr::V6(own), IpAddr::V6(mask)) => {
            // An address that DHCP gave has a longer mask than its network, which has 64 bits almost everywhere.
            let mask = mask & Ipv6Addr::new(!0, !0, !0, !0, 0, 0, 0, 0);
            address & mask == own & mask
        }
        _ => false,
    }
}

/// From where an address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Public,
    /// From this machine or its network alone.
    Private,
    /// It is no service, or one that hands out credentials of the machine.
    Never,
}

/// Services of clouds that hand out credentials, where their addresses do not look like it.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

fn reach_of(address: IpAddr) -> Reach {
    let address = address.to_canonical();
    if METADATA.contains(&address) {
        return Reach::Never;
    }
    if let Some(four) = translated(address) {
        return reach_of(four.into());
    }
    match address {
        IpAddr::V4(four) => reach_of_four(four),
        IpAddr::V6(six) => reach_of_six(six),
    }
}

/// The address of version 4 that one of version 6 leads to: through a gateway, or by name.
fn translated(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(six) = address else {
        return None;
    };
    match six.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => None,
        [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        _ => None,
    }
}

fn reach_of_four(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0 | 224.., _, _) | (169, 254, _) => Reach::Never,
        (10 | 127, _, _) | (192, 168, _) | (192, 0, 0) => Reach::Private,
        (172, 16..=31, _) | (100, 64..=127, _) | (198, 18..=19, _) => Reach::Private,
        _ => Reach::Public,
    }
}

fn reach_of_six(address: Ipv6Addr) -> Reach {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] | [0x64, 0xff9b, 1, ..] => Reach::Private,
        // Stateless translation (SIIT) and Teredo: no service is there.
        [0, 0, 0, 0, 0xffff, 0, ..] | [0x2001, 0, ..] => Reach::Never,
        [0xfe80..=0xfebf | 0xff00.., ..] => Reach::Never,
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Reach::Private,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a16_private_and_metadata_addresses_are_known_in_every_dress() {
        use Reach::{Never, Private, Public};
        for (address, wanted) in [
            ("1.1.1.1", Public),
            ("2606:4700::1111", Public),
            ("172.15.0.1", Public),
            ("172.32.0.1", Public),
            ("100.63.0.1", Public),
            ("127.0.0.1", Private),
            ("127.9.9.9", Private),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("198.19.0.1", Private),
            ("::1", Private),
            ("fd12::1", Private),
            ("fec0::1", Private),
            ("::ffff:127.0.0.1", Private),
            ("::127.0.0.1", Private),
            ("64:ff9b::10.0.0.1", Private),
            ("2002:7f00:1::", Private),
            ("64:ff9b:1::1", Private),
            ("0.0.0.0", Never),
            ("::", Never),
            ("169.254.169.254", Never),
            ("::ffff:169.254.169.254", Never),
            ("64:ff9b::169.254.169.254", Never),
            ("fd00:ec2::254", Never),
            ("100.100.100.200", Never),
            ("::ffff:100.100.100.200", Never),
            ("168.63.129.16", Never),
            ("fe80::1", Never),
            ("ff02::1", Never),
            ("224.0.0.1", Never),
            ("240.0.0.1", Never),
            ("255.255.255.255", Never),
            ("64:ff9b::168.63.129.16", Never),
            ("2002:6464:64c8::", Never),
            ("::ffff:0:1.1.1.1", Never),
            ("::ffff:0:10.0.0.1", Never),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Never),
            ("2001:1::1", Public),
        ] {
            assert_eq!(reach_of(address.parse().unwrap()), wanted, "{address}");
        }
    }

    #[test]
    fn a16_public_addresses_of_this_machine_and_its_neighbours_are_private() {
        use Reach::{Never, Private, Public};
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let near = Near(Some(vec![
            (ip("203.0.113.9"), ip("255.255.255.240")),
            (ip("198.51.100.7"), ip("255.255.255.255")),
            (ip("2a00:1:2:3::5"), ip("ffff:ffff:ffff:ffff::")),
            (
                ip("2a00:9:9:9::5"),
                ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ),
        ]));
        for (address, wanted) in [
            ("203.0.113.9", Private),
            ("203.0.113.1", Private),
            ("203.0.113.16", Public),
            ("198.51.100.7", Private),
            ("198.51.100.8", Public),
            ("::ffff:203.0.113.9", Private),
            ("64:ff9b::203.0.113.9", Private),
            ("2002:cb00:7109::1", Private),
            ("2a00:1:2:3::5", Private),
            ("2a00:1:2:3:ffff::1", Private),
            ("2a00:1:2:4::1", Public),
            ("2a00:9:9:9::6", Private),
            ("1.1.1.1", Public),
            ("169.254.169.254", Never),
        ] {
            assert_eq!(near.reach_of(ip(address)), wanted, "{address}");
        }
        assert_eq!(Near(None).reach_of(ip("1.1.1.1")), Private);
        assert_eq!(Near(None).reach_of(ip("169.254.169.254")), Never);
    }

    #[test]
    fn a16_interfaces_are_listed_with_loopback_among_them() {
        let all = sys::interface_addresses().unwrap();
        let loopback = (
            Ipv4Addr::LOCALHOST.into(),
            Ipv4Addr::new(255, 0, 0, 0).into(),
        );
        assert!(all.contains(&loopback), "{all:?}");
    }

    #[test]
    fn a16_a_connection_that_ends_on_this_machine_is_kept_from_an_unlisted_port() {
        let server = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = server.local_addr().unwrap();
        assert!(matches!(dial(&[address], false), Err(Failed::Kept(ip)) if ip == address.ip()));
        assert!(dial(&[address], true).is_ok());
        for (is_explicit, wanted) in [(true, true), (false, false)] {
            let named = Destination::named("localhost", address.port(), is_explicit);
            assert_eq!(named.dial().is_ok(), wanted);
        }
    }
}
