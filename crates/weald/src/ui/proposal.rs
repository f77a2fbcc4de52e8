//! What the files of a project propose, and a person's choice.

use std::io::{self, BufRead, Read, Write};

use weald_app::{Failure, ProjectProposal, ProposedSetting};

use super::{ACCENT, DIM, clean_line, paint, wrapped};

/// The longest line that is read as an answer.
const LONGEST: u64 = 4096;

/// Shows what was detected and what it proposes.
pub fn print_proposal(out: &mut dyn Write, project: &ProjectProposal) -> io::Result<()> {
    if project.detected.is_empty() {
        return Ok(());
    }
    let tools = project.detected.iter();
    let tools = tools.map(|one| format!("{} ({})", clean_line(&one.tool), clean_line(&one.file)));
    let tools: Vec<_> = tools.collect();
    writeln!(out, "detected {}", tools.join(", "))?;
    for one in &project.settings {
        let about = paint(DIM, clean_line(&one.about));
        writeln!(out, "  {}  {about}", paint(ACCENT, clean_line(&one.key)))?;
        for line in one.value.split(',') {
            writeln!(out, "      {}", clean_line(line))?;
        }
    }
    for note in &project.notes {
        writeln!(out, "{}", wrapped(note, 0))?;
    }
    Ok(())
}

/// Asks which of it to write: all, nothing, or each one.
pub fn choose(
    err: &mut dyn Write,
    project: &ProjectProposal,
) -> Result<Vec<ProposedSetting>, Failure> {
    print_proposal(err, project)?;
    loop {
        match ask(err, "Set these? [Y/n/e] ")?
            .to_ascii_lowercase()
            .as_str()
        {
            "" | "y" | "yes" => return Ok(project.settings.clone()),
            "e" | "edit" => break,
            "n" | "no" | "\u{4}" => return Ok(Vec::new()),
            _ => writeln!(err, "y sets all of them, n sets none, e asks for each one")?,
        }
    }
    writeln!(
        err,
        "Enter keeps a value, - drops it, other text replaces it."
    )?;
    let mut chosen = Vec::new();
    for one in &project.settings {
        let question = format!("{} [{}]: ", clean_line(&one.key), clean_line(&one.value));
        let answer = ask(err, &question)?;
        let value = match answer.as_str() {
            "-" | "\u{4}" => continue,
            "" => one.value.clone(),
            other => other.to_owned(),
        };
        chosen.push(ProposedSetting {
            value,
            ..one.clone()
        });
    }
    Ok(chosen)
}

/// One line from the terminal; the end of input is Ctrl-D.
fn ask(err: &mut dyn Write, question: &str) -> io::Result<String> {
    write!(err, "{question}")?;
    err.flush()?;
    let mut answer = String::new();
    match io::stdin().lock().take(LONGEST).read_line(&mut answer)? {
        0 => Ok("\u{4}".to_owned()),
        _ => Ok(answer.trim().to_owned()),
    }
}
