//! The official SDKs of MCP for tests: clients that weald's authors did not write, installed once below the target directory;
//! and tools from the same registries.
//!
//! They come by pip and npm, in versions that are written here and nowhere else. Where one can't be had, the reason comes
//! back for the test to say aloud.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::real_agents::{once_in_a_while, quiet, wait};

const PYTHON: &[&str] = &["mcp==2.3.0"];
const TYPESCRIPT: &[&str] = &[
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
];

/// How long one step of an installation may take.
const LIMIT: Duration = Duration::from_secs(70);

/// An SDK, ready to run scripts.
pub struct McpSdk {
    program: PathBuf,
    /// What comes before a script's own arguments.
    script: Vec<PathBuf>,
}

impl McpSdk {
    /// Python's, for `clients/client.py`; the error says why it can't be had.
    pub fn python(target: &Path, clients: &Path) -> Result<Self, String> {
        let place = installed(target, "python", PYTHON, |place| {
            done(quiet(Path::new("python3")).args(["-m", "venv"]).arg(place))?;
            let mut pip = quiet(&place.join("bin/pip"));
            done(
                pip.args(["install", "-q", "--disable-pip-version-check"])
                    .args(PYTHON),
            )
        })?;
        Ok(Self {
            program: place.join("bin/python"),
            script: vec![clients.join("client.py")],
        })
    }

    /// Both of TypeScript, for `clients/client.mjs`; the error says why they can't be had.
    pub fn typescript(target: &Path, clients: &Path) -> Result<Self, String> {
        let place = installed(target, "typescript", TYPESCRIPT, |place| {
            let mut npm = quiet(Path::new("npm"));
            npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
            done(npm.arg("--prefix").arg(place).args(TYPESCRIPT))
        })?;
        done(quiet(Path::new("node")).arg("--version"))?;
        Ok(Self {
            program: "node".into(),
            script: vec![clients.join("client.mjs"), place],
        })
    }

    /// The program, and the arguments before those of a test.
    pub fn start(&self) -> (&Path, &[PathBuf]) {
        (&self.program, &self.script)
    }
}

/// A program from Python's registry in an environment of its own, installed once below the target directory; its folder, or
/// why it can't be had.
pub fn python_tool(target: &Path, name: &str, package: &str) -> Result<PathBuf, String> {
    let place = installed(target, name, &[package], |place| {
        done(quiet(Path::new("python3")).args(["-m", "venv"]).arg(place))?;
        let mut pip = quiet(&place.join("bin/pip"));
        done(pip.args(["install", "-q", "--disable-pip-version-check", package]))
    })?;
    Ok(place.join("bin"))
}

/// The folder of an installation; `install` fills it if it is not there yet. A folder is never moved: Python's names itself.
fn installed(
    target: &Path,
    name: &str,
    packages: &[&str],
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = target.join("mcp-sdks");
    let at = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(at)?;
    let lock = File::create(folder.join(format!("{name}.lock"))).map_err(at)?;
    lock.lock().map_err(at)?;
    let place = folder.join(format!("{name}-{}", packages.join("+").replace('/', "-")));
    let whole = place.join("whole");
    if !whole.exists() {
        once_in_a_while(&folder.join(format!("{name}.failed")), || {
            let _ = fs::remove_dir_all(&place);
            install(&place)?;
            fs::write(&whole, "").map_err(at)
        })?;
    }
    Ok(place)
}

fn done(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let nothing = std::process::Stdio::null;
    let started = command.stdout(nothing()).stderr(nothing()).spawn();
    let child = started.map_err(|error| format!("{name}: {error}"))?;
    wait(child, LIMIT).map_err(|why| format!("{name} {why}"))
}
