//! Commands as calls of tools.

use serde_json::{Map, Value};

use super::super::tool::Entry;

/// A command, and the tool that does the same.
struct Rule {
    /// The words of the command.
    words: &'static [&'static str],
    tool: &'static str,
    /// The tool if nothing follows the words, where that is another one.
    alone: Option<&'static str>,
    /// What stands behind them, in order.
    takes: &'static [&'static str],
    /// Flags, the argument that each is, and what it says of it: nothing where the command line says.
    flags: &'static [(&'static str, &'static str, &'static str)],
    /// Arguments that the words stand for.
    fixed: &'static [(&'static str, &'static str)],
}

const fn rule(
    words: &'static [&'static str],
    tool: &'static str,
    takes: &'static [&'static str],
) -> Rule {
    Rule {
        words,
        tool,
        alone: None,
        takes,
        flags: &[],
        fixed: &[],
    }
}

impl Rule {
    const fn alone(self, tool: &'static str) -> Self {
        Self {
            alone: Some(tool),
            ..self
        }
    }

    const fn flags(self, flags: &'static [(&'static str, &'static str, &'static str)]) -> Self {
        Self { flags, ..self }
    }

    const fn fixed(self, fixed: &'static [(&'static str, &'static str)]) -> Self {
        Self { fixed, ..self }
    }
}

/// Those with more words come before those that they begin with.
const RULES: &[Rule] = &[
    rule(&["task", "add"], "task_create", &["subject"]),
    rule(&["task", "list"], "task_list", &[]),
    rule(&["task", "ready"], "task_list", &[]).fixed(&[("status", "ready")]),
    rule(&["task", "show"], "task_get", &["task_id"]),
    rule(&["task", "claim"], "task_claim", &["task_id"]),
    rule(&["task", "release"], "task_update", &["task_id"]).fixed(&[("action", "release")]),
    rule(&["task", "reopen"], "task_update", &["task_id"]).fixed(&[("action", "reopen")]),
    rule(&["task", "start"], "task_update", &["task_id"])
        .fixed(&[("action", "start")])
        .flags(&[("--owner", "owner", "")]),
    rule(&["task", "cancel"], "task_update", &["task_id"])
        .fixed(&[("action", "cancel")])
        .flags(&[("--reason", "reason", "")]),
    rule(&["task", "edit"], "task_update", &["task_id"]).flags(&[("--plan", "plan", "")]),
    rule(&["task", "unbind"], "task_bind_worktree", &["task_id"]).fixed(&[("unbind", "true")]),
    rule(&["task", "done"], "task_complete", &["task_id"]).flags(&[("--report", "report", "")]),
    rule(&["task", "fail"], "task_fail", &["task_id"]).flags(&[("--report", "reason", "")]),
    rule(
        &["task", "bind"],
        "task_bind_worktree",
        &["task_id", "name"],
    )
    .flags(&[("--rebind", "rebind", "")]),
    rule(&["new"], "worktree_create", &["name"])
        .flags(&[("--task", "task_id", ""), ("--base", "base_ref", "")]),
    rule(&["ensure"], "worktree_create", &["name"])
        .flags(&[("--task", "task_id", "")])
        .fixed(&[("reuse", "true")]),
    rule(&["list"], "worktree_list", &[]).flags(&[("--all", "", "")]),
    rule(&["show"], "worktree_status", &["name"]),
    rule(&["status"], "worktree_status", &["name"]),
    rule(&["run"], "worktree_run", &["name"]),
    rule(&["diff"], "worktree_diff", &["name"]),
    rule(&["sync"], "worktree_sync", &["name"]).flags(&[("--rebase", "rebase", "")]),
    rule(&["keep"], "worktree_keep", &["name"]).flags(&[("--undo", "undo", "")]),
    rule(&["rm"], "worktree_remove", &["name"])
        .flags(&[("--discard", "force", ""), ("--force", "referenced", "")]),
    rule(&["trash", "list"], "trash_list", &[]),
    rule(&["trash", "restore"], "worktree_restore", &["name"]),
    rule(&["restore"], "worktree_restore", &["name"]).alone("trash_list"),
    rule(&["clean"], "clean_preview", &[]),
    rule(&["events"], "worktree_events", &[]).flags(&[("--tree", "name", "")]),
    rule(&["land"], "land", &["name"]).flags(&[
        ("--report", "report", ""),
        ("--strategy", "strategy", ""),
        ("--keep", "keep", ""),
    ]),
    rule(&["queue", "status"], "land_status", &[]).flags(&[("--all", "all", "")]),
    rule(&["queue"], "land_status", &[]),
    rule(&["conflicts"], "conflicts", &[]),
    rule(&["agent", "list"], "check_agents", &[]).flags(&[("--all", "all", "")]),
    rule(&["agent", "pulse"], "agent_pulse", &["agent"]),
    rule(&["agent", "diff"], "agent_diff", &["agent"]),
    rule(&["agent", "stop"], "agent_stop", &["agent"]).flags(&[("--release", "release", "")]),
    rule(&["agent", "steer"], "agent_steer", &["agent", "text"]),
    rule(&["agent", "wait"], "wait_agents", &["agents"]),
    rule(&["agent", "pause"], "agent_pause", &["agent"]),
    rule(&["agent", "resume"], "agent_resume", &["agent"]),
    rule(&["agent", "restart"], "agent_restart", &["agent"])
        .flags(&[("--force", "force", ""), ("--fresh", "fresh", "")]),
    rule(&["resume"], "rescue", &["task_id"]).fixed(&[("choice", "continue")]),
    rule(&["rescue"], "rescue", &["task_id"]).flags(&[
        ("--commit", "commit", ""),
        ("--continue", "choice", "continue"),
        ("--restart", "choice", "restart"),
        ("--trash", "choice", "trash"),
    ]),
    rule(&["race", "show"], "race_show", &["task_id"]),
    rule(&["race", "pick"], "race_pick", &["task_id", "entry"])
        .flags(&[("--report", "report", "")]),
    rule(&["race", "drop"], "race_drop", &["task_id"]),
    rule(&["race"], "race", &["task_id"]).flags(&[("-n", "count", "")]),
    rule(&["msg", "inbox"], "message_inbox", &[])
        .flags(&[("--all", "all", ""), ("--consume", "", "")]),
    rule(&["msg", "ask"], "ask", &["to", "text"]),
    rule(&["msg", "send"], "message_send", &["to", "text"])
        .flags(&[("--type", "type", ""), ("--task", "task_id", "")]),
    rule(&["msg", "reply"], "reply", &["message_id", "text"]).flags(&[
        ("--approve", "approve", "true"),
        ("--reject", "approve", "false"),
    ]),
];

/// The call that does what a command line begins with, and how much of the text the command line is. `None` where no tool
/// of these does all of it.
pub(super) fn of(text: &str, tools: &[Entry]) -> Option<(String, usize)> {
    let mut words = Words {
        text,
        at: 0,
        is_over: false,
    };
    let rule = RULES
        .iter()
        .find(|rule| words.clone().skip_all(rule.words))?;
    for _ in rule.words {
        words.next();
    }
    let alone = rule.alone.filter(|_| words.clone().next().is_none());
    let wanted = alone.unwrap_or(rule.tool);
    let tool = tools.iter().find(|tool| tool.described.name == wanted)?;
    let mut call = Arguments {
        tool,
        given: Map::new(),
    };
    let mut takes = rule.takes.iter();
    while let Some(word) = words.clone().next() {
        if rule.words == ["run"] && word == "--" {
            call.give("command", words.rest().trim_start_matches("-- "))?;
            break;
        }
        if let Some((_, name, value)) = rule.flags.iter().find(|(flag, ..)| *flag == word) {
            words.next();
            let value = match (*value, call.is_switch(name)) {
                ("", true) => "true",
                ("", false) if name.is_empty() => continue,
                ("", false) => words.next()?,
                (value, _) => value,
            };
            if call.given.contains_key(*name) {
                // Given twice a flag says more, and no tool takes that.
                return None;
            }
            call.give(name, value)?;
        } else if word.starts_with('-') {
            return None;
        } else if let Some(name) = takes.next() {
            call.give(name, words.next()?)?;
        } else {
            break;
        }
    }
    for (name, value) in rule.fixed {
        call.give(name, value)?;
    }
    Some((call.text(), words.at))
}

/// How long a command is that begins here: to the end of its sentence.
pub(super) fn length_of(text: &str) -> usize {
    let ends = [
        text.find(';'),
        text.find(", "),
        text.find(" ("),
        text.find('`'),
    ];
    ends.into_iter().flatten().min().unwrap_or(text.len())
}

/// The words of a command line within a sentence.
#[derive(Clone)]
struct Words<'t> {
    text: &'t str,
    at: usize,
    /// A comma or the like came: what follows is the sentence's.
    is_over: bool,
}

impl<'t> Words<'t> {
    fn next(&mut self) -> Option<&'t str> {
        if self.is_over {
            return None;
        }
        let left = &self.text[self.at..];
        let start = self.at + (left.len() - left.trim_start_matches(' ').len());
        let left = &self.text[start..];
        let quoted = left.strip_prefix('"').and_then(|text| text.find('"'));
        let length = match quoted {
            Some(end) => end + 2,
            None => left.find([' ', ',', ';', '`', ')']).unwrap_or(left.len()),
        };
        if length == 0 || left.starts_with('(') {
            return None;
        }
        self.at = start + length;
        self.is_over = !self.text[self.at..].starts_with(' ');
        let word = &self.text[start..self.at];
        Some(quoted.map_or(word, |_| word.trim_matches('"')))
    }

    /// Everything to the end of the command.
    fn rest(&mut self) -> &'t str {
        let left = &self.text[self.at..];
        let end = left.find(';').unwrap_or(left.len());
        self.at += end;
        left[..end].trim()
    }

    fn skip_all(mut self, words: &[&str]) -> bool {
        words.iter().all(|word| self.next() == Some(word))
    }
}

/// The arguments of a call, as its schema wants them.
struct Arguments<'e> {
    tool: &'e Entry,
    given: Map<String, Value>,
}

impl Arguments<'_> {
    fn kind(&self, name: &str) -> String {
        let property = self.tool.property(name);
        property
            .map(|property| property["type"].to_string())
            .unwrap_or_default()
    }

    fn is_switch(&self, name: &str) -> bool {
        self.kind(name).contains("boolean")
    }

    /// Adds one; `None` if the tool does not take it.
    fn give(&mut self, name: &str, value: &str) -> Option<()> {
        self.tool.property(name)?;
        let number = || value.parse::<u64>().ok().map(Value::from);
        let kind = self.kind(name);
        let value = match () {
            () if kind.contains("boolean") => (value == "true").into(),
            () if kind.contains("array") => vec![number().unwrap_or(value.into())].into(),
            () if kind.contains("integer") => number().unwrap_or(value.into()),
            () => value.into(),
        };
        self.given.insert(name.to_owned(), value);
        Some(())
    }

    fn text(self) -> String {
        let name = &self.tool.described.name;
        match self.given.is_empty() {
            true => name.to_string(),
            false => format!("{name} {}", Value::Object(self.given)),
        }
    }
}
