//! What of the hidden a project seems to use, by its own files: private registries, submodules over ssh, private images.

use super::hides_variable;

/// What a project seems to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// A store or a variable, as `sandbox.reveal` takes it.
    pub name: String,
    pub because: String,
}

/// A file of a project that shows what it uses.
struct Sign {
    file: &'static str,
    /// What a line has to hold, one of these; in lower case.
    words: &'static [&'static str],
    store: &'static str,
    what: &'static str,
}

const fn sign(
    file: &'static str,
    words: &'static [&'static str],
    store: &'static str,
    what: &'static str,
) -> Sign {
    Sign {
        file,
        words,
        store,
        what,
    }
}

const REGISTRY: &str = "a private registry";
const IMAGE: &str = "a private image";

const SIGNS: [Sign; 18] = [
    sign(".npmrc", &["registry"], "registries", REGISTRY),
    sign(".yarnrc.yml", &["registryserver"], "registries", REGISTRY),
    sign(
        ".cargo/config.toml",
        &["index", "registry"],
        "registries",
        REGISTRY,
    ),
    sign(
        ".cargo/config",
        &["index", "registry"],
        "registries",
        REGISTRY,
    ),
    sign("pip.conf", &["index-url"], "registries", REGISTRY),
    sign("requirements.txt", &["index-url"], "registries", REGISTRY),
    sign(
        "pyproject.toml",
        &["index-url", "url ="],
        "registries",
        REGISTRY,
    ),
    sign("nuget.config", &["<add "], "registries", REGISTRY),
    sign("NuGet.Config", &["<add "], "registries", REGISTRY),
    sign(".mvn/settings.xml", &["<url>"], "registries", REGISTRY),
    sign("pom.xml", &["<url>"], "registries", REGISTRY),
    sign("go.mod", &["module "], "netrc", "private modules"),
    sign(".gitmodules", &["url"], "ssh", "a submodule over ssh"),
    sign("Dockerfile", &["from "], "docker", IMAGE),
    sign("Containerfile", &["from "], "docker", IMAGE),
    sign("docker-compose.yml", &["image:"], "docker", IMAGE),
    sign("compose.yml", &["image:"], "docker", IMAGE),
    sign("compose.yaml", &["image:"], "docker", IMAGE),
];

/// Domains whose hosts need no login: the name, and what it ends in. A host with a label `pkg` has packages of its users.
const PUBLIC: [(&str, &str); 20] = [
    ("npmjs", "org"),
    ("yarnpkg", "com"),
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("pytorch", "org"),
    ("crates", "io"),
    ("github", "com"),
    ("nuget", "org"),
    ("apache", "org"),
    ("maven", "org"),
    ("google", "com"),
    ("gradle", "org"),
    ("docker", "io"),
    ("microsoft", "com"),
    ("ecr", "aws"),
    ("k8s", "io"),
    ("quay", "io"),
    ("ghcr", "io"),
    ("gcr", "io"),
    ("golang", "org"),
];

/// The files that [`uses`] wants to see, relative to the checkout.
pub fn project_files() -> impl Iterator<Item = &'static str> {
    SIGNS.iter().map(|sign| sign.file)
}

/// What a project seems to use of the hidden. `text` gives the content of a file, `variable` says whether one is set.
pub fn uses(text: impl Fn(&str) -> Option<String>, variable: impl Fn(&str) -> bool) -> Vec<Use> {
    let mut found: Vec<Use> = Vec::new();
    let mut add = |name: &str, because: String| {
        if found.iter().all(|known| known.name != name) {
            let name = name.to_owned();
            found.push(Use { name, because });
        }
    };
    for sign in &SIGNS {
        let Some(text) = text(sign.file) else {
            continue;
        };
        if shows(sign, &text, &variable) {
            add(sign.store, format!("{} in {}", sign.what, sign.file));
        }
        if matches!(sign.file, ".npmrc" | ".yarnrc.yml") {
            for name in variables_in(&text).filter(|name| hides_variable(name, &[])) {
                add(name, format!("named in {}", sign.file));
            }
        }
    }
    found
}

fn shows(sign: &Sign, text: &str, variable: &impl Fn(&str) -> bool) -> bool {
    // Pages about the project have addresses, too.
    let lacks = |part: &str| !text.contains(part);
    match sign.file {
        "pom.xml" if lacks("<repositories>") => return false,
        "pyproject.toml" if lacks("[[tool.uv.index]]") && lacks("[[tool.poetry.source]]") => {
            return false;
        }
        "go.mod" => return variable("GOPRIVATE"),
        _ => {}
    }
    let mut lines = text.lines().map(str::to_ascii_lowercase).filter(|line| {
        let line = line.trim_start();
        !line.starts_with(['#', ';']) && sign.words.iter().any(|word| line.contains(word))
    });
    lines.any(|line| match sign.store {
        "ssh" => line.contains("ssh://") || line.contains("git@"),
        "docker" => image_host(&line).is_some_and(is_private),
        _ => hosts(&line).any(is_private),
    })
}

fn is_private(host: &str) -> bool {
    let mut labels = host.rsplit('.');
    let end = labels.next().unwrap_or_default();
    let name = labels.next().unwrap_or_default();
    !PUBLIC.contains(&(name, end)) || labels.any(|label| label == "pkg")
}

/// The hosts of all addresses in a line.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    line.split("://").skip(1).filter_map(|rest| {
        let end = rest.find(['/', ':', '"', '\'', '<', ' ', '?']);
        let host = &rest[..end.unwrap_or(rest.len())];
        let host = host.rsplit('@').next().unwrap_or(host);
        (!host.is_empty()).then_some(host)
    })
}

/// The host that an image comes from, if the line names one.
fn image_host(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip(1);
    let image = words.find(|word| !word.starts_with("--"))?;
    let (host, _) = image.trim_matches(['"', '\'']).split_once('/')?;
    let host = host.split(':').next()?;
    host.contains('.').then_some(host)
}

fn variables_in(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("${").skip(1);
    parts.filter_map(|rest| rest.split(['}', ':', '-']).next())
}
