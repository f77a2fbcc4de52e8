//! Whether a sandbox as configured can be had here, and whether it shows what an agent starts: found out before anything is
//! claimed or made for an agent.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weald_sandbox::{Level, Policy, SandboxError, require_level};

use super::Agents;
use super::drivers::DriverError;
use super::{AgentError, AgentRequest};
use weald_control::confinement::{SandboxRequest, sandbox_policy};
use weald_control::files::open_own;

/// Folders for temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Whether a path is among the host's temporary files: a run at level full has its own instead.
pub fn is_temporary_inside(path: &Path) -> bool {
    TEMPORARY.iter().any(|folder| path.starts_with(folder))
}

/// Errors when a script names a program that is not there: the kernel would refuse it once its task is claimed.
fn require_interpreter(program: &Path) -> Result<(), DriverError> {
    let mut start = Vec::new();
    let file = program
        .canonicalize()
        .and_then(|file| open_own(OpenOptions::new().read(true), &file));
    let read = file.and_then(|file| file.take(256).read_to_end(&mut start));
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let (Ok(_), Some(line)) = (read, line.strip_prefix(b"#!")) else {
        return Ok(());
    };
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut words = line.split(is_blank).filter(|word| !word.is_empty());
    match words.next().map(OsStr::from_bytes).map(Path::new) {
        Some(interpreter) if interpreter.is_absolute() && !interpreter.exists() => {
            Err(DriverError::NoInterpreter {
                program: program.to_owned(),
                interpreter: interpreter.display().to_string(),
            })
        }
        _ => Ok(()),
    }
}

impl Agents<'_> {
    /// Errors when no run could be held as the configuration wants it.
    pub fn require_sandbox(&self) -> Result<(), AgentError> {
        let configured = self.configured_policy();
        Ok(require_level(
            configured.level,
            configured.network,
            &self.trees.host.helper,
        )?)
    }

    /// Errors when weald's own records would lie open to an agent in the main checkout.
    pub(super) fn require_protected(&self, request: &AgentRequest) -> Result<(), AgentError> {
        match request.in_main && self.configured_policy().level == Level::Landlock {
            true => Err(SandboxError::Exposed {
                path: self.trees.place.private().to_owned(),
            }
            .into()),
            false => Ok(()),
        }
    }

    pub(super) fn configured_policy(&self) -> Policy {
        let directory = self.trees.place.repository().common_dir().to_owned();
        let request = SandboxRequest {
            main: self.trees.place.root(),
            home: self.trees.host.home.clone(),
            variables: &[],
            write: vec![directory],
            masked: Vec::new(),
            state: None,
            home_layer: None,
        };
        sandbox_policy(self.trees.config, request)
    }

    /// The same, and errors when a program is there on the host and in no run. What may be seen from one of the worktrees
    /// is tried there.
    pub(super) fn require_visible(&self, program: Option<&Path>) -> Result<(), AgentError> {
        self.require_sandbox()?;
        program.map_or(Ok(()), require_interpreter)?;
        let is_there = |program: &&Path| is_temporary_inside(program) && program.is_file();
        let Some(program) = program.filter(is_there) else {
            return Ok(());
        };
        let policy = self.configured_policy();
        if policy.level != Level::Full {
            return Ok(());
        }
        let mut seen = policy.write;
        seen.extend(policy.home);
        seen.push(self.trees.place.root());
        seen.push(self.trees.host.directory.clone());
        seen.extend(self.trees.tree_roots()?);
        let trees = self
            .trees
            .records()?
            .into_iter()
            .filter(|tree| tree.is_live());
        seen.extend(trees.map(|tree| tree.path));
        match seen.iter().any(|shown| program.starts_with(shown)) {
            true => Ok(()),
            false => Err(DriverError::Hidden {
                program: PathBuf::from(program),
            }
            .into()),
        }
    }
}
