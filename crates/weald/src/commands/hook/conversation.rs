//! What is said at the moments of a conversation: when it begins, before and after a tool, and when it stops.
//!
//! A hook takes the messages that it shows out of the inbox. That is the step that gives a message to one reader, so no
//! second list of shown messages is needed.

use weald_app::{Edit, Failure};
use weald_core::claude::{briefing, messages_in_words, normal, questions, refusal};
use weald_core::name::TreeName;

use super::contract::Moment;
use super::side::Side;

/// What Claude Code hears.
pub enum Said {
    Nothing,
    /// Something beside, at this event.
    Context(&'static str, String),
    /// That there is more to do.
    GoOn(String),
    /// That it may not.
    Refuse(String),
}

/// A conversation begins: where it is, what it is about, what was sent to it.
pub fn start(side: &dyn Side) -> Result<Said, Failure> {
    let mut text = briefing(&side.arrive()?);
    text.push_str(&news(side)?);
    Ok(Said::Context("SessionStart", text))
}

/// A tool is about to write.
pub fn before_tool(hook: &Moment<'_>, side: &dyn Side) -> Result<Said, Failure> {
    let Some(path) = hook.input.edited()? else {
        return Ok(Said::Nothing);
    };
    match side.judge(&path)? {
        None | Some((_, Edit::Inside)) => Ok(Said::Nothing),
        Some((tree, Edit::Outside { why, meant })) => {
            let reason = refusal(&path, &tree, &why, meant.as_deref());
            Ok(Said::Refuse(reason))
        }
    }
}

/// A tool was used: new messages, and who else changes the file. What can't be told keeps nothing else from being told:
/// messages are told once.
pub fn after_tool(hook: &Moment<'_>, side: &dyn Side) -> Result<Said, Failure> {
    let mut text = String::new();
    let mut failed = None;
    for part in [beside(hook, side), news(side)] {
        match part {
            Ok(part) => text.push_str(&part),
            Err(failure) => failed = Some(failure),
        }
    }
    match (failed, text.is_empty()) {
        (Some(failure), true) => return Err(failure),
        (Some(failure), false) => {
            hook.context.ui.failure(&failure);
        }
        (None, true) => return Ok(Said::Nothing),
        (None, false) => {}
    }
    Ok(Said::Context("PostToolUse", text))
}

/// Who else changes the file.
fn beside(hook: &Moment<'_>, side: &dyn Side) -> Result<String, Failure> {
    let Some(path) = hook.input.edited()? else {
        return Ok(String::new());
    };
    let path = normal(&path);
    let others = side.beside(&path)?;
    if others.is_empty() {
        return Ok(String::new());
    }
    let named: Vec<_> = others.iter().map(TreeName::as_str).collect();
    Ok(format!(
        "{} is also changed in another worktree: {}. The second to land resolves any conflict; `weald conflicts` shows whether they clash.\n",
        path.display(),
        named.join(", ")
    ))
}

/// The conversation, or a part of it, stops. Nothing is lost; and nobody who asked is left without an answer unseen.
pub fn stop(hook: &Moment<'_>, side: &dyn Side) -> Result<Said, Failure> {
    let is_part = hook.input.hook_event_name.as_deref() == Some("SubagentStop");
    let said = hook.input.last_assistant_message.as_deref();
    side.keep(said.filter(|_| !is_part))?;
    // One that a stop sent back already is not sent back again.
    let may_ask = !is_part && !hook.input.stop_hook_active;
    if !may_ask || questions(&side.unread()?).next().is_none() {
        return Ok(Said::Nothing);
    }
    // Taken out by this, so that it happens once.
    let taken = side.take_messages()?;
    match questions(&taken).next() {
        None => Ok(Said::Nothing),
        Some(_) => Ok(Said::GoOn(format!(
            "Another session is waiting for your answer.\n{}",
            messages_in_words(&taken)
        ))),
    }
}

/// Messages that nobody was told of.
fn news(side: &dyn Side) -> Result<String, Failure> {
    let messages = side.take_messages()?;
    Ok(match messages.is_empty() {
        true => String::new(),
        false => format!("New messages:\n{}", messages_in_words(&messages)),
    })
}
