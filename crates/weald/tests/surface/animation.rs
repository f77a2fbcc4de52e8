//! The animation in the README is the demo as it is.

use std::fs;
use std::path::Path;

use crate::env;

/// The texts of the picture, line by line.
fn lines_of(svg: &str) -> Vec<String> {
    let texts = svg.split("<text ").skip(1);
    let line = |text: &str| {
        let inside = text.split_once('>').unwrap().1;
        let inside = inside.split("</text>").next().unwrap();
        let mut parts = inside.split('<');
        let mut line = parts.next().unwrap().to_owned();
        parts.for_each(|part| line.push_str(part.split_once('>').unwrap().1));
        line.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
    };
    texts.map(line).collect()
}

/// What stays the same each time: numbers, times and commits become `0`.
fn story(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let word = |word: &str| {
        let core = word.trim_matches(|c: char| c.is_ascii_punctuation());
        let is_commit = core.len() >= 7 && core.chars().all(|c| c.is_ascii_hexdigit());
        let text = match is_commit {
            true => word.replace(core, "0"),
            false => word.to_owned(),
        };
        let mut plain = String::new();
        for c in text.chars() {
            match c.is_ascii_digit() {
                true if plain.ends_with('0') => {}
                true => plain.push('0'),
                false => plain.push(c),
            }
        }
        plain.replace("0.0", "0")
    };
    let line = |line: String| {
        let words: Vec<_> = line.split_whitespace().map(word).collect();
        words.join(" ").replace("0 ms", "0 s").replace("0ms", "0s")
    };
    let lines = lines.into_iter().map(line);
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn u16_the_animation_in_the_readme_is_the_demo_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/assets/demo.svg");
    let svg = fs::read_to_string(path).unwrap();
    assert!(svg.len() < 150_000, "{} bytes", svg.len());
    let own = svg.replace("http://www.w3.org/2000/svg", "");
    for foreign in ["<script", "http:", "https:", "@import", "<foreignObject"] {
        assert!(
            !own.contains(foreign),
            "pages show no picture with {foreign}"
        );
    }
    let demo = env().weald(&["demo"]);
    assert_eq!(demo.code, 0, "{demo:#?}");
    let shown = story(lines_of(&svg));
    let now = story(demo.stdout.lines().map(str::to_owned));
    assert!(shown.len() > 15, "{shown:#?}");
    assert_eq!(
        shown, now,
        "old; record it again: cargo run -p xtask -- demo-svg"
    );
}
