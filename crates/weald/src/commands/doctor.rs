//! `weald doctor`

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Stdio;

use clap::Args;
use weald_engine::{Finding, Severity};
use weald_sandbox::{Ended, Invocation, Level, Policy, launch};

use crate::context::Context;
use crate::errors::Failure;
use crate::exit;
use crate::ui::{DIM, Fields, Out, clean, paint};

/// Find what does not fit, and repair what is weald's own
///
/// After a crash, a moved repository or a moved tree. Exits 0 when nothing worse than info is left.
#[derive(Args)]
pub struct Doctor {
    /// Repair what can be repaired without losing anything
    #[arg(long)]
    fix: bool,
    /// Where moved trees are now
    #[arg(value_name = "PLACE")]
    places: Vec<PathBuf>,
}

impl Doctor {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let resolve = |path: &PathBuf| {
            path.canonicalize()
                .map_err(|error| Failure::file(path, &error))
        };
        let places: Vec<_> = self.places.iter().map(resolve).collect::<Result<_, _>>()?;
        let progress = context.ui.progress("looking");
        let mut findings = vec![sandbox(context)?];
        findings.extend(trees.doctor(self.fix, &places)?);
        drop(progress);
        context.tell(&ground.engine);
        context.ui.answer(
            || Fields::new().with("findings", &findings),
            |out| findings.iter().try_for_each(|finding| told(out, finding)),
        )?;
        let open = |finding: &&Finding| finding.severity != Severity::Info && !finding.fixed;
        Ok(match findings.iter().find(open) {
            None => exit::DONE,
            Some(_) => exit::REFUSED,
        })
    }
}

fn told(out: &mut Out, finding: &Finding) -> io::Result<()> {
    let severity = match finding.severity {
        Severity::Info => "info",
        Severity::Warn => "warn",
        Severity::Error => "error",
    };
    writeln!(out, "{severity}: {}", clean(&finding.what))?;
    match finding.fixed {
        true => writeln!(
            out,
            "  {}",
            paint(DIM, format!("repaired: {}", finding.would))
        ),
        false => writeln!(out, "  {}", paint(DIM, &finding.would)),
    }
}

/// The strongest level that works here, and what it does not cover.
fn sandbox(context: &Context<'_>) -> Result<Finding, Failure> {
    let works = |level: Level| -> Result<bool, Failure> {
        let directory = tempfile::TempDir::with_prefix("weald-doctor-")?;
        let tmp = tempfile::TempDir::with_prefix("weald-doctor-")?;
        let mut policy = Policy::new(directory.path());
        policy.level = level;
        policy.tmp = (level == Level::Landlock).then(|| tmp.path().to_owned());
        let invocation = Invocation {
            helper: context.helper()?,
            command: vec!["/bin/true".into()],
            directory: directory.path().to_owned(),
            environment: Vec::new(),
            streams: [Stdio::null(), Stdio::null(), Stdio::null()],
            passed: None,
        };
        let ended = launch(&policy, invocation).and_then(|running| Ok(running.wait(None)?));
        Ok(matches!(ended, Ok(Ended::Code(0))))
    };
    let not_covered = |level: Level| format!("does not cover: {}", level.not_covered().join("; "));
    let (severity, what, would) = match (works(Level::Full)?, works(Level::Landlock)?) {
        (true, _) => (
            Severity::Info,
            "the sandbox works at level full".to_owned(),
            not_covered(Level::Full),
        ),
        (false, true) => (
            Severity::Warn,
            "the sandbox works only at level landlock; runs need --sandbox landlock".to_owned(),
            not_covered(Level::Landlock),
        ),
        (false, false) => (
            Severity::Error,
            "the sandbox does not work here: trees can't be looked into".to_owned(),
            "weald sandbox explain".to_owned(),
        ),
    };
    Ok(Finding {
        code: "sandbox_level",
        severity,
        what,
        would,
        fixed: false,
    })
}
