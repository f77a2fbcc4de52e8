//! Patterns of paths, as in `.gitignore`.
//!
//! They protect, so what is not understood matches rather than not: an unknown class of characters is any character, and
//! a pattern for directories also matches a file of that name. Nothing takes back what another pattern says: there is no `!`.
//!
//! Not by globset: its `?` and `[…]` stand for one byte (`?.txt` would leave `ä.txt` unprotected), it ignores case in ASCII
//! alone, and it says only whether a whole path fits, not after how many parts.

/// A list of patterns.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    patterns: Vec<Pattern>,
    ignores_case: bool,
}

#[derive(Debug, Clone)]
struct Pattern {
    /// One entry a part of a path; one alone matches a name at any depth.
    parts: Vec<Part>,
    is_anchored: bool,
}

#[derive(Debug, Clone)]
enum Part {
    /// `**`: any number of parts.
    Any,
    Name(Vec<Token>),
}

#[derive(Debug, Clone)]
enum Token {
    /// `*`
    Many,
    /// `?`
    One,
    Char(char),
    /// `[a-z]`
    Set {
        is_negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Patterns {
    /// Reads a list. Empty ones and comments are nothing.
    pub fn new<'p>(lines: impl IntoIterator<Item = &'p str>) -> Self {
        Self {
            patterns: lines.into_iter().filter_map(Pattern::parse).collect(),
            ignores_case: false,
        }
    }

    /// The same for names of any case: on some file systems they name one file.
    pub fn of_any_case<'p>(lines: impl IntoIterator<Item = &'p str>) -> Self {
        let lines: Vec<_> = lines.into_iter().map(str::to_lowercase).collect();
        Self {
            ignores_case: true,
            ..Self::new(lines.iter().map(String::as_str))
        }
    }

    /// Whether a path, or a directory that it lies in, is meant.
    pub fn matches(&self, path: &str) -> bool {
        self.depth(path).is_some()
    }

    /// How many parts of a path it takes until something is meant.
    pub(super) fn depth(&self, path: &str) -> Option<usize> {
        let path = match self.ignores_case {
            true => &path.to_lowercase(),
            false => path,
        };
        let parts = path.split('/').filter(|part| !part.is_empty());
        let parts: Vec<Vec<char>> = parts.map(|part| part.chars().collect()).collect();
        let depths = self.patterns.iter().filter_map(|one| one.depth(&parts));
        depths.min()
    }

    /// Whether a file itself is meant, not only a directory that it lies in.
    pub fn names(&self, path: &str) -> bool {
        let parts: Vec<Vec<char>> = path.split('/').map(|part| part.chars().collect()).collect();
        let is_file = parts.iter().all(|part| !part.is_empty());
        is_file && self.patterns.iter().any(|pattern| pattern.fits(&parts))
    }
}

impl Pattern {
    fn parse(line: &str) -> Option<Self> {
        let line = without_trailing_spaces(line);
        if line.starts_with('#') {
            return None;
        }
        let line = line.strip_suffix('/').unwrap_or(line);
        let is_anchored = line.contains('/');
        let line = line.strip_prefix('/').unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        let mut parts: Vec<_> = line.split('/').map(Part::parse).collect();
        if is_anchored && matches!(parts.last(), Some(Part::Any)) {
            // `a/**` is what lies in `a`, not `a` itself.
            parts.push(Part::Name(vec![Token::Many]));
        }
        Some(Self { parts, is_anchored })
    }

    /// How many parts of a path it takes until it fits, in one pass: a path may have thousands.
    fn depth(&self, path: &[Vec<char>]) -> Option<usize> {
        if !self.is_anchored {
            let fits = |name: &Vec<char>| self.parts.iter().all(|part| part.fits(name));
            return path.iter().position(fits).map(|at| at + 1);
        }
        // Where in the pattern one may be after so many parts.
        let end = self.parts.len();
        let mut open = vec![false; end + 1];
        open[0] = true;
        for (at, name) in path.iter().enumerate() {
            let mut next = vec![false; end + 1];
            for (state, part) in self.parts.iter().enumerate() {
                let is_any = matches!(part, Part::Any);
                open[state + 1] |= open[state] && is_any;
                if open[state] && part.fits(name) {
                    next[if is_any { state } else { state + 1 }] = true;
                }
            }
            if next[end] {
                return Some(at + 1);
            }
            open = next;
        }
        None
    }

    fn fits(&self, path: &[Vec<char>]) -> bool {
        let from = if self.is_anchored { 0 } else { path.len() - 1 };
        wild(
            &self.parts,
            &path[from..],
            |part| matches!(part, Part::Any),
            |part, name| part.fits(name),
        )
    }
}

impl Part {
    fn parse(text: &str) -> Self {
        match text {
            "**" => Self::Any,
            _ => Self::Name(tokens(text)),
        }
    }

    fn fits(&self, name: &[char]) -> bool {
        match self {
            Self::Any => true,
            Self::Name(tokens) => name_fits(tokens, name),
        }
    }
}

fn name_fits(tokens: &[Token], name: &[char]) -> bool {
    wild(
        tokens,
        name,
        |token| matches!(token, Token::Many),
        |token, c| match token {
            Token::Many | Token::One => true,
            Token::Char(known) => known == c,
            Token::Set { is_negated, ranges } => {
                let within = ranges.iter().any(|(from, to)| (from..=to).contains(&c));
                within != *is_negated
            }
        },
    )
}

/// Whether `items` fit `pattern`, in which some entries stand for any number of them. Never takes more than the product of
/// both lengths.
fn wild<P, I>(
    pattern: &[P],
    items: &[I],
    is_many: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &I) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    let mut last_many = None;
    while item < items.len() {
        match pattern.get(at) {
            Some(entry) if is_many(entry) => {
                last_many = Some((at, item));
                at += 1;
            }
            Some(entry) if fits(entry, &items[item]) => {
                at += 1;
                item += 1;
            }
            _ => match last_many {
                Some((many, taken)) => {
                    last_many = Some((many, taken + 1));
                    at = many + 1;
                    item = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(is_many)
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let token = match c {
            '*' => Token::Many,
            '?' => Token::One,
            '[' => match set(rest) {
                Some((token, after)) => {
                    rest = after;
                    token
                }
                None => Token::Char('['),
            },
            '\\' => match rest.chars().next() {
                Some(escaped) => {
                    rest = &rest[escaped.len_utf8()..];
                    Token::Char(escaped)
                }
                None => Token::Char('\\'),
            },
            c => Token::Char(c),
        };
        found.push(token);
    }
    found
}

/// A set of characters after its `[`, and what follows it; `None` if it does not end.
fn set(text: &str) -> Option<(Token, &str)> {
    let is_negated = text.starts_with(['!', '^']);
    let body = if is_negated { &text[1..] } else { text };
    // A `]` that comes first is one of the characters.
    let end = body.char_indices().skip(1).find(|(_, c)| *c == ']')?.0;
    if body[..end].contains("[:") {
        let end = body.rfind(']')?;
        return Some((Token::One, &body[end + 1..]));
    }
    let mut ranges = Vec::new();
    let mut chars = body[..end].chars().filter(|c| *c != '\\').peekable();
    while let Some(from) = chars.next() {
        let mut ahead = chars.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) => {
                chars = ahead;
                ranges.push((from, to));
            }
            _ => ranges.push((from, from)),
        }
    }
    Some((Token::Set { is_negated, ranges }, &body[end + 1..]))
}

/// Spaces at the end count only after a backslash.
fn without_trailing_spaces(line: &str) -> &str {
    let trimmed = line.trim_end_matches([' ', '\r', '\n']);
    match trimmed.ends_with('\\') && trimmed.len() < line.len() {
        true => &line[..trimmed.len() + 1],
        false => trimmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m24_patterns_mean_what_they_mean_in_gitignore() {
        for (patterns, path, expected) in [
            (&["*.lock"][..], "Cargo.lock", true),
            (&["*.lock"], "a/b/yarn.lock", true),
            (&["*.lock"], "lock", false),
            (&["/Makefile"], "Makefile", true),
            (&["/Makefile"], "sub/Makefile", false),
            (&["Makefile"], "sub/Makefile", true),
            (&["infra"], "infra/a/b", true),
            (&["infra/"], "infra/a/b", true),
            (&["infra/"], "x/infra/a", true),
            (&["infra/"], "infra", true),
            (&["infra"], "infrared", false),
            (&["src/*.rs"], "src/a.rs", true),
            (&["src/*.rs"], "src/a/b.rs", false),
            (&["src/*.rs"], "x/src/a.rs", false),
            (&["src/**/b.rs"], "src/b.rs", true),
            (&["src/**/b.rs"], "src/x/y/b.rs", true),
            (&["**/secret"], "a/b/secret", true),
            (&["**/secret"], "secret", true),
            (&["a/**"], "a/b/c", true),
            (&["a/**"], "a", false),
            (&["**"], "anything/at/all", true),
            (&["?.txt"], "a.txt", true),
            (&["?.txt"], "ab.txt", false),
            (&["[ab]*.c"], "bx.c", true),
            (&["[!ab]*.c"], "bx.c", false),
            (&["[a-c].c"], "b.c", true),
            (&["[a-c].c"], "d.c", false),
            (&["[]x].c"], "].c", true),
            (&["x[[:digit:]]"], "x1", true),
            (&["[ab"], "[ab", true),
            (&["\\*.c"], "*.c", true),
            (&["\\*.c"], "a.c", false),
            (&["\\#x"], "#x", true),
            (&["# comment", "", "/"], "comment", false),
            (&["x  "], "x", true),
            (&["ä*"], "äöü/x", true),
        ] {
            let list = Patterns::new(patterns.iter().copied());
            assert_eq!(list.matches(path), expected, "{patterns:?} {path}");
            // The shortest way that fits is found in one pass.
            let whole: Vec<_> = path.split('/').collect();
            let mut ways = (1..=whole.len()).map(|depth| whole[..depth].join("/"));
            let first = ways.position(|way| list.names(&way)).map(|at| at + 1);
            assert_eq!(list.depth(path), first, "{patterns:?} {path}");
        }
    }

    #[test]
    fn y7_names_of_any_case_are_meant_where_case_is_ignored() {
        let list = Patterns::of_any_case([".Claude", "**/.github/workflows"]);
        for path in [".claude/x", "a/.CLAUDE", "x/.GitHub/Workflows/ci.yml"] {
            assert!(list.matches(path), "{path}");
        }
        assert!(!list.matches(".github/actions") && !list.matches("claude"));
        assert!(!Patterns::new([".Claude"]).matches(".claude"));
    }

    #[test]
    fn a_long_pattern_takes_no_time() {
        let (name, parts) = ("*a".repeat(60) + "c", "**/a/".repeat(60) + "c");
        let list = Patterns::new([name.as_str(), parts.as_str()]);
        assert!(!list.matches(&"a".repeat(2000)));
        assert!(!list.matches(&["a"; 300].join("/")));
        assert!(list.matches(&(["a"; 300].join("/") + "/c")));
    }
}
