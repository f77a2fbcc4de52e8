//! A person's word that exactly these commits may land.

use serde::{Deserialize, Serialize};
use weald_core::git_diff::DiffOptions;
use weald_core::tree::Approval;

use super::Operation;
use crate::git_view::GitView;
use crate::{
    ApprovedCommit, ApprovedFile, Call, DiffStyle, Failure, Landings, Reader, TreeView, exit,
};

entries!(ApproveLanding);

/// Approves what a worktree has to land now. No agent may.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproveLanding {
    /// The caller's own unless given.
    pub tree: Option<String>,
    /// Only if this is its head, or how that begins.
    pub head: Option<String>,
    /// Whether a person is at a terminal, or said that none is needed.
    pub is_attended: bool,
    /// Show the changes and ask, at a terminal.
    #[serde(default)]
    pub ask: bool,
    /// The person who is asked.
    #[serde(skip)]
    pub reader: Option<Reader>,
}

/// What may land now, and what was looked at for it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ApprovedLanding {
    /// For exactly one head and one target; a new commit or another target needs a new one.
    pub approval: Approval,
    /// Its record with the approval in it.
    pub tree: TreeView,
    /// Those that the target lacks, newest first.
    pub commits: Vec<ApprovedCommit>,
    /// Those that the commits change.
    pub files: Vec<ApprovedFile>,
}

impl Operation for ApproveLanding {
    const NAME: &'static str = "approve";
    type Output = ApprovedLanding;

    fn run(self, call: &Call<'_>) -> Result<ApprovedLanding, Failure> {
        let ground = call.ground()?;
        if !self.is_attended {
            let name = self.tree.map(|name| format!(" {name}"));
            let name = name.unwrap_or_default();
            return Err(Failure::new(
                "needs_terminal",
                exit::REFUSED,
                "a person has to approve this in a terminal, and this is not one; nothing was approved",
            )
            .hint(format!(
                "in a terminal: weald approve{name}; in a script of your own: weald approve{name} --yes"
            )));
        }
        let trees = ground.trees(call)?;
        let landings = Landings::new(&trees);
        let name = ground.tree_name(call, self.tree.as_deref())?;
        let review = landings.review_landing(name.as_deref(), self.head.as_deref())?;
        call.tell(&ground.engine);
        let changes = match review.uncommitted {
            0 => None,
            1 => Some("1 uncommitted change".to_owned()),
            count => Some(format!("{count} uncommitted changes")),
        };
        if let Some(changes) = changes {
            call.warn(&format!(
                "{changes} in {}: not part of the approval",
                review.tree.name
            ));
        }
        match self.ask {
            false => call.progress.review(&review, None)?,
            true => {
                let options = DiffOptions::default();
                let place = &ground.place;
                let view = GitView::new(call, place, DiffStyle::Patch, &options, self.reader)?;
                let diff = landings.review_diff(&review, view.form.clone())?;
                call.progress.review(&review, Some(&view.show(diff)))?;
                let files = match review.files.len() {
                    1 => "this 1 file".to_owned(),
                    count => format!("these {count} files"),
                };
                let (tree, target) = (&review.tree.name, &review.tree.target);
                let head = review.head.get(..9).unwrap_or_default();
                let question = format!("Approve {files} of {tree} at {head} for {target}?");
                if !call.progress.confirm(&question)? {
                    return Err(Failure::declined("nothing was approved"));
                }
            }
        }
        let (tree, approval) = landings.approve_landing(&review)?;
        call.tell(&ground.engine);
        Ok(ApprovedLanding {
            approval,
            tree: trees.view(tree),
            commits: review.commits,
            files: review.files,
        })
    }
}
