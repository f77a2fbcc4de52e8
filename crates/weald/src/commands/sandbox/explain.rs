//! `weald sandbox explain`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use serde_json::json;
use weald_app::{Failure, hidden_names, read_only_home};
use weald_sandbox::{Ended, Invocation, Level, Policy, launch, mount_below_home};

use super::exec::Scope;
use crate::completion;
use crate::context::Context;
use crate::ui::{DIM, Fields, HEADING, Out, paint};

/// Show what a sandboxed run may do
///
/// Covers a run in a worktree or one that writes DIR. Also shows whether the sandbox works here and what it does not cover.
#[derive(Args)]
pub struct Explain {
    /// Worktree or writable directory (default: current directory)
    #[arg(value_name = "NAME|DIR", add = completion::trees())]
    tree: Option<PathBuf>,
}

impl Explain {
    /// Of a tree by its name, else of a directory.
    fn policy(&self, context: &Context<'_>) -> Result<Policy, Failure> {
        match self.tree.as_deref().and_then(Path::to_str) {
            Some(name) if !Path::new(name).is_dir() => {
                let ground = context.ground()?;
                let trees = ground.trees(context)?;
                Ok(trees.run_policy(&trees.named(Some(name))?))
            }
            _ => {
                let here = context.directory();
                Scope::of(self.tree.as_ref().unwrap_or(here).clone()).policy(context)
            }
        }
    }

    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let policy = self.policy(context)?;
        let directory = policy.write[0].clone();
        let missing = probe(&policy, &directory).err();
        let texts = |paths: &[PathBuf]| {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        let not_covered = policy.level.not_covered();
        // Without namespaces nothing can be private but what is its own, and nothing masked.
        let (private, masked): (&[&str], &[PathBuf]) = match policy.level {
            Level::Full => (
                &["/tmp", "/var/tmp", "/run", "/dev/shm", "/dev", "/proc"],
                &policy.mask,
            ),
            Level::Landlock => (&["$TMPDIR"], &[]),
        };
        let mut hidden = texts(&policy.hidden);
        hidden.retain(|path| Path::new(path).symlink_metadata().is_ok());
        let config = context.sandbox_config(&policy.write)?;
        let home = context.environment.home();
        let all = context.environment.for_commands();
        let secrets = hidden_names(&config, home.as_deref(), &all);
        let below = mount_below_home(&policy);
        let read_only = below.map(|point| read_only_home(&point));
        let layer = policy.home_layer.as_ref().filter(|_| read_only.is_none());
        let sandbox = json!({
            "level": policy.level,
            "available": missing.is_none(),
            "missing": missing.as_ref().map(|failure| &failure.message),
            "landlock_abi": weald_sandbox::landlock_abi(),
            "write": texts(&policy.write),
            "private": private,
            "masked": texts(masked),
            "sockets": texts(&policy.sockets),
            "devices": texts(&policy.devices),
            "network": policy.network,
            "home": layer.map(|_| "copy_on_write"),
            "home_note": read_only,
            "hidden": hidden,
            "hidden_secrets": secrets,
            "limits": policy.limits,
            "refuses": policy.level.refuses(),
            "not_covered": not_covered,
        });
        context.ui.answer(
            || Fields::new().with("sandbox", &sandbox),
            |out| {
                writeln!(out, "{} {}", paint(HEADING, "level"), policy.level.as_str())?;
                print_availability(out, missing.as_ref())?;
                if let Some(note) = &read_only {
                    writeln!(out, "  {note}")?;
                }
                let mut unseen = [texts(masked), hidden.clone()].concat();
                unseen.sort();
                unseen.dedup();
                let lists = [
                    ("can write", texts(&policy.write)),
                    ("has for itself", words(private)),
                    ("does not see", unseen),
                    (
                        "hides (to reveal one: weald config set sandbox.reveal NAME)",
                        secrets.clone(),
                    ),
                    ("may connect to", texts(&policy.sockets)),
                    ("may use", texts(&policy.devices)),
                    (
                        "refuses, with an error that programs can handle",
                        words(policy.level.refuses()),
                    ),
                    ("does not cover", words(not_covered)),
                ];
                lists
                    .iter()
                    .try_for_each(|(name, lines)| print_list(out, name, lines))
            },
        )
    }
}

fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn print_availability(out: &mut Out, missing: Option<&Failure>) -> io::Result<()> {
    match missing {
        None => writeln!(
            out,
            "  works here (Landlock ABI {})",
            weald_sandbox::landlock_abi()
        ),
        Some(failure) => {
            writeln!(out, "  {}", failure.message)?;
            let hint = failure.hint.clone().unwrap_or_default();
            writeln!(out, "  {} {hint}", paint(DIM, "hint:"))
        }
    }
}

fn print_list(out: &mut Out, name: &str, lines: &[String]) -> io::Result<()> {
    writeln!(out, "{}", paint(HEADING, name))?;
    if lines.is_empty() {
        return writeln!(out, "  nothing");
    }
    lines.iter().try_for_each(|line| writeln!(out, "  {line}"))
}

/// Tries the policy on a command that does nothing.
fn probe(policy: &Policy, directory: &Path) -> Result<(), Failure> {
    // A probe needs no caches, and should leave none behind.
    let policy = &Policy {
        home_layer: None,
        ..policy.clone()
    };
    let invocation = Invocation {
        helper: std::env::current_exe()?,
        command: vec!["/bin/true".into()],
        directory: directory.to_owned(),
        environment: Vec::new(),
        streams: [Stdio::null(), Stdio::null(), Stdio::null()],
        passed: None,
    };
    match launch(policy, invocation)?.wait(None)? {
        Ended::Code(0) => Ok(()),
        ended => Err(Failure::new(
            "sandbox_unavailable",
            weald_app::exit::NO_SANDBOX,
            format!("a probe ended with {ended:?}"),
        )),
    }
}
