//! `weald sandbox test`

use std::io::Write;

use clap::Args;
use serde_json::json;
use weald_app::{Failure, exit};
use weald_escape::{Outcome, Pattern, cases, try_case};
use weald_sandbox::Level;

use super::exec::LevelArg;
use crate::context::Context;
use crate::ui::{DIM, Fields, HEADING, paint};

/// Try to escape the sandbox on this machine
///
/// Every attempt runs twice: without the sandbox, where it must succeed, and inside it, where it must fail. Exits 1 if any
/// attempt escaped.
#[derive(Args)]
pub struct Test {
    /// Sandbox level to test
    #[arg(long, value_name = "LEVEL", default_value = "full")]
    level: LevelArg,
    /// Only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

impl Test {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let level = match self.level {
            LevelArg::Full => Level::Full,
            LevelArg::Landlock => Level::Landlock,
        };
        let helper = std::env::current_exe()?;
        let pattern = Pattern::make()?;
        let (mut tried, mut escaped, mut exceptions, mut toothless) =
            (0, Vec::new(), Vec::new(), Vec::new());
        let mut rows = Vec::new();
        for case in cases() {
            if self
                .only
                .as_ref()
                .is_some_and(|text| !case.name.contains(text.as_str()))
            {
                continue;
            }
            let outcome = try_case(&case, level, &pattern, &helper)?;
            let documented = level == Level::Landlock && !case.landlock;
            match outcome {
                Outcome::NoTeeth => toothless.push(case.name),
                Outcome::Escaped if documented => exceptions.push(case.name),
                Outcome::Escaped => escaped.push(case.name),
                Outcome::Denied => {}
            }
            tried += usize::from(outcome != Outcome::NoTeeth);
            rows.push((case.name, outcome, documented));
        }
        context.ui.answer(
            || {
                let lists = json!({"exceptions": exceptions, "no_teeth": toothless});
                Fields::new()
                    .with("cases", &tried)
                    .with("escaped", &escaped)
                    .with("level", &level)
                    .with("other", &lists)
            },
            |out| {
                for (name, outcome, documented) in &rows {
                    let word = match (outcome, documented) {
                        (Outcome::Denied, _) => "denied".to_owned(),
                        (Outcome::Escaped, true) => "not covered at this level".to_owned(),
                        (Outcome::Escaped, false) => paint(HEADING, "ESCAPED"),
                        (Outcome::NoTeeth, _) => {
                            paint(DIM, "does not work here even without the sandbox")
                        }
                    };
                    writeln!(out, "  {name:<36} {word}")?;
                }
                writeln!(
                    out,
                    "{tried} attempts that work without the sandbox: {} escaped, {} not covered",
                    escaped.len(),
                    exceptions.len()
                )
            },
        )?;
        Ok(if escaped.is_empty() {
            exit::DONE
        } else {
            exit::REFUSED
        })
    }
}
