//! `weald sandbox test`

use std::io::Write;

use clap::Args;
use weald_app::Failure;
use weald_app::operations::Operation;
use weald_app::operations::sandboxes::{AttemptEnd, TestSandbox};

use super::exec::LevelArg;
use crate::context::Context;
use crate::ui::{DIM, HEADING, paint};

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
        let answer = context.perform(TestSandbox {
            level: self.level.level(),
            only: self.only,
        })?;
        context.ui.show(&answer, |out| {
            for tried in &answer.attempts {
                let word = match tried.end {
                    AttemptEnd::Denied => "denied".to_owned(),
                    AttemptEnd::NotCovered => "not covered at this level".to_owned(),
                    AttemptEnd::Escaped => paint(HEADING, "ESCAPED"),
                    AttemptEnd::NoTeeth => {
                        paint(DIM, "does not work here even without the sandbox")
                    }
                };
                writeln!(out, "  {:<36} {word}", tried.name)?;
            }
            writeln!(
                out,
                "{} attempts that work without the sandbox: {} escaped, {} not covered",
                answer.cases,
                answer.escaped.len(),
                answer.other.exceptions.len()
            )
        })?;
        Ok(TestSandbox::exit(&answer))
    }
}
