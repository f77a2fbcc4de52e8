//! `weald init`

use std::io::Write;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;
use weald_app::{Failure, PRIVATE_FILE, Place, SHARED_FILE, edit_file, exit, hidden_uses};
use weald_core::config::{PROFILES, profile_text};
use weald_core::store::Durability;

use crate::context::Context;
use crate::ui::Fields;

/// Choose the conventions for this repository
///
/// Optional: weald works without it.
#[derive(Args)]
pub struct Init {
    /// Conventions to start from (default: the current ones)
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(PROFILES))]
    profile: Option<String>,
    /// Write weald.toml for everyone instead of your private file
    #[arg(long)]
    shared: bool,
}

/// The command that would reveal what the project seems to use of the hidden, and what shows that. Only the user decides.
fn proposal(context: &Context<'_>, place: &Place) -> Result<Option<(String, String)>, Failure> {
    let Some(checkout) = place.repository().checkout() else {
        return Ok(None);
    };
    let config = context.config(place)?.config;
    let (home, all) = (
        context.environment.home(),
        context.environment.for_commands(),
    );
    let used = hidden_uses(&config, checkout, home.as_deref(), &all);
    if used.is_empty() {
        return Ok(None);
    }
    // The setting is replaced as a whole, so what it has comes along.
    let mut names = config.sandbox_reveal.to_vec();
    names.extend(used.iter().map(|it| it.name.clone()));
    let because = used
        .iter()
        .map(|it| format!("{} ({})", it.name, it.because));
    let because = because.collect::<Vec<_>>().join(", ");
    let command = format!("weald config set sandbox.reveal {}", names.join(","));
    Ok(Some((command, because)))
}

impl Init {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let place = context.place()?;
        let path = match (self.shared, place.repository().checkout()) {
            (false, _) => place.private().join(PRIVATE_FILE),
            (true, Some(checkout)) => checkout.join(SHARED_FILE),
            (true, None) => {
                return Err(Failure::new(
                    "bare_repository",
                    exit::REFUSED,
                    "a bare repository has no checkout to write weald.toml in",
                )
                .hint("weald init (without --shared)"));
            }
        };
        // The first use makes the private directory, with its permissions.
        context.engine()?;
        let profile = match self.profile {
            Some(profile) => profile,
            None => context.config(&place)?.config.profile.to_owned(),
        };
        if !self.shared {
            context.refuse_loosening("profile", Some(&profile))?;
        }
        edit_file(&path, "profile", &profile)?;
        // A profile may want files for other tools; they are there at once.
        let engine = context.engine()?;
        engine.catch_up(Durability::Process);
        context.tell(&engine);
        let target = context
            .config(&place)?
            .target
            .map_or_else(|| "the target".to_owned(), |(branch, _)| branch);
        if let Some(folder) = folder_inside(&profile) {
            context.warn(&format!(
                "worktrees are inside the checkout, in {folder}/: `git clean -ffdx` deletes them for good (with a single -f it leaves them alone)"
            ));
        }
        let reveal = proposal(context, &place)?;
        let init = json!({
            "profile": profile,
            "file": path.display().to_string(),
            "shared": self.shared,
            "reveal": reveal.as_ref().map(|(command, _)| command),
        });
        context.ui.answer(
            || Fields::new().with("init", &init),
            |out| {
                writeln!(out, "profile {profile} in {}", path.display())?;
                if let Some((command, because)) = &reveal {
                    writeln!(out, "runs can't see what this project seems to use: {because}")?;
                    writeln!(out, "to show it to them: {command}")?;
                }
                match self.shared {
                    true => writeln!(out, "it takes effect once it is committed on {target}: git add {SHARED_FILE} && git commit"),
                    false => writeln!(out, "next: weald task add \"what to do\""),
                }
            },
        )
    }
}

/// The folder in the checkout that a profile puts trees into.
fn folder_inside(profile: &str) -> Option<&'static str> {
    let lines = profile_text(profile)?.lines();
    let mut inside = lines.filter_map(|line| line.strip_prefix("tree.path = \"{repo}/"));
    inside.next()?.split("/{").next()
}
