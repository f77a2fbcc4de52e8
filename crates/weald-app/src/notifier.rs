//! The process that notifies a person: by their own program, which has a short while, and on their desktop.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weald_core::attention::Attention;

use crate::{Call, Failure};

/// How long the user's program may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The most that is read of a notification.
const MOST: u64 = 16 << 10;

/// Tells what is on the standard input: by the user's program, and on the desktop.
pub fn tell(call: &Call<'_>) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().take(MOST).read_to_end(&mut bytes)?;
    let Ok(attention) = serde_json::from_slice::<Attention>(&bytes) else {
        return Err(Failure::bug());
    };
    let place = call.place()?;
    let config = call.config(&place)?.config;
    let own = shlex::split(&config.notify_command).unwrap_or_default();
    run(&own, &place.root(), &attention);
    if config.notify_desktop {
        let title = format!("weald: {} ({})", attention.about, attention.kind);
        let words = [
            "notify-send",
            "--app-name=weald",
            "--",
            &title,
            &without_markup(&attention.text),
        ];
        run(&words.map(str::to_owned), &place.root(), &attention);
    }
    Ok(())
}

/// Text as the body of a desktop notification, which is markup: what an agent wrote must not become a link or an image.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Runs a program of the user's, for a short while.
fn run(words: &[String], root: &Path, attention: &Attention) {
    let Some((program, arguments)) = words.split_first() else {
        return;
    };
    let root: PathBuf = root.to_owned();
    let begun = || -> std::io::Result<()> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the user's own program, on the host"
        )]
        let mut command = Command::new(program);
        let mut child = command
            .args(arguments)
            .current_dir(root)
            .env("WEALD_NOTICE", &attention.text)
            .env("WEALD_NOTICE_KIND", attention.kind.as_str())
            .env("WEALD_NOTICE_ABOUT", &attention.about)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read it has the variables.
            let _ = stdin.write_all(&serde_json::to_vec(attention)?);
        }
        let deadline = Instant::now() + LIMIT;
        while child.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
                    let _ =
                        rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                let _ = child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    };
    // Nobody is there to hear that nobody could be told.
    let _ = begun();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a13_a_desktop_notification_shows_markup_as_text() {
        let text = without_markup("<a href='x'>1 & 2</a> &lt;");
        assert_eq!(text, "&lt;a href='x'&gt;1 &amp; 2&lt;/a&gt; &amp;lt;");
    }
}
