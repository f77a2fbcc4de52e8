//! Whether a landing needs a person's approval, and whether it has one.
//!
//! Pure: the engine finds out what changed, keeps the secret and makes seals with it.

mod patterns;
mod programs;
mod ways;

use jiff::Timestamp;

use crate::id::TreeId;
use crate::setup::SETTINGS_FILES;
use crate::tree::Approval;

pub use patterns::Patterns;
pub use programs::{ConfigPlace, places_named};
pub use ways::{Reach, Ways};

/// The repository's own settings: what they say counts for everybody once they are on the target.
pub const SETTINGS: &str = "weald.toml";

/// Settings of Claude Code, which weald reads at the target's tip and Claude Code runs hooks from.
const CLAUDE_SETTINGS: &str = ".claude/settings.json";

/// Whether a changed path decides what weald does on the target, whatever is configured.
pub fn is_always_protected(path: &str) -> bool {
    let read = SETTINGS_FILES.iter().map(|file| file.path);
    read.chain([SETTINGS, CLAUDE_SETTINGS])
        .any(|known| known == path)
}

/// Names that programs on the host act on without asking, at any depth: settings, hooks and servers of agents and editors,
/// hooks of git, what CI and package managers run, and what weald copies. The default of `policy.protected`.
pub const PROTECTED: &str = ".claude, .mcp.json, .codex, .gemini, opencode.json*, .opencode, .cursor, .windsurf, .kiro, .roo, .continue, \
     .trae, .junie, .qwen, .clinerules, .factory, .kilocode, .augment, .amp, .openhands, .copilot, .grok, .agents, \
     .amazonq, .cline, .codebuddy, .iflow, .pi, .rovodev, \
     .crush.json, crush.json, .aider.conf.yml, .zed, .helix, .envrc, .vscode, *.code-workspace, .idea, .exrc, \
     .vim, .vimrc, _vimrc, .nvimrc, .nvim.lua, .dir-locals.el, .dir-locals-2.el, .husky, .huskyrc*, .githooks, \
     lefthook*, .lefthook*, .pre-commit-config.yaml, prek.toml, hk.pkl, .overcommit.yml, captainhook.json, \
     *simple-git-hooks.*, .lintstagedrc*, lint-staged.config.*, .devcontainer, .devcontainer.json, \
     **/.github/workflows, **/.github/actions, **/.github/hooks, **/.forgejo/workflows, **/.gitea/workflows, \
     .gitlab-ci.yml, .circleci, .travis.yml, .drone.yml, .woodpecker*, .buildkite, .cirrus.yml, *appveyor.yml, \
     .semaphore, .builds, azure-pipelines*, bitbucket-pipelines.yml, Jenkinsfile, .gitattributes, .gitmodules, \
     .lfsconfig, .worktreeinclude, .npmrc, .pnpmfile.cjs, .yarnrc*, **/.yarn/releases, bunfig.toml, mise*.toml, \
     .mise, .mise*.toml, **/.config/mise*, **/mise/config.toml, rust-toolchain, rust-toolchain.toml, .mvn, .ctags.d, .pdbrc*, \
     .perldb, .Rprofile, .RData, .irbrc, .ghci, .ocamlinit, .octaverc, .iex.exs, .erlang, .hg, .sl, \
     **/.cargo/config*, .bazelrc, **/tools/bazel, weald.toml";

/// What needs a person's word before it changes on the target.
#[derive(Debug, Clone)]
pub struct Protection(Patterns);

impl Protection {
    /// By what `policy.protected` holds.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        Self(Patterns::of_any_case(patterns))
    }

    /// Whether a path is protected, or a directory that it lies in. What kind of entry is there does not matter.
    pub fn protects(&self, path: &str) -> bool {
        self.outermost(path).is_some()
    }

    /// The shortest way along a path that is protected.
    pub fn outermost<'p>(&self, path: &'p str) -> Option<&'p str> {
        match self.0.depth(path) {
            Some(depth) => {
                let end = path.match_indices('/').nth(depth - 1);
                Some(end.map_or(path, |(end, _)| &path[..end]))
            }
            None => (is_always_protected(path) || is_shortcut(path)).then_some(path),
        }
    }
}

/// Folders that hold protected files and others. As an entry of its own (a link, a submodule) such a name leads to files
/// that nobody looked at.
const FOLDERS: [&str; 5] = [".cargo", ".github", ".forgejo", ".gitea", ".yarn"];

fn is_shortcut(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    FOLDERS
        .iter()
        .any(|folder| name.eq_ignore_ascii_case(folder))
}

/// What is sealed of an approval: every field with its length before it, so that none can be taken for another.
pub fn sealed_text(tree: TreeId, head: &str, target: &str, at: Timestamp) -> Vec<u8> {
    let (tree, at) = (tree.to_string(), at.to_string());
    let fields = ["weald approval 1", &tree, head, target, &at];
    let mut text = Vec::new();
    for field in fields {
        text.extend((field.len() as u64).to_be_bytes());
        text.extend(field.as_bytes());
    }
    text
}

/// What an approval lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lacking {
    #[error("nobody has approved it")]
    Nothing,
    /// It was for other commits.
    #[error("its approval is for {approved}, but its head is {head}")]
    OtherHead { approved: String, head: String },
    /// It was for another branch.
    #[error("it was approved for {approved}, but would land on {target}")]
    OtherTarget {
        approved: String,
        /// Where it would land.
        target: String,
    },
    /// Its seal was not made with the user's secret.
    #[error("its approval was not made with your secret")]
    Seal,
}

/// Whether `head` may land on `target`; `is_genuine` says whether a seal was made with the user's secret.
pub fn judge(
    approval: Option<&Approval>,
    head: &str,
    target: &str,
    is_genuine: impl FnOnce(&Approval) -> bool,
) -> Result<(), Lacking> {
    let approval = approval.ok_or(Lacking::Nothing)?;
    if approval.head != head {
        return Err(Lacking::OtherHead {
            approved: short(&approval.head),
            head: short(head),
        });
    }
    if approval.target != target {
        return Err(Lacking::OtherTarget {
            approved: approval.target.clone(),
            target: target.to_owned(),
        });
    }
    match is_genuine(approval) {
        true => Ok(()),
        false => Err(Lacking::Seal),
    }
}

fn short(id: &str) -> String {
    id.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(head: &str, target: &str) -> Approval {
        Approval {
            head: head.to_owned(),
            target: target.to_owned(),
            at: Timestamp::UNIX_EPOCH,
            by: None,
            seal: "s".to_owned(),
        }
    }

    #[test]
    fn m18_an_approval_holds_for_one_head_one_target_and_one_secret() {
        let given = approval("h1", "main");
        let asked = |head, target, genuine| judge(Some(&given), head, target, |_| genuine);
        assert_eq!(asked("h1", "main", true), Ok(()));
        assert_eq!(asked("h1", "main", false), Err(Lacking::Seal));
        assert!(matches!(
            asked("h2", "main", true),
            Err(Lacking::OtherHead { .. })
        ));
        assert!(matches!(
            asked("h1", "dev", true),
            Err(Lacking::OtherTarget { .. })
        ));
        assert_eq!(judge(None, "h1", "main", |_| true), Err(Lacking::Nothing));
    }

    #[test]
    fn m18_no_two_approvals_are_sealed_by_the_same_text() {
        let at = Timestamp::UNIX_EPOCH;
        let later = Timestamp::from_second(1).unwrap();
        let texts = [
            sealed_text(TreeId(1), "ab", "main", at),
            sealed_text(TreeId(2), "ab", "main", at),
            sealed_text(TreeId(1), "a", "bmain", at),
            sealed_text(TreeId(1), "abm", "ain", at),
            sealed_text(TreeId(1), "ab", "main", later),
        ];
        for (number, text) in texts.iter().enumerate() {
            assert!(!texts[number + 1..].contains(text), "{number}");
        }
    }

    #[test]
    fn y7_what_programs_act_on_without_asking_is_protected_by_default() {
        let protection = Protection::new(PROTECTED.split(',').map(str::trim));
        for (path, outermost) in [
            (".claude/settings.local.json", ".claude"),
            ("a/b/.Claude/x", "a/b/.Claude"),
            (".claude", ".claude"),
            ("sub/.mcp.json", "sub/.mcp.json"),
            ("opencode.jsonc", "opencode.jsonc"),
            (".github/workflows/ci.yml", ".github/workflows"),
            ("x/.github/workflows/ci.yml", "x/.github/workflows"),
            ("lefthook.yml", "lefthook.yml"),
            ("crates/a/.cargo/config.toml", "crates/a/.cargo/config.toml"),
            ("docs/weald.toml", "docs/weald.toml"),
            ("conductor.json", "conductor.json"),
            ("a/.kiro/hooks/x", "a/.kiro"),
            (".amazonq/mcp.json", ".amazonq"),
            ("a/.amazonq/cli-agents/x.json", "a/.amazonq"),
            (".pi/settings.json", ".pi"),
            (".iflow/settings.json", ".iflow"),
            (".codebuddy/settings.json", ".codebuddy"),
            (".rovodev/config.yml", ".rovodev"),
            (".cline/mcp.json", ".cline"),
            ("x/.sl/config", "x/.sl"),
            (".aider.conf.yml", ".aider.conf.yml"),
            ("x/.bazelrc", "x/.bazelrc"),
            ("all.code-workspace", "all.code-workspace"),
            ("a/.mvn/jvm.config", "a/.mvn"),
            ("rust-toolchain.toml", "rust-toolchain.toml"),
            ("x/.config/mise/config.toml", "x/.config/mise"),
            (".github/hooks/x", ".github/hooks"),
            ("ci/Jenkinsfile", "ci/Jenkinsfile"),
            (".simple-git-hooks.json", ".simple-git-hooks.json"),
        ] {
            assert_eq!(protection.outermost(path), Some(outermost), "{path}");
        }
        for path in [
            ".gitignore",
            "src/claude.rs",
            "CLAUDE.md",
            ".github/CODEOWNERS",
            ".cargo/x",
            "a.claude",
            "src/pi.rs",
            "a.sl",
        ] {
            assert!(!protection.protects(path), "{path}");
        }
    }

    #[test]
    fn m24_what_weald_reads_at_the_target_is_always_protected() {
        for path in ["weald.toml", ".config/wt.toml", "conductor.json"] {
            assert!(is_always_protected(path), "{path}");
        }
        for path in ["docs/weald.toml", "weald.toml.md", "Weald.toml"] {
            assert!(!is_always_protected(path), "{path}");
        }
    }
}
