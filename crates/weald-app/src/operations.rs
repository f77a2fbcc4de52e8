//! Everything that weald does, each thing once: an operation is a request with checked types, the work, and an answer.
//!
//! A face (the command line, MCP, the broker of a run) makes the request from what it was given and shows the answer in
//! its own way. It makes the request as a whole struct, so a new field has to be decided about in every face. The face's
//! own words (flags and help, a tool's schema) stay with the face: `force` of a tool and `--force` of a command are two
//! things, and a library that nobody parses arguments with needs no parser.
//!
//! [`Operation::needs_only_the_store`] decides where a server does the work: in its own process, or in a process of its own
//! (`weald operate`), whose death leaves an intent that `doctor` heals.

/// The operations of a module, for [`named`].
macro_rules! entries {
    ($($operation:ty),+ $(,)?) => {
        pub(super) fn entries() -> Vec<super::Entry> {
            vec![$(super::Entry::of::<$operation>()),+]
        }
    };
}

pub mod agent_views;
pub mod approvals;
pub mod bindings;
pub mod claims;
pub mod cleaning;
pub mod configuration;
pub mod conflicts;
pub mod cost;
pub mod deinit;
pub mod doctor;
pub mod entering;
pub mod events;
pub mod install;
pub mod keeping;
pub mod landing;
pub mod looking;
pub mod making;
pub mod messages;
pub mod orders;
pub mod pool;
pub mod queue;
pub mod races;
pub mod rescues;
pub mod runs;
pub mod sandboxes;
pub mod sessions;
pub mod shells;
pub mod snapshots;
pub mod starts;
pub mod tasks;
pub mod transfers;
pub mod trash;
pub mod trust;
pub mod undo;
pub mod vault;
pub mod works;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use weald_core::SignedDuration;

pub use crate::call::Caller;
use crate::{Ask, Call, Failure, exit};

/// One thing that weald does.
pub trait Operation: Serialize + DeserializeOwned + Send + 'static {
    /// Its name in protocols.
    const NAME: &'static str;
    /// Whether it changes nothing, so that it works in a copy of a repository and on a read-only file system.
    const READS: bool = false;
    /// Whether it prints while it works, or hands the standard streams of its process to a command. Then nothing but a
    /// command line can do it.
    const TAKES_STREAMS: bool = false;
    /// Whether it concerns no repository, so that it is also done inside of a sandbox.
    const ANYWHERE: bool = false;
    /// What `--json` prints, but for the version of its schema.
    type Output: Serialize + Send + 'static;

    /// Refuses what no face should ask for, before anything is done or asked for.
    fn validate(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Does it on the host.
    fn run(self, call: &Call<'_>) -> Result<Self::Output, Failure>;

    /// Whether it needs no git, no file of a worktree and no sandbox.
    fn needs_only_the_store(&self) -> bool {
        false
    }

    /// Does it for a run, whose broker is asked. With `None` it is not for the inside of a sandbox.
    fn run_inside(&self, broker: &dyn Broker, call: &Call<'_>) -> Inside<Self::Output> {
        let _ = (broker, call);
        None
    }

    /// The exit code that goes with an answer.
    fn exit(_: &Self::Output) -> u8 {
        exit::DONE
    }
}

/// What a broker answered, if an operation asks one.
pub type Inside<T> = Option<Result<T, Failure>>;

/// The way out of a run: where its requests are answered.
pub trait Broker {
    /// Asks, in the caller's name; a refusal is the broker's own.
    fn ask(&self, caller: &Caller, ask: Ask) -> Result<Map<String, Value>, Failure>;
}

/// Refuses a time that no clock can be moved by.
fn within_reason(argument: &str, time: Option<SignedDuration>) -> Result<(), Failure> {
    let longest = SignedDuration::from_hours(24 * 3650);
    match time.is_none_or(|time| !time.is_negative() && time <= longest) {
        true => Ok(()),
        false => Err(Failure::not_a_time(argument)),
    }
}

/// An answer of the broker as what the operation answers.
pub fn parsed<T: DeserializeOwned>(answer: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(answer.into()).map_err(|error| Failure::broker_answer(&error))
}

/// The broker's answer to what an operation asks in the caller's name.
fn asked<T: DeserializeOwned>(
    broker: &dyn Broker,
    call: &Call<'_>,
    ask: Ask,
) -> Result<T, Failure> {
    parsed(broker.ask(call.caller, ask)?)
}

impl Call<'_> {
    /// Does an operation: here, or by way of the broker of the run that this process is in.
    pub fn perform<O: Operation>(
        &self,
        request: O,
        broker: Option<&dyn Broker>,
    ) -> Result<O::Output, Failure> {
        request.validate()?;
        match broker.and_then(|broker| request.run_inside(broker, self)) {
            Some(answer) => answer,
            // Nothing holds a run without a sandbox, so nothing is refused to it here.
            None if broker.is_some() && self.is_confined() && !O::ANYWHERE => {
                Err(Failure::not_allowed_inside())
            }
            None => request.run(self),
        }
    }
}

/// What `--json` prints of an answer.
pub fn object_of(answer: &impl Serialize) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("schema_version".to_owned(), 1.into());
    if let Ok(Value::Object(fields)) = serde_json::to_value(answer) {
        object.extend(fields);
    }
    object
}

/// What an operation answered, for programs.
pub struct Done {
    /// The object that `--json` prints.
    pub answer: Map<String, Value>,
    /// The exit code that goes with it.
    pub exit: u8,
}

impl Done {
    /// From an answer of the operation.
    pub fn of<O: Operation>(output: &O::Output) -> Self {
        Self {
            answer: object_of(output),
            exit: O::exit(output),
        }
    }
}

type Perform = fn(Value, &Call<'_>, Option<&dyn Broker>) -> Result<Done, Failure>;

/// An operation that is called by its name.
pub struct Entry {
    /// Its name in protocols.
    pub name: &'static str,
    /// Whether it changes nothing.
    pub reads: bool,
    /// Whether nothing but a command line can do it.
    pub takes_streams: bool,
    /// Does it for a request in JSON.
    pub perform: Perform,
}

impl Entry {
    fn of<O: Operation>() -> Self {
        Self {
            name: O::NAME,
            reads: O::READS,
            takes_streams: O::TAKES_STREAMS,
            perform: |request, call, broker| {
                let request: O = serde_json::from_value(request)
                    .map_err(|error| Failure::bad_request(O::NAME, &error))?;
                call.perform(request, broker)
                    .map(|output| Done::of::<O>(&output))
            },
        }
    }
}

/// The operation of that name, if it can be done by its name.
pub fn named(name: &str) -> Option<Entry> {
    all().find(|entry| entry.name == name && !entry.takes_streams)
}

/// The names of all operations.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|entry| entry.name)
}

fn all() -> impl Iterator<Item = Entry> {
    let all = [
        tasks::entries(),
        claims::entries(),
        bindings::entries(),
        landing::entries(),
        keeping::entries(),
        looking::entries(),
        making::entries(),
        snapshots::entries(),
        conflicts::entries(),
        pool::entries(),
        trust::entries(),
        orders::entries(),
        starts::entries(),
        works::entries(),
        races::entries(),
        rescues::entries(),
        messages::entries(),
        sessions::entries(),
        events::entries(),
        agent_views::entries(),
        cost::entries(),
        queue::entries(),
        trash::entries(),
        cleaning::entries(),
        vault::entries(),
        undo::entries(),
        deinit::entries(),
        doctor::entries(),
        approvals::entries(),
        configuration::entries(),
        install::entries(),
        entering::entries(),
        runs::entries(),
        shells::entries(),
        sandboxes::entries(),
        transfers::entries(),
    ];
    all.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io;

    use serde_json::json;

    use super::*;
    use crate::call::progress::Progress;
    use crate::{App, Environment};

    struct Nobody;

    impl Progress for Nobody {
        fn note(&self, _: &str) {}

        fn warn(&self, _: &str) {}
    }

    fn asked(entry: &Entry, request: Value) -> Failure {
        let narration = || -> Box<dyn io::Write + Send> { Box::new(io::sink()) };
        let nowhere = "/nonexistent".into();
        let app = App::new(narration, Environment::read(), nowhere, Vec::new());
        let done = (entry.perform)(request, &Call::of_process(&app, &Nobody), None);
        done.err().expect("there is no repository")
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let names: Vec<_> = all().map(|entry| entry.name).collect();
        let unique: BTreeSet<_> = names.iter().collect();
        assert!(names.len() > 70, "{names:?}");
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }

    #[test]
    fn no_operation_takes_a_field_that_it_does_not_know() {
        for entry in all() {
            let failure = asked(&entry, json!({"no such field": 1}));
            assert_eq!(failure.code.as_str(), "bad_request", "{}", entry.name);
            assert!(
                failure.message.contains("unknown field"),
                "{}",
                failure.message
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_for_every_face() {
        for (name, request, code) in [
            ("task_list", json!({"status": ["zz"]}), "invalid_value"),
            (
                "task_claim",
                json!({"id": null, "ttl": "PT900000000H", "with_tree": false}),
                "invalid_value",
            ),
            (
                "land",
                json!({
                    "names": [], "strategy": null, "no_wait": false, "dry_run": true,
                    "keep": false, "force": false, "stop_on_conflict": false,
                    "at_conflict": "abort", "commit": null, "message": null, "report": "done", "leaves": false,
                }),
                "usage",
            ),
        ] {
            let entry = named(name).unwrap();
            assert_eq!(asked(&entry, request).code.as_str(), code, "{name}");
        }
    }
}
