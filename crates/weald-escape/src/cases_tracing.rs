//! Cases about what debuggers and servers may do inside: trace, schedule, limit, and talk to each other.
//!
//! The starter is whoever started the attempt: confined, the process that ends the run.

use super::Attempt::Native;
use super::Case;
use super::Effect::Success;
use super::cases::case;

pub const TRACING: &[Case] = &[
    case(
        "remove shared memory by its number",
        Native("sysv-shm-remove"),
        Success,
    ),
    case(
        "remove a message queue by its number",
        Native("sysv-msg-remove"),
        Success,
    ),
    case("open a POSIX queue", Native("queue-open"), Success),
    case("remove a POSIX queue", Native("queue-remove"), Success),
    case("trace the starter", Native("trace-starter"), Success),
    case("read the starter's memory", Native("read-starter"), Success),
    case(
        "open the starter's memory",
        Native("starter-memory"),
        Success,
    ),
    case(
        "list the starter's descriptors",
        Native("starter-descriptors"),
        Success,
    ),
    case(
        "take the starter's descriptors",
        Native("starter-take"),
        Success,
    ),
    case(
        "compare with the starter",
        Native("starter-compare"),
        Success,
    ),
    case(
        "set the starter's priority",
        Native("starter-nice"),
        Success,
    ),
    case(
        "set the starter's io priority",
        Native("starter-io"),
        Success,
    ),
    case(
        "set the starter's processors",
        Native("starter-processors"),
        Success,
    ),
    case(
        "set the starter's scheduler",
        Native("starter-scheduler"),
        Success,
    ),
    case("limit the starter", Native("starter-limit"), Success),
    case(
        "set the priority of its group",
        Native("group-nice"),
        Success,
    ),
    case("set the priority of the user", Native("user-nice"), Success),
    case(
        "set the io priority of its group",
        Native("group-io"),
        Success,
    ),
    case(
        "the first process by its number",
        Native("first-nice"),
        Success,
    ),
    case(
        "write the starter's oom score",
        Native("starter-oom"),
        Success,
    ),
    case("a refused call by a tracer", Native("tracer-call"), Success),
    case(
        "suspend the filter by a tracer",
        Native("tracer-suspend"),
        Success,
    ),
    case(
        "connect while the address changes",
        Native("connect-raced"),
        Success,
    ),
    case(
        "a descriptor for the peer's process",
        Native("peer-descriptor"),
        Success,
    ),
    case(
        "fixed addresses and another user",
        Native("fixed-then-other-user"),
        Success,
    ),
];
