//! The user's pager.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use weald_app::Failure;
use weald_sandbox::InterruptsIgnored;

use super::{Form, Screen};

/// Shows what `print` writes in the pager, as git does, and waits until the reader has left it.
pub fn show(
    pager: &str,
    width: Option<usize>,
    print: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the pager is the user's own program, chosen by their configuration or environment"
    )]
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        #[expect(clippy::disallowed_methods, reason = "passed on, not read")]
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    command.env("GIT_PAGER_IN_USE", "true");
    if let Some(width) = width {
        command.env("COLUMNS", width.to_string());
    }
    let mut child = command.spawn()?;
    let _interrupts = InterruptsIgnored::start();
    let stdin = child.stdin.take().expect("piped");
    let mut screen = Screen::new(stdin, Form::Text);
    let printed = print(&mut screen).and_then(|()| screen.flush());
    drop(screen);
    child.wait()?;
    match printed {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}
