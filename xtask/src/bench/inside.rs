//! What programs find inside: each facility of the system and each developer tool is tried outside and at both levels, as
//! the caller and, if that is root, as an ordinary user. Nothing needs the network.

mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use weald_testkit::FACILITIES;

use super::{release_binary, say};
use tools::{TOOLS, Tool};

/// What to try.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// This binary instead of a release build
    #[arg(long, value_name = "PATH")]
    weald: Option<PathBuf>,
    /// Only tools and facilities whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Where something is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Outside,
    Level(&'static str),
}

const EVERYWHERE: [Where; 3] = [
    Where::Outside,
    Where::Level("full"),
    Where::Level("landlock"),
];

const ORDINARY: u32 = 1000;

/// How many seconds a tool has.
const PATIENCE: &str = "90";

/// A user with places of their own.
struct User {
    ordinary: bool,
    lab: PathBuf,
    weald: PathBuf,
}

/// Tries everything, and prints the tables.
pub fn run(options: &Options) -> io::Result<()> {
    let weald = binary(options.weald.as_deref())?;
    let lab = lab("weald-inside-")?;
    fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o755))?;
    let is_root = rustix::process::geteuid().is_root();
    for ordinary in [false, true] {
        if ordinary && !is_root {
            continue;
        }
        let name = if ordinary { "ordinary" } else { "caller" };
        let user = User::new(ordinary, lab.path().join(name), &weald)?;
        say(&format!(
            "== as {}",
            if ordinary {
                "an ordinary user"
            } else {
                "the caller"
            }
        ));
        facilities(&user, options)?;
        tools(&user, options)?;
    }
    Ok(())
}

/// The binary to try: this one, or a release build.
pub(super) fn binary(given: Option<&Path>) -> io::Result<PathBuf> {
    match given {
        Some(path) => path.canonicalize(),
        None => release_binary(),
    }
}

/// A folder to try things in, which is not below /tmp: that is private inside.
pub(super) fn lab(prefix: &str) -> io::Result<TempDir> {
    TempDir::with_prefix_in(prefix, "/var/lib")
        .or_else(|_| TempDir::with_prefix_in(prefix, std::env::current_dir()?))
}

impl User {
    fn new(ordinary: bool, lab: PathBuf, weald: &Path) -> io::Result<Self> {
        let user = Self {
            ordinary,
            weald: lab.join("weald"),
            lab,
        };
        fs::create_dir(&user.lab)?;
        user.own(&user.lab)?;
        fs::copy(weald, &user.weald)?;
        fs::write(user.lab.join("facilities.py"), FACILITIES)?;
        Ok(user)
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        match self.ordinary {
            true => chown(path, Some(ORDINARY), Some(ORDINARY)),
            false => Ok(()),
        }
    }

    fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.lab.join(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        self.own(&path)?;
        Ok(path)
    }

    /// Runs a command in a new folder, with this home.
    fn run(&self, place: Where, home: &Path, argv: &[&str]) -> io::Result<Output> {
        let tree = self.folder("tree")?;
        let mut command = match place {
            Where::Outside => command("timeout"),
            Where::Level(level) => {
                let mut weald = command(&self.weald);
                weald.args(["sandbox", "exec", "--level", level, "--write"]);
                weald.arg(&tree).args(["--", "timeout"]);
                weald
            }
        };
        command.arg(PATIENCE).args(argv).current_dir(&tree);
        command.env("HOME", home).stdin(Stdio::null());
        // Toolchains are where they are; what is installed goes to the home that is tried.
        let toolchains = std::env::home_dir().map(|home| home.join(".rustup"));
        command.env_remove("CARGO_HOME");
        command.envs(toolchains.map(|path| ("RUSTUP_HOME", path)));
        if self.ordinary {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command.output()
    }
}

fn facilities(user: &User, options: &Options) -> io::Result<()> {
    let script = user.lab.join("facilities.py");
    let mut argv = vec!["/usr/bin/python3", script.to_str().unwrap_or_default()];
    argv.extend(options.only.as_deref());
    let mut found: Vec<BTreeMap<String, String>> = Vec::new();
    let mut names = Vec::new();
    for place in EVERYWHERE {
        let home = user.folder("home")?;
        let output = user.run(place, &home, &argv)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        if place == Where::Outside {
            names = lines.iter().map(|(name, _)| (*name).to_owned()).collect();
        }
        let own = |(name, said): &(&str, &str)| ((*name).to_owned(), (*said).to_owned());
        found.push(lines.iter().map(own).collect());
    }
    let mut table = Table::new("facility", &["outside", "full", "landlock"]);
    for name in names {
        let said = found.iter().map(|column| {
            let said = column.get(&name).map_or("nothing", String::as_str);
            said.chars().take(22).collect()
        });
        table.add(&name, said.collect());
    }
    table.print_counted();
    Ok(())
}

fn tools(user: &User, options: &Options) -> io::Result<()> {
    let columns = ["outside", "full, warm", "full, cold", "landlock"];
    let mut table = Table::new("tool", &columns);
    for tool in TOOLS {
        let is_wanted = |text: &String| tool.name.contains(text.as_str());
        if !options.only.as_ref().is_none_or(is_wanted) {
            continue;
        }
        let (warm, cold) = (user.folder("warm")?, user.folder("cold")?);
        let look = format!("command -v {}", tool.program);
        let is_there = user.run(Where::Outside, &cold, &["sh", "-c", &look])?;
        if !is_there.status.success() {
            say(&format!(
                "SKIPPED: {}: {} is not installed",
                tool.name, tool.program
            ));
            continue;
        }
        let full = Where::Level("full");
        let said = vec![
            attempt(user, tool, Where::Outside, &warm)?,
            attempt(user, tool, full, &warm)?,
            attempt(user, tool, full, &cold)?,
            attempt(user, tool, Where::Level("landlock"), &warm)?,
        ];
        table.add(tool.name, said);
    }
    table.print_counted();
    Ok(())
}

/// Runs a tool, and says `works`, or its last words; inside, the home must be as it was.
fn attempt(user: &User, tool: &Tool, place: Where, home: &Path) -> io::Result<String> {
    let before = manifest(home)?;
    let output = user.run(place, home, &["sh", "-ec", tool.script])?;
    if place != Where::Outside && manifest(home)? != before {
        return Ok("CHANGED THE HOME".to_owned());
    }
    if output.status.success() {
        return Ok("works".to_owned());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    let short: String = last.unwrap_or("nothing").trim().chars().take(60).collect();
    Ok(format!("{}: {short}", output.status.code().unwrap_or(-1)))
}

/// Every file of a home with its content, but for weald's own.
fn manifest(home: &Path) -> io::Result<BTreeMap<PathBuf, (u32, Vec<u8>)>> {
    let (mut open, mut found) = (vec![home.to_owned()], BTreeMap::new());
    while let Some(path) = open.pop() {
        if path.ends_with(".cache/weald") || path.ends_with(".local/state/weald") {
            continue;
        }
        let entry = fs::symlink_metadata(&path)?;
        if entry.is_dir() {
            for inner in fs::read_dir(&path)? {
                open.push(inner?.path());
            }
        } else if entry.is_file() {
            found.insert(path.clone(), (entry.permissions().mode(), fs::read(&path)?));
        }
    }
    Ok(found)
}

pub(super) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(first: &str, columns: &[&str]) -> Self {
        let head = [&[first], columns].concat();
        Self {
            head: head.into_iter().map(str::to_owned).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, name: &str, said: Vec<String>) {
        self.rows.push([vec![name.to_owned()], said].concat());
    }

    /// Prints it, with the number of cells in each column that say `works`.
    fn print_counted(mut self) {
        let works = (1..self.head.len()).map(|column| {
            let works = self.rows.iter().filter(|row| row[column] == "works");
            works.count().to_string()
        });
        let tried = format!("{} tried, of them work", self.rows.len());
        let counts = works.collect();
        self.add(&tried, counts);
        self.print();
    }

    pub(super) fn print(&self) {
        let all: Vec<_> = [&self.head].into_iter().chain(&self.rows).collect();
        let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
        for row in &all {
            let cells = row.iter().enumerate().map(|(column, text)| {
                let width = width(column).unwrap_or(0);
                format!("{text:<width$}")
            });
            say(cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
}

pub(super) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "programs are what is tried")]
    Command::new(program)
}
