//! Telling those whom a conflict concerns, once.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use weald_core::message::{Draft, MessageType, Urgency};
use weald_core::name::SessionName;
use weald_core::store::EventFilter;
use weald_core::tree::Tree;

use super::memory::Memory;
use super::{Clash, Radar};
use crate::LandError;
use crate::Landings;
use weald_control::files;
use weald_trees::at;

const SENDER: &str = weald_core::name::WEALD;

/// How many paths a message names.
const NAMED: usize = 10;

/// How many events of a tree are searched for who worked in it last.
const EVENTS: u64 = 200;

/// A message that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub to: SessionName,
    /// Whose tree it is about.
    pub tree: String,
    /// With which tree or branch it clashes.
    pub with: String,
}

impl Landings<'_> {
    /// Writes to the owners of trees that clash: whoever has the task, else whoever worked there last. The same two
    /// trees and paths are told once.
    pub fn tell_conflicts(&self, radar: &Radar) -> Result<Vec<Told>, LandError> {
        if radar.pairs.is_empty() {
            return Ok(Vec::new());
        }
        let trees = self.trees.records()?;
        let live = |name: &str| {
            let mut live = trees.iter().filter(|tree| tree.is_live());
            live.find(|tree| tree.name.as_str() == name)
        };
        let file = self.radar_file();
        let told = files::edit_alone(&file, || {
            let mut memory = Memory::load(&file);
            let before: BTreeSet<String> = memory.told.iter().cloned().collect();
            let mut sent = Vec::new();
            let mut done = Ok(());
            for clash in &radar.pairs {
                let sides = match clash.with_target {
                    true => vec![(&clash.a, &clash.b)],
                    false => vec![(&clash.a, &clash.b), (&clash.b, &clash.a)],
                };
                for (tree, with) in sides {
                    let key = format!("{tree}\n{with}\n{}", clash.paths.join("\n"));
                    let Some(record) = live(tree).filter(|_| !before.contains(&key)) else {
                        continue;
                    };
                    match self.tell(record, with, clash) {
                        Ok(Some(told)) => {
                            memory.told.push(key);
                            sent.push(told);
                        }
                        Ok(None) => {}
                        Err(error) => done = Err(error),
                    }
                }
            }
            memory.save(&file);
            done.map(|()| sent)
        });
        told.map_err(at(&file))?
    }

    fn tell(&self, tree: &Tree, with: &str, clash: &Clash) -> Result<Option<Told>, LandError> {
        let Some(to) = self.owner_of(tree)? else {
            return Ok(None);
        };
        let name = &tree.name;
        let state = if clash.uncommitted {
            " (including uncommitted work)"
        } else {
            ""
        };
        let mut text = format!("{name} conflicts with {with}{state}:\n");
        for path in clash.paths.iter().take(NAMED) {
            text.push_str(&format!("  {path}\n"));
        }
        if clash.paths.len() > NAMED {
            text.push_str(&format!("  and {} more\n", clash.paths.len() - NAMED));
        }
        text.push_str(&match clash.with_target {
            true => format!("to merge it in: weald sync {name}"),
            false => format!(
                "to see the lines: weald conflicts {name}; the second to land resolves the conflict"
            ),
        });
        let draft = Draft {
            from: SENDER.parse().expect("a plain name"),
            to: to.clone(),
            kind: MessageType::Message,
            priority: Urgency::Info,
            text,
            task: tree.task.clone(),
        };
        self.trees.engine.send(draft)?;
        Ok(Some(Told {
            to,
            tree: name.to_string(),
            with: with.to_owned(),
        }))
    }

    /// Who has the tree's task; else who runs something in it; else who last did anything with it.
    fn owner_of(&self, tree: &Tree) -> Result<Option<SessionName>, LandError> {
        self.trees.engine.look(|tx| {
            if let Some(id) = &tree.task
                && let Some(task) = tx.task(id)?
                && let Some(owner) = task.owner
            {
                return Ok(Some(owner));
            }
            if let Some(session) = tree.runs.iter().rev().find_map(|run| run.session.clone()) {
                return Ok(Some(session));
            }
            let events = tx.events(&EventFilter {
                tree: Some(tree.name.clone()),
                limit: Some(EVENTS),
                ..EventFilter::default()
            })?;
            Ok(events.into_iter().rev().find_map(|event| event.actor))
        })
    }
}
