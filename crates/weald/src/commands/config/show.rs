//! `weald config show`

use clap::Args;
use serde_json::json;
use weald_app::Failure;
use weald_core::config::KEYS;

use crate::completion;
use crate::context::Context;
use crate::ui::{ACCENT, DIM, Fields, Table};

/// Show configuration values and their origins
///
/// Later sources override earlier ones: profile, weald.toml on the target, your file, the private file, $WEALD_*, --set.
#[derive(Args)]
pub struct Show {
    /// Only this key
    #[arg(value_name = "KEY", add = completion::keys())]
    key: Option<String>,
}

impl Show {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        if let Some(key) = &self.key {
            weald_app::require_key(key)?;
        }
        let loaded = context.config(&context.place()?)?;
        for note in &loaded.notes {
            context.note(note);
        }
        for ignored in &loaded.config.ignored {
            context.warn(&format!(
                "ignoring {} in {}: {}",
                ignored.key, ignored.origin, ignored.reason
            ));
        }
        let wanted = KEYS
            .iter()
            .filter(|key| self.key.as_ref().is_none_or(|name| name == key.name));
        let values: Vec<_> = wanted
            .map(|key| (key, loaded.config.get(key.name)))
            .collect();
        let objects = values.iter().map(|(key, (value, origin))| {
            json!({"key": key.name, "value": value, "origin": origin.to_string(), "about": key.about})
        });
        let target = loaded
            .target
            .as_ref()
            .map(|(branch, tip)| json!({"branch": branch, "commit": tip}));
        context.ui.answer(
            || {
                let values: Vec<_> = objects.collect();
                let ignored = &loaded.config.ignored;
                Fields::new().with(
                    "config",
                    &json!({"values": values, "ignored": ignored, "target": target}),
                )
            },
            |out| {
                let mut table = Table::new(&["KEY", "ORIGIN", "VALUE"]);
                for (key, (value, origin)) in &values {
                    table.row(vec![
                        (key.name.to_owned(), ACCENT),
                        (origin.to_string(), DIM),
                        (value.to_string(), Default::default()),
                    ]);
                }
                table.print(out)
            },
        )
    }
}
