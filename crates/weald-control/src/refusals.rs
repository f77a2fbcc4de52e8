//! What runs wanted to reach and may not, in words.

use weald_core::hosts::rule_for;
use weald_sandbox::Refusal;

/// How many hosts stand in one line.
const NAMED: usize = 5;

/// What was refused, in one line; `None` if nothing was. `count` also counts those that are not listed.
pub fn refusals_told(refused: &[Refusal], count: u64) -> Option<String> {
    let mut named: Vec<String> = Vec::new();
    for it in refused {
        let name = refusal_told(it);
        // A name is asked for first, and its ports come after it: they are one thing to a reader.
        if !named.contains(&name) {
            named.push(name);
        }
    }
    let shown = named.len().min(NAMED);
    let more = match named.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = match count {
        0 => return None,
        1 => "1 connection was refused".to_owned(),
        count => format!("{count} connections were refused"),
    };
    Some(format!("{what}: {}{more}", named[..shown].join(", ")))
}

/// The same with the command that allows them.
pub fn refusals_with_hint(refused: &[Refusal], count: u64) -> Option<String> {
    let told = refusals_told(refused, count)?;
    Some(match allowing(refused) {
        Some(command) => format!("{told}; allow with: {command}"),
        None => told,
    })
}

/// The command that allows what was refused; `None` if nothing of it is to be proposed.
pub fn allowing(refused: &[Refusal]) -> Option<String> {
    let mut rules: Vec<String> = Vec::new();
    let rule_of = |it: &Refusal| match it.protocol.as_str() {
        // Datagrams go nowhere, whatever is listed.
        "udp" => None,
        _ => rule_for(&it.host, it.port, it.address.as_deref()),
    };
    for rule in refused.iter().filter_map(rule_of) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.truncate(NAMED);
    let rules = rules.join(",");
    (!rules.is_empty()).then(|| format!("weald config set sandbox.hosts +{rules}"))
}

/// One refusal, as `example.com:443 (curl)`, or `example.com:443 = 10.0.0.5 (curl)`.
fn refusal_told(refusal: &Refusal) -> String {
    let port = refusal.port.map(|port| format!(":{port}"));
    let host = match (refusal.host.contains(':'), &port) {
        (true, Some(_)) => format!("[{}]", refusal.host),
        _ => refusal.host.clone(),
    };
    let kind = if refusal.protocol == "udp" {
        "/udp"
    } else {
        ""
    };
    let program = Some(&refusal.program).filter(|program| !program.is_empty());
    let program = program.map(|program| format!(" ({program})"));
    let address = refusal.address.as_ref();
    let address = address.map(|address| format!(" = {address}"));
    format!(
        "{host}{}{kind}{}{}",
        port.unwrap_or_default(),
        address.unwrap_or_default(),
        program.unwrap_or_default()
    )
}
