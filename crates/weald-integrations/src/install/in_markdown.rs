//! A marked block in a Markdown file. What people wrote around it is theirs.

use super::edit::EditError;
use super::lines::usual_ending;
use super::{Kept, KeptBecause};

const BEGIN: &str =
    "<!-- weald: begin (made by `weald install`, taken out by `weald install --remove`) -->";
const BEGIN_MARK: &str = "<!-- weald: begin";
const END: &str = "<!-- weald: end -->";

/// The text with the block: in its place if there is one, else at the end.
pub(super) fn add(text: &str, block: &str) -> Result<String, EditError> {
    let ending = usual_ending(text);
    let lines = std::iter::once(BEGIN).chain(block.trim_end().lines());
    let block: String = lines
        .chain([END])
        .map(|line| format!("{line}{ending}"))
        .collect();
    if let Some((before, after)) = around(text)? {
        let ends = text.ends_with('\n') || !after.is_empty();
        let block = if ends { &block } else { block.trim_end() };
        return Ok(format!("{before}{block}{after}"));
    }
    let gap = match text {
        "" => "".to_owned(),
        _ if text.ends_with("\n\n") || text.ends_with("\n\r\n") => "".to_owned(),
        _ if text.ends_with('\n') => ending.to_owned(),
        _ => ending.repeat(2),
    };
    Ok(format!("{text}{gap}{block}"))
}

/// The text without the block, and without the empty line before it.
pub(super) fn take(text: &str) -> Result<String, EditError> {
    let Some((before, after)) = around(text)? else {
        return Ok(text.to_owned());
    };
    let before = ["\r\n", "\n"]
        .iter()
        .find_map(|ending| {
            let rest = before.strip_suffix(ending)?;
            rest.ends_with('\n').then_some(rest)
        })
        .unwrap_or(before);
    Ok(format!("{before}{after}"))
}

/// The block, if it is there.
pub(super) fn kept(text: &str) -> Result<Vec<Kept>, EditError> {
    let there = around(text)?.map(|_| Kept {
        entry: "the block of weald's".to_owned(),
        why: KeptBecause::ThereBefore,
    });
    Ok(Vec::from_iter(there))
}

/// What is before the block's first line and after its last one.
fn around(text: &str) -> Result<Option<(&str, &str)>, EditError> {
    let (mut begin, mut end, mut at) = (None, None, 0);
    for line in text.split_inclusive('\n') {
        if line.starts_with(BEGIN_MARK) && begin.replace(at).is_some() {
            return Err(EditError::Marks);
        }
        at += line.len();
        if line.trim_end() == END && end.replace(at).is_some() {
            return Err(EditError::Marks);
        }
    }
    match (begin, end) {
        (None, None) => Ok(None),
        (Some(begin), Some(end)) if begin < end => Ok(Some((&text[..begin], &text[end..]))),
        _ => Err(EditError::Marks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_and_goes() {
        for text in ["", "# Mine\n", "# Mine\r\n\r\nwords\r\n", "# Mine\n\n"] {
            let with = add(text, "do this\nand that\n").unwrap();
            assert!(with.contains("do this"), "{with}");
            assert_eq!(add(&with, "do this\nand that\n").unwrap(), with);
            let newer = add(&with, "do something else").unwrap();
            assert!(
                !newer.contains("and that") && newer.starts_with(text),
                "{newer}"
            );
            assert_eq!(take(&newer).unwrap().trim_end(), text.trim_end());
            assert_eq!(newer.contains('\r'), text.contains('\r'));
        }
    }

    #[test]
    fn words_after_the_block_stay_and_torn_marks_are_refused() {
        let with = format!("{}\nafter\n", add("before\n", "x").unwrap());
        assert_eq!(take(&with).unwrap(), "before\n\nafter\n");
        let torn = with.replace(END, "");
        assert_eq!(add(&torn, "x"), Err(EditError::Marks));
        assert_eq!(take(&torn), Err(EditError::Marks));
        assert_eq!(take(&format!("{with}{with}")), Err(EditError::Marks));
    }
}
