//! What a ref holds, and how files and git say it.

/// An object id in hexadecimal, SHA-1 or SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Commit(String);

impl Commit {
    /// Reads an id; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let hex =
            matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| Self(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Commit> for String {
    fn from(commit: Commit) -> Self {
        commit.0
    }
}

/// What a ref holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    Direct(Commit),
    Symbolic(String),
}

impl Reference {
    /// Reads what a loose ref or a HEAD says.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("ref:") {
            Some(target) => Some(Self::Symbolic(target.trim().to_owned())),
            None => Commit::parse(text.trim_end()).map(Self::Direct),
        }
    }

    /// The same as such a file says it.
    pub fn to_text(&self) -> String {
        match self {
            Self::Direct(commit) => format!("{}\n", commit.as_str()),
            Self::Symbolic(name) => format!("ref: {name}\n"),
        }
    }
}

/// A ref as `for-each-ref` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MainRef {
    pub name: String,
    pub commit: String,
    /// What the tag in it leads to.
    pub peeled: Option<String>,
    /// The ref it stands for.
    pub symbolic: Option<String>,
}
