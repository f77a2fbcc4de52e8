//! Objects on their way from one repository to another, always as one pack.
//!
//! What comes from an agent is checked object by object (`--strict`), and every link has to lead to an object
//! that is there: together with what the receiving repository had, the result is complete. What goes into the user's own
//! repository is kept (`.keep`) until a ref holds it, because a running gc drops what no ref holds yet.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Git, GitError};
use crate::small_packs::{Start, start_of, unpack_apart};

/// How long objects may take to travel.
const TIME_LIMIT: Duration = Duration::from_secs(1800);

/// How long, and with how much memory, a pack of somebody else's is checked: a few bytes can stand for gigabytes.
const CHECK_LIMIT: Duration = Duration::from_secs(300);
const CHECK_MEMORY: u64 = 4 << 30;

/// How often a pack is sent.
const ATTEMPTS: u32 = 4;

/// Oddities of old histories that harm nobody; everything else that fsck calls an error refuses the pack.
const FORGIVEN: &str = "zeroPaddedFilemode=warn,missingSpaceBeforeDate=warn,missingSpaceBeforeEmail=warn,\
                        missingNameBeforeEmail=warn,badTimezone=warn,missingEmail=warn,missingTaggerEntry=ignore";

/// What a `.keep` of weald's says, before the process that made it.
const KEEP: &str = "weald import";

/// What a `.keep` of this process says: its number, when it began, in which start of the machine and which namespace.
fn keep_text() -> String {
    let [boot, namespace] = here();
    let began = began("self").unwrap_or_default();
    format!("{KEEP} {} {began} {boot} {namespace}", std::process::id())
}

/// Whether a `.keep` is weald's, of a process that is proven gone.
pub fn is_stale_keep(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let Some(maker) = text.trim_end().strip_prefix(KEEP) else {
        return false;
    };
    let words: Vec<_> = maker.split_ascii_whitespace().collect();
    let is_there = |pid: &str| Path::new("/proc").join(pid).exists();
    match words[..] {
        // As older versions wrote it.
        [pid] => !is_there(pid),
        [pid, began_then, boot, namespace] => {
            let [boot_now, namespace_now] = here();
            match (boot == boot_now, namespace == namespace_now) {
                (false, _) => !boot_now.is_empty(),
                // Its number counts elsewhere.
                (true, false) => false,
                (true, true) => match began(pid) {
                    Some(began) => began != began_then,
                    None => !is_there(pid),
                },
            }
        }
        _ => false,
    }
}

/// Which start of the machine this is, and in which namespace numbers of processes count.
fn here() -> [String; 2] {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    [boot.trim().to_owned(), namespace.display().to_string()]
}

/// When a process began, in the kernel's ticks.
fn began(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = &stat[stat.rfind(')')? + 1..];
    fields.split_ascii_whitespace().nth(19).map(str::to_owned)
}

/// Receives a pack from an untrusted stream: checked, complete, at most `limit` bytes.
pub fn receive_checked(
    git_dir: &Path,
    mut pack: impl Read + Send + 'static,
    limit: u64,
) -> Result<(), GitError> {
    let checks = [
        format!("--strict={FORGIVEN}"),
        format!("--max-input-size={limit}"),
    ];
    match start_of(&mut pack) {
        Start::Small(bytes) => {
            let unpack = Git::new(git_dir, "unpack-objects").args(["-q"]);
            unpack_apart(git_dir, bounded(unpack.args(checks).input(bytes)))
        }
        Start::Large(bytes) => {
            let receive = Git::new(git_dir, "index-pack").args(["--stdin", "--fix-thin"]);
            let whole = io::Cursor::new(bytes).chain(pack);
            bounded(receive.args(checks).input_from(whole))
                .run()
                .map(drop)
        }
    }
}

/// Bounds what checking somebody else's pack may cost.
fn bounded(git: Git) -> Git {
    git.limit(CHECK_LIMIT)
        // Packs that are here already are looked into through small windows, so that the bound is for the new one.
        .config("core.packedGitWindowSize", "32m")
        .config("core.packedGitLimit", "512m")
        .bounded(CHECK_MEMORY, CHECK_LIMIT)
}

/// Objects that were put into a repository and are held there until this is dropped.
#[must_use = "dropping it lets a gc take the objects"]
pub struct Transfer {
    keep: Option<PathBuf>,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let Some(keep) = &self.keep {
            let _ = fs::remove_file(keep);
        }
    }
}

/// Brings everything that `tips` need and `haves` lack from one repository into another, which must hold all of `haves`.
pub fn transfer(
    from: &Path,
    to: &Path,
    tips: &[&str],
    haves: &[&str],
) -> Result<Transfer, GitError> {
    let count = Git::new(from, "rev-list")
        .args(["--objects", "--count", "--stdin"])
        .input(revisions(tips, haves))
        .run()?;
    match count.trim_ascii() {
        b"0" => Ok(Transfer { keep: None }),
        _ => send(from, to, tips, haves),
    }
}

/// The same for tips of which none is among the history of `haves`: there is something to bring.
pub fn send(from: &Path, to: &Path, tips: &[&str], haves: &[&str]) -> Result<Transfer, GitError> {
    let wanted = revisions(tips, haves);
    let said = received(from, to, &wanted)?;
    let said = String::from_utf8_lossy(&said);
    let hash = said.trim().rsplit('\t').next().unwrap_or_default();
    let keep = objects_of(to).join(format!("pack/pack-{hash}.keep"));
    Ok(Transfer {
        keep: said.starts_with("keep").then_some(keep),
    })
}

fn revisions(tips: &[&str], haves: &[&str]) -> String {
    let left_out = haves.iter().map(|have| format!("^{have}"));
    let mut lines: Vec<_> = tips.iter().map(|tip| (*tip).to_owned()).collect();
    lines.extend(left_out);
    lines.join("\n") + "\n"
}

/// A `gc --prune=now` in the receiving repository may take a pack away while it is being written; then it is sent again.
fn received(from: &Path, to: &Path, wanted: &str) -> Result<Vec<u8>, GitError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let sent = Git::new(from, "pack-objects")
            .args(["--revs", "--stdout", "-q", "--delta-base-offset"])
            .input(wanted)
            .limit(TIME_LIMIT)
            .pipe_into(receive_kept(to));
        match sent {
            Ok(said) => return Ok(said),
            Err(error) => {
                drop_own_keeps(to);
                if attempt == ATTEMPTS {
                    return Err(error);
                }
            }
        }
    }
}

/// What a receiver that failed may have left.
fn drop_own_keeps(to: &Path) {
    let own = keep_text();
    let entries = fs::read_dir(objects_of(to).join("pack"));
    for path in entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
    {
        let is_keep = path.extension().is_some_and(|kind| kind == "keep");
        if is_keep && fs::read_to_string(&path).is_ok_and(|text| text.trim_end() == own) {
            let _ = fs::remove_file(path);
        }
    }
}

fn receive_kept(to: &Path) -> Git {
    Git::new(to, "index-pack")
        .args(["--stdin".to_owned(), format!("--keep={}", keep_text())])
        .limit(TIME_LIMIT)
}

fn objects_of(git_dir: &Path) -> PathBuf {
    git_dir.join("objects")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keep_is_stale_only_when_its_process_is_proven_gone() {
        let home = tempfile::tempdir().unwrap();
        let keep = home.path().join("pack-1.keep");
        let [boot, namespace] = here();
        let (me, began) = (std::process::id(), began("self").unwrap());
        let nobody = u32::MAX;
        let cases = [
            (keep_text(), false),
            (format!("{KEEP} {me}"), false),
            (format!("{KEEP} {nobody}"), true),
            (format!("{KEEP} {nobody} 1 {boot} {namespace}"), true),
            // The number was given again.
            (format!("{KEEP} {me} {began}0 {boot} {namespace}"), true),
            (format!("{KEEP} {me} {began} other-start {namespace}"), true),
            // It may live in another namespace.
            (format!("{KEEP} {nobody} 1 {boot} pid:[1]"), false),
            ("kept by hand".to_owned(), false),
        ];
        for (text, stale) in cases {
            fs::write(&keep, format!("{text}\n")).unwrap();
            assert_eq!(is_stale_keep(&keep), stale, "{text}");
        }
    }
}
