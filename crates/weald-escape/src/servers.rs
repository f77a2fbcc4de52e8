//! Two servers on the host's loopback: one that a run by name may reach, and one that it may not.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What the two say.
pub const LISTED: u8 = b'l';
pub const OUTSIDE: u8 = b'o';

/// They end when this is dropped.
pub struct Servers {
    pub listed: u16,
    /// Of both kinds: streams and datagrams.
    pub outside: u16,
    is_over: Arc<AtomicBool>,
}

impl Servers {
    pub fn start() -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let any = (Ipv4Addr::LOCALHOST, 0);
        let (listed, outside) = (TcpListener::bind(any)?, TcpListener::bind(any)?);
        let ports = [listed.local_addr()?.port(), outside.local_addr()?.port()];
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, ports[1]))?;
        datagrams.set_read_timeout(Some(Duration::from_millis(100)))?;
        for (listener, word) in [(listed, LISTED), (outside, OUTSIDE)] {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                for stream in listener.incoming() {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let _ = stream.and_then(|mut stream| stream.write_all(&[word]));
                }
            });
        }
        let ends = Arc::clone(&is_over);
        thread::spawn(move || {
            let mut asked = [0; 8];
            while !ends.load(Ordering::Relaxed) {
                if let Ok((_, from)) = datagrams.recv_from(&mut asked) {
                    let _ = datagrams.send_to(&[OUTSIDE], from);
                }
            }
        });
        Ok(Self {
            listed: ports[0],
            outside: ports[1],
            is_over,
        })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for port in [self.listed, self.outside] {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let _ = TcpStream::connect_timeout(&address, Duration::from_millis(100));
        }
    }
}
