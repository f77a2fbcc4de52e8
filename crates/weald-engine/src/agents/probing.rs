//! Whether a sandbox as configured can be had here, found out before anything is claimed or made for an agent.

use weald_sandbox::require_level;

use super::AgentError;
use crate::confinement::{SandboxRequest, sandbox_policy};
use crate::trees::Trees;

impl Trees<'_> {
    /// Errors when no run could be held as the configuration wants it.
    pub fn require_sandbox(&self) -> Result<(), AgentError> {
        let directory = self.place.repository().common_dir().to_owned();
        let request = SandboxRequest {
            main: self.place.root(),
            home: None,
            variables: &[],
            write: vec![directory],
            masked: Vec::new(),
            state: None,
            home_layer: None,
        };
        let configured = sandbox_policy(self.config, request);
        Ok(require_level(
            configured.level,
            configured.network,
            &self.host.helper,
        )?)
    }
}
