//! The packages: they install, they run, and they are the same every time. `scripts/test --all` builds the real ones first
//! and names their folder; otherwise a stand-in takes the binary's place, because packing a debug binary takes long.

#![expect(clippy::disallowed_methods, reason = "tests start real processes")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weald_testkit::skipped;
use xtask::dist::{LIMIT, examine, package};
use xtask::tidy::root;

/// The packages that `scripts/test --all` built.
fn released() -> Option<PathBuf> {
    std::env::var_os("WEALD_TEST_PACKAGES").map(PathBuf::from)
}

/// The binary that the same test run built.
fn built() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let binary = here.parent().unwrap().parent().unwrap().join("weald");
    assert!(binary.exists(), "build it first: cargo build -p weald");
    binary
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A folder with all packages.
fn packages(room: &Path) -> PathBuf {
    if let Some(released) = released() {
        return released;
    }
    let stand_in = room.join("weald");
    executable(
        &stand_in,
        &format!("#!/bin/sh\nexec '{}' \"$@\"\n", built().display()),
    );
    package(&stand_in, &room.join("packages"), None).unwrap();
    room.join("packages")
}

fn named(folder: &Path, ending: &str) -> PathBuf {
    let mut names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    names
        .find(|path| path.to_string_lossy().ends_with(ending))
        .unwrap()
}

fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

#[track_caller]
fn works(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let all = [output.stdout, output.stderr].concat();
    let all = String::from_utf8_lossy(&all).into_owned();
    assert!(output.status.success(), "{arguments:?}: {all}");
    all
}

fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skipped(&format!("{tool} is not installed"));
    }
    found
}

#[test]
fn u18_packages_have_checksums_and_are_the_same_every_time() {
    let room = TempDir::new().unwrap();
    let made = packages(room.path());
    let check = format!("cd '{}' && sha256sum -c SHA256SUMS", made.display());
    let checked = works("sh", &["-c", &check]);
    assert_eq!(checked.matches(": OK").count(), 3, "{checked}");
    if released().is_none() {
        let again = room.path().join("again");
        package(&room.path().join("weald"), &again, None).unwrap();
        for entry in fs::read_dir(&made).unwrap() {
            let name = entry.unwrap().file_name();
            let (one, two) = (fs::read(made.join(&name)), fs::read(again.join(&name)));
            assert!(one.unwrap() == two.unwrap(), "{name:?}");
        }
    }
    let tarball = named(&made, ".tar.gz");
    let listed = works("tar", &["-tzf", tarball.to_str().unwrap()]);
    for file in [
        "/weald\n",
        "/LICENSE-MIT\n",
        "/README.md\n",
        "/apparmor/weald\n",
        "/completions/_weald\n",
        "/man/man1/weald-land.1\n",
    ] {
        assert!(listed.contains(file), "{file}: {listed}");
    }
}

#[test]
fn u18_the_deb_installs_into_a_throw_away_root_and_runs() {
    if !has("dpkg") {
        return;
    }
    let room = TempDir::new().unwrap();
    let deb = named(&packages(room.path()), ".deb");
    let target = room.path().join("root");
    for folder in [
        "var/lib/dpkg/updates",
        "var/lib/dpkg/info",
        "var/lib/dpkg/triggers",
    ] {
        fs::create_dir_all(target.join(folder)).unwrap();
    }
    for file in ["status", "available"] {
        fs::write(target.join("var/lib/dpkg").join(file), "").unwrap();
    }
    let at = format!("--root={}", target.display());
    // Nothing else is in that root: no git, and no shell for the scripts.
    let forced = [
        "--force-not-root",
        "--force-depends",
        "--force-script-chrootless",
    ];
    let install = [&[at.as_str()], &forced[..], &["-i", deb.to_str().unwrap()]].concat();
    works("dpkg", &install);
    let weald = target.join("usr/bin/weald");
    let version = works(&weald, &["--version"]);
    assert!(version.starts_with("weald "), "{version}");
    assert_eq!(
        works(target.join("usr/bin/git-weald"), &["--version"]),
        version
    );
    for file in [
        "usr/share/man/man1/weald.1.gz",
        "usr/share/bash-completion/completions/weald",
        "usr/share/weald/apparmor/weald",
        "usr/share/doc/weald/copyright",
    ] {
        assert!(target.join(file).is_file(), "{file}");
    }
    let remove = [&[at.as_str()], &forced[..], &["-r", "weald"]].concat();
    works("dpkg", &remove);
    assert!(!weald.exists());
}

/// A machine as the installer sees it: files of `/proc` and `/sys`, and a git.
struct Machine {
    room: TempDir,
    packages: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let room = TempDir::new().unwrap();
        let packages = room.path().join("release");
        fs::create_dir(&packages).unwrap();
        for entry in fs::read_dir(self::packages(room.path())).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, packages.join(path.file_name().unwrap())).unwrap();
        }
        let machine = Self { room, packages };
        machine.has("proc/sys/kernel/osrelease", "6.14.0-29-generic");
        machine.has(
            "sys/kernel/security/lsm",
            "lockdown,capability,landlock,yama,apparmor",
        );
        machine.git("2.43.0");
        machine
    }

    fn has(&self, file: &str, text: &str) {
        let path = self.room.path().join("system").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn git(&self, version: &str) {
        let folder = self.room.path().join("bin");
        fs::create_dir_all(&folder).unwrap();
        executable(
            &folder.join("git"),
            &format!("#!/bin/sh\necho git version {version}\n"),
        );
    }

    /// What the installer answered, and whether it went well.
    fn install(&self) -> (bool, String) {
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("sh")
            .arg(self.packages.join("install.sh"))
            .arg("--prefix")
            .arg(self.prefix())
            .env(
                "PATH",
                format!("{}:{path}", self.room.path().join("bin").display()),
            )
            .env("WEALD_INSTALL_SYSTEM", self.room.path().join("system"))
            .output()
            .unwrap();
        let all = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&all).into_owned(),
        )
    }

    fn prefix(&self) -> PathBuf {
        self.room.path().join("prefix")
    }

    #[track_caller]
    fn refuses(&self, wanted: &[&str]) {
        let (ok, said) = self.install();
        assert!(
            !ok && wanted.iter().all(|wanted| said.contains(wanted)),
            "{said}"
        );
        assert!(!self.prefix().exists(), "{said}");
    }
}

#[test]
fn u18_the_installer_says_what_is_missing_and_verifies_before_it_installs() {
    let machine = Machine::new();
    machine.has("proc/sys/kernel/osrelease", "6.8.0-45-generic");
    machine.has("sys/kernel/security/lsm", "lockdown,capability,yama");
    machine.git("2.39.5");
    machine.refuses(&[
        "missing: Linux 6.12 or newer (this is 6.8.0-45-generic)",
        "missing: Landlock",
        "missing: git 2.40 or newer (this is 2.39.5)",
    ]);

    let machine = Machine::new();
    let tarball = named(&machine.packages, ".tar.gz");
    let whole = fs::read(&tarball).unwrap();
    fs::write(&tarball, &whole[..whole.len() - 1]).unwrap();
    machine.refuses(&["does not match its checksum; nothing was installed"]);
    fs::write(&tarball, whole).unwrap();

    let (ok, said) = machine.install();
    assert!(ok && !said.contains("next:"), "{said}");
    let version = works(machine.prefix().join("bin/weald"), &["--version"]);
    assert!(version.starts_with("weald "), "{version}");
    assert!(machine.prefix().join("share/man/man1/weald.1").is_file());
    assert!(
        machine
            .prefix()
            .join("share/zsh/site-functions/_weald")
            .is_file()
    );
}

#[test]
fn u20_the_installer_names_the_command_that_lets_apparmor_allow_namespaces() {
    let machine = Machine::new();
    machine.has("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1");
    let (ok, said) = machine.install();
    let next = format!(
        "next: sudo {}/bin/weald install apparmor",
        machine.prefix().display()
    );
    assert!(ok && said.contains(&next), "{said}");
}

#[test]
fn u20_apparmors_parser_takes_the_profile() {
    if !has("apparmor_parser") {
        return;
    }
    let profile = root().join("packaging/apparmor/weald");
    let text = fs::read_to_string(&profile).unwrap();
    let parses = |text: &str| {
        let room = TempDir::new().unwrap();
        let file = room.path().join("profile");
        fs::write(&file, text).unwrap();
        run(
            "apparmor_parser",
            &["--skip-kernel-load", "--skip-cache", file.to_str().unwrap()],
        )
    };
    let whole = parses(&text);
    if whole.status.success() {
        let broken = parses(&text.replace("userns,", "userns"));
        assert!(!broken.status.success(), "it takes anything");
        return;
    }
    // An AppArmor before 4.0 knows neither this rule nor its ABI: it must take the rest.
    let rest = text.replace("userns,", "").replace("abi <abi/4.0>,", "");
    let rest = parses(&rest);
    assert!(
        rest.status.success(),
        "{}",
        String::from_utf8_lossy(&rest.stderr)
    );
    skipped("the profile's rule about user namespaces: this apparmor_parser is older than 4.0");
}

#[test]
fn u18_a_large_or_dynamic_binary_is_not_released() {
    let dynamic = fs::read("/proc/self/exe").unwrap();
    let loader = examine(&dynamic[..dynamic.len().min(LIMIT)])
        .unwrap_err()
        .to_string();
    assert!(loader.contains("names a loader"), "{loader}");
    let large = examine(&vec![0; LIMIT + 1]).unwrap_err().to_string();
    assert!(large.contains("more than 15728640"), "{large}");
    assert!(examine(b"#!/bin/sh\n").is_err());
}

/// Copies programs with their libraries into the current directory, and git with its other programs.
const CLOSURE: &str = r#"
closure() {
  for program in "$@"; do
    file=$(command -v "$program"); mkdir -p ".$(dirname "$file")"; cp -L "$file" ".$file"
    for library in $(ldd "$file" | grep -o '/[^ )]*'); do
      mkdir -p ".$(dirname "$library")"; [ -e ".$library" ] || cp -L "$library" ".$library"
    done
  done
}
closure git sh env cat cp grep head ls mkdir mv rm sed sleep tail
mkdir -p bin; [ -e bin/sh ] || cp -L /bin/sh bin/sh
core=$(git --exec-path); mkdir -p ".$core"; cp -a "$core/." ".$core/"
mkdir -p old root run sys tmp var/tmp; chmod 1777 tmp var/tmp
for device in full random tty urandom zero; do touch dev/$device; mount --bind /dev/$device dev/$device; done
"#;

/// Runs a command with a root file system that has what `prepare` puts there, and nothing else.
fn in_root_with(weald: &Path, prepare: &str, command: &str) -> Output {
    // Moved to the top: in a chroot alone nobody can create a user namespace.
    let script = format!(
        "set -e; chroot=$(command -v chroot); root=$(mktemp -d); mount -t tmpfs -o mode=755 none \"$root\"; cd \"$root\"\n\
         mkdir dev proc; touch dev/null; mount --bind /dev/null dev/null; mount -t proc proc proc\n\
         cp '{}' weald; {prepare}\n\
         mount --move . /; exec env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root \"$chroot\" . {command}\n",
        weald.display()
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--propagation", "private"]);
    unshare.args(["bash", "-c", &script]).output().unwrap()
}

#[test]
fn u18_the_released_binary_runs_in_an_empty_root() {
    let Some(packages) = released() else {
        skipped("the released binary in an empty root: ./scripts/test --all builds it");
        return;
    };
    if !rustix::process::geteuid().is_root() {
        skipped("the released binary in an empty root: making a root file system needs root");
        return;
    }
    let room = TempDir::new().unwrap();
    let tarball = named(&packages, ".tar.gz");
    let at = room.path().to_str().unwrap();
    let unpack = [
        "-xzf",
        tarball.to_str().unwrap(),
        "--strip-components=1",
        "-C",
        at,
    ];
    works("tar", &unpack);
    let weald = room.path().join("weald");
    examine(&fs::read(&weald).unwrap()).unwrap();
    let bare = in_root_with(&weald, "", "/weald --version");
    let version = works(&weald, &["--version"]);
    assert_eq!(String::from_utf8_lossy(&bare.stdout), version, "{bare:?}");
    let demo = in_root_with(&weald, CLOSURE, "/weald demo");
    let said = String::from_utf8_lossy(&demo.stdout);
    let errors = String::from_utf8_lossy(&demo.stderr);
    assert!(demo.status.success(), "{said}\n{errors}");
}
