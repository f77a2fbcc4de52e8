//! Whether a sandbox as configured can be had here, found out before anything is claimed or made for an agent.

use std::process::Stdio;
use std::sync::OnceLock;

use weald_sandbox::{Invocation, Policy, launch};

use super::AgentError;
use crate::confinement::{SandboxRequest, sandbox_policy};
use crate::trees::Trees;

/// Said once a process: whoever starts several agents asks before each.
static AVAILABLE: OnceLock<()> = OnceLock::new();

impl Trees<'_> {
    /// Errors when no run could be held as the configuration wants it. A command that does nothing is started inside.
    pub fn require_sandbox(&self) -> Result<(), AgentError> {
        if AVAILABLE.get().is_some() {
            return Ok(());
        }
        let directory = self.place.repository().common_dir().to_owned();
        let configured = sandbox_policy(
            self.config,
            SandboxRequest {
                home: None,
                write: vec![directory.clone()],
                masked: Vec::new(),
                state: None,
                home_layer: None,
            },
        );
        let policy = Policy {
            level: configured.level,
            network: configured.network,
            read_only: true,
            ..Policy::new(&directory)
        };
        let invocation = Invocation {
            helper: self.host.helper.clone(),
            command: ["/bin/sh", "-c", ":"].map(Into::into).to_vec(),
            directory,
            environment: Vec::new(),
            streams: [Stdio::null(), Stdio::null(), Stdio::null()],
            passed: None,
        };
        launch(&policy, invocation)?
            .wait(None)
            .map_err(weald_sandbox::SandboxError::from)?;
        let _ = AVAILABLE.set(());
        Ok(())
    }
}
