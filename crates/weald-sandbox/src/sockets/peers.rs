//! For whom sockets were connected: who asks one for its peer must get the process that wanted it.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

use crate::sys;

/// How many connections are remembered. Servers ask when they accept one.
const REMEMBERED: usize = 4_096;

/// The inodes of sockets that were connected, with the process inside that asked for it.
pub(super) struct Peers {
    /// Answers questions about the sockets of the run's network.
    queries: Mutex<OwnedFd>,
    made: Mutex<VecDeque<(u32, i32)>>,
}

impl Peers {
    pub(super) fn new(queries: OwnedFd) -> Self {
        Self {
            queries: Mutex::new(queries),
            made: Mutex::default(),
        }
    }

    /// A process is about to be connected by this socket.
    pub(super) fn remember(&self, socket: &OwnedFd, process: i32) -> io::Result<()> {
        let inode = inode_of(socket)?;
        if let Ok(mut made) = self.made.lock() {
            made.push_back((inode, process));
            if made.len() > REMEMBERED {
                made.pop_front();
            }
        }
        Ok(())
    }

    /// Who is at the other end of this socket, if it was connected for somebody: as the inside has to see it.
    pub(super) fn of(&self, socket: &OwnedFd) -> io::Result<Option<libc::ucred>> {
        let mut peer = sys::peer_of(socket)?;
        let other = match self.queries.lock() {
            Ok(queries) => sys::peer_inode(&queries, inode_of(socket)?)?,
            Err(_) => None,
        };
        let made = self.made.lock().ok();
        let known = made.and_then(|made| {
            let is_this = |(inode, _): &&(u32, i32)| Some(*inode) == other;
            made.iter().rev().find(is_this).map(|(_, process)| *process)
        });
        Ok(known.map(|process| {
            peer.pid = process;
            peer
        }))
    }
}

fn inode_of(socket: &OwnedFd) -> io::Result<u32> {
    let inode = File::from(socket.try_clone()?).metadata()?.ino();
    u32::try_from(inode).map_err(io::Error::other)
}
