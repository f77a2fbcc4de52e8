//! Which sockets may be made, and what they reveal of their peers.

use super::{
    ALLOW, ASK, EACCES, ENOPROTOOPT, Rules, UnixSockets, answer, argument, jump_equal, load, mask,
    with_argument,
};
use crate::broker_socket::PROTOCOL;
use crate::sys::Instruction;

/// The type of a socket without its flags.
const SOCKET_TYPE: u32 = 0xf;

/// Families that a socket may have; netlink only to ask about interfaces and routes.
pub fn families(rules: &Rules<'_>) -> Vec<Instruction> {
    let mut checks = vec![load(argument(0))];
    match rules.sockets {
        UnixSockets::Deny | UnixSockets::DenyAll => {
            checks.extend([
                jump_equal(libc::AF_UNIX as u32, 0, 4),
                load(argument(2)),
                jump_equal(PROTOCOL, 0, 1),
                answer(if rules.broker { ASK } else { EACCES }),
                answer(EACCES),
            ]);
            for family in [libc::AF_INET, libc::AF_INET6] {
                if rules.sockets == UnixSockets::DenyAll {
                    checks.extend([jump_equal(family as u32, 0, 1), answer(EACCES)]);
                }
            }
        }
        // A datagram socket (and SOCK_RAW, which is one) needs no connect to send, so nobody would be asked.
        UnixSockets::Ask => checks.extend([
            jump_equal(libc::AF_UNIX as u32, 0, 8),
            load(argument(1)),
            mask(SOCKET_TYPE),
            jump_equal(libc::SOCK_STREAM as u32, 3, 0),
            jump_equal(libc::SOCK_SEQPACKET as u32, 2, 0),
            jump_equal(libc::SOCK_DGRAM as u32, 0, 2),
            answer(if rules.datagrams { ALLOW } else { EACCES }),
            answer(ALLOW),
            answer(EACCES),
        ]),
    }
    for family in [libc::AF_INET, libc::AF_INET6] {
        checks.extend([jump_equal(family as u32, 0, 1), answer(ALLOW)]);
    }
    checks.extend([
        jump_equal(libc::AF_NETLINK as u32, 0, 3),
        load(argument(2)),
        jump_equal(libc::NETLINK_ROUTE as u32, 0, 1),
        answer(ALLOW),
        answer(EACCES),
    ]);
    checks
}

/// A datagram pair could send to any address: the launcher makes one that can't.
pub fn pairs(sockets: UnixSockets, datagrams: bool) -> Vec<Instruction> {
    let asks = match sockets {
        UnixSockets::Ask if datagrams => ALLOW,
        UnixSockets::Ask => ASK,
        UnixSockets::Deny | UnixSockets::DenyAll => EACCES,
    };
    with_argument(
        1,
        &[
            mask(SOCKET_TYPE),
            jump_equal(libc::SOCK_STREAM as u32, 4, 0),
            jump_equal(libc::SOCK_SEQPACKET as u32, 3, 0),
            jump_equal(libc::SOCK_DGRAM as u32, 0, 1),
            answer(asks),
            answer(EACCES),
        ],
    )
}

/// Who is at the other end of a socket: the launcher knows for whom it connected. A descriptor for that process would be one
/// for the launcher.
pub fn peers(sockets: UnixSockets) -> Vec<Instruction> {
    const PEER_DESCRIPTOR: u32 = 77;
    let asks = if sockets == UnixSockets::Ask {
        ASK
    } else {
        ALLOW
    };
    let mut checks = with_argument(1, &[jump_equal(libc::SOL_SOCKET as u32, 0, 5)]);
    checks.extend(with_argument(
        2,
        &[
            jump_equal(PEER_DESCRIPTOR, 0, 1),
            answer(ENOPROTOOPT),
            jump_equal(libc::SO_PEERCRED as u32, 0, 1),
            answer(asks),
        ],
    ));
    checks
}
