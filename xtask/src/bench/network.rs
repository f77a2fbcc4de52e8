//! What the network by name costs: connecting, and passing a lot on, against the same on the host's network.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use weald_sandbox::{Ended, Host, Invocation, Network, Policy, launch};

use super::{median, say};

/// How often a connection is made.
const CONNECTIONS: usize = 301;

/// How much comes over one.
const BYTES: usize = 2 << 30;

/// How often the two are measured, in turns.
const ROUNDS: usize = 5;

/// Runs it all and prints the lines.
pub fn run(weald: &Path, tree: &Path) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream?));
        }
        io::Result::Ok(())
    });
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    let result = tree.join("measured");
    for _ in 0..ROUNDS {
        outside.push(measured(address)?);
        run_inside(weald, tree, address, &result)?;
        inside.push(read(&result)?);
    }
    let figure = |all: &[(Duration, Duration)], which: fn(&(Duration, Duration)) -> Duration| {
        median(all.iter().map(which).collect()).as_secs_f64()
    };
    let micros = |seconds: f64| seconds * 1e6;
    let (plain, named) = (figure(&outside, |it| it.0), figure(&inside, |it| it.0));
    say(&format!(
        "network by name: connecting takes {:.0} µs, on the host's network {:.0} µs: +{:.0} µs",
        micros(named),
        micros(plain),
        micros(named - plain)
    ));
    let rate = |seconds: f64| BYTES as f64 / seconds / 1e9;
    let (plain, named) = (figure(&outside, |it| it.1), figure(&inside, |it| it.1));
    say(&format!(
        "  {:.2} GB/s over one connection, on the host's network {:.2} GB/s: {:.2}x",
        rate(named),
        rate(plain),
        plain / named
    ));
    Ok(())
}

/// Sends as much as it is asked for.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut wanted = [0; 8];
    stream.read_exact(&mut wanted)?;
    let mut left = usize::from_be_bytes(wanted);
    let part = vec![b'x'; 1 << 20];
    while left > 0 {
        let size = left.min(part.len());
        stream.write_all(&part[..size])?;
        left -= size;
    }
    Ok(())
}

/// How long a connection takes, and how long a lot of bytes.
fn measured(address: SocketAddr) -> io::Result<(Duration, Duration)> {
    let mut times = Vec::new();
    for _ in 0..CONNECTIONS {
        let started = Instant::now();
        let stream = TcpStream::connect(address)?;
        times.push(started.elapsed());
        drop(stream);
    }
    let mut stream = TcpStream::connect(address)?;
    let started = Instant::now();
    stream.write_all(&BYTES.to_be_bytes())?;
    let mut part = vec![0; 1 << 20];
    let mut left = BYTES;
    while left > 0 {
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read,
        }
    }
    Ok((median(times), started.elapsed()))
}

/// Measures, started by `bench sandbox` itself, and writes down what it found.
pub fn client(address: SocketAddr, result: &Path) -> io::Result<()> {
    let (connected, passed) = measured(address)?;
    std::fs::write(
        result,
        format!("{} {}", connected.as_nanos(), passed.as_nanos()),
    )
}

fn read(result: &Path) -> io::Result<(Duration, Duration)> {
    let text = std::fs::read_to_string(result)?;
    let mut numbers = text
        .split(' ')
        .map(|it| it.parse().map(Duration::from_nanos));
    match (numbers.next(), numbers.next()) {
        (Some(Ok(connected)), Some(Ok(passed))) => Ok((connected, passed)),
        _ => Err(io::Error::other(format!("{text} is no result"))),
    }
}

fn run_inside(weald: &Path, tree: &Path, address: SocketAddr, result: &Path) -> io::Result<()> {
    let mut policy = Policy::new(tree);
    policy.network = Network::Allow;
    policy.hosts = vec![Host {
        name: address.ip().to_string(),
        below: false,
        port: Some(address.port()),
    }];
    let own = std::env::current_exe()?;
    let mut command: Vec<_> = vec![own.into_os_string()];
    command.extend(["bench", "network-client"].map(Into::into));
    command.extend([address.to_string().into(), result.into()]);
    let invocation = Invocation {
        helper: weald.to_owned(),
        command,
        directory: PathBuf::from(tree),
        environment: Vec::new(),
        streams: [Stdio::null(), Stdio::null(), Stdio::inherit()],
    };
    match launch(&policy, invocation)
        .map_err(io::Error::other)?
        .wait(None)?
    {
        Ended::Code(0) => Ok(()),
        ended => Err(io::Error::other(format!("the client ended with {ended:?}"))),
    }
}
