//! Cases about what debuggers and servers may do inside: trace, schedule, limit, and talk to each other.
//!
//! The starter is the process that started the attempt: confined, the process that ends the run.

use super::Case;
use super::cases::native;

pub const TRACING: &[Case] = &[
    native("remove shared memory by its number", "sysv-shm-remove"),
    native("remove a message queue by its number", "sysv-msg-remove"),
    native("open a POSIX queue", "queue-open"),
    native("remove a POSIX queue", "queue-remove"),
    native("trace the starter", "trace-starter"),
    native("read the starter's memory", "read-starter"),
    native("open the starter's memory", "starter-memory"),
    native("list the starter's descriptors", "starter-descriptors"),
    native("take the starter's descriptors", "starter-take"),
    native("compare with the starter", "starter-compare"),
    native("set the starter's priority", "starter-nice"),
    native("set the starter's io priority", "starter-io"),
    native("set the starter's processors", "starter-processors"),
    native("set the starter's scheduler", "starter-scheduler"),
    native("limit the starter", "starter-limit"),
    native("set the priority of its group", "group-nice"),
    native("set the priority of the user", "user-nice"),
    native("set the io priority of its group", "group-io"),
    native("the first process by its number", "first-nice"),
    native("write the starter's oom score", "starter-oom"),
    native("a refused call by a tracer", "tracer-call"),
    native("suspend the filter by a tracer", "tracer-suspend"),
    native("connect while the address changes", "connect-raced"),
    native("a descriptor for the peer's process", "peer-descriptor"),
    native("fixed addresses and another user", "fixed-then-other-user"),
];
