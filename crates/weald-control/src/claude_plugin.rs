//! The plugin for Claude Code, as it lies in the repository: hooks, the MCP server, a skill, and the marketplace that lists it.
//!
//! It is part of the binary, so that it can be written out wherever Claude Code is to find it, and fits this weald.

use std::path::Path;

use serde_json::Value;

use crate::files;

/// The marketplace's name, and the plugin's in it: `weald@weald`.
pub const NAME: &str = "weald";

/// Where the plugin says how its MCP server is started.
const SERVERS: &str = "plugins/weald/.mcp.json";

/// The largest file that is read.
const LIMIT: u64 = 4 << 20;

/// Every file: its path in the marketplace's folder, and its text.
pub const FILES: &[(&str, &str)] = &[
    (
        ".claude-plugin/marketplace.json",
        include_str!("../../../.claude-plugin/marketplace.json"),
    ),
    (
        "plugins/weald/.claude-plugin/plugin.json",
        include_str!("../../../plugins/weald/.claude-plugin/plugin.json"),
    ),
    (
        "plugins/weald/hooks/hooks.json",
        include_str!("../../../plugins/weald/hooks/hooks.json"),
    ),
    (SERVERS, include_str!("../../../plugins/weald/.mcp.json")),
    (
        "plugins/weald/skills/weald/SKILL.md",
        include_str!("../../../plugins/weald/skills/weald/SKILL.md"),
    ),
];

/// The program, by its path, that the plugin starts as its MCP server, if these settings of Claude Code's enable one that
/// `weald install` put there. None if it is called by its name, or is not there.
pub fn program_in(settings: &Path) -> Option<String> {
    let read = |path: &Path| -> Option<Value> {
        let text = files::read_small(path, LIMIT).ok()??;
        serde_json::from_str(&text).ok()
    };
    let settings = read(settings)?;
    let is_enabled = settings["enabledPlugins"]["weald@weald"].as_bool();
    let folder = settings["extraKnownMarketplaces"][NAME]["source"]["path"].as_str();
    let servers = read(&Path::new(folder.filter(|_| is_enabled == Some(true))?).join(SERVERS))?;
    let program = Path::new(servers["mcpServers"][NAME]["command"].as_str()?);
    let is_there = program.is_absolute() && files::is_program(program);
    program.to_str().filter(|_| is_there).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(path: &str) -> Value {
        let (_, text) = FILES.iter().find(|(known, _)| *known == path).unwrap();
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_plugin_is_of_this_version_and_where_its_marketplace_says() {
        let plugin = json("plugins/weald/.claude-plugin/plugin.json");
        assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(plugin["name"], NAME);
        let listed = &json(".claude-plugin/marketplace.json")["plugins"][0];
        assert_eq!(listed["name"], NAME);
        assert_eq!(listed["source"], "./plugins/weald");
        let servers = &json(SERVERS)["mcpServers"];
        assert_eq!(servers["weald"]["args"], serde_json::json!(["mcp"]));
    }

    #[test]
    fn a_skill_has_the_name_of_its_folder_and_a_short_description() {
        let skills = FILES.iter().filter(|(path, _)| path.ends_with("SKILL.md"));
        for (path, text) in skills {
            let folder = path.rsplit('/').nth(1).unwrap();
            assert!(text.starts_with(&format!("---\nname: {folder}\ndescription: ")));
            assert!(text.lines().nth(2).unwrap().len() <= 1024 + "description: ".len());
        }
    }
}
