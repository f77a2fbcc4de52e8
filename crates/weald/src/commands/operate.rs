//! `weald operate`: one operation, for a server that wants it done by a process of its own.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use weald_app::operations::{self, Broker, Caller, Entry};
use weald_app::progress::{Progress, Stage};
use weald_app::{Call, Failure};

use super::inside::Inside;
use crate::context::Context;
use crate::ui::{Fields, Ui, clean_line};

/// How long a line stands before the next one.
const MOMENT: Duration = Duration::from_millis(200);

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

/// Shows stages and their lines on stderr, too: the server makes progress notifications of it.
struct Narrator<'a>(&'a Ui);

impl Progress for Narrator<'_> {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn warn(&self, text: &str) {
        self.0.warn(text);
    }

    fn stage(&self, what: &'static str) -> Arc<dyn Stage> {
        self.note(what);
        Arc::new(Narrated::default())
    }
}

/// When a line was written last. Of many lines in a moment one is enough.
#[derive(Default)]
struct Narrated(Mutex<Option<Instant>>);

impl Stage for Narrated {
    fn is_shown(&self) -> bool {
        true
    }

    fn begins(&self, what: &str) {
        // Nobody may be left to read it.
        let _ = io::stderr().write_all(format!("{}\n", clean_line(what)).as_bytes());
    }

    fn line(&self, text: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= MOMENT) {
            *last = Some(Instant::now());
            self.begins(text);
        }
    }
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
        let call = Call {
            progress: &Narrator(context.ui),
            ..context.by(&wanted.caller)
        };
        let done = perform(wanted.request, &call, broker)?;
        let mut out = context.ui.json_out();
        writeln!(out, "{}", Fields::of(&done.answer).finish())?;
        out.flush()?;
        Ok(done.exit)
    }
}
