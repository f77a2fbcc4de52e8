//! Real agents for tests: Claude Code and Codex, installed once below the target directory.
//!
//! They come by npm, as the user has set it up, in versions that are written here and nowhere else. Their install scripts
//! are not run; the programs inside the packages are used as they are. Where they can't be had, the reason comes back for
//! the test to say aloud.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{ScriptedModel, TestEnv, skipped};

const CLAUDE: &str = "@anthropic-ai/claude-code@2.1.325";
const CODEX: &str = "@openai/codex@0.166.0";

/// How long an installation may take.
const LIMIT: Duration = Duration::from_secs(150);

pub struct RealAgents {
    claude: PathBuf,
    codex: PathBuf,
}

impl RealAgents {
    /// Finds or installs both below `target`; the error says why they can't be had.
    pub fn find(target: &Path) -> Result<Self, String> {
        let folder = target.join("agents");
        let at = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(at)?;
        let lock = File::create(folder.join("lock")).map_err(at)?;
        lock.lock().map_err(at)?;
        let place = folder.join(format!("{CLAUDE}+{CODEX}").replace('/', "-"));
        if !place.is_dir() {
            let building = folder.join("building");
            once_in_a_while(&folder.join("failed"), || {
                let _ = fs::remove_dir_all(&building);
                install(&building)?;
                Self::inside(&building)?;
                fs::rename(&building, &place).map_err(at)
            })?;
        }
        Self::inside(&place)
    }

    /// Makes both reachable in a folder of a search path, by hard links if that can be: a sandbox may hide where they are.
    pub fn link_into(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("a folder for programs");
        // What Codex's own sandbox starts lies in a folder next to that of the program, unless it is on the search path.
        let vendor = self.codex.ancestors().nth(2);
        let bwrap = vendor.map(|vendor| vendor.join("codex-resources/bwrap"));
        let bwrap = bwrap.filter(|bwrap| bwrap.is_file());
        let programs = [("claude", &self.claude), ("codex", &self.codex)];
        let bwrap = bwrap.as_ref().map(|bwrap| ("bwrap", bwrap));
        for (name, program) in programs.into_iter().chain(bwrap) {
            let place = folder.join(name);
            fs::hard_link(program, &place)
                .or_else(|_| std::os::unix::fs::symlink(program, &place))
                .expect("a link to a program");
        }
    }

    fn inside(place: &Path) -> Result<Self, String> {
        let modules = place.join("node_modules");
        let one = |scope: &str, name: &str| {
            let mut found = Vec::new();
            programs(&modules.join(scope), name, 5, &mut found);
            found.sort();
            let mut found = found.into_iter();
            found
                .find(|program| runs(program))
                .ok_or_else(|| format!("the package of {name} has no program for this machine"))
        };
        Ok(Self {
            claude: one("@anthropic-ai", "claude")?,
            codex: one("@openai", "codex")?,
        })
    }
}

impl TestEnv {
    /// A repository with a file of many lines, and both agents on the search path of [`Self::weald_with_agents`]; `None`
    /// (listed as skipped) where they can't be had.
    pub fn with_agents(binary: &str, model: &ScriptedModel) -> Option<Self> {
        let target = Path::new(binary).ancestors().nth(2)?;
        let agents = match RealAgents::find(target) {
            Ok(agents) => agents,
            Err(why) => {
                skipped(&format!("tests with real agents: {why}"));
                return None;
            }
        };
        let env = Self::with_files(binary);
        agents.link_into(&env.home().join("bin"));
        let lines: String = (1..=40).map(|line| format!("line {line}\n")).collect();
        let url = model.url();
        let codex = format!(
            "model = 'scripted'\nmodel_provider = 'local'\n[model_providers.local]\nname = 'local'\nbase_url = '{url}/v1'\nwire_api = 'responses'\n"
        );
        for folder in [".claude", ".codex", ".cache"] {
            fs::create_dir(env.home().join(folder)).expect("the home can be written");
        }
        for (path, text) in [
            (env.repo().join("notes.txt"), lines.as_str()),
            (env.home().join(".claude/settings.json"), "{}\n"),
            (env.home().join(".codex/config.toml"), &codex),
        ] {
            fs::write(path, text).expect("the environment can be written");
        }
        env.git(&["add", "-A"]);
        env.git(&["commit", "-q", "-m", "notes"]);
        Some(env)
    }

    /// weald with the agents on its search path and the model as theirs.
    pub fn weald_with_agents(&self, model: &ScriptedModel, args: &[&str]) -> Command {
        let mut command = self.weald_command(args);
        let own = command.get_envs().find(|(name, _)| *name == "PATH");
        let path = own.and_then(|(_, path)| path?.to_str()).unwrap_or_default();
        let path = format!("{}:{path}", self.home().join("bin").display());
        command
            .env("PATH", path)
            .env("ANTHROPIC_BASE_URL", model.url())
            .env("ANTHROPIC_API_KEY", "scripted")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Files of this name that can be executed.
fn programs(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(known)) = (entry.path(), entry.metadata()) else {
            continue;
        };
        if known.is_dir() && depth > 0 {
            programs(&path, name, depth - 1, found);
        } else if entry.file_name() == name && known.permissions().mode() & 0o100 != 0 {
            found.push(path);
        }
    }
}

fn runs(program: &Path) -> bool {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut command = quiet(program);
    command.arg("--version").env("HOME", home.path());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.is_ok_and(|child| wait(child, Duration::from_secs(30)).is_ok())
}

fn install(place: &Path) -> Result<(), String> {
    let log = place.with_extension("log");
    let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    let mut npm = quiet(Path::new("npm"));
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
        .args(["--fetch-retries=1", "--prefix"])
        .arg(place)
        .args([CLAUDE, CODEX])
        .stdout(output)
        .stderr(errors);
    let started = npm.spawn().map_err(|error| format!("npm: {error}"))?;
    wait(started, LIMIT).map_err(|why| {
        let told = fs::read_to_string(&log).unwrap_or_default();
        let errors = told.lines().filter(|line| line.contains("error"));
        let told: Vec<_> = errors.take(3).collect();
        format!("npm install {CLAUDE} {CODEX} {why}: {}", told.join("; "))
    })
}

/// Tries to install something, unless that failed a short while ago: where there is no network, one test waits for it, and
/// not each of them in turn.
pub(crate) fn once_in_a_while(
    failed: &Path,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let age = fs::metadata(failed).and_then(|known| known.modified());
    let age = age.ok().and_then(|at| at.elapsed().ok());
    if age.is_some_and(|age| age < Duration::from_secs(600)) {
        return Err(fs::read_to_string(failed).unwrap_or_default());
    }
    let done = install();
    if let Err(why) = &done {
        let _ = fs::write(failed, why);
    }
    done
}

/// A command that reads nothing.
pub(crate) fn quiet(program: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "tests start real processes")]
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Waits for success; says what else happened.
pub(crate) fn wait(mut child: Child, limit: Duration) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("failed ({status})")),
            Ok(None) if begun.elapsed() < limit => thread::sleep(Duration::from_millis(50)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("took longer than {} s", limit.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
