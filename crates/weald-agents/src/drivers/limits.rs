//! Usage limits and logins, as agents report them.
//!
//! Only an agent's own account of its end is read, never what its model says. All of it is untrusted: it decides how long
//! weald waits, and whoever waits bounds that time.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Map, Value};
use weald_core::agent::Barrier;

use super::text::word;

/// How far a time of day may lie in the past and still be today's: agents leave the seconds out.
const ROUNDED: SignedDuration = SignedDuration::from_mins(2);

/// Answers of a provider that does not serve anybody for now.
const BUSY: [u64; 2] = [429, 529];

/// After so many attempts with a login that is refused nothing but another login helps.
const REFUSED_ATTEMPTS: u64 = 2;

/// When a limit that Claude Code ran into is reset.
pub(super) fn claude_reset(object: &Map<String, Value>) -> Option<Timestamp> {
    let info = object.get("rate_limit_info")?;
    let is_rejected = info.get("status")?.as_str()? == "rejected";
    let at = info.get("resetsAt")?.as_i64().filter(|_| is_rejected)?;
    Timestamp::from_second(at).ok()
}

/// What kept Claude Code from its model, by its result. `reset` is what an earlier line named.
pub(super) fn claude_result(
    object: &Map<String, Value>,
    reset: Option<Timestamp>,
    now: &Zoned,
) -> Option<Barrier> {
    if object.get("is_error").and_then(Value::as_bool) != Some(true) {
        return None;
    }
    let status = object.get("api_error_status").and_then(Value::as_u64);
    let said = word(object, "result");
    let limited = ["You've hit your", "Claude AI usage limit reached"];
    let refused = [
        "Not logged in",
        "Failed to authenticate",
        "Login expired",
        "OAuth token revoked",
        "Invalid API key",
        "Your session has expired",
    ];
    let begins = |known: &[&str]| known.iter().any(|known| said.starts_with(known));
    if status == Some(401) || status.is_none() && begins(&refused) {
        return Some(Barrier::Login);
    }
    let is_limit = word(object, "api_error") == "usage_limit_reached"
        || status.is_some_and(|status| BUSY.contains(&status))
        || begins(&limited);
    let until = || {
        reset
            .or_else(|| epoch_behind_bar(said))
            .or_else(|| time_in(said, now))
    };
    is_limit.then(|| Barrier::Limit { until: until() })
}

/// Whether Claude Code tries again and again with a login that is refused.
pub(super) fn claude_retry(object: &Map<String, Value>) -> Option<Barrier> {
    let number = |field: &str| object.get(field).and_then(Value::as_u64);
    let is_refused = number("error_status") == Some(401);
    let attempts = number("attempt").unwrap_or_default();
    (is_refused && attempts >= REFUSED_ATTEMPTS).then_some(Barrier::Login)
}

/// Whether Codex tries again and again with a login that is refused: `Reconnecting... 2/5 (unexpected status 401 …`.
pub(super) fn codex_retry(said: &str) -> Option<Barrier> {
    let (attempt, why) = said.strip_prefix("Reconnecting... ")?.split_once('/')?;
    let is_again = attempt.parse::<u64>().ok()? >= REFUSED_ATTEMPTS;
    (is_again && why.contains("status 401 ")).then_some(Barrier::Login)
}

/// What kept Codex from its model, by what it says of a turn that failed.
pub(super) fn codex_failure(said: &str, now: &Zoned) -> Option<Barrier> {
    let has = |known: &[&str]| known.iter().any(|known| said.contains(known));
    if has(&[
        "401 Unauthorized",
        "could not be refreshed",
        "Please log out and sign in again",
        "Not logged in",
    ]) {
        return Some(Barrier::Login);
    }
    let is_limit = has(&[
        "hit your usage limit",
        "usage limit has been reached",
        "Quota exceeded",
        "429 Too Many Requests",
        "Rate limit reached",
    ]);
    is_limit.then(|| Barrier::Limit {
        until: time_in(said, now),
    })
}

/// `Claude AI usage limit reached|1795125597`
fn epoch_behind_bar(said: &str) -> Option<Timestamp> {
    let (_, behind) = said.split_once('|')?;
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
    Timestamp::from_second(digits.parse().ok()?).ok()
}

/// The time that a sentence names: `resets 9:02pm (UTC)`, `try again at Nov 20th, 2026 10:00 PM`, `try again in 3 hours
/// 5 minutes`.
fn time_in(said: &str, now: &Zoned) -> Option<Timestamp> {
    for marker in ["try again in ", "resets in "] {
        if let Some((_, behind)) = said.split_once(marker) {
            return span(behind).and_then(|span| now.timestamp().checked_add(span).ok());
        }
    }
    let mut markers = ["try again at ", "resets at ", "resets "].into_iter();
    let behind = markers.find_map(|marker| Some(said.split_once(marker)?.1))?;
    let zone = zone_of(behind).unwrap_or_else(|| now.time_zone().clone());
    let now = now.with_time_zone(zone.clone());
    let words: Vec<&str> = behind
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')'))
        .filter(|word| !word.is_empty())
        .take(5)
        .collect();
    let (date, rest) = match date_of(&words, now.year()) {
        Some((date, used)) => (Some(date), &words[used..]),
        None => (None, &words[..]),
    };
    let rest = match rest {
        ["at", rest @ ..] => rest,
        rest => rest,
    };
    let time = time_of(rest)?;
    let at = |date: Date| {
        let zoned = DateTime::from_parts(date, time).to_zoned(zone.clone());
        Some(zoned.ok()?.timestamp())
    };
    match date {
        Some(date) => at(date),
        None => {
            let today = at(now.date())?;
            match now.timestamp().duration_since(today) > ROUNDED {
                true => at(now.date().tomorrow().ok()?),
                false => Some(today),
            }
        }
    }
}

/// `3 days 2 hours 5 minutes`
fn span(text: &str) -> Option<SignedDuration> {
    let mut words = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty() && *word != "and");
    let mut found: Option<SignedDuration> = None;
    while let (Some(number), Some(unit)) = (words.next(), words.next()) {
        let Ok(number) = number.parse::<u32>() else {
            break;
        };
        let number = i64::from(number);
        let unit = unit.trim_end_matches(['.', 's']);
        let part = match unit {
            "day" => SignedDuration::from_hours(number.checked_mul(24)?),
            "hour" => SignedDuration::from_hours(number),
            "minute" => SignedDuration::from_mins(number),
            "second" => SignedDuration::from_secs(number),
            _ => break,
        };
        found = Some(found.unwrap_or_default().checked_add(part)?);
    }
    found
}

/// `Nov 20th 2026` or `Nov 20`, and how many words it takes.
fn date_of(words: &[&str], year: i16) -> Option<(Date, usize)> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let [month, day, rest @ ..] = words else {
        return None;
    };
    let month = MONTHS.iter().position(|known| month.starts_with(known))?;
    let day = day.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let given = rest.first().filter(|word| word.len() == 4);
    let given = given.and_then(|word| word.parse::<i16>().ok());
    let date = Date::new(given.unwrap_or(year), month as i8 + 1, day.parse().ok()?).ok()?;
    Some((date, 2 + usize::from(given.is_some())))
}

/// `9pm`, `9:02pm`, `10:00 PM`, `22:00`
fn time_of(words: &[&str]) -> Option<Time> {
    let first = words.first()?.trim_end_matches('.').to_ascii_lowercase();
    let second = words.get(1).map(|word| word.trim_end_matches('.'));
    let half = |text: &str| match text.to_ascii_lowercase().as_str() {
        "am" => Some(0),
        "pm" => Some(12),
        _ => None,
    };
    let (digits, half) = match first.find(|c: char| c.is_ascii_alphabetic()) {
        Some(place) => (&first[..place], Some(half(&first[place..])?)),
        None => (first.as_str(), second.and_then(half)),
    };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i8>().ok()?, minute.parse::<i8>().ok()?),
        None => (digits.parse().ok().filter(|_| half.is_some())?, 0),
    };
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// The zone in brackets behind a time.
fn zone_of(text: &str) -> Option<TimeZone> {
    let (_, behind) = text.split_once('(')?;
    let (name, _) = behind.split_once(')')?;
    match name {
        "UTC" | "GMT" => Some(TimeZone::UTC),
        name => TimeZone::get(name).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Zoned {
        "2026-11-19T21:00:30Z"
            .parse::<Timestamp>()
            .unwrap()
            .to_zoned(TimeZone::UTC)
    }

    fn limit(until: &str) -> Option<Barrier> {
        let until = (!until.is_empty()).then(|| until.parse().unwrap());
        Some(Barrier::Limit { until })
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a8_what_claude_code_says_of_limits_and_logins_is_recognised() {
        // As 2.1.325 prints them for a subscription, an API key, an expired and a missing login.
        let event = json!({"type": "rate_limit_event", "rate_limit_info":
            {"status": "rejected", "resetsAt": 1795125597, "rateLimitType": "five_hour"}});
        let reset = claude_reset(&object(event));
        assert_eq!(reset.unwrap().to_string(), "2026-11-19T21:59:57Z");
        let allowed = json!({"rate_limit_info": {"status": "allowed_warning", "resetsAt": 1}});
        assert_eq!(claude_reset(&object(allowed)), None);
        for (status, said, reset, found) in [
            (
                Some(429),
                "You've hit your limit · resets 9:59pm (UTC)",
                reset,
                limit("2026-11-19T21:59:57Z"),
            ),
            (
                Some(429),
                "You've hit your limit · resets 9:59pm (UTC)",
                None,
                limit("2026-11-19T21:59:00Z"),
            ),
            (
                None,
                "You've hit your limit · resets 3pm (UTC)",
                None,
                limit("2026-11-20T15:00:00Z"),
            ),
            (
                None,
                "You've hit your weekly limit · resets Nov 22 at 3am (UTC)",
                None,
                limit("2026-11-22T03:00:00Z"),
            ),
            (
                None,
                "Claude AI usage limit reached|1795125597",
                None,
                limit("2026-11-19T21:59:57Z"),
            ),
            (
                Some(429),
                "API Error: Request rejected (429) · This request would exceed your rate limit",
                None,
                limit(""),
            ),
            (Some(529), "API Error: Overloaded", None, limit("")),
            (
                Some(401),
                "Failed to authenticate. API Error: 401 OAuth token has expired.",
                None,
                Some(Barrier::Login),
            ),
            (
                None,
                "Not logged in · Please run /login",
                None,
                Some(Barrier::Login),
            ),
            (Some(400), "API Error: 400 Your credit", None, None),
            (
                None,
                "I could not find the usage limit reached page",
                None,
                None,
            ),
        ] {
            let result = json!({"is_error": true, "api_error_status": status, "result": said});
            assert_eq!(
                claude_result(&object(result), reset, &now()),
                found,
                "{said}"
            );
            let fine = json!({"is_error": false, "result": said});
            assert_eq!(claude_result(&object(fine), reset, &now()), None, "{said}");
        }
        let retry = |attempt: u64, status: u64| {
            claude_retry(&object(json!({"attempt": attempt, "error_status": status})))
        };
        assert_eq!(retry(2, 401), Some(Barrier::Login));
        assert_eq!((retry(1, 401), retry(9, 429)), (None, None));
    }

    #[test]
    fn a8_what_codex_says_of_limits_and_logins_is_recognised() {
        let upgrade = "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or";
        for (said, found) in [
            (
                format!("{upgrade} try again at 10:00 PM."),
                limit("2026-11-19T22:00:00Z"),
            ),
            // The minute that has begun: Codex leaves the seconds out.
            (
                format!("{upgrade} try again at 9:00 PM."),
                limit("2026-11-19T21:00:00Z"),
            ),
            (
                format!("{upgrade} try again at 8:00 PM."),
                limit("2026-11-20T20:00:00Z"),
            ),
            (
                format!("{upgrade} try again at Nov 20th, 2026 10:00 PM."),
                limit("2026-11-20T22:00:00Z"),
            ),
            (
                "You've hit your usage limit. Try later or try again in 3 days 2 hours 5 minutes."
                    .to_owned(),
                limit("2026-11-22T23:05:30Z"),
            ),
            (
                "You've hit your usage limit. Try again later.".to_owned(),
                limit(""),
            ),
            (
                "Quota exceeded. Check your plan and billing details.".to_owned(),
                limit(""),
            ),
            (
                "exceeded retry limit, last status: 429 Too Many Requests".to_owned(),
                limit(""),
            ),
            (
                "unexpected status 401 Unauthorized: OAuth token has expired., url: http://x"
                    .to_owned(),
                Some(Barrier::Login),
            ),
            (
                "Your access token could not be refreshed. Please log out and sign in again."
                    .to_owned(),
                Some(Barrier::Login),
            ),
            ("stream disconnected before completion".to_owned(), None),
        ] {
            assert_eq!(codex_failure(&said, &now()), found, "{said}");
        }
        let retry =
            |attempt: &str, why: &str| codex_retry(&format!("Reconnecting... {attempt} ({why})"));
        assert_eq!(
            retry("2/5", "unexpected status 401 Unauthorized: x"),
            Some(Barrier::Login)
        );
        assert_eq!(retry("1/5", "unexpected status 401 Unauthorized: x"), None);
        assert_eq!(retry("5/5", "exceeded retry limit, last status: 429"), None);
    }

    #[test]
    fn a8_absurd_times_are_no_times() {
        for said in [
            "try again at 25:61 PM",
            "try again at",
            "try again in many days",
            "try again in 99999999999999999999 days",
            "try again at Nov 99th, 2026 10:00 PM",
            "resets (",
            "resets 99999pm (Nowhere/At_All)",
        ] {
            assert_eq!(time_in(said, &now()), None, "{said}");
        }
    }
}
