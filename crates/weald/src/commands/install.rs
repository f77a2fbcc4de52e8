//! `weald install`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use weald_app::Failure;
use weald_app::operations::install::{self, ConnectProgram, Connected, Connection};

use crate::context::Context;
use crate::ui::{DIM, Out, clean, paint};

/// Connect weald to a coding agent, git or AppArmor
///
/// Edits only weald's own entries in that program's settings and shows every change. Running it again changes nothing;
/// `--remove` takes the entries out.
///
/// claude gets a plugin (hooks, MCP server, skill); codex an MCP server, hooks and instructions; gemini and opencode an MCP
/// server; git gets `git weald`; AppArmor gets a profile that lets weald create user namespaces.
#[derive(Args)]
pub struct Install {
    /// Program to connect
    #[arg(value_name = "PROGRAM")]
    program: Program,
    /// Install into this repository's files, for everyone
    #[arg(long)]
    project: bool,
    /// Remove weald's entries
    #[arg(long)]
    remove: bool,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Accepted for compatibility; weald never prompts
    #[arg(long, short, hide_short_help = true)]
    yes: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Program {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// git, as `git weald`
    Git,
    /// AppArmor (Ubuntu 24.04 needs it; run with sudo)
    Apparmor,
}

impl Install {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let answer = context.perform(ConnectProgram {
            program: match self.program {
                Program::Claude => install::Program::Claude,
                Program::Codex => install::Program::Codex,
                Program::Gemini => install::Program::Gemini,
                Program::Opencode => install::Program::Opencode,
                Program::Git => install::Program::Git,
                Program::Apparmor => install::Program::Apparmor,
            },
            project: self.project,
            remove: self.remove,
            dry_run: self.dry_run,
        })?;
        context.ui.show(&answer, |out| told(out, &answer.install))
    }
}

fn told(out: &mut Out, report: &Connection) -> io::Result<()> {
    for file in &report.files {
        write!(out, "{}", clean(&file.diff.replace("\r\n", "\n")))?;
    }
    let (program, way_out) = (report.program.as_str(), &report.way_out);
    let would = if report.dry_run { "would be " } else { "" };
    let words = match report.outcome {
        Connected::Installed => {
            format!("{would}installed in {program}; to remove it: {way_out}")
        }
        Connected::AlreadyInstalled => format!("already installed in {program}"),
        Connected::Removed => format!("{would}removed from {program}"),
        Connected::NotInstalled => format!("nothing of weald's is in {program}"),
    };
    for file in report
        .files
        .iter()
        .filter(|_| report.outcome == Connected::AlreadyInstalled)
    {
        writeln!(out, "  {}", paint(DIM, file.path.display().to_string()))?;
    }
    writeln!(out, "{words}")
}
