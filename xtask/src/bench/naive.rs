//! The naive design that the control plane is measured against: a JSON file a task, one lock for all, a log that is
//! opened for every event. It is what most tools of this field do.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A store of plain files.
pub struct Naive {
    directory: PathBuf,
}

impl Naive {
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// Makes `count` pending tasks.
    pub fn fill(&self, count: u64) -> io::Result<()> {
        fs::create_dir_all(self.directory.join("tasks"))?;
        for id in 1..=count {
            let task = json!({"id": id, "subject": format!("task {id}"), "status": "pending", "priority": "P2", "blocked_by": []});
            fs::write(self.path(id), task.to_string())?;
        }
        Ok(())
    }

    /// Every task that is pending and waits for nothing.
    pub fn ready(&self) -> io::Result<Vec<Value>> {
        let mut tasks: Vec<Value> = Vec::new();
        for entry in fs::read_dir(self.directory.join("tasks"))? {
            let text = fs::read_to_string(entry?.path())?;
            tasks.extend(
                serde_json::from_str::<Value>(&text)
                    .ok()
                    .filter(|task| task["status"] == "pending"),
            );
        }
        tasks.sort_by_key(|task| task["id"].as_u64());
        Ok(tasks)
    }

    /// Claims the first pending task under the lock; false when none is left.
    pub fn claim(&self, session: &str) -> io::Result<bool> {
        let _lock = self.lock()?;
        let Some(mut task) = self.ready()?.into_iter().next() else {
            return Ok(false);
        };
        task["status"] = "in_progress".into();
        task["owner"] = session.into();
        let path = self.path(task["id"].as_u64().unwrap_or(0));
        let building = path.with_extension("new");
        fs::write(&building, task.to_string())?;
        fs::rename(&building, &path)?;
        self.append(&json!({"event": "task.claimed", "task": task}))?;
        Ok(true)
    }

    /// Appends one event under the lock, with the task rewritten.
    pub fn event(&self, number: u64) -> io::Result<()> {
        let _lock = self.lock()?;
        let path = self.path(number % 100 + 1);
        let building = path.with_extension("new");
        let task =
            json!({"id": number % 100 + 1, "subject": "task", "status": "pending", "n": number});
        fs::write(&building, task.to_string())?;
        fs::rename(&building, &path)?;
        self.append(&json!({"event": "task.edited", "task": task}))
    }

    fn append(&self, event: &Value) -> io::Result<()> {
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join("events.jsonl"))?;
        writeln!(log, "{event}")
    }

    fn lock(&self) -> io::Result<File> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.directory.join("lock"))?;
        file.lock()?;
        Ok(file)
    }

    fn path(&self, id: u64) -> PathBuf {
        self.directory.join("tasks").join(format!("{id}.json"))
    }
}
