//! What a tool is: a name, words for the model, schemas, and a command that does it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bounds;
use super::child::Lasts;
use super::names;
use super::weald::Call;
use crate::broker::Fault;

/// One tool. Each has a file of its own in `tools/`.
pub trait Tool: 'static {
    /// What agents call it.
    const NAME: &'static str;
    const TITLE: &'static str;
    /// What models read: when to use it, and what comes back.
    const DESCRIPTION: &'static str;
    /// What it does to the world.
    const EFFECT: Effect;
    /// Who may have it.
    const AUDIENCE: Audience;
    /// Names that other systems have for its arguments, and its own for each.
    const ALSO: &'static [(&'static str, &'static str)] = &[];
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What it answers: the object of the command.
    type Output: JsonSchema;

    /// How long it takes.
    fn lasts(_input: &Self::Input) -> Lasts {
        Lasts::Shortly
    }

    fn call(
        input: Self::Input,
        call: &Call<'_>,
    ) -> impl Future<Output = Result<JsonObject, Fault>> + Send;
}

/// What a tool does to the world, for clients that ask before they call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Adds or changes; a second call does it again.
    Writes,
    /// Adds or changes; a second call changes nothing more.
    Settles,
    /// Takes something away. Nothing is lost: what goes, goes to the trash.
    Removes,
    /// Runs a command that the agent wrote.
    Runs,
}

/// Who may have a tool. Each has what those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// An agent that a sandbox holds in its tree: through the broker, for its own task.
    Confined,
    /// An agent or a person that works on a task.
    Teammate,
    /// Whoever hands out the work.
    Lead,
}

impl Audience {
    /// The name that a command is told.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confined => "confined",
            Self::Teammate => "teammate",
            Self::Lead => "lead",
        }
    }
}

impl Effect {
    /// As the protocol says it. Every hint is given: what is absent counts as the worst.
    pub fn annotations(self, title: &str) -> ToolAnnotations {
        let (reads, destroys, settles) = match self {
            Self::Reads => (true, false, true),
            Self::Writes => (false, false, false),
            Self::Settles => (false, false, true),
            Self::Removes => (false, true, true),
            Self::Runs => (false, true, false),
        };
        ToolAnnotations::with_title(title)
            .read_only(reads)
            .destructive(destroys)
            .idempotent(settles)
            .open_world(self == Self::Runs)
    }
}

type Doing<'a> = Pin<Box<dyn Future<Output = Result<JsonObject, Fault>> + Send + 'a>>;

/// A tool in the list.
pub struct Entry {
    /// As the protocol describes it.
    pub described: rmcp::model::Tool,
    /// Who may have it.
    pub audience: Audience,
    pub call: for<'a> fn(JsonObject, &'a Call<'a>) -> Doing<'a>,
}

impl Entry {
    /// The entry of a tool.
    pub fn of<T: Tool>() -> Self {
        let takes = with_other_names(schema::<T::Input>(), T::ALSO);
        let described = rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, takes)
            .with_title(T::TITLE)
            .with_raw_output_schema(schema::<T::Output>())
            .with_annotations(T::EFFECT.annotations(T::TITLE));
        Self {
            described,
            audience: T::AUDIENCE,
            call: |arguments, call| Box::pin(perform::<T>(arguments, call)),
        }
    }

    /// What its schema says of an argument.
    pub fn property(&self, name: &str) -> Option<&Value> {
        names::property(&self.described.input_schema, name)
    }

    /// Whether it takes an argument of this name that is true or false.
    pub fn takes_switch(&self, name: &str) -> bool {
        self.property(name)
            .is_some_and(|property| property["type"].to_string().contains("boolean"))
    }

    /// Whether it takes an argument of this name.
    pub fn has(&self, name: &str) -> bool {
        self.property(name).is_some()
    }
}

/// The same schema, in which each argument tells its other names.
fn with_other_names(schema: Arc<JsonObject>, also: &[(&str, &str)]) -> Arc<JsonObject> {
    let mut schema = Arc::unwrap_or_clone(schema);
    for (there, here) in also {
        let property = schema
            .get_mut("properties")
            .and_then(|all| all.get_mut(*here));
        if let Some(Value::String(text)) = property.and_then(|one| one.get_mut("description")) {
            text.push_str(&format!(" Also taken as {there}."));
        }
    }
    Arc::new(schema)
}

async fn perform<T: Tool>(arguments: JsonObject, call: &Call<'_>) -> Result<JsonObject, Fault> {
    let arguments = checked(T::NAME, &schema::<T::Input>(), T::ALSO, arguments)?;
    let input = serde_json::from_value(arguments).map_err(|error| unfit(T::NAME, &error))?;
    let call = Call {
        lasts: T::lasts(&input),
        ..call.clone()
    };
    let _turn = call.turn().await?;
    call.introduce().await;
    T::call(input, &call).await
}

/// The arguments by the tool's own names, within its bounds.
fn checked(
    tool: &str,
    schema: &JsonObject,
    also: &[(&str, &str)],
    arguments: JsonObject,
) -> Result<Value, Fault> {
    let of_tool = |fault: Fault| Fault {
        message: format!("{tool}: {}", fault.message),
        ..fault
    };
    let arguments = names::own(schema, also, arguments).map_err(of_tool)?;
    let arguments = bounds::within(schema, arguments);
    Ok(arguments.map_err(|why| refused(tool, &why))?.into())
}

fn unfit(tool: &str, error: &serde_json::Error) -> Fault {
    refused(tool, &in_words(&error.to_string()))
}

fn refused(tool: &str, why: &str) -> Fault {
    Fault::new("bad_arguments", 2, format!("{tool}: {why}")).hint("see the tool's input schema")
}

/// What is wrong with an argument, without the words of the parser.
fn in_words(text: &str) -> String {
    let unknown = text.strip_prefix("unknown variant ");
    match unknown.and_then(|text| text.split_once(", expected ")) {
        Some((given, known)) => {
            let known = known.trim_start_matches("one of ").replace('`', "");
            format!("{given} is not one of: {known}")
        }
        None => text.to_owned(),
    }
}

fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    in_short(generator().into_root_schema_for::<T>())
}

fn generator() -> schemars::SchemaGenerator {
    schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            // The dialect is the protocol's own.
            settings.meta_schema = None;
        })
        .into_generator()
}

fn in_short(schema: schemars::Schema) -> Arc<JsonObject> {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.remove("title");
    schema.values_mut().for_each(without_widths);
    Arc::new(schema)
}

/// Takes out how wide numbers are in Rust: no client knows such formats, and some complain.
fn without_widths(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_widths),
        Value::Object(fields) => {
            let is_width =
                |format: &Value| format.as_str().is_some_and(|text| text.contains("int"));
            if fields.get("format").is_some_and(is_width) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_widths);
        }
        _ => {}
    }
}
