//! `weald config set`

use std::io::Write;

use clap::Args;
use serde_json::json;
use weald_app::{Failure, PRIVATE_FILE, Place, edit_file, exit};
use weald_core::config::{Value, check_value, find_key, from_text};
use weald_core::secrets::{STORES, unknown_to_reveal};

use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// What runs may see of the hidden.
const REVEAL: &str = "sandbox.reveal";

/// Set a key in this repository's private configuration
///
/// Separate list items with commas. A list replaces the one set here before.
#[derive(Args)]
pub struct Set {
    /// Key, for example landing.strategy
    #[arg(value_name = "KEY", add = completion::keys())]
    key: String,
    /// Value to set
    #[arg(allow_hyphen_values = true)]
    value: String,
}

impl Set {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let place = context.place()?;
        let path = place.private().join(PRIVATE_FILE);
        self.refuse_unknown_stores()?;
        context.refuse_loosening(&self.key, Some(&self.value))?;
        let before = self.revealed(context, &place)?;
        let value = edit_file(&path, &self.key, &self.value)?;
        let now = self.revealed(context, &place)?;
        let hidden: Vec<_> = before.iter().filter(|name| !now.contains(name)).collect();
        for name in &hidden {
            context.note(&format!(
                "{name} was revealed and is hidden from runs again"
            ));
        }
        let mut set = json!({"key": self.key, "value": value, "file": path.display().to_string()});
        if self.key == REVEAL {
            set["hidden_again"] = json!(hidden);
        }
        context.ui.answer(
            || Fields::new().with("config", &set),
            |out| writeln!(out, "{} = {value}", self.key),
        )
    }

    /// What runs may see of the hidden, if that is what is set here.
    fn revealed(&self, context: &Context<'_>, place: &Place) -> Result<Vec<String>, Failure> {
        match self.key == REVEAL {
            true => Ok(context.config(place)?.config.sandbox_reveal.clone()),
            false => Ok(Vec::new()),
        }
    }

    /// Refuses to reveal what is neither a store nor a variable: nothing would come of it.
    fn refuse_unknown_stores(&self) -> Result<(), Failure> {
        let Some(key) = find_key(&self.key).filter(|key| key.name == REVEAL) else {
            return Ok(());
        };
        let Ok(Value::List(names)) = check_value(key, &from_text(key, &self.value)) else {
            return Ok(());
        };
        let unknown = names
            .iter()
            .find_map(|name| Some((name, unknown_to_reveal(name)?)));
        let Some((name, nearest)) = unknown else {
            return Ok(());
        };
        let known: Vec<_> = STORES.iter().map(|store| store.name).collect();
        let known = known.join(", ");
        let message = format!(
            "`{name}` is neither a variable nor a store of secrets; the stores are {known}"
        );
        let failure = Failure::new("unknown_store", exit::USAGE, message);
        Err(failure.hint(format!("did you mean `{nearest}`?")))
    }
}
