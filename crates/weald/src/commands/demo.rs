//! `weald demo`: what is special about weald, in a throwaway repository.
//!
//! Every line after a `$` is a real command with its real output, in a home of its own. What the narration claims is
//! checked against the files, so the demo cannot show what does not work.

use std::fs::{self, File};
use std::io::{self, IsTerminal, PipeReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use tempfile::TempDir;
use weald_app::{Failure, exit};
use weald_core::task::TaskStatus;
use weald_git::{Git, require_version};

use crate::context::Context;
use crate::ui::{ACCENT, DIM, HEADING, Out, paint, status_style};

/// Long enough to read a line or two.
const PAUSE: Duration = Duration::from_millis(900);

const MENU: &str = "soup\nbread\ncake\n";
const BETTER_MENU: &str = "salad\nbread\nfruit\n";

const TEST: &str = "#!/bin/sh
grep -q bread menu.txt && echo 'ok: there is bread' || { echo 'FAILED: no bread'; exit 1; }
";

/// Show what is special about weald in a throwaway repository
///
/// Needs only git, takes a few seconds and leaves nothing behind.
#[derive(Args)]
pub struct Demo {
    /// Keep the repository and print its path
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        require_version()?;
        // A Ctrl-C must still remove the directory.
        context.cancel.catch();
        let stage = Stage::build(context)?;
        let mut out = context.ui.out();
        let code = stage.play(&mut out);
        if self.keep {
            let kept = stage.directory.keep();
            writeln!(out, "\nKept: cd {}", kept.join("app").display())?;
        }
        code
    }
}

struct Stage<'a> {
    context: &'a Context<'a>,
    directory: TempDir,
    /// The directory without symbolic links, as programs print it.
    root: PathBuf,
    weald: PathBuf,
    variables: Vec<(&'static str, String)>,
    has_pauses: bool,
}

/// What is shown of a command's output.
#[derive(Clone, Copy, PartialEq)]
enum Streams {
    Both,
    /// Without the narration of what happens meanwhile.
    Answer,
}

impl<'a> Stage<'a> {
    fn build(context: &'a Context<'a>) -> Result<Self, Failure> {
        let directory = TempDir::with_prefix("weald-demo-")?;
        let passed = ["PATH", "TERM", "TMPDIR"];
        let environment = &context.environment;
        let variables = passed
            .iter()
            .filter_map(|name| Some((*name, environment.get(name)?)));
        let stage = Self {
            context,
            root: directory.path().canonicalize()?,
            directory,
            weald: std::env::current_exe()?,
            variables: variables.collect(),
            has_pauses: io::stdout().is_terminal(),
        };
        let (home, repo) = (&stage.root, stage.repo());
        let test = repo.join("test.sh");
        fs::create_dir(&repo)?;
        fs::create_dir(home.join(".ssh"))?;
        fs::write(home.join(".ssh/id_ed25519"), "a private key\n")?;
        fs::write(
            home.join(".gitconfig"),
            "[user]\n\tname = demo\n\temail = demo@example.com\n",
        )?;
        fs::write(repo.join("menu.txt"), MENU)?;
        fs::write(&test, TEST)?;
        fs::set_permissions(&test, fs::Permissions::from_mode(0o755))?;
        for (name, args) in [
            ("init", &["-q", "-b", "main"][..]),
            ("add", &["."]),
            ("commit", &["-q", "-m", "Menu"]),
        ] {
            let mut git = Git::outside(&repo, name).args(args);
            for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
                git = git
                    .env(format!("{who}_NAME"), "demo")
                    .env(format!("{who}_EMAIL"), "demo@example.com");
            }
            git.run()?;
        }
        Ok(stage)
    }

    fn repo(&self) -> PathBuf {
        self.root.join("app")
    }

    fn has_menu(&self, wanted: &str) -> io::Result<bool> {
        Ok(fs::read_to_string(self.repo().join("menu.txt"))? == wanted)
    }

    fn play(&self, out: &mut Out) -> Result<u8, Failure> {
        say(
            out,
            "A throwaway repository with menu.txt and test.sh. Small commands play the agents.",
        )?;

        self.title(out, "1. An agent can write to its own worktree only")?;
        self.show(out, &["weald", "new", "try"], 1)?;
        let attempt = "echo pie > menu.txt; echo pie > ../../app/menu.txt; cat ~/.ssh/id_ed25519";
        let run = ["weald", "run", "try", "--", "sh", "-c", attempt];
        let code = self.print(out, &run, Streams::Both, 3)?;
        if code == Some(exit::NO_SANDBOX.into()) {
            return Ok(exit::NO_SANDBOX);
        }
        let own = fs::read_to_string(self.root.join("app.weald/try/menu.txt"))?;
        self.require(own == "pie\n" && self.has_menu(MENU)?, &run)?;
        say(
            out,
            "The kernel denied the write to the main checkout. The SSH key is hidden.",
        )?;

        self.title(
            out,
            "2. Two agents work at once; what passes the test lands",
        )?;
        let gate = ["weald", "config", "set", "gate.command", "./test.sh"];
        self.show(out, &gate, 0)?;
        let agents = [
            ["Better starter", "s/soup/salad/"],
            ["Better dessert", "s/cake/fruit/"],
        ];
        let agents =
            agents.map(|[task, edit]| ["weald", "work", task, "--", "sed", "-i", edit, "menu.txt"]);
        let mut running = Vec::new();
        for words in &agents {
            self.announce(out, words, " &")?;
            running.push(self.start(words, Streams::Answer)?);
        }
        for (words, agent) in agents.iter().zip(running) {
            let code = self.finish(out, agent, 2)?;
            self.require(code == Some(0), words)?;
        }
        self.show(out, &["cat", "menu.txt"], 3)?;
        self.require(self.has_menu(BETTER_MENU)?, &agents[0])?;

        self.title(
            out,
            "3. A third agent breaks the test; main stays as it was",
        )?;
        let work = [
            "weald",
            "work",
            "Fewer calories",
            "--",
            "sed",
            "-i",
            "/bread/d",
            "menu.txt",
        ];
        let code = self.print(out, &work, Streams::Answer, 6)?;
        let is_unchanged = self.has_menu(BETTER_MENU)?;
        self.require(code == Some(exit::REFUSED.into()) && is_unchanged, &work)?;
        self.show(out, &["./test.sh"], 1)?;

        self.title(out, "Now in your own repository:")?;
        for (line, about) in [
            (
                "weald work \"Fix the login\" -- claude",
                "or codex, or any command",
            ),
            (
                "weald config set gate.command \"npm test\"",
                "only what passes lands",
            ),
            ("weald", "what runs, and what needs you"),
            ("weald help", "the everyday commands"),
        ] {
            let (line, about) = (format!("{line:<42}"), format!("# {about}"));
            writeln!(out, "  {} {}", paint(ACCENT, line), paint(DIM, about))?;
        }
        Ok(exit::DONE)
    }

    fn title(&self, out: &mut Out, text: &str) -> Result<(), Failure> {
        self.pause(2)?;
        writeln!(out, "\n{}", paint(HEADING, text))?;
        Ok(())
    }

    /// Shows a command that has to succeed.
    fn show(&self, out: &mut Out, words: &[&str], lines: usize) -> Result<(), Failure> {
        let code = self.print(out, words, Streams::Both, lines)?;
        self.require(code == Some(0), words)
    }

    /// Runs one command and prints it with the first lines of its output; its exit code.
    fn print(
        &self,
        out: &mut Out,
        words: &[&str],
        streams: Streams,
        lines: usize,
    ) -> Result<Option<i32>, Failure> {
        self.announce(out, words, "")?;
        let running = self.start(words, streams)?;
        self.finish(out, running, lines)
    }

    fn announce(&self, out: &mut Out, words: &[&str], end: &str) -> Result<(), Failure> {
        let is_plain = |c: char| c.is_alphanumeric() || "./-_".contains(c);
        let quoted = words.iter().map(|word| match word.chars().all(is_plain) {
            true => (*word).to_owned(),
            false => format!("'{word}'"),
        });
        let line = format!("{}{end}", quoted.collect::<Vec<_>>().join(" "));
        writeln!(out, "{} {}", paint(DIM, "$"), paint(ACCENT, line))?;
        out.flush()?;
        self.pause(1)
    }

    fn start(&self, words: &[&str], streams: Streams) -> Result<(Child, PipeReader), Failure> {
        let (said, both) = io::pipe()?;
        let errors = match streams {
            Streams::Both => Stdio::from(both.try_clone()?),
            Streams::Answer => {
                let mut log = File::options();
                Stdio::from(log.create(true).append(true).open(self.log())?)
            }
        };
        let mut command = self.command(words);
        Ok((command.stdout(both).stderr(errors).spawn()?, said))
    }

    fn finish(
        &self,
        out: &mut Out,
        (mut child, mut said): (Child, PipeReader),
        lines: usize,
    ) -> Result<Option<i32>, Failure> {
        let mut text = Vec::new();
        said.read_to_end(&mut text)?;
        let status = child.wait()?;
        let text = String::from_utf8_lossy(&text).replace(&*self.root.to_string_lossy(), "~");
        for line in text.lines().take(lines) {
            let style = match line.chars().next() {
                Some('✓') => status_style(TaskStatus::Completed),
                Some('✗') => status_style(TaskStatus::Failed),
                _ => status_style(TaskStatus::Pending),
            };
            writeln!(out, "{}", paint(style, line))?;
        }
        out.flush()?;
        self.pause(1)?;
        Ok(status.code())
    }

    /// Lets a person read. Ctrl-C ends the demo.
    fn pause(&self, units: u32) -> Result<(), Failure> {
        let until = Instant::now() + PAUSE * units;
        loop {
            if let Some(signal) = self.context.cancel.asked() {
                return Err(Failure::new("interrupted", 128 + signal, "interrupted"));
            }
            if !self.has_pauses || Instant::now() >= until {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Fails if something is not as the narration says.
    fn require(&self, holds: bool, words: &[&str]) -> Result<(), Failure> {
        if holds {
            return Ok(());
        }
        let narration = fs::read_to_string(self.log()).unwrap_or_default();
        let message = format!("`{}` did not do what the demo shows", words.join(" "));
        let message = [message.as_str(), narration.trim_end()].join("\n");
        Err(
            Failure::new("demo_failed", exit::REFUSED, message.trim_end())
                .hint("weald demo --keep"),
        )
    }

    fn log(&self) -> PathBuf {
        self.root.join("narration")
    }

    /// A command in the demo's home; `weald` is this binary.
    fn command(&self, words: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the demo shows this binary as a user starts it"
        )]
        let mut command = match words[0] {
            "weald" => Command::new(&self.weald),
            program => Command::new(program),
        };
        command
            .args(&words[1..])
            .current_dir(self.repo())
            .stdin(Stdio::null());
        // Only what a program needs to run: nothing of the caller's sessions or settings.
        command.env_clear().env("HOME", &self.root);
        // Nothing continues in the background after the demo, and a small command would only fail again.
        command.env("WEALD_POOL_BACKGROUND", "false");
        command.env("WEALD_WORK_RETRIES", "0");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn say(out: &mut Out, text: &str) -> io::Result<()> {
    writeln!(out, "{}", paint(DIM, text))
}
