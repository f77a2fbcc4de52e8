//! What of a cargo `target` folder is not copied, because it would answer for main.
//!
//! cargo (seen with 1.95) takes a moved `target` for fresh although paths were compiled in.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use weald_core::setup::{is_bound_to, renamed};

use weald_control::files;

/// The largest file that is looked into.
const LIMIT: u64 = 4 << 20;

/// Records of units that have a path of main compiled in, relative to main: without its record cargo builds a unit again.
/// Empty for any other folder.
pub(super) fn bound_to_main(main: &Path, folder: &Path) -> HashSet<PathBuf> {
    let mut found = HashSet::new();
    if !main.join(folder).join(".rustc_info.json").is_file() {
        return found;
    }
    // `debug`, `release`, and the same below a folder for another kind of machine.
    let profiles = folders_of(main, folder);
    let deeper: Vec<_> = profiles
        .iter()
        .flat_map(|folder| folders_of(main, folder))
        .collect();
    for profile in profiles.iter().chain(&deeper) {
        if main.join(profile).join(".fingerprint").is_dir() {
            let units = bound_units(main, folder, profile);
            let records = folders_of(main, &profile.join(".fingerprint"));
            let is_bound =
                |record: &PathBuf| hash_of(record).is_some_and(|hash| units.contains(&hash));
            found.extend(records.into_iter().filter(is_bound));
        }
    }
    found
}

/// The hashes of such units.
fn bound_units(main: &Path, target: &Path, profile: &Path) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut lists = files_of(&main.join(profile).join("deps"), "d");
    for script in folders_of(main, &profile.join("build")) {
        let script_folder = main.join(&script);
        lists.extend(files_of(&script_folder, "d"));
        if answers_for_main(&script_folder, main, &main.join(target)) {
            found.extend(hash_of(&script));
        }
    }
    for list in lists {
        let text = files::read_small(&list, LIMIT).ok().flatten();
        if text.is_some_and(|text| is_bound_to(&text, main)) {
            found.extend(hash_of(&list.with_extension("")));
        }
    }
    found
}

/// Whether a build script told cargo about places in main, or wrote them into sources. Its own folder is cargo's to move.
fn answers_for_main(script: &Path, main: &Path, target: &Path) -> bool {
    let nowhere = Path::new("");
    let told = files::read_small(&script.join("output"), LIMIT)
        .ok()
        .flatten();
    let told = told.is_some_and(|text| {
        let without = renamed(text.as_bytes(), target, nowhere).unwrap_or(text.into_bytes());
        renamed(&without, main, nowhere).is_some()
    });
    told || files_of(&script.join("out"), "rs").iter().any(|source| {
        let text = files::read_small(source, LIMIT).ok().flatten();
        text.is_some_and(|text| renamed(text.as_bytes(), main, nowhere).is_some())
    })
}

/// What stands behind the last dash of a name.
fn hash_of(path: &Path) -> Option<String> {
    let (_, hash) = path.file_name()?.to_str()?.rsplit_once('-')?;
    Some(hash.to_owned())
}

fn folders_of(main: &Path, folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(main.join(folder)).into_iter().flatten();
    let folders = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .map(|entry| folder.join(entry.file_name()))
        .collect()
}

fn files_of(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}
