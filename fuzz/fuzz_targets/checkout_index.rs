#![no_main]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::LazyLock;

use weald_git::Door;

/// A checkout with the names that indexes in the corpus have.
static DOOR: LazyLock<Door> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("weald-fuzz-{}", std::process::id()));
    fs::create_dir_all(folder.join("d/e")).unwrap();
    for name in ["a", "d/b", "d/e/c"] {
        fs::write(folder.join(name), name).unwrap();
    }
    symlink("a", folder.join("link")).unwrap();
    let door = Door::open(&folder).unwrap();
    door
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| weald_git::fuzzing::checkout_index(data, &DOOR));
