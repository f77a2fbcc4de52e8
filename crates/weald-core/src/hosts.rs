//! Hosts that runs may reach, as people list them: `name`, `*.name`, an address, each with `:port` or without.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    /// A name in small letters, without a dot at its end; or an address.
    pub name: String,
    /// Everything below the name, and not the name itself.
    pub below: bool,
    /// Any port without one.
    pub port: Option<u16>,
}

impl FromStr for HostRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{text}` {why}"));
        if text.contains("://") || text.contains('/') {
            return wrong("is a URL: list its host, as example.com or example.com:8443");
        }
        if text == "*" {
            return wrong("lists every host: set sandbox.network to on for that");
        }
        let (host, port) = match (text.parse::<Ipv6Addr>(), text.rsplit_once(':')) {
            (Err(_), Some((host, port))) if !text.ends_with(']') => match port.parse::<u16>() {
                Ok(number) if number > 0 && !port.starts_with('+') => (host, Some(number)),
                _ => return wrong("has an invalid port (1–65535)"),
            },
            _ => (text, None),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
            return Ok(Self {
                name: address.to_canonical().to_string(),
                below: false,
                port,
            });
        }
        let (name, below) = match host.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (host, false),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        match is_name(&name) {
            true => Ok(Self { name, below, port }),
            false => wrong(
                "is not a host: write example.com, *.example.com or 10.0.0.5, each with :PORT or without",
            ),
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stars = if self.below { "*." } else { "" };
        match (self.name.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{}]:{port}", self.name),
            (_, Some(port)) => write!(f, "{stars}{}:{port}", self.name),
            (_, None) => write!(f, "{stars}{}", self.name),
        }
    }
}

/// Whether it is a name, and can't be taken for an address in one of its old forms (`127.1`, `0x7f000001`).
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (1..=63).contains(&label.len()) && label.chars().all(plain) && !label.starts_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit());
    name.len() <= 253 && name.split('.').all(is_label) && !is_number
}

/// The host that a URL names, with its port: what a driver dials for its model.
pub fn host_of_url(url: &str) -> Option<HostRule> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let mut rule: HostRule = host.parse().ok()?;
    rule.port = rule.port.or(Some(usual));
    (!rule.below).then_some(rule)
}

/// Hosts that an agent of this kind can't work without.
pub fn of_driver(driver: &str) -> &'static [&'static str] {
    match driver {
        "claude" => &["api.anthropic.com"],
        "codex" => &["api.openai.com", "chatgpt.com"],
        _ => &[],
    }
}

/// Variables that lead an agent of this kind to another host.
pub fn variables_of_driver(driver: &str) -> &'static [&'static str] {
    match driver {
        "claude" => &["ANTHROPIC_BASE_URL"],
        "codex" => &["OPENAI_BASE_URL"],
        _ => &[],
    }
}

/// URLs to which an agent's settings lead it. What can't be read leads nowhere.
pub fn urls_in_settings(driver: &str, text: &str) -> Vec<String> {
    match driver {
        "claude" => {
            let settings = serde_json::from_str::<serde_json::Value>(text).ok();
            let url = settings.and_then(|all| {
                let url = all.get("env")?.get("ANTHROPIC_BASE_URL")?.as_str()?;
                Some(url.to_owned())
            });
            url.into_iter().collect()
        }
        "codex" => {
            let settings: toml::Table = text.parse().unwrap_or_default();
            let providers = settings.get("model_providers").and_then(|it| it.as_table());
            let providers = providers.into_iter().flat_map(|all| all.values());
            let of_providers = providers.filter_map(|provider| provider.get("base_url"));
            let own = ["openai_base_url", "chatgpt_base_url"];
            let own = own.iter().filter_map(|name| settings.get(*name));
            let urls = of_providers.chain(own).filter_map(|url| url.as_str());
            urls.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Registries that a project of this kind loads its packages from, by the file that shows the kind.
const REGISTRIES: &[(&str, &[&str])] = &[
    (
        "Cargo.toml",
        &["index.crates.io", "static.crates.io", "crates.io"],
    ),
    ("package.json", &["registry.npmjs.org"]),
    ("yarn.lock", &["registry.yarnpkg.com"]),
    ("bun.lock", &["registry.npmjs.org"]),
    ("pyproject.toml", &["pypi.org", "files.pythonhosted.org"]),
    ("requirements.txt", &["pypi.org", "files.pythonhosted.org"]),
    ("go.mod", &["proxy.golang.org", "sum.golang.org"]),
    ("pom.xml", &["repo.maven.apache.org"]),
    (
        "build.gradle",
        &[
            "repo.maven.apache.org",
            "plugins.gradle.org",
            "services.gradle.org",
        ],
    ),
    (
        "build.gradle.kts",
        &[
            "repo.maven.apache.org",
            "plugins.gradle.org",
            "services.gradle.org",
        ],
    ),
    ("Gemfile", &["rubygems.org", "index.rubygems.org"]),
    ("composer.json", &["repo.packagist.org", "*.github.com"]),
    ("mix.exs", &["hex.pm", "repo.hex.pm"]),
];

/// The registries that a project seems to need; `is_there` says whether it has a file of this name.
pub fn registries(is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let kinds = REGISTRIES.iter().filter(|(file, _)| is_there(file));
    let mut all = Vec::new();
    for host in kinds.flat_map(|(_, hosts)| hosts.iter()) {
        if !all.contains(host) {
            all.push(*host);
        }
    }
    all
}

/// What lists a host that was refused, in the form that is most likely meant; `address` is what the name stands for, if that
/// was the reason. `None` for one that is not to be proposed.
pub fn rule_for(host: &str, port: Option<u16>, address: Option<&str>) -> Option<String> {
    // What hands out a machine's credentials is listed by those alone who know what they do.
    let is_odd = |address: Ipv4Addr| address.is_link_local() || address.is_unspecified();
    if address.unwrap_or(host).parse().is_ok_and(is_odd) {
        return None;
    }
    let port = port.filter(|port| address.is_some() || *port != 443);
    let rule = HostRule {
        name: host.to_owned(),
        below: false,
        port,
    };
    let text = rule.to_string();
    text.parse::<HostRule>().is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a16_a_host_is_a_name_what_is_below_it_or_an_address() {
        for (text, name, below, port) in [
            ("Example.COM", "example.com", false, None::<u16>),
            ("example.com.", "example.com", false, None),
            ("*.example.com:8443", "example.com", true, Some(8443)),
            ("localhost:5432", "localhost", false, Some(5432)),
            ("127.0.0.1:8080", "127.0.0.1", false, Some(8080)),
            ("::1", "::1", false, None),
            ("[::1]:80", "::1", false, Some(80)),
            ("[::1]", "::1", false, None),
            ("[::ffff:10.0.0.1]", "10.0.0.1", false, None),
        ] {
            let rule: HostRule = text.parse().unwrap();
            assert_eq!(
                (rule.name.as_str(), rule.below, rule.port),
                (name, below, port),
                "{text}"
            );
            assert_eq!(rule.to_string().parse(), Ok(rule), "{text}");
        }
        for text in [
            "",
            "*",
            "*.",
            "a*.example.com",
            "https://example.com",
            "example.com/x",
            "a b",
            "a..b",
            "-a.b",
            "127.1",
            "0x7f.1",
            "2130706433",
            "1.2.3.4.5",
            "example.com:0",
            "[example.com]",
            "example.com:80]",
            "[::1",
            "example.com:+80",
            "example.com:http",
            "*.10.0.0.1",
            "ä.example",
            "a\u{1b}.b",
        ] {
            assert!(text.parse::<HostRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn a16_the_host_of_a_url_comes_with_its_port() {
        for (url, wanted) in [
            ("https://api.example.com/v1", Some("api.example.com:443")),
            ("http://127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("http://[::1]:9/x", Some("[::1]:9")),
            ("https://user:pw@h.example?x", Some("h.example:443")),
            ("unix:///run/x", None),
            ("https://*.example.com", None),
            ("nonsense", None),
        ] {
            let found = host_of_url(url).map(|rule| rule.to_string());
            assert_eq!(found.as_deref(), wanted, "{url}");
        }
    }

    #[test]
    fn a16_settings_lead_an_agent_to_its_own_host() {
        let claude = r#"{"env": {"ANTHROPIC_BASE_URL": "http://gate.example:1"}}"#;
        assert_eq!(
            urls_in_settings("claude", claude),
            ["http://gate.example:1"]
        );
        let codex = "model_provider = 'x'\nopenai_base_url = 'https://two.example'\n\
            [model_providers.x]\nbase_url = 'https://one.example/v1'\n";
        assert_eq!(
            urls_in_settings("codex", codex),
            ["https://one.example/v1", "https://two.example"]
        );
        for odd in ["", "{", "[]", "env = 1", "model_providers = 1"] {
            assert!(urls_in_settings("claude", odd).is_empty());
            assert!(urls_in_settings("codex", odd).is_empty());
        }
    }

    #[test]
    fn a16_a_refused_host_is_proposed_as_it_can_be_listed() {
        let inside = Some("10.0.0.5");
        for (host, port, address, wanted) in [
            ("example.com", None, None, Some("example.com")),
            ("example.com", Some(443), None, Some("example.com")),
            ("example.com", Some(8443), None, Some("example.com:8443")),
            ("in.example", Some(443), inside, Some("in.example:443")),
            ("in.example", Some(80), Some("169.254.169.254"), None),
            ("10.0.0.5", Some(22), None, Some("10.0.0.5:22")),
            ("169.254.169.254", Some(80), None, None),
            ("a?b", Some(80), None, None),
        ] {
            assert_eq!(rule_for(host, port, address).as_deref(), wanted, "{host}");
        }
        let files = ["package.json", "yarn.lock", "bun.lock"];
        assert_eq!(
            registries(|file| files.contains(&file)),
            ["registry.npmjs.org", "registry.yarnpkg.com"]
        );
    }
}
