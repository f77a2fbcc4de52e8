//! The filter's program, run by a small interpreter against tables of calls.

use super::*;

/// Runs a program as the kernel would: on the number, the architecture and the arguments of one call.
fn run(program: &[Instruction], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(number.to_ne_bytes());
    data.extend(architecture.to_ne_bytes());
    data.extend(0u64.to_ne_bytes());
    arguments
        .iter()
        .for_each(|argument| data.extend(argument.to_ne_bytes()));
    let word = |offset: u32| {
        let bytes = &data[offset as usize..offset as usize + 4];
        u32::from_ne_bytes(bytes.try_into().unwrap())
    };
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let step = &program[at];
        at += 1;
        let hit = match step.code {
            0x20 => {
                accumulator = word(step.k);
                continue;
            }
            0x54 => {
                accumulator &= step.k;
                continue;
            }
            0x06 => return step.k,
            JUMP_EQUAL => accumulator == step.k,
            JUMP_GREATER => accumulator > step.k,
            JUMP_SET => accumulator & step.k != 0,
            other => panic!("unknown instruction {other:#x}"),
        };
        at += usize::from(if hit { step.jt } else { step.jf });
    }
}

fn rules(sockets: UnixSockets, debugs: bool) -> Rules<'static> {
    Rules {
        sockets,
        broker: false,
        debugs,
        datagrams: false,
        own: &[3],
        keeps_core_limit: false,
    }
}

const ALL: [UnixSockets; 3] = [UnixSockets::Ask, UnixSockets::Deny, UnixSockets::DenyAll];

#[track_caller]
fn expect(sockets: UnixSockets, number: c_long, arguments: &[u64], wanted: u32) {
    expect_if(sockets, false, number, arguments, wanted);
    expect_if(sockets, true, number, arguments, wanted);
}

#[track_caller]
fn expect_if(sockets: UnixSockets, debugs: bool, number: c_long, arguments: &[u64], wanted: u32) {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let program = program(&rules(sockets, debugs));
    let found = run(&program, ARCHITECTURE, number as u32, all);
    assert_eq!(
        found, wanted,
        "{sockets:?}, {debugs}: call {number} with {arguments:?}"
    );
}

#[track_caller]
fn expect_always(number: c_long, arguments: &[u64], wanted: u32) {
    ALL.iter()
        .for_each(|sockets| expect(*sockets, number, arguments, wanted));
}

#[test]
fn x31_calls_newer_than_the_filter_answer_as_on_an_older_kernel() {
    // setxattrat, open_tree_attr, file_setattr, and what does not exist yet.
    for number in [463, 466, 467, 469, 470, 511, 512, 600, 100_000] {
        expect_always(number, &[], ENOSYS);
    }
    // x32, by its bit; and no call at all.
    for number in [0x4000_0000u32, 0x4000_0001, 0x4000_0200, u32::MAX] {
        expect_always(c_long::from(number), &[], ENOSYS);
    }
    expect_always(c_long::from(NEWEST), &[], ALLOW);
    expect_always(libc::SYS_clone3, &[], ENOSYS);
    expect_always(libc::SYS_openat2, &[], ENOSYS);
    expect_always(libc::SYS_sched_setattr, &[], ENOSYS);
    expect_always(shared::FUTEX_REQUEUE, &[], ENOSYS);
}

#[test]
fn i4_calls_of_32_bit_programs_answer_enosys_and_never_kill() {
    for architecture in [0, 0x4000_0003, ARCHITECTURE ^ 1] {
        for sockets in ALL {
            for number in (0..600).chain([0x4000_0001, u32::MAX]) {
                let filter = program(&rules(sockets, true));
                let found = run(&filter, architecture, number, [0; 6]);
                let says = LAST_WORDS.contains(&number);
                assert_eq!(found, if says { ALLOW } else { ENOSYS }, "{number}");
            }
        }
    }
}

#[test]
fn x31_ordinary_calls_pass_and_refused_ones_are_refused_whatever_their_arguments() {
    for number in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_execve,
        libc::SYS_exit_group,
        libc::SYS_mmap,
        libc::SYS_statx,
        libc::SYS_renameat2,
        libc::SYS_bind,
    ] {
        expect_always(number, &[u64::MAX; 6], ALLOW);
    }
    for number in REFUSED {
        expect_always(*number, &[0; 6], EPERM);
        expect_always(*number, &[u64::MAX; 6], EPERM);
    }
    for number in SHARED_OBJECTS {
        expect(UnixSockets::Ask, *number, &[], ALLOW);
        expect(UnixSockets::Deny, *number, &[], EPERM);
        expect(UnixSockets::DenyAll, *number, &[], EPERM);
    }
}

#[test]
fn i2_a_run_traces_and_schedules_its_own_processes_but_not_its_first_one_and_no_group() {
    let sockets = UnixSockets::Ask;
    for number in TRACING {
        expect_if(sockets, true, *number, &[0; 6], ALLOW);
        expect_if(sockets, false, *number, &[0; 6], EPERM);
    }
    for (number, which) in NAMED {
        let kind = KINDS.iter().find(|(call, _)| call == number);
        let mut arguments = [0; 6];
        arguments[0] = kind.map_or(0, |(_, process)| u64::from(*process));
        for (pid, debugging, plain) in [
            (0, ALLOW, ALLOW),
            (1, EPERM, EPERM),
            // The kernel looks at 32 bits of it.
            (1 << 32 | 1, EPERM, EPERM),
            // The one that connects.
            (3, EPERM, EPERM),
            (77, ALLOW, EPERM),
        ] {
            arguments[*which as usize] = pid;
            expect_if(sockets, true, *number, &arguments, debugging);
            expect_if(sockets, false, *number, &arguments, plain);
        }
    }
    for (number, process) in KINDS {
        for kind in (0..5).filter(|kind| kind != process) {
            expect(sockets, *number, &[u64::from(kind), 0], EPERM);
        }
    }
}

#[test]
fn i2_a_process_may_ask_for_fixed_addresses_and_for_nothing_that_weakens_it() {
    for persona in [0, 8, 0x4_0000, 0x6_0008, 0xffff_ffff] {
        expect_always(libc::SYS_personality, &[persona], ALLOW);
    }
    // Readable is executable, a mapped first page, sticky timeouts, another system.
    for persona in [0x40_0000, 0x44_0000, 0x10_0000, 0x400_0000, 6, 1 << 31] {
        expect_always(libc::SYS_personality, &[persona], EPERM);
    }
}

#[test]
fn i3_the_launcher_is_asked_who_a_peer_is_and_about_files_that_are_written() {
    use UnixSockets::{Ask, Deny, DenyAll};
    let (socket, peer, descriptor, error) = (1, 17, 77, 4);
    for (sockets, asked) in [(Ask, ASK), (Deny, ALLOW), (DenyAll, ALLOW)] {
        let get = libc::SYS_getsockopt;
        expect(sockets, get, &[5, socket, peer], asked);
        expect(sockets, get, &[5, socket, descriptor], ENOPROTOOPT);
        expect(sockets, get, &[5, socket, error], ALLOW);
        expect(sockets, get, &[5, 6, peer], ALLOW);
        for (number, which) in OPEN {
            for (flags, wanted) in [
                (libc::O_RDONLY, ALLOW),
                (libc::O_WRONLY, asked),
                (libc::O_RDWR | libc::O_CLOEXEC, asked),
                (libc::O_WRONLY | libc::O_CREAT, ALLOW),
            ] {
                let mut arguments = [0; 6];
                arguments[*which as usize] = flags as u64;
                expect(sockets, *number, &arguments, wanted);
            }
        }
    }
}

#[test]
fn x31_arguments_decide_where_they_must() {
    let thread = 0x003d_0f00;
    expect_always(libc::SYS_clone, &[thread], ALLOW);
    for bit in [17, 25, 26, 27, 28, 29, 30] {
        expect_always(libc::SYS_clone, &[thread | 1 << bit], EPERM);
    }
    expect_always(libc::SYS_ioctl, &[0, 0x5401], ALLOW);
    for (action, expected) in [(0, EPERM), (1, ALLOW), (2, EPERM), (3, ALLOW)] {
        expect_always(libc::SYS_ioctl, &[0, 0x540a, action], expected);
    }
    for request in REFUSED_IOCTLS {
        expect_always(libc::SYS_ioctl, &[0, u64::from(request)], EPERM);
        // The kernel looks at 32 bits of it.
        expect_always(libc::SYS_ioctl, &[0, 1 << 32 | u64::from(request)], EPERM);
    }
}

#[test]
fn x18_waiters_of_others_are_not_moved_to_another_futex() {
    let (requeue, compare, inherit) = (3, 4, 12);
    for operation in [requeue, compare, inherit] {
        for (flags, wanted) in [(0, ENOSYS), (256, ENOSYS), (128, ALLOW), (128 | 256, ALLOW)] {
            expect_always(libc::SYS_futex, &[0, operation | flags], wanted);
            // The kernel looks at 32 bits of it.
            expect_always(libc::SYS_futex, &[0, 1 << 32 | operation | flags], wanted);
        }
    }
    for operation in [0, 1, 5, 6, 7, 9, 10, 11, 13, 137] {
        expect_always(libc::SYS_futex, &[0, operation], ALLOW);
    }
}

#[test]
fn i2_the_limit_of_cores_stays_where_a_program_of_the_host_would_get_them() {
    const DONE: u32 = libc::SECCOMP_RET_ERRNO;
    let (core, files, place, high) = (4, 7, 0x1000, 1 << 32);
    let expect = |number: c_long, arguments: [u64; 6], wanted: u32| {
        for (keeps_core_limit, wanted) in [(true, wanted), (false, ALLOW)] {
            let rules = Rules {
                keeps_core_limit,
                ..rules(UnixSockets::Ask, true)
            };
            let found = run(&program(&rules), ARCHITECTURE, number as u32, arguments);
            assert_eq!(found, wanted, "{number}, {arguments:?}");
        }
    };
    for new in [place, high] {
        expect(libc::SYS_setrlimit, [core, new, 0, 0, 0, 0], DONE);
        expect(libc::SYS_setrlimit, [high | core, new, 0, 0, 0, 0], DONE);
        expect(libc::SYS_setrlimit, [files, new, 0, 0, 0, 0], ALLOW);
        let number = libc::SYS_prlimit64;
        expect(number, [0, core, new, 0, 0, 0], DONE);
        expect(number, [77, high | core, new, 0, 0, 0], DONE);
        expect(number, [0, core, new, place, 0, 0], EPERM);
        expect(number, [0, core, new, high, 0, 0], EPERM);
        expect(number, [0, core, 0, new, 0, 0], ALLOW);
        expect(number, [0, files, new, place, 0, 0], ALLOW);
    }
}

#[test]
fn i3_datagram_sockets_have_names_where_the_user_allows_it() {
    use UnixSockets::{Ask, Deny, DenyAll};
    let (unix, stream, datagram, raw, packets) = (1, 1, 2, 3, 5);
    for (sockets, wanted) in [(Ask, ALLOW), (Deny, EACCES), (DenyAll, EACCES)] {
        let rules = Rules {
            datagrams: true,
            ..rules(sockets, true)
        };
        let program = program(&rules);
        let ask = |number: c_long, kind: u64| {
            run(
                &program,
                ARCHITECTURE,
                number as u32,
                [unix, kind | 0o2000000, 0, 0, 0, 0],
            )
        };
        assert_eq!(ask(libc::SYS_socket, datagram), wanted, "{sockets:?}");
        assert_eq!(ask(libc::SYS_socketpair, datagram), wanted, "{sockets:?}");
        assert_eq!(ask(libc::SYS_socket, stream), wanted, "{sockets:?}");
        assert_eq!(ask(libc::SYS_socket, packets), wanted, "{sockets:?}");
        assert_eq!(ask(libc::SYS_socket, raw), EACCES, "{sockets:?}");
    }
}

#[test]
fn x31_sockets_are_asked_about_or_denied() {
    use UnixSockets::{Ask, Deny, DenyAll};
    let (unix, inet, netlink) = (1, 2, 16);
    let (stream, datagram, raw, packets) = (1, 2, 3, 5);
    for flags in [0, libc::SOCK_CLOEXEC as u64] {
        for (kind, wanted) in [
            (stream, ALLOW),
            (packets, ALLOW),
            (datagram, EACCES),
            (raw, EACCES),
        ] {
            expect(Ask, libc::SYS_socket, &[unix, kind | flags], wanted);
            expect(Deny, libc::SYS_socket, &[unix, kind | flags], EACCES);
            let pair = libc::SYS_socketpair;
            let asked = if kind == datagram { ASK } else { wanted };
            expect(Ask, pair, &[unix, kind | flags], asked);
            expect(Deny, pair, &[unix, kind | flags], wanted);
            expect(DenyAll, pair, &[unix, kind | flags], wanted);
        }
    }
    expect(Deny, libc::SYS_socket, &[inet, stream], ALLOW);
    expect(DenyAll, libc::SYS_socket, &[inet, stream], EACCES);
    expect_always(libc::SYS_socket, &[netlink, raw, 0], ALLOW);
    expect_always(libc::SYS_socket, &[netlink, raw, 9], EACCES);
    // vsock, and packets from the wire.
    expect_always(libc::SYS_socket, &[40, stream], EACCES);
    expect_always(libc::SYS_socket, &[17, raw], EACCES);
    expect(Ask, libc::SYS_connect, &[], ASK);
    expect(Deny, libc::SYS_connect, &[], ALLOW);
}

#[test]
fn a17_where_unix_sockets_are_denied_the_launcher_hands_out_the_brokers_and_no_other() {
    use UnixSockets::{Ask, Deny, DenyAll};
    let (unix, inet, stream) = (1, 2, 1);
    let protocol = u64::from(crate::broker_socket::PROTOCOL);
    for (sockets, broker, wanted) in [
        (Deny, true, ASK),
        (DenyAll, true, ASK),
        (Deny, false, EACCES),
        (DenyAll, false, EACCES),
        (Ask, false, ALLOW),
    ] {
        let rules = Rules {
            broker,
            ..rules(sockets, false)
        };
        let program = program(&rules);
        let ask = |arguments: [u64; 3]| {
            let [family, kind, protocol] = arguments;
            let arguments = [family, kind, protocol, 0, 0, 0];
            run(&program, ARCHITECTURE, libc::SYS_socket as u32, arguments)
        };
        assert_eq!(ask([unix, stream, protocol]), wanted, "{sockets:?}");
        for other in [0, 1, protocol + 1, protocol << 32] {
            let plain = if sockets == Ask { ALLOW } else { EACCES };
            assert_eq!(ask([unix, stream, other]), plain, "{sockets:?}: {other}");
        }
        let plain = if sockets == DenyAll { EACCES } else { ALLOW };
        assert_eq!(ask([inet, stream, protocol]), plain, "{sockets:?}");
    }
}

#[test]
fn x17_no_call_makes_a_set_user_id_file() {
    let (plain, set_user, set_group) = (0o755, 0o4755, 0o2755);
    for (number, which) in CHANGE_MODE.iter().chain(CREATE) {
        let creates = CREATE.iter().any(|(create, _)| create == number);
        let group = if creates { EPERM } else { ALLOW };
        for (mode, wanted) in [(plain, ALLOW), (set_user, EPERM), (set_group, group)] {
            let mut arguments = [0; 6];
            arguments[*which as usize] = mode;
            expect_always(*number, &arguments, wanted);
        }
    }
    let creating = [libc::O_CREAT, libc::O_TMPFILE, libc::O_CREAT | libc::O_EXCL];
    for (number, which) in OPEN {
        let open = |flags: i32, mode: u64, wanted: u32| {
            let mut arguments = [0; 6];
            arguments[*which as usize] = flags as u64;
            arguments[*which as usize + 1] = mode;
            expect_always(*number, &arguments, wanted);
        };
        for flags in creating {
            open(flags | libc::O_RDWR, plain, ALLOW);
            open(flags | libc::O_RDWR, set_user, EPERM);
            open(flags | libc::O_RDWR, set_group, EPERM);
        }
        // Without creating there is no mode, and the register holds anything.
        open(libc::O_RDONLY | libc::O_DIRECTORY, u64::MAX, ALLOW);
    }
}
