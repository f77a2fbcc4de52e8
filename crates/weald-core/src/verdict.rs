//! A verdict: what a phase says of its part when it ends.

use serde::{Deserialize, Serialize};

/// How many things to fix a verdict may name, and how long each may be, in characters.
const ITEMS: usize = 50;
const ITEM: usize = 2000;

/// What a phase says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ruling {
    #[serde(rename = "PASS", alias = "pass", alias = "Pass")]
    Pass,
    #[serde(rename = "FAIL", alias = "fail", alias = "Fail")]
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    #[serde(rename = "verdict")]
    pub ruling: Ruling,
    /// What has to be fixed first.
    #[serde(default)]
    pub must_fix: Vec<String>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl Verdict {
    /// Reads what a phase wrote; it is untrusted, and cut to size.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let short = |text: &str| text.trim().chars().take(ITEM).collect::<String>();
        let items = read.must_fix.iter().map(|item| short(item));
        Ok(Self {
            ruling: read.ruling,
            must_fix: items.filter(|item| !item.is_empty()).take(ITEMS).collect(),
            notes: short(&read.notes),
        })
    }

    /// The verdict on a command that ended with `code`, and on what it wrote, if it wrote anything. A file that can't be
    /// read, or one that says more than the code does, is no pass.
    pub fn of(written: Option<Result<Self, String>>, code: i32) -> Self {
        let failed = |why: String| Self {
            ruling: Ruling::Fail,
            must_fix: vec![why],
            notes: String::new(),
        };
        match (written, code) {
            (None, 0) => Self {
                ruling: Ruling::Pass,
                must_fix: Vec::new(),
                notes: String::new(),
            },
            (None, code) => failed(format!("its command ended with {code}")),
            (Some(Err(why)), _) => failed(format!("its verdict can't be read: {why}")),
            (Some(Ok(verdict)), code) if code != 0 && verdict.passes() => {
                failed(format!("its command ended with {code}"))
            }
            (Some(Ok(verdict)), _) => verdict,
        }
    }

    /// Whether it goes on. A failure that names nothing to fix is none.
    pub fn passes(&self) -> bool {
        self.ruling == Ruling::Pass || self.must_fix.is_empty()
    }

    /// The word for people: what it counts as.
    pub fn as_str(&self) -> &'static str {
        match self.passes() {
            true => "PASS",
            false => "FAIL",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p4_a_verdict_is_what_the_file_says_and_the_code_allows() {
        let file = |text: &str| Some(Verdict::parse(text.as_bytes()));
        let cases = [
            (None, 0, true),
            (None, 3, false),
            (file(r#"{"verdict":"PASS"}"#), 0, true),
            (file(r#"{"verdict":"PASS"}"#), 3, false),
            (file(r#"{"verdict":"FAIL"}"#), 0, true),
            (file(r#"{"verdict":"FAIL","must_fix":[" "]}"#), 0, true),
            (file(r#"{"verdict":"FAIL","must_fix":["x"]}"#), 0, false),
            (file(r#"{"verdict":"FAIL","must_fix":["x"]}"#), 1, false),
            (file(r#"{"verdict":"MAYBE"}"#), 0, false),
            (file("nonsense"), 0, false),
        ];
        for (written, code, passes) in cases {
            let told = format!("{written:?} {code}");
            assert_eq!(Verdict::of(written, code).passes(), passes, "{told}");
        }
        let long = format!(
            r#"{{"verdict":"FAIL","must_fix":["{}"]}}"#,
            "x".repeat(9000)
        );
        let cut = Verdict::parse(long.as_bytes()).unwrap();
        assert_eq!(cut.must_fix[0].len(), ITEM);
    }
}
