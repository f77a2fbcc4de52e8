//! What the launcher hands to its helper, and what the helper reports before the command runs.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{OwnedFd, RawFd};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::terminal::TerminalSize;

/// The first argument that makes the binary a helper.
pub const INIT_ARGUMENT: &str = "__sandbox-init";

// The descriptors that the launcher leaves for the helper.
pub(crate) const POLICY: RawFd = 3;
pub(crate) const STATUS: RawFd = 4;
pub(crate) const LIFELINE: RawFd = 5;
pub(crate) const LISTENER: RawFd = 6;
pub(crate) const LAST: RawFd = LISTENER;

/// What the launcher hands to the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// What the run may do; anything without one.
    pub policy: Option<Policy>,
    /// The command's environment, as bytes.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// The size of a terminal of its own, if it gets one.
    pub terminal: Option<TerminalSize>,
}

impl Plan {
    pub(crate) fn new(
        policy: Option<&Policy>,
        environment: Vec<(OsString, OsString)>,
        terminal: Option<TerminalSize>,
    ) -> Self {
        let bytes = |text: OsString| text.into_encoded_bytes();
        let pairs = environment.into_iter();
        Self {
            policy: policy.cloned(),
            environment: pairs
                .map(|(name, value)| (bytes(name), bytes(value)))
                .collect(),
            terminal,
        }
    }

    /// As a file in memory, to be read from its start.
    pub(crate) fn to_file(&self) -> io::Result<OwnedFd> {
        let unfit = |_| {
            let message = "a path in the policy is no UTF-8";
            io::Error::new(io::ErrorKind::InvalidInput, message)
        };
        let text = serde_json::to_vec(self).map_err(unfit)?;
        let mut file = File::from(memfd_create(c"weald-plan", MemfdFlags::CLOEXEC)?);
        file.write_all(&text)?;
        file.rewind()?;
        Ok(file.into())
    }
}

/// What the helper reports when a step fails.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub step: String,
    /// The system's number for it, if it has one.
    pub errno: Option<i32>,
    pub message: String,
}

impl Report {
    /// What the helper said, whatever it is.
    pub(crate) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self {
            step: "the helper".into(),
            errno: None,
            message: text.to_owned(),
        })
    }
}
