//! What agents use: tokens and money, counted as their streams report them, by hour and model.
//!
//! A stream counts twice: each message of the model while it works, and totals of the whole conversation at the end of a
//! turn. The totals are right, and have the money; an agent that is killed has only its messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Usage};

/// The most that is believed of one number of tokens.
const MOST_TOKENS: u64 = 1_000_000_000_000;

/// The most money that is believed.
const MOST_USD: f64 = 1_000_000.0;

/// How many models an agent is counted by; others count as one.
const MOST_MODELS: usize = 16;

/// How many messages of one run are told apart.
const MOST_MESSAGES: usize = 100_000;

/// What others are called.
const OTHERS: &str = "others";

/// What an agent used in one hour with one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// When that hour began.
    pub hour: Timestamp,
    pub model: String,
    #[serde(flatten)]
    pub usage: Usage,
}

impl Usage {
    /// As far as an agent's stream is believed.
    #[must_use]
    pub fn believed(self) -> Self {
        let is_money = |usd: &f64| usd.is_finite() && (0.0..=MOST_USD).contains(usd);
        Self {
            input_tokens: self.input_tokens.min(MOST_TOKENS),
            output_tokens: self.output_tokens.min(MOST_TOKENS),
            cost_usd: self.cost_usd.filter(is_money),
        }
    }

    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Both together; money is what is known of it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let money = [self.cost_usd, other.cost_usd];
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_usd: money.into_iter().flatten().reduce(|a, b| a + b),
        }
    }

    /// What is left of it without another one.
    fn less(self, other: Self) -> Self {
        let rest = |usd: f64| (usd - other.cost_usd.unwrap_or(0.0)).max(0.0);
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cost_usd: self.cost_usd.map(rest),
        }
    }

    /// The larger of both, number by number.
    fn at_least(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.max(other.input_tokens),
            output_tokens: self.output_tokens.max(other.output_tokens),
            cost_usd: self.cost_usd.or(other.cost_usd),
        }
    }
}

/// What was used, by model.
pub type ByModel = BTreeMap<String, Usage>;

/// What agents used in a conversation, by model.
pub fn used_in(conversation: &str, agents: &[Agent]) -> ByModel {
    let mut used = ByModel::new();
    for agent in agents {
        if agent.conversation.as_deref() == Some(conversation) {
            for one in &agent.spent {
                let sum = used.entry(one.model.clone()).or_default();
                *sum = sum.plus(one.usage);
            }
        }
    }
    used
}

/// Counts what one run of an agent uses.
#[derive(Debug, Default)]
pub struct Meter {
    spent: Vec<Spent>,
    /// What the conversation had used before this run.
    before: ByModel,
    /// What this run used, as counted so far.
    run: ByModel,
    /// The same by its messages alone.
    streamed: ByModel,
    messages: BTreeSet<String>,
    is_partial: bool,
}

impl Meter {
    /// Goes on behind what the agent used in earlier runs.
    pub fn new(spent: Vec<Spent>, before: ByModel) -> Self {
        Self {
            spent,
            before,
            ..Self::default()
        }
    }

    /// All that the agent used.
    pub fn spent(&self) -> &[Spent] {
        &self.spent
    }

    /// Whether its last messages are not part of a total: their money is unknown, and their output at least what is
    /// counted.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// A message of the model; it may be told several times.
    pub fn message(&mut self, id: &str, model: &str, usage: Usage, now: Timestamp) {
        if self.messages.len() >= MOST_MESSAGES || !self.messages.insert(id.to_owned()) {
            return;
        }
        let model = self.known(model);
        let sum = self.streamed.entry(model.clone()).or_default();
        let usage = Usage {
            cost_usd: None,
            ..usage.believed()
        };
        *sum = sum.plus(usage);
        let sum = *sum;
        self.is_partial = true;
        self.settle(&model, sum, now);
    }

    /// Everything that the conversation used of a model so far.
    pub fn total(&mut self, model: &str, usage: Usage, now: Timestamp) {
        let model = self.known(model);
        let before = self.before.get(&model).copied().unwrap_or_default();
        let own = usage.believed().less(before);
        self.is_partial = false;
        self.settle(&model, own, now);
    }

    /// This run used so much of a model: what is new of it was used just now.
    fn settle(&mut self, model: &str, own: Usage, now: Timestamp) {
        let counted = self.run.entry(model.to_owned()).or_default();
        let own = own.at_least(*counted);
        let new = own.less(*counted);
        *counted = own;
        if own.cost_usd.is_some() {
            // The money for what was counted message by message comes with the total.
            for entry in self.spent.iter_mut().filter(|entry| entry.model == model) {
                entry.usage.cost_usd = entry.usage.cost_usd.or(Some(0.0));
            }
        }
        if new.tokens() == 0 && new.cost_usd.unwrap_or(0.0) == 0.0 {
            return;
        }
        let hour = hour_of(now);
        let found = self
            .spent
            .iter_mut()
            .find(|entry| entry.hour == hour && entry.model == model);
        match found {
            Some(entry) => entry.usage = entry.usage.plus(new),
            None => self.spent.push(Spent {
                hour,
                model: model.to_owned(),
                usage: new,
            }),
        }
    }

    /// The name that a model is counted by.
    fn known(&self, model: &str) -> String {
        let plain: String = model.chars().filter(|c| !c.is_control()).take(80).collect();
        let models: BTreeSet<&str> = self.spent.iter().map(|one| one.model.as_str()).collect();
        match models.len() >= MOST_MODELS && !models.contains(plain.as_str()) {
            true => OTHERS.to_owned(),
            false => plain,
        }
    }
}

fn hour_of(now: Timestamp) -> Timestamp {
    let seconds = now.as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(3_600)).unwrap_or(now)
}

/// How much an agent, or a day, may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    Usd(f64),
    Tokens(u64),
}

impl Budget {
    /// What of it was used, if it is used up.
    pub fn exceeded_by(self, used: &Usage) -> Option<String> {
        match self {
            Self::Usd(most) => {
                let usd = used.cost_usd.unwrap_or(0.0);
                (usd >= most).then(|| money(usd))
            }
            Self::Tokens(most) => {
                (used.tokens() >= most).then(|| format!("{} tokens", short(used.tokens())))
            }
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    /// `$5`, `2.50 USD`, `500k`, `2M tokens`
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a budget: write it as $5, 500k tokens or none");
        let plain = text.trim();
        let usd = plain
            .strip_prefix('$')
            .or_else(|| plain.strip_suffix("USD"))
            .or_else(|| plain.strip_suffix("usd"));
        if let Some(usd) = usd {
            let usd: f64 = usd.trim().parse().map_err(|_| wrong())?;
            let is_money = usd.is_finite() && usd > 0.0 && usd <= MOST_USD;
            return is_money.then_some(Self::Usd(usd)).ok_or_else(wrong);
        }
        let number = plain.strip_suffix("tokens").unwrap_or(plain).trim();
        let (digits, times) = match number.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1_000.0),
            None => match number.strip_suffix('M') {
                Some(digits) => (digits, 1_000_000.0),
                None => (number, 1.0),
            },
        };
        let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
        let tokens = number * times;
        let is_count = tokens.is_finite() && tokens >= 1.0 && tokens <= MOST_TOKENS as f64;
        is_count
            .then_some(Self::Tokens(tokens as u64))
            .ok_or_else(wrong)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usd(usd) => f.write_str(&money(*usd)),
            Self::Tokens(tokens) => write!(f, "{} tokens", short(*tokens)),
        }
    }
}

/// Money for people: `$1.20`; what is below a cent keeps two digits.
pub fn money(usd: f64) -> String {
    match usd > 0.0 && usd < 0.01 {
        true => format!("${usd:.4}"),
        false => format!("${usd:.2}"),
    }
}

/// A number of tokens for people: `950`, `12.3k`, `4.5M`.
pub fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1_000.0),
        _ => format!("{:.1}M", tokens as f64 / 1_000_000.0),
    }
}

/// What was used, for people: `12.3k in, 1.5k out, $0.31`.
pub fn in_words(used: &Usage) -> String {
    let tokens = format!(
        "{} in, {} out",
        short(used.input_tokens),
        short(used.output_tokens)
    );
    match used.cost_usd {
        Some(usd) => format!("{tokens}, {}", money(usd)),
        None => tokens,
    }
}

/// All that an agent used itself, without what others used in its conversation before.
pub fn own(agent: &Agent) -> Usage {
    sum(&agent.spent)
}

/// All of it together.
pub fn sum(spent: &[Spent]) -> Usage {
    let each = spent.iter().map(|one| one.usage);
    each.reduce(Usage::plus).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hour * 3_600 + 1_234).unwrap()
    }

    fn used(input_tokens: u64, output_tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage {
            input_tokens,
            output_tokens,
            cost_usd,
        }
    }

    #[test]
    fn a12_messages_count_once_and_totals_correct_them() {
        let mut meter = Meter::default();
        for id in ["m1", "m1", "m2"] {
            meter.message(id, "opus", used(1_000, 3, None), at(0));
        }
        assert_eq!(
            (sum(meter.spent()), meter.is_partial()),
            (used(2_000, 6, None), true)
        );
        meter.total("opus", used(2_000, 220, Some(0.5)), at(1));
        assert_eq!(sum(meter.spent()), used(2_000, 220, Some(0.5)));
        assert!(!meter.is_partial());
        let hours: Vec<_> = meter.spent().iter().map(|one| one.usage).collect();
        assert_eq!(hours, [used(2_000, 6, Some(0.0)), used(0, 214, Some(0.5))]);
        // Said again, it is nothing new.
        meter.total("opus", used(2_000, 220, Some(0.5)), at(2));
        assert_eq!(sum(meter.spent()), used(2_000, 220, Some(0.5)));
        assert_eq!(meter.spent().len(), 2);
    }

    #[test]
    fn a12_what_a_conversation_used_before_is_counted_once() {
        let before = ByModel::from([("opus".to_owned(), used(2_000, 220, Some(0.5)))]);
        let mut meter = Meter::new(Vec::new(), before.clone());
        meter.message("m3", "opus", used(1_000, 3, None), at(0));
        meter.total("opus", used(3_000, 240, Some(0.75)), at(0));
        assert_eq!(sum(meter.spent()), used(1_000, 20, Some(0.25)));
        // A conversation that began anew after all: its messages are there.
        let mut meter = Meter::new(Vec::new(), before);
        meter.message("m4", "opus", used(900, 3, None), at(0));
        meter.total("opus", used(900, 10, Some(0.1)), at(0));
        assert_eq!(sum(meter.spent()), used(900, 3, Some(0.0)));
    }

    #[test]
    fn a12_absurd_numbers_are_not_believed() {
        let mut meter = Meter::default();
        meter.total("x", used(u64::MAX, u64::MAX, Some(f64::NAN)), at(0));
        assert_eq!(sum(meter.spent()), used(MOST_TOKENS, MOST_TOKENS, None));
        for number in 0..100 {
            meter.total(&format!("m{number}"), used(1, 1, Some(-1.0)), at(0));
        }
        assert_eq!(meter.spent().len(), MOST_MODELS + 1);
    }

    #[test]
    fn a12_budgets_are_money_or_tokens() {
        for (text, budget) in [
            ("$5", Budget::Usd(5.0)),
            ("2.50 USD", Budget::Usd(2.5)),
            ("500k", Budget::Tokens(500_000)),
            ("1.5M tokens", Budget::Tokens(1_500_000)),
            ("900 tokens", Budget::Tokens(900)),
        ] {
            assert_eq!(text.parse(), Ok(budget), "{text}");
        }
        for text in [
            "", "$", "$-1", "$0", "$nan", "five", "0", "-3", "1e99", "12x", "€5",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
        let spent = used(600, 400, None);
        assert_eq!(
            Budget::Tokens(1_000).exceeded_by(&spent).unwrap(),
            "1.0k tokens"
        );
        assert_eq!(Budget::Tokens(1_001).exceeded_by(&spent), None);
        assert_eq!(Budget::Usd(0.01).exceeded_by(&spent), None);
    }
}
