//! What a process may write of itself in /proc, which is read-only inside: root's runs could change the kernel's settings
//! there, and everybody's the share of the whole session. The launcher opens these files for it, and no others.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use crate::sys::Question;

/// The longest path that is looked at.
const LONGEST: usize = 64;

/// Files of a process.
const OF_PROCESS: [&str; 4] = ["comm", "oom_score_adj", "coredump_filter", "timerslack_ns"];

/// The file that the asker means, on the host, if it is one of these.
pub(super) fn meant(question: &Question) -> Option<PathBuf> {
    let path = read_path(question.pid, question.open().path).ok()?;
    let rest = path.strip_prefix("/proc").ok()?;
    let mut names = rest.components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let (process, thread) = (super::thread_group(question.pid).ok()?, question.pid);
    let mut place = match names.next()?? {
        "self" => PathBuf::from(format!("/proc/{process}")),
        "thread-self" => PathBuf::from(format!("/proc/{process}/task/{thread}")),
        number if number.parse().ok() == super::number_inside(thread, "NStgid:") => {
            PathBuf::from(format!("/proc/{process}"))
        }
        _ => return None,
    };
    let mut name = names.next()??;
    if name == "task" {
        let wanted: i32 = names.next()??.parse().ok()?;
        let mut threads = fs::read_dir(place.join("task")).ok()?.flatten();
        let is_meant = |entry: &fs::DirEntry| {
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            number.is_some_and(|number| super::number_inside(number, "NSpid:") == Some(wanted))
        };
        place = threads.find(is_meant)?.path();
        name = names.next()??;
    }
    let is_last = names.next().is_none();
    (is_last && OF_PROCESS.contains(&name)).then(|| place.join(name))
}

/// What an asker named, up to its end or the longest that counts.
fn read_path(process: u32, pointer: u64) -> io::Result<PathBuf> {
    let memory = File::open(format!("/proc/{process}/mem"))?;
    let mut text = [0; LONGEST];
    // Not over the end of a page, behind which there may be nothing.
    let room = LONGEST.min(4096 - (pointer % 4096) as usize);
    memory.read_exact_at(&mut text[..room], pointer)?;
    if !text[..room].contains(&0) {
        memory.read_exact_at(&mut text[room..], pointer + room as u64)?;
    }
    let end = text.iter().position(|byte| *byte == 0);
    let end = end.ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
    Ok(Path::new(OsStr::from_bytes(&text[..end])).to_owned())
}
