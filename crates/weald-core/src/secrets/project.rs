//! What of the hidden a project seems to use, by its own files: private registries, submodules over ssh, private images.

use super::hides_variable;

/// What a project seems to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// A store or a variable, as `sandbox.reveal` takes it.
    pub name: String,
    pub because: String,
}

/// Files of a project that show what it uses, each with what a line has to hold, one of these; in lower case.
struct Signs {
    store: &'static str,
    what: &'static str,
    files: &'static [(&'static str, &'static [&'static str])],
}

const SIGNS: [Signs; 4] = [
    Signs {
        store: "registries",
        what: "a private registry",
        files: &[
            (".npmrc", &["registry"]),
            (".yarnrc.yml", &["registryserver"]),
            (".cargo/config.toml", &["index", "registry"]),
            (".cargo/config", &["index", "registry"]),
            ("pip.conf", &["index-url"]),
            ("requirements.txt", &["index-url"]),
            ("pyproject.toml", &["index-url", "url ="]),
            ("nuget.config", &["<add "]),
            ("NuGet.Config", &["<add "]),
            (".mvn/settings.xml", &["<url>"]),
            ("pom.xml", &["<url>"]),
        ],
    },
    Signs {
        store: "netrc",
        what: "private modules",
        files: &[("go.mod", &["module "])],
    },
    Signs {
        store: "ssh",
        what: "a submodule over ssh",
        files: &[(".gitmodules", &["url"])],
    },
    Signs {
        store: "docker",
        what: "a private image",
        files: &[
            ("Dockerfile", &["from "]),
            ("Containerfile", &["from "]),
            ("docker-compose.yml", &["image:"]),
            ("compose.yml", &["image:"]),
            ("compose.yaml", &["image:"]),
        ],
    },
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
    let files = SIGNS.iter().flat_map(|signs| signs.files);
    files.map(|(file, _)| *file)
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
    let all = SIGNS.iter().flat_map(|signs| {
        signs
            .files
            .iter()
            .map(move |(file, words)| (signs, *file, *words))
    });
    for (signs, file, words) in all {
        let Some(text) = text(file) else {
            continue;
        };
        if shows(signs.store, file, words, &text, &variable) {
            add(signs.store, format!("{} in {file}", signs.what));
        }
        if matches!(file, ".npmrc" | ".yarnrc.yml") {
            for name in variables_in(&text).filter(|name| hides_variable(name, &[])) {
                add(name, format!("named in {file}"));
            }
        }
    }
    found
}

fn shows(
    store: &str,
    file: &str,
    words: &[&str],
    text: &str,
    variable: &impl Fn(&str) -> bool,
) -> bool {
    // Pages about the project have addresses, too.
    let lacks = |part: &str| !text.contains(part);
    match file {
        "pom.xml" if lacks("<repositories>") => return false,
        "pyproject.toml" if lacks("[[tool.uv.index]]") && lacks("[[tool.poetry.source]]") => {
            return false;
        }
        "go.mod" => return variable("GOPRIVATE"),
        _ => {}
    }
    let mut lines = text.lines().map(str::to_ascii_lowercase).filter(|line| {
        let line = line.trim_start();
        !line.starts_with(['#', ';']) && words.iter().any(|word| line.contains(word))
    });
    lines.any(|line| match store {
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
