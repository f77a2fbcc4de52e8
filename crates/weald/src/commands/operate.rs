//! `weald operate`: one operation, for a server that wants it done by a process of its own.

use std::io::{self, Read, Write};

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use weald_app::Failure;
use weald_app::operations::{self, Broker, Caller, Entry};

use super::inside::Inside;
use crate::context::Context;
use crate::ui::Fields;

/// The longest request that is read.
const LONGEST: u64 = 64 << 20;

/// Run one operation from a JSON request on stdin
#[derive(Args)]
pub struct Operate {
    /// Name of the operation
    name: String,
}

/// What a server writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    request: Value,
    #[serde(default)]
    caller: Caller,
}

impl Operate {
    pub fn only_reads(&self) -> bool {
        operations::named(&self.name).is_some_and(|entry| entry.reads)
    }

    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let Entry { perform, .. } =
            operations::named(&self.name).ok_or_else(|| Failure::no_operation(&self.name))?;
        let mut text = Vec::new();
        io::stdin().lock().take(LONGEST).read_to_end(&mut text)?;
        let wanted: Wanted = serde_json::from_slice(&text)
            .map_err(|error| Failure::bad_request(&self.name, &error))?;
        let inside = Inside::of(context);
        let broker = inside.as_ref().map(|inside| inside as &dyn Broker);
        let done = perform(wanted.request, &context.by(&wanted.caller), broker)?;
        let mut out = context.ui.json_out();
        writeln!(out, "{}", Fields::of(&done.answer).finish())?;
        out.flush()?;
        Ok(done.exit)
    }
}
