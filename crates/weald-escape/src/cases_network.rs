//! Cases about the network by name: one server on the host's loopback is listed, and the attempts are on another one.

use super::Case;
use super::cases::native;

const fn by_name(name: &'static str, attempt: &'static str) -> Case {
    Case {
        by_name: true,
        ..native(name, attempt)
    }
}

pub const NETWORK: &[Case] = &[
    by_name("by name: connect", "net-connect"),
    by_name("by name: connect as version 6", "net-mapped"),
    by_name("by name: connect by sending", "net-fastopen"),
    by_name("by name: send a datagram", "net-datagram"),
    by_name("by name: send by a message", "net-message"),
    by_name("by name: swap the address", "net-swap"),
    by_name("by name: swap the socket", "net-other"),
    by_name("by name: connect once more", "net-again"),
    by_name("by name: send once more", "net-resend"),
    by_name("by name: connect for a child", "net-child"),
    by_name("by name: a raw socket", "net-raw"),
    by_name("by name: a packet socket", "net-packet"),
];
