//! Small changes to a tree's repository: its refs, and where it borrows objects.

use std::fs;

use serde::{Deserialize, Serialize};

use super::{Access, InsideError, Job, Workplace};

/// Changes refs: name, new, old.
#[derive(Serialize, Deserialize)]
pub struct UpdateRefs(pub Vec<(String, String, Option<String>)>);

/// Writes the file that says where objects are borrowed.
#[derive(Serialize, Deserialize)]
pub struct WriteAlternates {
    pub text: String,
}

impl Job for UpdateRefs {
    type Reply = ();
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        let mut input = String::new();
        // It may have been checked out since the host looked; then it is the agent's.
        let head = at.git("symbolic-ref").args(["-q", "HEAD"]).output()?;
        let head = String::from_utf8_lossy(&head.stdout).trim_end().to_owned();
        for (name, new, old) in self.0.iter().filter(|(name, ..)| *name != head) {
            let old = old.as_deref().unwrap_or_default();
            input.push_str(&format!("update {name}\0{new}\0{old}\0"));
        }
        let git = at.git("update-ref").args(["--stdin", "-z"]);
        git.input(input).run()?;
        Ok(())
    }
}

impl Job for WriteAlternates {
    type Reply = ();
    const ACCESS: Access = Access::Write;

    fn work(&self, at: &Workplace) -> Result<(), InsideError> {
        Ok(fs::write(
            at.git_dir.join("objects/info/alternates"),
            &self.text,
        )?)
    }
}
