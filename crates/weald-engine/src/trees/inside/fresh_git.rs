//! A repository of weald's own for looking at a work tree: what ran there before can have changed neither its settings,
//! attributes and excludes nor its index.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{InsideError, Job, Request};

/// What such a repository is made from, by the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FreshGit {
    /// What HEAD is.
    pub commit: String,
    /// Where its objects are.
    pub objects: PathBuf,
    /// Its files, with their text: settings, and what belongs to them.
    pub files: Vec<(String, String)>,
}

impl Request {
    /// Does a job with such a repository in place of the tree's own.
    pub(super) fn work_fresh(&self, fresh: &FreshGit, job: &Job) -> Result<(), InsideError> {
        let folder = tempfile::tempdir()?;
        let git_dir = folder.path().join("git");
        for name in ["objects/info", "refs", "info"] {
            fs::create_dir_all(git_dir.join(name))?;
        }
        for (name, text) in &fresh.files {
            fs::write(git_dir.join(name), text)?;
        }
        let alternates = format!("{}\n", fresh.objects.display());
        fs::write(git_dir.join("objects/info/alternates"), alternates)?;
        fs::write(git_dir.join("HEAD"), format!("{}\n", fresh.commit))?;
        let request = Self {
            git_dir,
            job: job.clone(),
            ..self.clone()
        };
        request.git("read-tree").args([&fresh.commit]).run()?;
        if let Job::Reset { .. } = job {
            // Files that are as they should be are not written again.
            let _ = request.git("update-index").args(["-q", "--refresh"]).run();
            fs::write(self.git_dir.join("HEAD"), format!("{}\n", fresh.commit))?;
        }
        request.work()
    }
}
