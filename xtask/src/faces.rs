//! Which face can set which field of which operation, read from the sources.
//!
//! A face makes a request as a whole struct, so what a face does stands in that literal: a field whose value is a constant
//! there is the face's decision, and any other value comes from the caller. docs/operations.md has the table, and
//! `tests/faces.rs` compares the two. An argument that reaches no request is an unused field, which the compiler refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::measure::without_tests;
use crate::tidy::{root, sources};

/// The file of what the MCP server does on its own, whoever calls.
const OWN_CALLS: &str = "caller";

/// What stands above the table.
const HEAD: &str = "\
# Operations

Everything that weald does is an operation: a request, the work, and an answer. A face makes the request from what its
caller gave. This table says which fields of a request the callers of a face can set. `cargo run -p xtask -- faces` prints
this page, and a test compares it with the sources.

| cell | meaning |
|---|---|
| `yes`, or names of tools | the caller sets the field |
| `fixed` | the face does the operation, and always with the same value in this field |
| empty | the face does not do the operation |

A field that only the command line sets is not offered over MCP or from inside a sandbox. The broker answers
commands from inside a sandbox: it refuses what is not the run's own. An operation with a star prints while it works, or
hands its streams to a command, so no server does it; the tool worktree_run starts `weald run`.

| operation | field | command line | MCP | broker |
|---|---|---|---|---|
";

/// Prints docs/operations.md.
pub fn report() -> io::Result<()> {
    use std::io::Write as _;
    write!(io::stdout(), "{}", page(&root())?)
}

/// The page as the sources have it.
pub fn page(root: &Path) -> io::Result<String> {
    let mut page = HEAD.to_owned();
    for operation in operations(root)? {
        let star = if operation.takes_streams { "*" } else { "" };
        let mut name = format!("`{}`{star}", operation.name);
        for row in &operation.rows {
            let field = match row.field.as_str() {
                "" => String::new(),
                field => format!("`{field}`"),
            };
            let [person, tools, broker] = &row.cells;
            let _ = writeln!(page, "| {name} | {field} | {person} | {tools} | {broker} |");
            name.clear();
        }
    }
    Ok(page)
}

/// An operation, and what its faces set of it.
pub struct Faces {
    pub name: String,
    pub request: String,
    takes_streams: bool,
    rows: Vec<Row>,
}

struct Row {
    field: String,
    cells: [String; 3],
}

/// Every operation, by name.
pub fn operations(root: &Path) -> io::Result<Vec<Faces>> {
    let own = texts(root, "crates/weald-app/src")?;
    let commands = texts(root, "crates/weald/src")?;
    let tools = texts(root, "crates/weald-server/src/mcp")?;
    let types: BTreeMap<_, _> = own.iter().flat_map(|(_, text)| types(text)).collect();
    let mut found = Vec::new();
    for (_, text) in &own {
        for (request, body) in blocks(text, "impl Operation for ") {
            let ask = asked(text, body);
            let is_asked = ask.is_some();
            let mut rows = Vec::new();
            for field in fields(&types, request) {
                let person = cell(&commands, request, &field).map(|from| match from.is_empty() {
                    true => "fixed".to_owned(),
                    false => "yes".to_owned(),
                });
                let tools = cell(&tools, request, &field).map(|from| match from.is_empty() {
                    true => "fixed".to_owned(),
                    false => from.into_iter().collect::<Vec<_>>().join(", "),
                });
                let broker = ask.as_ref().map(|ask| match field.is_in(ask) {
                    true => "yes".to_owned(),
                    false => "fixed".to_owned(),
                });
                rows.push(Row {
                    cells: [person, tools, broker].map(Option::unwrap_or_default),
                    field: field.path,
                });
            }
            if rows.is_empty() {
                let does = |texts: &[(PathBuf, String)]| match texts
                    .iter()
                    .any(|(_, text)| is_made(text, request))
                {
                    true => "yes".to_owned(),
                    false => String::new(),
                };
                let broker = if is_asked { "yes" } else { "" };
                rows.push(Row {
                    field: String::new(),
                    cells: [does(&commands), does(&tools), broker.to_owned()],
                });
            }
            let name = body.split("const NAME: &'static str = \"").nth(1);
            let name = name.and_then(|rest| rest.split('"').next());
            found.push(Faces {
                request: request.to_owned(),
                name: name.unwrap_or_default().to_owned(),
                takes_streams: body.contains("const TAKES_STREAMS: bool = true"),
                rows,
            });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// A field of a request, or of a part of it.
struct Field {
    /// As the table has it: `how.model`.
    path: String,
    /// In which literals it is set, the outermost first: how each begins, and the field in it.
    steps: Vec<(String, String)>,
}

impl Field {
    /// Whether a run can say it to its broker.
    fn is_in(&self, ask: &str) -> bool {
        let (_, own) = &self.steps[0];
        let whole = ["self.clone()", "(self)"];
        let is_own = mentions(ask, &format!("self.{own}"))
            && self.variants().all(|(literal, field)| {
                let mut bound = literals(ask, literal);
                bound.any(|given| given.iter().any(|(name, _)| name == field))
            });
        is_own || whole.iter().any(|whole| ask.contains(whole))
    }

    /// The steps that are choices among several.
    fn variants(&self) -> impl Iterator<Item = &(String, String)> {
        let steps = self.steps.iter();
        steps.filter(|(literal, _)| literal.contains("::"))
    }

    /// Whether a text that makes the request sets it. What stands in no literal there comes from a function that makes it
    /// for several requests, somewhere in `all`.
    fn is_set(&self, text: &str, all: &[(PathBuf, String)]) -> bool {
        if !self.variants().all(|(literal, _)| text.contains(literal)) {
            return false;
        }
        let sets = |text: &str, (literal, field): &(String, String)| {
            literals(text, literal).any(|given| {
                let value = given.iter().find(|(name, _)| name == field);
                value.is_some_and(|(_, value)| !is_constant(value))
            })
        };
        let makes =
            |text: &str, (literal, _): &(String, String)| literals(text, literal).next().is_some();
        let (request, parts) = (&self.steps[0], &self.steps[1..]);
        sets(text, request)
            && parts.iter().all(|step| match makes(text, step) {
                true => sets(text, step),
                false => all.iter().any(|(_, text)| sets(text, step)),
            })
    }
}

/// The fields of a type, those of its parts instead of a field that has some.
fn fields(types: &BTreeMap<String, Vec<Declared>>, name: &str) -> Vec<Field> {
    let declared = types.get(name).into_iter().flatten();
    let mut all = Vec::new();
    for declared in declared {
        let (literal, own) = match &declared.variant {
            None => (name.to_owned(), declared.name.clone()),
            Some(variant) => (
                format!("{name}::{variant}"),
                format!("{}.{}", in_json(variant), declared.name),
            ),
        };
        let step = (literal, declared.name.clone());
        let inner = fields(types, &declared.of);
        // What is chosen among several is a field of its own.
        if inner.is_empty() || inner[0].steps[0].0.contains("::") {
            all.push(Field {
                path: own.clone(),
                steps: vec![step.clone()],
            });
        }
        all.extend(inner.into_iter().map(|inner| Field {
            path: format!("{own}.{}", inner.path),
            steps: [vec![step.clone()], inner.steps].concat(),
        }));
    }
    all
}

/// A variant as requests name it.
fn in_json(variant: &str) -> String {
    let mut name = String::new();
    for letter in variant.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Where a face sets a field: in which files, `None` if it does not make the request at all.
fn cell(texts: &[(PathBuf, String)], request: &str, field: &Field) -> Option<BTreeSet<String>> {
    let (mut does, mut sets) = (false, BTreeSet::new());
    for (path, text) in texts.iter().filter(|(_, text)| is_made(text, request)) {
        does = true;
        let stem = path.file_stem().unwrap_or_default();
        if stem != OWN_CALLS && field.is_set(text, texts) {
            sets.insert(stem.to_string_lossy().into_owned());
        }
    }
    does.then_some(sets)
}

/// Whether a text makes a request.
fn is_made(text: &str, request: &str) -> bool {
    literals(text, request).next().is_some() || text.contains(&format!("{request}::default()"))
}

/// What an operation asks its broker for: the function, and what it calls of the same file.
fn asked(text: &str, body: &str) -> Option<String> {
    let (_, inside) = body.split_once("    fn run_inside(&self")?;
    let inside = inside.split("\n    }\n").next().unwrap_or_default();
    let mut all = inside.to_owned();
    for (call, _) in inside
        .split("self.")
        .skip(1)
        .filter_map(|rest| rest.split_once('('))
    {
        let helper = format!("fn {call}(&self");
        let helper = text.split_once(helper.as_str());
        all.extend(helper.and_then(|(_, rest)| rest.split("\n    }\n").next()));
    }
    // What is only compared is refused, or makes no difference to what is asked.
    let is_condition = |line: &&str| ["if ", "|| ", "&& "].iter().any(|it| line.starts_with(it));
    let asks = all.lines().filter(|line| !is_condition(&line.trim_start()));
    Some(asks.collect::<Vec<_>>().join("\n"))
}

/// A field that a type declares, in a variant if it is one of several.
struct Declared {
    variant: Option<String>,
    name: String,
    of: String,
}

/// The types of a source that a request may consist of.
fn types(text: &str) -> Vec<(String, Vec<Declared>)> {
    let structs = blocks(text, "pub struct ").into_iter().map(|(name, body)| {
        let fields = body
            .lines()
            .filter_map(|line| declared(line.strip_prefix("    pub ")?));
        (name.to_owned(), fields.collect())
    });
    let enums = blocks(text, "pub enum ").into_iter().map(|(name, body)| {
        let (mut variant, mut fields) = (String::new(), Vec::new());
        for line in body.lines() {
            if let Some(name) = line.strip_suffix(" {") {
                variant = name.trim().to_owned();
            } else if let Some(field) = line.strip_prefix("        ").and_then(declared) {
                let variant = Some(variant.clone());
                fields.push(Declared { variant, ..field });
            }
        }
        (name.to_owned(), fields)
    });
    structs.chain(enums).collect()
}

fn declared(line: &str) -> Option<Declared> {
    let (name, of) = line.strip_suffix(',')?.split_once(": ")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let of = of.rsplit('<').next().unwrap_or(of).trim_end_matches('>');
    name.chars().all(is_name).then(|| Declared {
        variant: None,
        name: name.to_owned(),
        of: of.to_owned(),
    })
}

/// What begins with these words and a name at the start of a line, up to its closing brace.
fn blocks<'t>(text: &'t str, words: &str) -> Vec<(&'t str, &'t str)> {
    let start = format!("\n{words}");
    let starts = text.match_indices(start.as_str());
    let found = starts.filter_map(|(place, _)| {
        let (name, rest) = text[place + start.len()..].split_once(" {")?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric());
        let body = match rest.starts_with('}') {
            true => "",
            false => rest.split("\n}\n").next()?,
        };
        is_name.then_some((name, body))
    });
    found.collect()
}

/// The fields of each literal of a type, with their values; shorthand is its own value.
fn literals<'t>(
    text: &'t str,
    name: &str,
) -> impl Iterator<Item = Vec<(&'t str, &'t str)>> + use<'t> {
    let renamed = text.split_once(&format!("{name} as "));
    let renamed = renamed.and_then(|(_, rest)| rest.split([',', ';', '}']).next());
    let start = format!("{} {{", renamed.unwrap_or(name).trim());
    let starts: Vec<_> = text
        .match_indices(start.as_str())
        .map(|(place, _)| place)
        .collect();
    let length = start.len();
    starts.into_iter().filter_map(move |place| {
        let before = &text[..place];
        let is_end = |word: &str| before.ends_with(word);
        let is_part = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if is_part
            || ["struct ", "enum ", "impl ", "for ", "-> "]
                .into_iter()
                .any(is_end)
        {
            return None;
        }
        let (parts, _) = split(&text[place + length..]);
        let fields = parts.into_iter().filter(|part| !part.starts_with(".."));
        Some(
            fields
                .map(|part| part.split_once(": ").unwrap_or((part, part)))
                .collect(),
        )
    })
}

/// The parts between commas up to the brace that closes, and what follows it.
fn split(text: &str) -> (Vec<&str>, &str) {
    let (mut depth, mut start, mut parts, mut quoted) = (0, 0, Vec::new(), false);
    let mut before = ' ';
    for (place, sign) in text.char_indices() {
        match sign {
            '"' if before != '\\' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(uncommented(&text[start..place]));
                start = place + 1;
                if sign == '}' {
                    break;
                }
            }
            _ => {}
        }
        before = sign;
    }
    parts.retain(|part| !part.is_empty());
    (parts, &text[start..])
}

/// The same without comments above it.
fn uncommented(part: &str) -> &str {
    let part = part.trim();
    match part.strip_prefix("//") {
        Some(comment) => comment
            .split_once('\n')
            .map_or("", |(_, rest)| uncommented(rest)),
        None => part,
    }
}

/// Whether a value is the face's own: it names no variable.
fn is_constant(value: &str) -> bool {
    let texts_out: String = value.split('"').step_by(2).collect();
    let words = texts_out.split(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    let is_fixed = |word: &str| {
        let is_path = word.contains("::") && word.starts_with(|c: char| c.is_ascii_uppercase());
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        is_path || is_number || ["", "true", "false", "None", "Some"].contains(&word)
    };
    let mut words = words.map(|word| word.trim_matches(':'));
    words.all(is_fixed)
}

/// Whether a word stands in a text.
fn mentions(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(place, _)| {
        !text[..place].ends_with(is_part) && !text[place + word.len()..].starts_with(is_part)
    })
}

/// The sources below a folder without their tests.
fn texts(root: &Path, folder: &str) -> io::Result<Vec<(PathBuf, String)>> {
    let folder = root.join(folder);
    let files = sources(root)?.into_iter();
    let files = files.filter(|file| file.starts_with(&folder));
    files
        .map(|file| {
            let text = without_tests(&fs::read_to_string(&file)?);
            Ok((file, text))
        })
        .collect()
}
