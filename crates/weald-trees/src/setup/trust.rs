//! What the repository proposes to run in new trees, and whether somebody approved exactly that.
//!
//! Read at the target's tip, never in a tree or a checkout. What was approved is kept by `weald_control::approvals`.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};
use weald_core::config::Origin;
use weald_core::setup::{Approval, Proposal, SETTINGS_FILES, is_approved, linked_directories};
use weald_git::Blob;

use super::sharing::INCLUDE_FILE;
use crate::{TreeError, Trees, at};
use weald_control::approvals::{approvals, approvals_file, proposed_hosts};
use weald_control::configuration::SHARED_FILE;
use weald_control::files;

/// Settings of other tools at the target's tip, kept under its id.
const CACHE_FILE: &str = "target-set-up";

const CLAUDE_FILE: &str = ".claude/settings.json";

/// The largest settings file.
const LIMIT: u64 = 1 << 20;

/// Commands that landings run.
const LANDING_KEYS: [&str; 2] = ["gate.command", "landing.check"];

/// What the repository proposes, and what was approved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trust {
    /// The set-up commands at the target's tip, if there are any.
    pub proposal: Option<Proposal>,
    pub approved: bool,
    /// Commands that it wants landings to run.
    pub landing: Vec<Proposed>,
    /// Hosts that it wants its runs to reach.
    pub hosts: Option<Proposed>,
    /// Everything that was approved.
    pub approvals: Vec<Approval>,
    /// What may be unexpected.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// Something that the repository proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposed {
    #[serde(flatten)]
    pub proposal: Proposal,
    pub approved: bool,
}

/// A command of the configuration.
pub struct Command {
    pub text: String,
    /// False while somebody has to approve it.
    pub may_run: bool,
}

/// Commands that are to run, and whether they need an approval.
pub(super) struct Wanted {
    pub proposal: Proposal,
    pub is_own: bool,
}

impl Trees<'_> {
    /// What the repository proposes, and whether it may.
    pub fn trust(&self) -> Result<Trust, TreeError> {
        let mut notes = Vec::new();
        let wanted = self.wanted_commands(&mut notes)?;
        let approvals = self.approvals()?;
        let proposal = wanted.filter(|wanted| !wanted.is_own);
        let proposal = proposal.map(|wanted| wanted.proposal);
        Ok(Trust {
            approved: proposal
                .as_ref()
                .is_some_and(|proposal| is_approved(&approvals, proposal)),
            landing: self.proposed_for_landing(&approvals),
            hosts: proposed_hosts(self.config).map(|proposal| Proposed {
                approved: is_approved(&approvals, &proposal),
                proposal,
            }),
            proposal,
            approvals,
            notes,
        })
    }

    fn proposed_for_landing(&self, approvals: &[Approval]) -> Vec<Proposed> {
        let proposals = LANDING_KEYS.iter().filter_map(|key| self.proposed(key));
        proposals
            .map(|proposal| Proposed {
                approved: is_approved(approvals, &proposal),
                proposal,
            })
            .collect()
    }

    /// What the repository's file says for a key that is one command.
    fn proposed(&self, key: &str) -> Option<Proposal> {
        let (text, origin) = self.config.get(key);
        let command = text.as_text().unwrap_or_default().trim();
        let is_theirs = matches!(origin, Origin::Repository(_));
        (is_theirs && !command.is_empty()).then(|| Proposal {
            from: format!("{SHARED_FILE} {key}"),
            commands: vec![command.to_owned()],
        })
    }

    /// The command of such a key, if there is one, and whether it may run.
    pub fn command_of(&self, key: &str) -> Result<Option<Command>, TreeError> {
        let text = self.config.get(key).0.to_string().trim().to_owned();
        if text.is_empty() {
            return Ok(None);
        }
        let may_run = match self.proposed(key) {
            Some(proposal) => is_approved(&self.approvals()?, &proposal),
            None => true,
        };
        Ok(Some(Command { text, may_run }))
    }

    /// Approves what the repository proposes now.
    pub fn approve(&self) -> Result<Trust, TreeError> {
        let trust = self.trust()?;
        let set_up = trust.proposal.iter();
        let others = trust.landing.iter().chain(&trust.hosts);
        let others = others.map(|proposed| &proposed.proposal);
        let wanted: Vec<_> = set_up.chain(others).cloned().collect();
        if wanted
            .iter()
            .all(|proposal| is_approved(&trust.approvals, proposal))
        {
            return Ok(trust);
        }
        let at = self.now()?;
        self.change_approvals(|approvals| {
            for proposal in wanted {
                if !is_approved(approvals, &proposal) {
                    approvals.push(Approval { proposal, at });
                }
            }
        })?;
        self.trust()
    }

    /// Takes every approval back.
    pub fn revoke(&self) -> Result<Trust, TreeError> {
        self.change_approvals(Vec::clear)?;
        self.trust()
    }

    /// The commands of a set-up: the configuration's, else those of the first other tool that has any.
    pub(super) fn wanted_commands(
        &self,
        notes: &mut Vec<String>,
    ) -> Result<Option<Wanted>, TreeError> {
        let (_, origin) = self.config.get("setup.commands");
        let commands = self.config.setup_commands.to_vec();
        let is_own = !matches!(origin, Origin::Repository(_));
        if *origin != Origin::Default {
            let from = match is_own {
                true => origin.to_string(),
                false => SHARED_FILE.to_owned(),
            };
            let proposal = Proposal { from, commands };
            // An empty list is an answer, too: nothing runs.
            return Ok(Some(Wanted { proposal, is_own })
                .filter(|wanted| !wanted.proposal.commands.is_empty()));
        }
        let settings = self.settings_at_tip()?;
        for file in SETTINGS_FILES {
            let Some(text) = settings.get(file.path) else {
                continue;
            };
            match file.commands(text) {
                Ok(commands) if commands.is_empty() => {}
                Ok(commands) => {
                    let from = file.path.to_owned();
                    let proposal = Proposal { from, commands };
                    return Ok(Some(Wanted {
                        proposal,
                        is_own: false,
                    }));
                }
                Err(why) => notes.push(format!(
                    "{} can't be read, so none of it runs: {why}",
                    file.path
                )),
            }
        }
        Ok(None)
    }

    /// The folders that Claude Code links into its worktrees.
    pub(super) fn claude_directories(
        &self,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>, TreeError> {
        let settings = self.settings_at_tip()?;
        let Some(text) = settings.get(CLAUDE_FILE) else {
            return Ok(Vec::new());
        };
        Ok(linked_directories(text).unwrap_or_else(|why| {
            notes.push(format!("{CLAUDE_FILE} can't be read: {why}"));
            Vec::new()
        }))
    }

    pub(super) fn approvals(&self) -> Result<Vec<Approval>, TreeError> {
        approvals(self.place).map_err(at(&approvals_file(self.place)))
    }

    fn change_approvals(
        &self,
        change: impl FnOnce(&mut Vec<Approval>),
    ) -> Result<Vec<Approval>, TreeError> {
        let file = approvals_file(self.place);
        let changed = files::edit_alone(&file, || {
            // What can't be read is not believed, and replaced.
            let mut approvals = self.approvals().unwrap_or_default();
            change(&mut approvals);
            let text = serde_json::to_string(&approvals).unwrap_or_default();
            files::replace(&file, &text).map(|()| approvals)
        });
        changed.and_then(|changed| changed).map_err(at(&file))
    }

    /// The settings files of other tools at the target's tip. While that has not moved, no git is started.
    pub(super) fn settings_at_tip(&self) -> Result<BTreeMap<String, String>, TreeError> {
        let Some((_, tip)) = &self.target else {
            return Ok(BTreeMap::new());
        };
        let cache = self.place.private().join(CACHE_FILE);
        let cached = files::read_small(&cache, 8 * LIMIT).ok().flatten();
        let cached = cached.as_deref().and_then(|text| text.split_once('\n'));
        if let Some((_, text)) = cached.filter(|(known, _)| known == tip)
            && let Ok(settings) = serde_json::from_str(text)
        {
            return Ok(settings);
        }
        let settings = self.load_settings(tip)?;
        if let Some(parent) = cache.parent() {
            let _ = fs::create_dir_all(parent);
        }
        let text = serde_json::to_string(&settings).unwrap_or_default();
        // A cache that can't be written costs time, nothing else.
        let _ = files::replace(&cache, &format!("{tip}\n{text}"));
        Ok(settings)
    }

    fn load_settings(&self, tip: &str) -> Result<BTreeMap<String, String>, TreeError> {
        let repository = self.repository();
        let names = SETTINGS_FILES.iter().map(|file| file.path);
        let listed = repository
            .git("ls-tree")
            .args(["-z", "--full-tree", tip, "--"])
            .args(names.chain([CLAUDE_FILE, INCLUDE_FILE]))
            .run()?;
        let mut settings = BTreeMap::new();
        for entry in String::from_utf8_lossy(&listed).split('\0') {
            let Some((kind, path)) = entry.split_once('\t') else {
                continue;
            };
            // A link is no settings file.
            if !kind.starts_with("100") {
                continue;
            }
            let text = match repository.blob_at(tip, path, LIMIT)? {
                Blob::Content(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Blob::TooLarge => "<larger than 1 MiB>".to_owned(),
                Blob::Absent => continue,
            };
            settings.insert(path.to_owned(), text);
        }
        Ok(settings)
    }
}
