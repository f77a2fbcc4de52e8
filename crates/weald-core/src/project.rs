//! What the files of a project say about how it is installed and tested. Pure: names and contents in, a proposal out.
//!
//! The files are a stranger's. Every command here is put together of fixed words; the only names of the project's own in
//! them are folders, extras and groups, and only those that a shell takes as they are.

use serde_json::Value as Json;
use toml::{Table, Value as Toml};

/// The files of a project, as far as they are looked at.
pub trait Files {
    /// The names of its folders.
    fn folders(&self) -> Vec<String>;
    /// Whether there is a file of this path.
    fn has(&self, path: &str) -> bool;
    /// A file's text, if it is there and not too long.
    fn text(&self, path: &str) -> Option<String>;
}

/// What was found, and what follows from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// Each tool with the file that shows it.
    pub tools: Vec<(&'static str, String)>,
    /// The command that tests all of it.
    pub test: Option<String>,
    /// The commands that install what a new worktree lacks.
    pub setup: Vec<String>,
    /// Folders with what was built, and files with local settings. Only those that git ignores are of use.
    pub folders: Vec<String>,
    pub local_files: Vec<String>,
    /// Ports that are fixed in a file: two worktrees can't both have them.
    pub ports: Vec<(String, u16)>,
}

/// What one folder is by one tool.
#[derive(Default)]
struct Part {
    tool: &'static str,
    file: &'static str,
    test: Option<String>,
    setup: Vec<String>,
    folder: Option<&'static str>,
}

/// One folder of the project: its name with a slash, or nothing.
struct Folder<'f> {
    files: &'f dyn Files,
    prefix: String,
}

const LOCAL: [&str; 6] = [
    ".env",
    ".env.local",
    ".env.development",
    ".env.development.local",
    ".env.test",
    ".env.test.local",
];

const COMPOSE: [&str; 4] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
];

const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Folders that hold other people's code, or what was built.
const NOT_OURS: [&str; 6] = ["node_modules", "target", "vendor", "dist", "build", "venv"];

/// Folders at the root of a project that tools fill and git ignores; a new worktree lacks them.
pub const DEPENDENCIES: [&str; 4] = ["node_modules", ".venv", "venv", "target"];

impl Project {
    /// Looks at the files in the root, and at those in its folders for what the root itself is not.
    pub fn detect(files: &dyn Files) -> Self {
        let root = Folder {
            files,
            prefix: String::new(),
        };
        let mut project = Self::default();
        let mut tests = Vec::new();
        let parts = root.parts();
        let is_known: Vec<bool> = parts.iter().map(Option::is_some).collect();
        project.take(&root, parts, &mut tests);
        let mut names = files.folders();
        names.retain(|name| is_plain(name) && !NOT_OURS.contains(&name.as_str()));
        names.sort();
        for name in names {
            let folder = Folder {
                files,
                prefix: format!("{name}/"),
            };
            let parts = folder.parts().into_iter().zip(&is_known);
            let new = parts.map(|(part, is_known)| part.filter(|_| !is_known));
            project.take(&folder, new.collect(), &mut tests);
        }
        let own = MAKEFILES.into_iter().find(|file| root.has(file));
        let own = own.filter(|file| {
            root.text(file)
                .is_some_and(|text| has_target(&text, "test"))
        });
        match own {
            // The project's own words for all of it.
            Some(file) => {
                project.tools.push(("make", file.to_owned()));
                project.test = Some("make test".to_owned());
            }
            None if tests.is_empty() => {}
            None => project.test = Some(tests.join(" && ")),
        }
        project
    }

    fn take(&mut self, folder: &Folder<'_>, parts: Vec<Option<Part>>, tests: &mut Vec<String>) {
        let prefix = &folder.prefix;
        let name = prefix.trim_end_matches('/');
        for part in parts.into_iter().flatten() {
            self.tools
                .push((part.tool, format!("{prefix}{}", part.file)));
            let inside = |command: String| match name {
                "" => command,
                name => format!("cd {name} && {command}"),
            };
            self.setup.extend(part.setup.into_iter().map(inside));
            tests.extend(part.test.map(|test| match name {
                "" => test,
                name => format!("(cd {name} && {test})"),
            }));
            let built = part.folder.map(|built| format!("{prefix}{built}"));
            self.folders.extend(built);
        }
        for file in COMPOSE.into_iter().filter(|file| folder.has(file)).take(1) {
            self.tools
                .push(("docker compose", format!("{prefix}{file}")));
            let text = folder.text(file).unwrap_or_default();
            let ports = published(&text).into_iter();
            self.ports
                .extend(ports.map(|port| (format!("{prefix}{file}"), port)));
        }
        for file in LOCAL.into_iter().filter(|file| folder.has(file)) {
            self.local_files.push(format!("{prefix}{file}"));
            let text = folder.text(file).unwrap_or_default();
            let ports = text.lines().filter_map(port_variable);
            self.ports
                .extend(ports.map(|port| (format!("{prefix}{file}"), port)));
        }
    }
}

impl Folder<'_> {
    fn has(&self, file: &str) -> bool {
        self.files.has(&format!("{}{file}", self.prefix))
    }

    fn text(&self, file: &str) -> Option<String> {
        self.files.text(&format!("{}{file}", self.prefix))
    }

    fn first(&self, files: &[&'static str]) -> Option<&'static str> {
        files.iter().copied().find(|file| self.has(file))
    }

    /// What it is: one place for each family of tools.
    fn parts(&self) -> Vec<Option<Part>> {
        vec![
            self.cargo(),
            self.node(),
            self.python(),
            self.go(),
            self.java(),
        ]
    }

    fn cargo(&self) -> Option<Part> {
        let manifest: Table = self.text("Cargo.toml")?.parse().ok()?;
        let is_locked = self.has("Cargo.lock");
        let mut test = "cargo test".to_owned();
        // A workspace with a package in its root tests that one alone.
        if manifest.contains_key("workspace") && manifest.contains_key("package") {
            test += " --workspace";
        }
        if is_locked {
            test += " --locked";
        }
        Some(Part {
            tool: "cargo",
            file: if is_locked {
                "Cargo.lock"
            } else {
                "Cargo.toml"
            },
            test: Some(test),
            folder: Some("target"),
            ..Part::default()
        })
    }

    fn node(&self) -> Option<Part> {
        let package: Json = serde_json::from_str(&self.text("package.json")?).ok()?;
        let lock = self.first(&[
            "pnpm-lock.yaml",
            "yarn.lock",
            "bun.lock",
            "bun.lockb",
            "package-lock.json",
            "npm-shrinkwrap.json",
        ]);
        let named = package["packageManager"].as_str().unwrap_or_default();
        let tool = match (lock, named.split('@').next()) {
            (Some("pnpm-lock.yaml"), _) | (None, Some("pnpm")) => "pnpm",
            (Some("yarn.lock"), _) | (None, Some("yarn")) => "yarn",
            (Some("bun.lock" | "bun.lockb"), _) | (None, Some("bun")) => "bun",
            _ => "npm",
        };
        let install = match (tool, lock.is_some()) {
            ("npm", true) => "npm ci --prefer-offline --no-audit --no-fund",
            ("npm", false) => "npm install --no-package-lock --no-audit --no-fund",
            ("pnpm", true) => "pnpm install --frozen-lockfile --prefer-offline",
            ("pnpm", false) => "pnpm install --no-lockfile",
            ("yarn", _) if self.has(".yarnrc.yml") => "yarn install --immutable",
            ("yarn", true) => "yarn install --frozen-lockfile --prefer-offline",
            ("yarn", false) => "yarn install --no-lockfile",
            (_, true) => "bun install --frozen-lockfile",
            (_, false) => "bun install --no-save",
        };
        let kinds = ["dependencies", "devDependencies", "optionalDependencies"];
        let is_filled = |kind: &str| package[kind].as_object().is_some_and(|all| !all.is_empty());
        let needs_install = kinds.into_iter().any(is_filled)
            || package.get("workspaces").is_some()
            || self.has("pnpm-workspace.yaml");
        let script = package["scripts"]["test"].as_str().map(str::trim);
        let is_real = |script: &str| !script.is_empty() && !script.contains("no test specified");
        let test = script.filter(|script| is_real(script)).map(|_| match tool {
            "bun" => "bun run test".to_owned(),
            tool => format!("{tool} test"),
        });
        Some(Part {
            tool,
            file: lock.unwrap_or("package.json"),
            test,
            setup: needs_install
                .then(|| install.to_owned())
                .into_iter()
                .collect(),
            ..Part::default()
        })
    }

    fn python(&self) -> Option<Part> {
        let lists: Vec<&'static str> = [
            "requirements.txt",
            "requirements-dev.txt",
            "requirements_dev.txt",
            "dev-requirements.txt",
            "requirements-test.txt",
        ]
        .into_iter()
        .filter(|file| self.has(file))
        .collect();
        let project: Option<Table> = self
            .text("pyproject.toml")
            .and_then(|text| text.parse().ok());
        if project.is_none() && lists.is_empty() {
            return None;
        }
        let empty = Table::new();
        let pytest = Pytest::of(project.as_ref().unwrap_or(&empty));
        if self.has("uv.lock") {
            let flags = match &pytest {
                Some(Pytest::Extra(name)) => format!(" --extra {name}"),
                Some(Pytest::Group(name)) if name != "dev" => format!(" --group {name}"),
                _ => String::new(),
            };
            return Some(Part {
                tool: "uv",
                file: "uv.lock",
                test: pytest.map(|_| format!("uv run --frozen{flags} pytest")),
                setup: vec![format!("uv sync --frozen{flags}")],
                ..Part::default()
            });
        }
        if self.has("poetry.lock") {
            let flags = match &pytest {
                Some(Pytest::Extra(name)) => format!(" --extras {name}"),
                _ => String::new(),
            };
            return Some(Part {
                tool: "poetry",
                file: "poetry.lock",
                test: pytest.map(|_| "poetry run pytest".to_owned()),
                setup: vec![format!("poetry install --no-interaction{flags}")],
                ..Part::default()
            });
        }
        let is_listed = lists.iter().any(|file| {
            let text = self.text(file).unwrap_or_default();
            text.lines().any(is_pytest)
        });
        let mut wanted: Vec<_> = lists.iter().map(|file| format!("-r {file}")).collect();
        let is_package = project
            .as_ref()
            .is_some_and(|it| it.contains_key("project") && it.contains_key("build-system"));
        match &pytest {
            Some(Pytest::Extra(name)) if is_package => wanted.push(format!("-e '.[{name}]'")),
            _ if is_package => wanted.push("-e .".to_owned()),
            _ => {}
        }
        if matches!(pytest, Some(Pytest::Group(_))) && !is_listed {
            wanted.push("pytest".to_owned());
        }
        let mut setup = Vec::new();
        if !wanted.is_empty() {
            setup.push("python3 -m venv .venv".to_owned());
            setup.push(format!(".venv/bin/pip install -q {}", wanted.join(" ")));
        }
        let has_pytest = !setup.is_empty() && (is_listed || pytest.is_some());
        Some(Part {
            tool: "pip",
            file: lists.first().copied().unwrap_or("pyproject.toml"),
            test: has_pytest.then(|| ".venv/bin/python -m pytest".to_owned()),
            setup,
            ..Part::default()
        })
    }

    fn go(&self) -> Option<Part> {
        self.has("go.mod").then(|| Part {
            tool: "go",
            file: "go.mod",
            test: Some("go test ./...".to_owned()),
            ..Part::default()
        })
    }

    fn java(&self) -> Option<Part> {
        let file = self.first(&["pom.xml", "build.gradle.kts", "build.gradle"])?;
        let (tool, own, else_by, rest) = match file {
            "pom.xml" => ("maven", "mvnw", "mvn", "-B -q test"),
            _ => ("gradle", "gradlew", "gradle", "--no-daemon test"),
        };
        let test = match self.has(own) {
            true => format!("./{own} {rest}"),
            false => format!("{else_by} {rest}"),
        };
        Some(Part {
            tool,
            file,
            test: Some(test),
            ..Part::default()
        })
    }
}

/// Where a Python project asks for pytest.
enum Pytest {
    Always,
    Extra(String),
    Group(String),
}

impl Pytest {
    fn of(project: &Table) -> Option<Self> {
        let at = |path: &[&str]| {
            let (first, rest) = path.split_first()?;
            rest.iter()
                .try_fold(project.get(*first)?, |value, name| value.get(name))
        };
        let lists = |value: Option<&Toml>| {
            let items = value.and_then(Toml::as_array).into_iter().flatten();
            items.filter_map(Toml::as_str).any(is_pytest)
        };
        let named = |value: Option<&Toml>| {
            let all = value.and_then(Toml::as_table)?;
            let has = |(name, list): (&String, &Toml)| {
                (lists(Some(list)) && is_plain(name)).then(|| name.clone())
            };
            all.iter().find_map(has)
        };
        let poetry = |path: &[&str]| {
            let all = at(path).and_then(Toml::as_table);
            all.is_some_and(|all| all.contains_key("pytest"))
        };
        let poetry_group = || {
            let groups = at(&["tool", "poetry", "group"]).and_then(Toml::as_table);
            groups.is_some_and(|groups| {
                groups.values().any(|group| {
                    group
                        .get("dependencies")
                        .is_some_and(|it| it.get("pytest").is_some())
                })
            })
        };
        if lists(at(&["project", "dependencies"]))
            || lists(at(&["tool", "uv", "dev-dependencies"]))
            || poetry(&["tool", "poetry", "dependencies"])
            || poetry(&["tool", "poetry", "dev-dependencies"])
            || poetry_group()
        {
            return Some(Self::Always);
        }
        let group = named(at(&["dependency-groups"])).map(Self::Group);
        group.or_else(|| named(at(&["project", "optional-dependencies"])).map(Self::Extra))
    }
}

/// Whether a requirement is for pytest itself, in any version.
fn is_pytest(requirement: &str) -> bool {
    let end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let name = requirement.trim().split(end).next().unwrap_or_default();
    name.eq_ignore_ascii_case("pytest")
}

/// Whether a shell takes a name as it is, and no program as an option.
fn is_plain(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_next = |c: char| is_first(c) || matches!(c, '-' | '.');
    name.starts_with(is_first) && name.len() <= 64 && name.chars().all(is_next)
}

/// Whether a makefile has a rule for a target of this name.
fn has_target(makefile: &str, name: &str) -> bool {
    makefile.lines().any(|line| {
        let rule = line.split_once(':').filter(|(_, rest)| {
            let rest = rest.trim_start_matches(':');
            !rest.starts_with('=')
        });
        let is_rule = !line.starts_with(['\t', '#', '.']);
        is_rule
            && rule.is_some_and(|(targets, _)| targets.split_whitespace().any(|one| one == name))
    })
}

/// The ports of the host that a compose file fixes. What it takes from a variable can differ already.
fn published(compose: &str) -> Vec<u16> {
    let mut ports = Vec::new();
    // How far the list of ports that this is in is indented.
    let mut list: Option<usize> = None;
    for line in compose.lines() {
        let text = line.split(" #").next().unwrap_or_default();
        let bare = text.trim_start();
        let indent = text.len() - bare.len();
        let bare = bare.trim_end();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        if bare == "ports:" {
            list = Some(indent);
            continue;
        }
        let is_item = bare.starts_with('-');
        let Some(_) = list.filter(|of| indent > *of || (is_item && indent == *of)) else {
            list = None;
            continue;
        };
        let item = bare
            .trim_start_matches('-')
            .trim()
            .trim_matches(['"', '\'']);
        let port = match item.split_once(": ") {
            Some(("published", port)) => port.trim().trim_matches(['"', '\'']),
            Some(_) => continue,
            None => {
                let mut parts = item.rsplit(':');
                parts.next();
                parts.next().unwrap_or_default()
            }
        };
        ports.extend(port.parse::<u16>().ok().filter(|port| *port > 0));
    }
    ports
}

/// The number in a line such as `PORT=3000` or `export WEB_PORT="3000"`.
fn port_variable(line: &str) -> Option<u16> {
    let line = line.trim();
    let (name, value) = line
        .strip_prefix("export ")
        .unwrap_or(line)
        .split_once('=')?;
    let is_port = name == "PORT" || name.ends_with("_PORT");
    let port = value.trim().trim_matches(['"', '\'']).parse().ok()?;
    (is_port && port > 0).then_some(port)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Fixed<'a>(BTreeMap<&'a str, &'a str>);

    impl Files for Fixed<'_> {
        fn folders(&self) -> Vec<String> {
            let tops = self.0.keys().filter_map(|path| path.split_once('/'));
            let mut tops: Vec<_> = tops.map(|(top, _)| top.to_owned()).collect();
            tops.dedup();
            tops
        }

        fn has(&self, path: &str) -> bool {
            self.0.contains_key(path)
        }

        fn text(&self, path: &str) -> Option<String> {
            self.0.get(path).map(|text| (*text).to_owned())
        }
    }

    fn detect(files: &[(&str, &str)]) -> Project {
        Project::detect(&Fixed(files.iter().copied().collect()))
    }

    const TESTED: &str = r#"{"scripts": {"test": "node --test"}, "dependencies": {"a": "1"}}"#;

    #[test]
    fn u7_each_ecosystem_is_detected_with_commands_that_exist() {
        let default = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        let of_pnpm = r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}, "devDependencies": {"x": "1"}}"#;
        let groups = "[project]\nname = 'a'\n[dependency-groups]\ndev = ['pytest>=8']\n";
        let extra = "[build-system]\nrequires = []\n[project]\nname = 'a'\n[project.optional-dependencies]\ntest = ['pytest ; python_version > \"3\"']\n";
        let poetry = "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n";
        let both = "[workspace]\nmembers = ['x']\n[package]\nname = 'a'\n";
        for (files, tool, test, setup) in [
            (
                &[
                    ("Cargo.toml", "[package]\nname = 'a'\n"),
                    ("Cargo.lock", ""),
                ][..],
                "cargo",
                "cargo test --locked",
                &[][..],
            ),
            (
                &[("Cargo.toml", both)],
                "cargo",
                "cargo test --workspace",
                &[],
            ),
            (
                &[("package.json", TESTED), ("package-lock.json", "{}")],
                "npm",
                "npm test",
                &["npm ci --prefer-offline --no-audit --no-fund"],
            ),
            (
                &[("package.json", TESTED)],
                "npm",
                "npm test",
                &["npm install --no-package-lock --no-audit --no-fund"],
            ),
            (&[("package.json", default)], "npm", "", &[]),
            (
                &[("package.json", TESTED), ("pnpm-lock.yaml", "")],
                "pnpm",
                "pnpm test",
                &["pnpm install --frozen-lockfile --prefer-offline"],
            ),
            (
                &[("package.json", of_pnpm)],
                "pnpm",
                "pnpm test",
                &["pnpm install --no-lockfile"],
            ),
            (
                &[("package.json", TESTED), ("yarn.lock", "")],
                "yarn",
                "yarn test",
                &["yarn install --frozen-lockfile --prefer-offline"],
            ),
            (
                &[
                    ("package.json", TESTED),
                    ("yarn.lock", ""),
                    (".yarnrc.yml", ""),
                ],
                "yarn",
                "yarn test",
                &["yarn install --immutable"],
            ),
            (
                &[("package.json", TESTED), ("bun.lock", "")],
                "bun",
                "bun run test",
                &["bun install --frozen-lockfile"],
            ),
            (
                &[("pyproject.toml", groups), ("uv.lock", "")],
                "uv",
                "uv run --frozen pytest",
                &["uv sync --frozen"],
            ),
            (
                &[("pyproject.toml", extra), ("uv.lock", "")],
                "uv",
                "uv run --frozen --extra test pytest",
                &["uv sync --frozen --extra test"],
            ),
            (
                &[("pyproject.toml", poetry), ("poetry.lock", "")],
                "poetry",
                "poetry run pytest",
                &["poetry install --no-interaction"],
            ),
            (
                &[("pyproject.toml", extra)],
                "pip",
                ".venv/bin/python -m pytest",
                &[
                    "python3 -m venv .venv",
                    ".venv/bin/pip install -q -e '.[test]'",
                ],
            ),
            (
                &[("requirements.txt", "flask\nPyTest==8.1\n")],
                "pip",
                ".venv/bin/python -m pytest",
                &[
                    "python3 -m venv .venv",
                    ".venv/bin/pip install -q -r requirements.txt",
                ],
            ),
            (
                &[("requirements.txt", "pytest-mock\n")],
                "pip",
                "",
                &[
                    "python3 -m venv .venv",
                    ".venv/bin/pip install -q -r requirements.txt",
                ],
            ),
            (&[("go.mod", "module a\n")], "go", "go test ./...", &[]),
            (
                &[("pom.xml", ""), ("mvnw", "")],
                "maven",
                "./mvnw -B -q test",
                &[],
            ),
            (
                &[("build.gradle.kts", "")],
                "gradle",
                "gradle --no-daemon test",
                &[],
            ),
            (
                &[("Makefile", "all: x\n\t@true\nlint test: x\n\t@true\n")],
                "make",
                "make test",
                &[],
            ),
        ] {
            let found = detect(files);
            assert_eq!(found.tools[0].0, tool, "{files:?}");
            assert_eq!(found.test.as_deref().unwrap_or_default(), test, "{files:?}");
            assert_eq!(found.setup, setup, "{files:?}");
        }
        for files in [
            &[("Makefile", "test := 1\n# test: x\n\ttest: y\n")][..],
            &[("README.md", "make test")],
            &[("package.json", "{")],
            &[],
        ] {
            assert_eq!(detect(files), Project::default(), "{files:?}");
        }
    }

    #[test]
    fn u7_several_tools_and_folders_are_one_proposal() {
        let found = detect(&[
            ("Cargo.toml", "[package]\nname = 'a'\n"),
            (".env", "PORT=3000\nDB_PORT='5432'\nREPORT=1\n"),
            ("web/package.json", TESTED),
            ("web/package-lock.json", "{}"),
            // The root's own kind again is a part of the root.
            ("crate/Cargo.toml", "[package]\nname = 'b'\n"),
            ("node_modules/package.json", TESTED),
            (
                "compose.yaml",
                "services:\n  db:\n    ports:\n      - \"127.0.0.1:5433:5432\"\n      - 8080:80 # web\n      - '${PORT:-9}:9'\n      - 7777\n      - target: 80\n        published: \"8081\"\n    expose:\n      - 1:2\n",
            ),
        ]);
        let tools = found
            .tools
            .iter()
            .map(|(tool, file)| format!("{tool} {file}"));
        assert_eq!(
            tools.collect::<Vec<_>>(),
            [
                "cargo Cargo.toml",
                "docker compose compose.yaml",
                "npm web/package-lock.json"
            ]
        );
        assert_eq!(
            found.test.as_deref(),
            Some("cargo test && (cd web && npm test)")
        );
        assert_eq!(
            found.setup,
            ["cd web && npm ci --prefer-offline --no-audit --no-fund"]
        );
        assert_eq!(found.folders, ["target"]);
        assert_eq!(found.local_files, [".env"]);
        let ports: Vec<_> = found.ports.iter().map(|(_, port)| *port).collect();
        assert_eq!(ports, [5433, 8080, 8081, 3000, 5432]);
    }

    #[test]
    fn u7_no_word_of_a_stranger_reaches_a_shell() {
        let evil = "$(touch x)";
        let project = format!(
            "[build-system]\nrequires = []\n[project]\nname = 'a'\n[project.optional-dependencies]\n\"{evil}\" = ['pytest']\n"
        );
        let package = format!(
            r#"{{"name": "{evil}", "packageManager": "{evil}", "scripts": {{"test": "{evil}"}}, "dependencies": {{"{evil}": "1"}}}}"#
        );
        let folder = format!("{evil}/package.json");
        let dashed = "-rf/package.json";
        let found = detect(&[
            ("pyproject.toml", &project),
            ("package.json", &package),
            (&folder, TESTED),
            (dashed, TESTED),
        ]);
        let all = format!("{:?} {:?} {:?}", found.test, found.setup, found.tools);
        assert!(!all.contains("touch") && !all.contains("-rf"), "{all}");
        assert_eq!(found.test.as_deref(), Some("npm test"));
    }
}
