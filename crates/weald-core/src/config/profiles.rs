//! Profiles: compiled-in TOML files that set keys and nothing else.

/// The names of all profiles.
pub const PROFILES: &[&str] = &[
    "default",
    "classroom",
    "two-plane",
    "refact",
    "jkz",
    "jean-claude",
    "claude-code",
];

pub fn profile_text(name: &str) -> Option<&'static str> {
    Some(match name {
        "default" => include_str!("../../profiles/default.toml"),
        "classroom" => include_str!("../../profiles/classroom.toml"),
        "two-plane" => include_str!("../../profiles/two-plane.toml"),
        "refact" => include_str!("../../profiles/refact.toml"),
        "jkz" => include_str!("../../profiles/jkz.toml"),
        "jean-claude" => include_str!("../../profiles/jean-claude.toml"),
        "claude-code" => include_str!("../../profiles/claude-code.toml"),
        _ => return None,
    })
}
