//! docs/assets/demo.svg: a run of `weald demo`, recorded on a pseudo-terminal and drawn as an animation.
//!
//! Pages show the file as a picture, so it has neither scripts nor fonts of its own. Where nothing moves (a printer,
//! `prefers-reduced-motion`), it shows the end of the demo. A test of the surface compares its text with the demo's.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tempfile::TempDir;
use weald_terminal::{Pair, Screen, Size};

use crate::tidy::root;

/// Large enough that nothing wraps or scrolls away.
const RECORDED: Size = Size {
    columns: 140,
    rows: 80,
};

/// What is seen at once.
const ROWS: usize = 22;
const COLUMNS: usize = 84;

/// A cell, in pixels; the text is stretched to it, whatever font there is.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 20.0;
const EDGE: f64 = 18.0;
const BAR: f64 = 36.0;

/// Seconds: the longest wait between two lines, typing a command, and the rest at the end.
const LONGEST: f64 = 1.6;
const TYPING: f64 = 0.7;
const REST: f64 = 6.0;

/// A line of the demo and when it began.
pub struct Line {
    pub seconds: f64,
    pub spans: Vec<Span>,
}

/// Text in one style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub classes: Vec<String>,
}

/// Records the demo and writes the picture.
pub fn run() -> io::Result<()> {
    let built = command("cargo")
        .args(["build", "-q", "-p", "weald"])
        .current_dir(root())
        .status()?;
    if !built.success() {
        return Err(io::Error::other("weald does not build"));
    }
    let weald = std::env::current_exe()?.with_file_name("weald");
    let path = root().join("docs/assets/demo.svg");
    std::fs::write(&path, drawn(&recorded(&weald)?))
}

#[expect(clippy::disallowed_methods, reason = "records a real run")]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// Runs the demo on a terminal and notes when each line appears.
fn recorded(weald: &Path) -> io::Result<Vec<Line>> {
    let home = TempDir::new()?;
    let Pair { master, slave } = Pair::open(RECORDED)?;
    #[expect(clippy::disallowed_methods, reason = "programs have to be found")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut child = command("setsid")
        .args(["--ctty", "--wait"])
        .arg(weald)
        .arg("demo")
        .env_clear()
        .envs([("PATH", path), ("HOME", home.path().into())])
        .env("TERM", "xterm-256color")
        .stdin(slave.try_clone()?)
        .stdout(slave.try_clone()?)
        .stderr(slave)
        .spawn()?;
    let (mut master, mut screen) = (File::from(master), Screen::new(RECORDED));
    let (mut began, mut buffer) = (Vec::new(), [0; 4096]);
    let start = Instant::now();
    // The end of a terminal without programs is an error of reading.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        screen.read(&buffer[..count]);
        let lines = screen.picture().lines_in_colour().len();
        began.resize(lines.max(began.len()), start.elapsed().as_secs_f64());
    }
    if !child.wait()?.success() || screen.scrolled() > 0 {
        let text = screen.picture().text().join("\n");
        return Err(io::Error::other(format!("the demo failed:\n{text}")));
    }
    let lines = screen.picture().lines_in_colour().into_iter();
    let lines = lines.zip(began).map(|(line, seconds)| Line {
        seconds,
        spans: spans(&String::from_utf8_lossy(&line)),
    });
    Ok(lines.collect())
}

/// A line with its colours, cut where the style changes.
pub fn spans(line: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut classes: Vec<String> = Vec::new();
    for (number, part) in line.split("\x1b[").enumerate() {
        let text = match part.split_once('m') {
            Some((codes, text)) if number > 0 => {
                for code in codes.split([';', ':']) {
                    match code {
                        "" | "0" => classes.clear(),
                        "1" => classes.push("bold".to_owned()),
                        "2" => classes.push("dim".to_owned()),
                        "22" => classes.retain(|class| !["bold", "dim"].contains(&class.as_str())),
                        "39" => classes.retain(|class| !class.starts_with('c')),
                        code => {
                            classes.retain(|class| !class.starts_with('c'));
                            classes.push(format!("c{code}"));
                        }
                    }
                }
                text
            }
            _ => part,
        };
        if !text.is_empty() {
            found.push(Span {
                text: text.to_owned(),
                classes: classes.clone(),
            });
        }
    }
    found
}

/// The picture.
pub fn drawn(lines: &[Line]) -> String {
    let times = times(lines);
    let whole = times.last().copied().unwrap_or_default() + REST;
    let percent = |seconds: f64| format!("{:.2}%", 100.0 * seconds / whole);
    let columns = lines.iter().map(columns_of).max();
    let columns = columns.unwrap_or_default().max(COLUMNS);
    let (width, height) = (
        (columns as f64 * WIDTH + 2.0 * EDGE).ceil(),
        BAR + ROWS as f64 * HEIGHT + EDGE,
    );
    let (mut style, mut text) = (
        STYLE.replace("WHOLE", &format!("{whole:.1}s")),
        String::new(),
    );
    let above = lines.len().saturating_sub(ROWS);
    let moved = |rows: usize| format!("{{transform:translateY(-{}px)}}", rows as f64 * HEIGHT);
    let _ = write!(style, "#all{}@keyframes up{{0%{}", moved(above), moved(0));
    for (row, seconds) in times.iter().enumerate().skip(ROWS) {
        let _ = write!(style, "{}{}", percent(*seconds), moved(row + 1 - ROWS));
    }
    let _ = writeln!(style, "100%{}}}", moved(above));
    for (row, (line, seconds)) in lines.iter().zip(&times).enumerate() {
        let columns = columns_of(line);
        if columns == 0 {
            continue;
        }
        let _ = writeln!(
            style,
            "@keyframes l{row}{{0%{{opacity:0}}{}{{opacity:1}}100%{{opacity:1}}}}",
            percent(*seconds)
        );
        let y = row as f64 * HEIGHT;
        let _ = write!(
            text,
            "<text style=\"animation-name:l{row}\" y=\"{:.0}\" textLength=\"{:.1}\">",
            y + 14.0,
            columns as f64 * WIDTH
        );
        for span in &line.spans {
            let words = span.text.replace('&', "&amp;").replace('<', "&lt;");
            let words = words.replace('>', "&gt;");
            match span.classes.is_empty() {
                true => text.push_str(&words),
                false => {
                    let classes = span.classes.join(" ");
                    let _ = write!(text, "<tspan class=\"{classes}\">{words}</tspan>");
                }
            }
        }
        text.push_str("</text>\n");
        if is_command(line) {
            let typed = columns as f64 * WIDTH;
            let _ = writeln!(
                style,
                "#t{row}{{transform:translateX({typed}px)}}\
                 @keyframes t{row}{{0%{{transform:none}}{}{{transform:none;animation-timing-function:steps({})}}\
                 {}{{transform:translateX({typed}px)}}100%{{transform:translateX({typed}px)}}}}",
                percent(*seconds),
                columns - 2,
                percent(seconds + TYPING)
            );
            let _ = writeln!(
                text,
                "<rect id=\"t{row}\" style=\"animation-name:t{row}\" x=\"{:.1}\" y=\"{y:.0}\" width=\"{width}\" height=\"{HEIGHT}\"/>",
                2.0 * WIDTH
            );
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>weald demo: agents in worktrees of their own, and a queue that lands what passes the tests</title>\n\
         <style>\n{style}</style>\n\
         <clipPath id=\"seen\"><rect x=\"2\" y=\"{BAR}\" width=\"{}\" height=\"{}\"/></clipPath>\n\
         <rect class=\"frame\" x=\".5\" y=\".5\" rx=\"9\" width=\"{}\" height=\"{}\"/>\n\
         <circle cx=\"20\" cy=\"18\" r=\"5.5\" fill=\"#ff5f57\"/><circle cx=\"40\" cy=\"18\" r=\"5.5\" fill=\"#febc2e\"/><circle cx=\"60\" cy=\"18\" r=\"5.5\" fill=\"#28c840\"/>\n\
         <g clip-path=\"url(#seen)\"><g transform=\"translate({EDGE} {BAR})\"><g id=\"all\">\n{text}</g></g></g>\n</svg>\n",
        width - 4.0,
        ROWS as f64 * HEIGHT,
        width - 1.0,
        height - 1.0,
    )
}

/// When each line appears: as recorded, without long waits, and not before a command is typed.
fn times(lines: &[Line]) -> Vec<f64> {
    let (mut now, mut before) = (0.5, None::<&Line>);
    let mut times = Vec::new();
    for line in lines {
        if let Some(before) = before {
            let least = match is_command(before) {
                true => TYPING + 0.2,
                false => 0.0,
            };
            now += (line.seconds - before.seconds).clamp(least, LONGEST);
        }
        times.push(now);
        before = Some(line);
    }
    times
}

fn columns_of(line: &Line) -> usize {
    let spans = line.spans.iter();
    spans.map(|span| span.text.chars().count()).sum()
}

fn is_command(line: &Line) -> bool {
    line.spans
        .first()
        .is_some_and(|span| span.text.starts_with('$'))
}

const STYLE: &str = "\
.frame{fill:#0d1117;stroke:#30363d}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:#e6edf3;white-space:pre}
text,rect[id],#all{animation:WHOLE step-end infinite}
#all{animation-name:up}
rect[id]{fill:#0d1117}
.bold{font-weight:700;fill:#fff}
.dim{fill:#8b949e}
.c31,.c91{fill:#ff7b72}
.c32,.c92{fill:#3fb950}
.c33,.c93{fill:#d29922}
.c34,.c94{fill:#58a6ff}
.c35,.c95{fill:#bc8cff}
.c36,.c96{fill:#39c5cf}
@media (prefers-reduced-motion:reduce){*{animation:none!important}}
";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seconds: f64, text: &str) -> Line {
        let spans = spans(text);
        Line { seconds, spans }
    }

    #[test]
    fn styles_become_classes() {
        let of = |text: &str| -> Vec<_> {
            let spans = spans(text).into_iter();
            spans
                .map(|span| (span.text, span.classes.join(" ")))
                .collect()
        };
        let pair = |text: &str, classes: &str| (text.to_owned(), classes.to_owned());
        assert_eq!(
            of("\x1b[0;2m$\x1b[0m \x1b[0;36mweald\x1b[0m"),
            [pair("$", "dim"), pair(" ", ""), pair("weald", "c36")]
        );
        assert_eq!(of("plain m"), [pair("plain m", "")]);
    }

    #[test]
    fn a_picture_waits_for_the_typing_and_scrolls_to_its_end() {
        let mut lines = vec![line(0.0, "$ a < b"), line(0.1, "one")];
        lines.extend((0..ROWS).map(|n| line(60.0 + n as f64, "later")));
        let times = times(&lines);
        assert!(times[1] - times[0] > TYPING && times[2] - times[1] <= LONGEST);
        let svg = drawn(&lines);
        assert!(svg.contains("$ a &lt; b") && svg.contains("#all{transform:translateY(-40px)}"));
        assert!(!svg.contains("<script"));
    }
}
