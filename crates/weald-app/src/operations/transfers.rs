//! Tasks that come from a file or a tracker, and those that go into a file.

use serde::{Deserialize, Serialize};
use weald_core::import::{Parsed, parse_jsonl, parse_markdown, parse_workflow};
use weald_core::source::Tracker;
use weald_core::store::TaskFilter;
use weald_core::task::Task;

use super::Operation;
use crate::{BadLines, Call, Failure, Ground, Imported, exit, tracker};

entries!(ImportTasks, ExportTasks);

/// How many issues gh is asked for.
const ISSUES: u32 = 200;

/// Adds tasks, and updates those on which no work has begun.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportTasks {
    /// Where the tasks come from.
    pub from: From,
    /// Import nothing if an entry can't be read.
    pub strict: bool,
}

/// What is imported. A tracker is asked for its issues if they are not given.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum From {
    /// One JSON object a line, as an export has them.
    Jsonl {
        /// The text, in UTF-8.
        input: Vec<u8>,
    },
    /// A list with or without boxes; each item is a task.
    Markdown {
        /// The text, in UTF-8.
        input: Vec<u8>,
    },
    /// The `state.json` of a jean-claude workflow, which is one task.
    JeanClaude {
        /// The text, in UTF-8.
        input: Vec<u8>,
    },
    /// Issues of Beads.
    Beads {
        /// The JSON that `bd` printed; without it `bd` is started here.
        input: Option<Vec<u8>>,
    },
    /// Issues of GitHub.
    Gh {
        /// The JSON that `gh` printed; without it `gh` is started here.
        input: Option<Vec<u8>>,
        /// With these labels only.
        labels: Vec<String>,
        /// At most so many.
        limit: Option<u32>,
    },
}

impl Operation for ImportTasks {
    const NAME: &'static str = "task_import";
    type Output = Imported;

    fn run(self, call: &Call<'_>) -> Result<Imported, Failure> {
        let ground = call.ground()?;
        let engine = &ground.engine;
        let actor = call.actor(engine)?;
        let bad_lines = match self.strict {
            true => BadLines::Refuse,
            false => BadLines::Report,
        };
        let parsed = self.from.parsed(call, &ground)?;
        let done = engine.import_tasks(actor.as_ref(), parsed, bad_lines)?;
        call.tell(engine);
        for warning in &done.warnings {
            call.warn(warning);
        }
        Ok(done)
    }

    fn exit(done: &Imported) -> u8 {
        match done.errors.is_empty() {
            true => exit::DONE,
            false => exit::REFUSED,
        }
    }
}

impl From {
    fn parsed(self, call: &Call<'_>, ground: &Ground) -> Result<Parsed, Failure> {
        let now = call.now();
        let issues = |tracker, input: Option<Vec<u8>>, more: &[String]| {
            let input = match input {
                Some(input) => input,
                None => tracker::named(call, ground, tracker).list(more)?,
            };
            Ok::<_, Failure>(tracker::parse(tracker, &input, now))
        };
        match self {
            Self::Jsonl { input } => Ok(parse_jsonl(&input, now)),
            Self::Markdown { input } => Ok(parse_markdown(&input, now)),
            Self::JeanClaude { input } => Ok(parse_workflow(&input, now)),
            Self::Beads { input } => issues(Tracker::Beads, input, &[]),
            Self::Gh {
                input,
                labels,
                limit,
            } => {
                let labels = labels.iter().map(|label| format!("--label={label}"));
                let limit = format!("--limit={}", limit.unwrap_or(ISSUES));
                let more: Vec<_> = labels.chain([limit]).collect();
                issues(Tracker::Gh, input, &more)
            }
        }
    }
}

/// Every task with each of its fields.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportTasks {}

/// Every task of the repository.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedTasks {
    /// In every status.
    pub tasks: Vec<Task>,
}

impl Operation for ExportTasks {
    const NAME: &'static str = "task_export";
    const READS: bool = true;
    type Output = ExportedTasks;

    fn needs_only_the_store(&self) -> bool {
        true
    }

    fn run(self, call: &Call<'_>) -> Result<ExportedTasks, Failure> {
        let (tasks, _) = call.engine()?.tasks(&TaskFilter::default())?;
        Ok(ExportedTasks { tasks })
    }
}
