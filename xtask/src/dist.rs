//! Packages: a static binary, a tarball, a `.deb`, an installer, and their checksums.
//!
//! Built twice from one commit they are the same, byte for byte: their time is the commit's.

pub mod archive;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use self::archive::{Tar, ar, gzip};
use crate::bench::say;
use crate::tidy::root;

/// The largest binary that is released.
pub const LIMIT: usize = 15 << 20;

/// Parts of SQLite that weald does not use: 0.3 MB. Nothing unwinds through C either, so that has no tables.
const SQLITE_WITHOUT: &str = "-USQLITE_ENABLE_FTS3 -USQLITE_ENABLE_FTS3_PARENTHESIS -USQLITE_ENABLE_FTS5 -USQLITE_ENABLE_RTREE -USQLITE_ENABLE_DBSTAT_VTAB";

/// What to package.
#[derive(clap::Args)]
pub struct Options {
    /// Package this binary instead of building one; its size and linking are not checked
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Where the packages go
    #[arg(long, value_name = "DIR", default_value = "target/packages")]
    out: PathBuf,
    /// Where the packages will be downloaded from; the installer gets it
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Builds the packages and prints what they are.
pub fn run(options: &Options) -> io::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            let binary = build()?;
            for line in examine(&fs::read(&binary)?)? {
                say(&line);
            }
            binary
        }
    };
    for path in package(&binary, &options.out, options.url.as_deref())? {
        say(&path.display().to_string());
    }
    Ok(())
}

/// Builds the static binary: with musl where that target is installed, else with the C library of this system.
pub fn build() -> io::Result<PathBuf> {
    let arch = std::env::consts::ARCH;
    let musl = format!("{arch}-unknown-linux-musl");
    let libraries = output(tool("rustc").args(["--print", "target-libdir", "--target", &musl]))?;
    // Not this machine's paths: anybody gets the same bytes, and learns nothing about who built them.
    let mut flags = Vec::new();
    for (path, shown) in [(cargo_home(), "/cargo"), (Some(root()), "/weald")] {
        if let Some(path) = path {
            flags.push(format!("--remap-path-prefix={}={shown}", path.display()));
        }
    }
    let has_target = Path::new(libraries.trim()).is_dir();
    let target = match has_target && output(tool("musl-gcc").arg("--version")).is_ok() {
        true => musl,
        false => {
            say(&format!(
                "musl is not installed (rustup target add {musl}; apt-get install musl-tools): linking the GNU C library of this system statically"
            ));
            flags.push("-Ctarget-feature=+crt-static".to_owned());
            format!("{arch}-unknown-linux-gnu")
        }
    };
    let built = tool("cargo")
        .args(["build", "--locked", "--profile", "dist", "-p", "weald"])
        .args(["--target", &target, "--config"])
        .arg(format!(
            "target.{target}.rustflags={}",
            serde_json::json!(flags)
        ))
        .env("LIBSQLITE3_FLAGS", SQLITE_WITHOUT)
        .env(
            "CFLAGS",
            "-fno-asynchronous-unwind-tables -fno-unwind-tables",
        )
        .current_dir(root())
        .status()?;
    match built.success() {
        true => Ok(root().join("target").join(target).join("dist/weald")),
        false => Err(io::Error::other("weald does not build")),
    }
}

fn cargo_home() -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where cargo keeps what it downloaded"
    )]
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    named("CARGO_HOME").or_else(|| Some(named("HOME")?.join(".cargo")))
}

/// What is to say about a binary that is to be released; an error if it is too large or needs a loader.
pub fn examine(binary: &[u8]) -> io::Result<Vec<String>> {
    let size = binary.len();
    if size > LIMIT {
        let message = format!("the binary has {size} bytes, more than {LIMIT}");
        return Err(io::Error::other(message));
    }
    if needs_loader(binary).ok_or_else(|| io::Error::other("the binary is no ELF program"))? {
        return Err(io::Error::other(
            "the binary is not static: it names a loader",
        ));
    }
    Ok(vec![format!("static, {size} bytes (at most {LIMIT})")])
}

/// Whether a 64-bit little-endian ELF program names a loader.
fn needs_loader(binary: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    if !binary.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, length: usize| {
        let bytes = binary.get(at..at + length)?;
        let digits = bytes.iter().rev();
        Some(digits.fold(0usize, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kinds = (0..count).map(|index| number(first + index * size, 4));
    let kinds: Option<Vec<_>> = kinds.collect();
    Some(kinds?.contains(&(INTERPRETER as usize)))
}

/// Writes the packages of a binary, and says where.
pub fn package(binary: &Path, out: &Path, url: Option<&str>) -> io::Result<Vec<PathBuf>> {
    let content = Content::of(binary)?;
    fs::create_dir_all(out)?;
    let arch = std::env::consts::ARCH;
    let debian = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let version = env!("CARGO_PKG_VERSION");
    let files = [
        (
            format!("weald-{version}-{arch}-linux.tar.gz"),
            content.tarball(arch)?,
        ),
        (
            format!("weald_{version}_{debian}.deb"),
            content.deb(debian)?,
        ),
        ("install.sh".to_owned(), installer(url)?),
    ];
    let mut sums = String::new();
    for (name, bytes) in &files {
        fs::write(out.join(name), bytes)?;
        sums.push_str(&format!("{}  {name}\n", hex::encode(Sha256::digest(bytes))));
    }
    fs::write(out.join("SHA256SUMS"), sums)?;
    let names = files.iter().map(|(name, _)| name.as_str());
    let mut paths: Vec<_> = names
        .chain(["SHA256SUMS"])
        .map(|name| out.join(name))
        .collect();
    paths.sort();
    Ok(paths)
}

/// The installer, which knows where its release is.
fn installer(url: Option<&str>) -> io::Result<Vec<u8>> {
    const NOWHERE: &str = "\nfrom=\n";
    let text = String::from_utf8_lossy(&ours("packaging/install.sh")?).into_owned();
    if !text.contains(NOWHERE) {
        return Err(io::Error::other(
            "packaging/install.sh has no place for an address",
        ));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":/._-+~".contains(c);
    match url {
        None => Ok(text.into_bytes()),
        Some(url) if url.starts_with("https://") && url.chars().all(is_plain) => Ok(text
            .replace(NOWHERE, &format!("\nfrom={url}\n"))
            .into_bytes()),
        Some(url) => Err(io::Error::other(format!("{url} is not an https address"))),
    }
}

/// What every package has.
struct Content {
    seconds: u64,
    binary: Vec<u8>,
    /// Each with its name.
    manuals: Vec<(String, Vec<u8>)>,
    /// bash, zsh, fish.
    completions: [Vec<u8>; 3],
}

impl Content {
    fn of(binary: &Path) -> io::Result<Self> {
        let binary = binary.canonicalize()?;
        let folder = tempfile::tempdir()?;
        let weald = |arguments: &[&str]| {
            // A home of its own: what is packaged depends on no settings.
            output(tool(&binary).args(arguments).env("HOME", folder.path()))
        };
        let pages = folder.path().join("man");
        weald(&["man", &pages.to_string_lossy()])?;
        let mut manuals = Vec::new();
        for entry in fs::read_dir(&pages)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            manuals.push((name, fs::read(entry.path())?));
        }
        manuals.sort();
        let completion = |shell: &str| weald(&["completions", shell]).map(String::into_bytes);
        Ok(Self {
            seconds: commit_time()?,
            completions: [completion("bash")?, completion("zsh")?, completion("fish")?],
            binary: fs::read(&binary)?,
            manuals,
        })
    }

    fn tarball(&self, arch: &str) -> io::Result<Vec<u8>> {
        let top = format!("weald-{}-{arch}-linux", env!("CARGO_PKG_VERSION"));
        let mut tar = Tar::at(self.seconds);
        for folder in ["", "man/", "man/man1/", "completions/", "apparmor/"] {
            tar.folder(&format!("{top}/{folder}"))?;
        }
        tar.file(&format!("{top}/weald"), 0o755, &self.binary)?;
        for (name, page) in &self.manuals {
            tar.file(&format!("{top}/man/man1/{name}"), 0o644, page)?;
        }
        for (name, script) in ["weald.bash", "_weald", "weald.fish"]
            .iter()
            .zip(&self.completions)
        {
            tar.file(&format!("{top}/completions/{name}"), 0o644, script)?;
        }
        for (name, source) in [
            ("apparmor/weald", "packaging/apparmor/weald"),
            ("CHANGELOG.md", "CHANGELOG.md"),
            ("LICENSE-APACHE", "LICENSE-APACHE"),
            ("LICENSE-MIT", "LICENSE-MIT"),
            ("README.md", "README.md"),
        ] {
            tar.file(&format!("{top}/{name}"), 0o644, &ours(source)?)?;
        }
        tar.gzip()
    }

    fn deb(&self, arch: &str) -> io::Result<Vec<u8>> {
        let licences = [ours("LICENSE-MIT")?, ours("LICENSE-APACHE")?].join(&b"\n\n"[..]);
        let mut files: Vec<(String, u32, Vec<u8>)> = vec![
            ("usr/bin/weald".to_owned(), 0o755, self.binary.clone()),
            (
                "usr/share/doc/weald/README.md".to_owned(),
                0o644,
                ours("README.md")?,
            ),
            (
                "usr/share/doc/weald/changelog.gz".to_owned(),
                0o644,
                gzip(&ours("CHANGELOG.md")?)?,
            ),
            ("usr/share/doc/weald/copyright".to_owned(), 0o644, licences),
            (
                "usr/share/weald/apparmor/weald".to_owned(),
                0o644,
                ours("packaging/apparmor/weald")?,
            ),
        ];
        for (name, page) in &self.manuals {
            files.push((format!("usr/share/man/man1/{name}.gz"), 0o644, gzip(page)?));
        }
        let places = [
            "usr/share/bash-completion/completions/weald",
            "usr/share/zsh/vendor-completions/_weald",
            "usr/share/fish/vendor_completions.d/weald.fish",
        ];
        for (place, script) in places.iter().zip(&self.completions) {
            files.push(((*place).to_owned(), 0o644, script.clone()));
        }
        files.sort();
        let mut data = Tar::at(self.seconds);
        let mut folders = std::collections::BTreeSet::from([String::new()]);
        for (path, ..) in &files {
            let parents = Path::new(path).ancestors().skip(1);
            folders.extend(parents.map(|path| path.to_string_lossy().into_owned()));
        }
        for folder in &folders {
            let slash = if folder.is_empty() { "" } else { "/" };
            data.folder(&format!("./{folder}{slash}"))?;
        }
        for (path, mode, content) in &files {
            data.file(&format!("./{path}"), *mode, content)?;
        }
        data.link("./usr/bin/git-weald", "weald")?;
        let size = files
            .iter()
            .map(|(.., content)| content.len().div_ceil(1024))
            .sum();
        let mut control = Tar::at(self.seconds);
        control.file("./control", 0o644, control_file(arch, size).as_bytes())?;
        for script in ["postinst", "prerm"] {
            control.file(
                &format!("./{script}"),
                0o755,
                &ours(&format!("packaging/deb/{script}"))?,
            )?;
        }
        Ok(ar(
            self.seconds,
            &[
                ("debian-binary", b"2.0\n"),
                ("control.tar.gz", &control.gzip()?),
                ("data.tar.gz", &data.gzip()?),
            ],
        ))
    }
}

fn control_file(arch: &str, size: usize) -> String {
    format!(
        "Package: weald\n\
         Version: {}\n\
         Architecture: {arch}\n\
         Maintainer: The weald developers\n\
         Installed-Size: {size}\n\
         Depends: git (>= 1:2.40)\n\
         Suggests: apparmor (>= 4.0), git-lfs\n\
         Section: vcs\n\
         Priority: optional\n\
         Description: run many coding agents on one git repository\n \
         Each task gets its own worktree, and the kernel confines each agent to its\n \
         worktree. A queue lands only the commits that it tested.\n",
        env!("CARGO_PKG_VERSION"),
    )
}

/// The time of every file: the commit's, so that anybody gets the same bytes.
fn commit_time() -> io::Result<u64> {
    let text = output(
        tool("git")
            .args(["log", "-1", "--format=%ct"])
            .current_dir(root()),
    )?;
    text.trim()
        .parse()
        .map_err(|_| io::Error::other(format!("git says no time: {text}")))
}

/// A file of the project.
fn ours(path: &str) -> io::Result<Vec<u8>> {
    fs::read(root().join(path)).map_err(|error| io::Error::other(format!("{path}: {error}")))
}

fn tool(program: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "packages are made by other programs"
    )]
    Command::new(program)
}

/// What a command printed. It must succeed.
fn output(command: &mut Command) -> io::Result<String> {
    let output = command.output();
    let failed = |why: &str| io::Error::other(format!("{command:?}: {why}"));
    let output = output.map_err(|error| failed(&error.to_string()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(&errors)),
    }
}
