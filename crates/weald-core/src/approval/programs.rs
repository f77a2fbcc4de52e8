//! What git's configuration names: programs that git runs, folders that it runs programs from, and further configuration.

/// A place that an entry of git's configuration names, as it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigPlace {
    /// A file that git reads as configuration; a relative path begins where the entry's own file is.
    Included(String),
    /// A folder that programs are run from; a relative path begins at the top of a checkout.
    Folder(String),
    /// A file that a command may run or obey; a relative path begins at the top of a checkout.
    File(String),
}

/// Last words of keys whose value is a command, or a program's path.
const COMMANDS: [&str; 38] = [
    "alternaterefscommand",
    "askpass",
    "authorsprog",
    "cccmd",
    "clean",
    "cmd",
    "command",
    "defaultkeycommand",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "guitool",
    "headercmd",
    "helper",
    "httpd",
    "packobjectshook",
    "pager",
    "path",
    "process",
    "program",
    "recentobjectshook",
    "receivepack",
    "sendmailcmd",
    "smtpserver",
    "smudge",
    "sshcommand",
    "textconv",
    "tocmd",
    "tunnel",
    "update",
    "uploadpack",
    "vcs",
    "viewer",
    "attributesfile",
    "browser",
];

/// Sections whose every value is a command.
const SECTIONS: [&str; 2] = ["alias", "pager"];

/// How programs that run a file they are given begin.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "perl", "ruby", "node", "deno", "bun",
    "php", "lua", "source", ".",
];

/// What an entry of git's configuration names. The key is as git lists it: its first and last words in lower case.
pub fn places_named(key: &str, value: &str) -> Vec<ConfigPlace> {
    let section = key.split('.').next().unwrap_or_default();
    let last = key.rsplit('.').next().unwrap_or_default();
    match (section, last) {
        ("include" | "includeif", "path") => vec![ConfigPlace::Included(value.to_owned())],
        ("submodule" | "safe", "path" | "directory") => Vec::new(),
        ("core", "hookspath") | ("init", "templatedir") => {
            vec![ConfigPlace::Folder(value.to_owned())]
        }
        ("remote", "url" | "pushurl") => match value.strip_prefix("ext::") {
            Some(command) => files_of(command, section),
            None => Vec::new(),
        },
        ("url", "insteadof" | "pushinsteadof") => {
            let base = key["url.".len()..].strip_prefix("ext::");
            let command = base.and_then(|base| base.rsplit_once('.'));
            command.map_or_else(Vec::new, |(command, _)| files_of(command, section))
        }
        // An alias without it is a command of git's.
        ("alias", _) if !value.starts_with('!') => Vec::new(),
        _ if SECTIONS.contains(&section) || COMMANDS.contains(&last) => files_of(value, section),
        _ => Vec::new(),
    }
}

/// The words of a command that may be files: the path of a program, and what an interpreter is given.
fn files_of(value: &str, section: &str) -> Vec<ConfigPlace> {
    let is_end = |c: char| c.is_whitespace() || "\"'`;|&()<>{}=,!".contains(c);
    let value = value.trim_start_matches('!');
    let mut found = vec![value];
    // One in quotes may have spaces in it.
    found.extend(value.split(['"', '\'']));
    let (mut is_given, mut enters, mut folders) = (false, false, Vec::new());
    for (number, word) in value
        .split(is_end)
        .filter(|word| !word.is_empty())
        .enumerate()
    {
        let name = word.rsplit('/').next().unwrap_or(word);
        // The shell finds a bare name in its folders of programs, and what an alias is given is mostly no program.
        let is_file = word.contains('/') || is_given || (number > 0 && section != "alias");
        if is_file {
            found.push(word);
        }
        // What comes after `cd tools` is looked for there, too.
        if enters && !word.starts_with('-') {
            let folder = word.trim_end_matches('/');
            let inner = folders.last().map(|outer| format!("{outer}/{folder}"));
            folders.extend([folder.to_owned()].into_iter().chain(inner));
        }
        enters = matches!(name, "cd" | "pushd" | "-C") || enters && word.starts_with('-');
        is_given |= INTERPRETERS.iter().any(|known| match known.len() {
            0..=2 => name == *known,
            _ => name.starts_with(known),
        });
    }
    let mut files = Vec::new();
    for word in found {
        let is_path = word.contains('/') || !word.contains(char::is_whitespace);
        // What a variable or another command says comes first: the rest is taken from the top.
        let from_top = match word.strip_prefix('$') {
            Some(rest) => rest.split_once('/').map(|(_, rest)| rest),
            None => word.strip_prefix('/'),
        };
        let is_bare_program = word == value && !word.contains('/');
        for text in [Some(word), from_top].into_iter().flatten() {
            if is_path && !is_bare_program && !matches!(text, "" | "." | "..") {
                let inner = folders.iter().map(|folder| format!("{folder}/{text}"));
                files.extend(inner.map(ConfigPlace::File));
                files.push(ConfigPlace::File(text.to_owned()));
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn y7_files_are_found_in_the_commands_that_git_is_configured_with() {
        for (key, value, expected) in [
            (
                "filter.fmt.clean",
                "scripts/fmt.sh",
                &["scripts/fmt.sh"][..],
            ),
            ("filter.fmt.smudge", "python3 -u fmt.py %f", &["fmt.py"]),
            (
                "diff.x.textconv",
                "sh -c './tools/show \"$0\"'",
                &["./tools/show"],
            ),
            (
                "merge.x.driver",
                "\"my tools/merge\" %O %A",
                &["my tools/merge"],
            ),
            ("core.fsmonitor", ".git-watch/run", &[".git-watch/run"]),
            ("core.sshcommand", "ssh -F etc/ssh", &["etc/ssh"]),
            (
                "alias.up",
                "!$(git rev-parse --show-toplevel)/bin/up",
                &["bin/up"],
            ),
            ("alias.up", "!$PWD/bin/up", &["bin/up"]),
            ("alias.x", "!bash x.sh", &["x.sh"]),
            ("pager.log", "tools/page", &["tools/page"]),
            (
                "credential.https://h.helper",
                "!f() { bin/cred; }; f",
                &["bin/cred"],
            ),
            ("mergetool.m.path", "bin/m", &["bin/m"]),
            ("alias.x", "!cd tools && ./x", &["tools/./x", "./x"]),
            ("alias.x", "!git -C lib status; bin/x", &["lib/bin/x"]),
            (
                "alias.x",
                "!cd a && cd b && ./x",
                &["a/./x", "b/./x", "a/b/./x"],
            ),
            ("url.ext::tools/x %S.insteadof", "x:", &["tools/x"]),
            ("gc.recentobjectshook", "tools/x", &["tools/x"]),
            ("svn.authorsprog", "tools/x", &["tools/x"]),
            ("remote.o.url", "ext::tools/x %S", &["tools/x"]),
        ] {
            let found = places_named(key, value);
            for file in expected {
                let file = ConfigPlace::File((*file).to_owned());
                assert!(found.contains(&file), "{key} {value} {found:?}");
            }
        }
        for (key, value) in [
            ("alias.todo", "!git grep TODO README.md"),
            ("alias.st", "status -sb src/main"),
            ("filter.x.smudge", "cat"),
            ("core.fsmonitor", "true"),
            ("user.name", "docs/x"),
            ("submodule.lib.path", "lib/x"),
            ("remote.origin.url", "../x"),
        ] {
            let found = places_named(key, value);
            let named = [
                "README.md",
                "cat",
                "true",
                "docs/x",
                "src/main",
                "../x",
                "lib/x",
            ];
            let is_named = |file: &ConfigPlace| matches!(file, ConfigPlace::File(file) if named.contains(&&**file));
            assert!(!found.iter().any(is_named), "{key} {value} {found:?}");
        }
        let included = [ConfigPlace::Included("../x".to_owned())];
        assert_eq!(places_named("include.path", "../x"), included);
        assert_eq!(
            places_named("includeif.gitdir:/a.b/.path", "../x"),
            included
        );
        let folder = ConfigPlace::Folder("a/../hooks".to_owned());
        assert_eq!(places_named("core.hookspath", "a/../hooks"), [folder]);
    }
}
