//! A hermetic environment: an own home, an own repository, no variable of the caller's.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// True when the long versions of the suites were asked for (`./scripts/test --all`).
pub fn full_scale() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of the test run, not of the product"
    )]
    std::env::var_os("WEALD_TEST_FULL").is_some()
}

/// Says that the calling test, or a part of it, could not run here. `scripts/test` counts these at its end.
pub fn skipped(why: &str) {
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of the test run, not of the product"
    )]
    let list = std::env::var_os("WEALD_TEST_SKIPS");
    if let Some(list) = list {
        let mut list = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&list)
            .expect("the list of what was skipped can be written");
        // In one write: tests run side by side.
        let line = format!("{test}: {why}\n");
        list.write_all(line.as_bytes())
            .expect("the list of what was skipped can be written");
    }
}

/// git's own variables for the formats of new repositories; those of the test run are passed on.
pub const FORMATS: [&str; 2] = ["GIT_DEFAULT_REF_FORMAT", "GIT_DEFAULT_HASH"];

/// A temporary home with a repository in it, and the binary under test.
pub struct TestEnv {
    directory: TempDir,
    binary: PathBuf,
}

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code; -1 when a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// From what a process left.
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output as one JSON object.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {self:#?}"))
    }

    /// The code of a JSON error.
    #[track_caller]
    pub fn error_code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no error: {self:#?}"))
            .to_owned()
    }
}

impl TestEnv {
    /// A repository with one commit on `main` and no remote; `binary` is the weald under test.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let env = Self::without_repository(binary);
        std::fs::create_dir(env.repo()).expect("the repository's folder");
        env.git(&["init", "-q", "-b", "main"]);
        // It would look after a commit, in the background, and stand in the checkout for a moment.
        env.git(&["config", "maintenance.auto", "false"]);
        env.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        env
    }

    /// The same with two small files, and an author of its own.
    pub fn with_files(binary: impl Into<PathBuf>) -> Self {
        let env = Self::new(binary);
        env.git(&["config", "user.name", "Test"]);
        env.git(&["config", "user.email", "test@example.com"]);
        for (name, text) in [("config.py", "base\n"), (".gitignore", "*.log\n")] {
            std::fs::write(env.repo().join(name), text).expect("the repository can be written");
        }
        env.git(&["add", "-A"]);
        env.git(&["commit", "-q", "-m", "files"]);
        env
    }

    pub fn without_repository(binary: impl Into<PathBuf>) -> Self {
        let directory = TempDir::with_prefix("weald-test-").expect("a temporary folder");
        std::fs::create_dir(directory.path().join("home")).expect("a home");
        Self {
            directory,
            binary: binary.into(),
        }
    }

    /// Leaves everything on disk, for somebody to look at.
    pub fn keep(&mut self) {
        self.directory.disable_cleanup(true);
    }

    /// The folder that holds everything.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn repo(&self) -> PathBuf {
        self.root().join("app")
    }

    /// weald's private state in the repository.
    pub fn private(&self) -> PathBuf {
        self.repo().join(".git/weald/private")
    }

    /// What weald keeps of this repository in the user's state folder: folders of runs, agents' homes.
    pub fn own_folder(&self) -> PathBuf {
        let id =
            std::fs::read_to_string(self.private().join("repository")).expect("weald was used");
        self.home().join(".local/state/weald/own").join(&id[..12])
    }

    /// A program in the home that weald takes for an agent by its name, and that is another one: it leaves out what weald
    /// adds to an agent's words.
    pub fn agent_that_is(&self, name: &str, program: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.home().join(name);
        let script = format!(
            "#!/bin/sh\nwhile :; do case \"$1\" in --mcp-config=*|--dangerously-*) shift;; *) break;; esac; done\nexec {program} \"$@\"\n"
        );
        std::fs::write(&path, script).expect("the home can be written");
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, runs).expect("the home is ours");
        path
    }

    /// A command in the repository with nothing of the caller's environment but the search path.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        #[expect(clippy::disallowed_methods, reason = "tests start real processes")]
        let mut command = Command::new(program);
        let directory = Some(self.repo())
            .filter(|repo| repo.is_dir())
            .unwrap_or_else(|| self.root().to_owned());
        #[expect(clippy::disallowed_methods, reason = "programs have to be found")]
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            // Nothing goes on in the background unless a test wants it.
            .env("WEALD_POOL_SIZE", "0")
            .env("WEALD_HOOK_BACKGROUND", "false")
            .current_dir(directory);
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "Test"),
            ("GIT_AUTHOR_EMAIL", "test@example.com"),
            ("GIT_COMMITTER_NAME", "Test"),
            ("GIT_COMMITTER_EMAIL", "test@example.com"),
        ] {
            command.env(name, value);
        }
        // How repositories are made is a switch of the test run: stories are told again on other formats.
        for name in FORMATS {
            #[expect(clippy::disallowed_methods, reason = "a switch of the test run")]
            let chosen = std::env::var_os(name);
            chosen.map(|format| command.env(name, format));
        }
        command.stdin(Stdio::null());
        command
    }

    /// A search path with this machine's git and the system's own programs, and no others: no agent is found on it.
    pub fn plain_path(&self) -> String {
        let bin = self.home().join("plain");
        #[expect(clippy::disallowed_methods, reason = "programs have to be found")]
        let search = std::env::var_os("PATH").unwrap_or_default();
        let mut found = std::env::split_paths(&search).map(|folder| folder.join("git"));
        let git = found.find(|git| git.is_file()).expect("git");
        std::fs::create_dir_all(&bin).expect("the home can be written");
        let _ = std::os::unix::fs::symlink(git, bin.join("git"));
        format!("{}:/usr/bin:/bin", bin.display())
    }

    /// The binary under test, not started yet.
    pub fn weald_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.binary);
        command.args(args);
        command
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub fn weald(&self, args: &[&str]) -> Answer {
        Answer::of(self.weald_command(args).output().expect("weald starts"))
    }

    /// Runs it as nobody's child: as a person would, even if an agent runs the tests.
    #[track_caller]
    pub fn weald_alone(&self, args: &[&str]) -> Answer {
        let words = args.iter().map(|word| word.as_ref());
        self.alone([self.binary.as_os_str()].into_iter().chain(words))
    }

    /// The same for any command.
    #[track_caller]
    pub fn alone<'a>(&self, command: impl IntoIterator<Item = &'a OsStr>) -> Answer {
        let place = TempDir::with_prefix("weald-alone-").expect("a temporary folder");
        let script = "at=$1; shift; ( while kill -0 $$ 2>/dev/null; do sleep 0.002; done; \"$@\" > \"$at/out\" 2> \"$at/err\"; echo $? > \"$at/rc.new\"; mv \"$at/rc.new\" \"$at/rc\" ) & exit 0";
        let mut start = self.command("sh");
        start.args(["-c", script, "sh"]).arg(place.path());
        start.args(command);
        assert!(start.status().expect("sh starts").success());
        let read = |name: &str| std::fs::read_to_string(place.path().join(name));
        let code = loop {
            match read("rc") {
                Ok(code) => break code.trim().parse().expect("an exit code"),
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(2)),
            }
        };
        Answer {
            code,
            stdout: read("out").expect("its output"),
            stderr: read("err").expect("its errors"),
        }
    }

    /// Runs the binary with `input` on its standard input.
    #[track_caller]
    pub fn weald_with_input(&self, args: &[&str], input: &[u8]) -> Answer {
        let mut command = self.weald_command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("weald starts");
        feed(&mut child, input);
        Answer::of(child.wait_with_output().expect("weald ends"))
    }

    /// Runs the binary with `--json` and expects success.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> Value {
        let is_config = args.first() == Some(&"config");
        // In front: what follows `--` is not ours.
        let args = [&["--json"], args].concat();
        let answer = match is_config {
            true => self.weald_alone(&args),
            false => self.weald(&args),
        };
        assert_eq!(answer.code, 0, "weald {args:?}: {answer:#?}");
        answer.json()
    }

    /// Runs the binary with `--json` and expects this exit code and this error code.
    #[track_caller]
    pub fn refused(&self, args: &[&str], exit: i32, code: &str) -> Value {
        let answer = self.weald(&[&["--json"], args].concat());
        assert_eq!(
            (answer.code, answer.error_code().as_str()),
            (exit, code),
            "weald {args:?}: {answer:#?}"
        );
        answer.json()
    }

    /// Runs git in the repository and expects success.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().expect("git starts");
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for TestEnv {
    /// A test that failed leaves no agent behind: supervisors are nobody's children.
    fn drop(&mut self) {
        if self.has_agents() {
            self.end_processes();
        }
    }
}

fn feed(child: &mut Child, input: &[u8]) {
    use std::io::Write;
    // A child that refuses early closes its end; what it said is what counts.
    let _ = child.stdin.take().expect("piped").write_all(input);
}
