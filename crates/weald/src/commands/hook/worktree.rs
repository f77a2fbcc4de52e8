//! Worktrees that Claude Code asks for, and those it is done with.
//!
//! A worktree that is asked for from inside a worktree is a short-lived one next to it, which lands on its branch.
//! Answering with the worktree itself, as `ensure` does, would give two agents one worktree, and the first one to
//! finish would remove it.

use std::io::Write;
use std::path::{Path, PathBuf};

use weald_app::{
    App, BranchExists, Failure, NewTree, Place, RemoveRequest, TreeError, Wishes, claude_session,
    exit, worktree_settings,
};
use weald_core::claude::BaseRef;
use weald_core::name::{MAX_NAME, TreeName};

use super::contract::Moment;
use super::host_side::place_of;
use crate::context::Context;
use crate::ui::Fields;

/// A tree of this name: made, or as it is. Its path alone is the answer.
pub fn create(hook: &Moment<'_>) -> Result<u8, Failure> {
    let name = hook.input.wanted_name()?;
    // Before anything is touched: where weald was never used, even a look would leave its folder.
    for part in name.split('/') {
        TreeName::with_limit(part, MAX_NAME).map_err(|error| Failure::tree_name(&error))?;
    }
    let app = with_keys(hook, start(hook), Vec::new());
    let context = &Context::new(&app, hook.context.ui);
    let place = context.place()?;
    let (settings, problems) = worktree_settings(hook.own_folder().as_deref(), &place);
    for problem in problems {
        context.warn(&problem);
    }
    let wishes = Wishes::of(&settings)?;
    let mut keys = vec![("name.slashes".to_owned(), "plus".to_owned())];
    let base = match settings.base {
        Some(BaseRef::Fresh) => Some("remote_default"),
        Some(BaseRef::Head) => Some("head"),
        None => None,
    };
    keys.extend(base.map(|base| ("tree.base".to_owned(), base.to_owned())));
    let app = with_keys(hook, context.directory().clone(), keys);
    let context = Context::new(&app, hook.context.ui);
    let ground = context.ground()?;
    ground.warn_of_settings(&context);
    let trees = ground.trees(&context)?.wishing(wishes);
    // From inside a tree: a short-lived one that starts from it and lands on its branch, beside it and not in it.
    let around = match ground.place.inside() {
        Some(_) => Some(trees.named(None)?.name.to_string()),
        None => None,
    };
    let created = trees.ensure(&NewTree {
        name: Some(name.to_owned()),
        branch_exists: BranchExists::Reuse,
        scratch_for: around,
        ..NewTree::default()
    })?;
    context.tell(&ground.engine);
    for note in &created.notes {
        context.warn(note);
    }
    let path = created.tree.path.display().to_string();
    if path.chars().any(char::is_control) {
        return Err(Failure::odd_path(&created.tree.path));
    }
    let code = context
        .ui
        .answer(Fields::new, |out| writeln!(out, "{path}"))?;
    context.refill_pool(&trees, &ground.place.root());
    Ok(code)
}

/// Where a tree is asked for: in the project, and there where the conversation is if that is in the same repository.
fn start(hook: &Moment<'_>) -> PathBuf {
    let here = hook.context.directory().clone();
    let Some(project) = hook.project() else {
        return here;
    };
    let environment = &hook.context.environment;
    let (home, state) = (environment.home(), environment.state());
    let repository = |directory: &Path| {
        let place = Place::find(directory, home.as_deref(), state.as_deref()).ok()?;
        Some(place.repository().common_dir().to_owned())
    };
    match repository(&project) == repository(&here) {
        true => here,
        false => project,
    }
}

/// Where the conversation is, elsewhere and with further settings.
fn with_keys(hook: &Moment<'_>, directory: PathBuf, keys: Vec<(String, String)>) -> App {
    let session = hook.input.session_id.as_deref().and_then(claude_session);
    hook.context.for_hook(directory, keys, session)
}

/// The tree at this path goes to the trash, unless it holds what nobody else has: then it is kept, and that is no error.
pub fn remove(hook: &Moment<'_>) -> Result<u8, Failure> {
    let path = hook.input.unwanted_path()?;
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let context = &hook.context;
    let starts = [
        Some(path.clone()),
        hook.project(),
        Some(context.directory().clone()),
    ];
    for start in starts.into_iter().flatten() {
        // What can't be told is nobody's to remove.
        if let Ok(Some(place)) = place_of(context, &start)
            && remove_at(context, &place, &path)?
        {
            return Ok(exit::DONE);
        }
    }
    let what = match path.symlink_metadata().is_ok() {
        true => "is not a weald worktree; it was left alone",
        false => "is already gone",
    };
    context.note(&format!("{} {what}", path.display()));
    Ok(exit::DONE)
}

/// Whether a repository has a tree at this path; then it was dealt with.
fn remove_at(context: &Context<'_>, place: &Place, path: &Path) -> Result<bool, Failure> {
    let root: PathBuf = place.root();
    let ground = context.ground_at(&root)?;
    let trees = ground.trees(context)?;
    let Some(tree) = trees.tree_at(path)?.filter(|tree| tree.path == path) else {
        return Ok(false);
    };
    let request = RemoveRequest {
        leaving: true,
        reason: Some("Claude Code left it".to_owned()),
        ..RemoveRequest::default()
    };
    let name = &tree.name;
    match trees.remove(Some(name.as_str()), &request) {
        Ok(removed) => {
            let id = removed.tree.id;
            let back = removed
                .restore
                .map(|_| format!("; to restore it: weald restore {id}"));
            context.note(&format!(
                "{name} is in the trash{}",
                back.unwrap_or_default()
            ));
        }
        Err(TreeError::InTrash { .. } | TreeError::NotFound { .. }) => {
            context.note(&format!("{name} is already gone"));
        }
        // Claude Code goes on without it; what was in it is still there.
        Err(error) => {
            let kept = format!("{name} is kept at {}: {error}", path.display());
            context.note(&kept);
            if let Some(hint) = Failure::from(error).hint {
                context.note(&format!("  {hint}"));
            }
        }
    }
    context.tell(&ground.engine);
    Ok(true)
}
