//! Synthetic repositories: about four files a directory, eight kilobytes of text a file, one pack.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::rivals::{git, run};

/// What files are cut from.
const TEXT: usize = 1 << 20;

/// Makes a repository with so many files and checks it out; answers where it is.
pub fn make(ground: &Path, name: &str, files: usize) -> io::Result<PathBuf> {
    let path = ground.join(name);
    run(git(ground, ground)
        .args(["init", "-q", "-b", "main"])
        .arg(&path))?;
    for (key, value) in [
        ("user.name", "Bench"),
        ("user.email", "bench@example.com"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
    ] {
        run(git(ground, &path).args(["config", key, value]))?;
    }
    import(ground, &path, files)?;
    run(git(ground, &path).args(["reset", "-q", "--hard"]))?;
    // Once more: the first look after a checkout reads every file.
    run(git(ground, &path).arg("status"))?;
    Ok(path)
}

/// Changes the first lines of so many files and commits that.
pub fn move_base(ground: &Path, repository: &Path, changed: usize, turn: usize) -> io::Result<()> {
    for number in 0..changed {
        let file = repository.join(path_of(number * 7));
        let text = std::fs::read_to_string(&file)?;
        std::fs::write(&file, format!("turn {turn}\n{text}"))?;
    }
    let message = format!("turn {turn}");
    run(git(ground, repository).args(["commit", "-q", "-a", "-m", &message]))
}

fn import(ground: &Path, path: &Path, files: usize) -> io::Result<()> {
    let mut importer = git(ground, path);
    // Without deltas, as the newest files of a repacked repository are.
    let args = ["fast-import", "--quiet", "--depth=0"];
    importer.args(["-c", "core.compression=1"]).args(args);
    let mut importer = importer.stdin(Stdio::piped()).spawn()?;
    let mut stream = BufWriter::new(importer.stdin.take().expect("piped"));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let text = text(&mut random);
    let who = "committer Bench <bench@example.com> 1700000000 +0000";
    write!(stream, "commit refs/heads/main\n{who}\ndata 5\nfiles\n")?;
    for number in 0..files {
        let share = random.below(1_000) as f64 / 1_000.0;
        let length = 200 + (23_000.0 * share * share) as usize;
        let start = random.below(TEXT - length);
        let head = format!("file {number}\n");
        write!(
            stream,
            "M 100644 inline {}\ndata {}\n{head}",
            path_of(number),
            head.len() + length
        )?;
        stream.write_all(&text.as_bytes()[start..start + length])?;
        stream.write_all(b"\n")?;
    }
    stream.into_inner().map_err(io::Error::other)?;
    match importer.wait()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("git fast-import failed")),
    }
}

/// Four files a directory, twelve directories a directory.
pub fn path_of(number: usize) -> String {
    let leaf = number / 4;
    let (far, middle, near) = (leaf / 144, leaf / 12 % 12, leaf % 12);
    format!("part{far}/group{middle}/unit{near}/file{number}.rs")
}

/// Lines that look and compress like a program's.
fn text(random: &mut Random) -> String {
    let words = ["value", "count", "index", "path", "state", "entry", "total"];
    let mut text = String::with_capacity(TEXT + 100);
    while text.len() < TEXT {
        let (from, to) = (words[random.below(7)], words[random.below(7)]);
        let (first, second) = (random.below(9_000), random.below(500));
        let _ = writeln!(text, "    let {to}_{first} = {from}.next({second})?;");
    }
    text.truncate(TEXT);
    text
}

/// The same sequence each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
