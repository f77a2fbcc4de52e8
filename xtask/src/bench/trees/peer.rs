//! worktrunk, the peer: as installed, or installed once into the build directory.

use std::path::{Path, PathBuf};

use super::rivals::{command, run};
use crate::bench::say;

/// What to install: the newest, and else the last one that our own minimum of Rust builds.
const VERSIONS: [&str; 2] = ["worktrunk", "worktrunk@0.67.0"];

/// Finds or installs it; says aloud which, or why there is none.
pub fn find() -> Option<PathBuf> {
    let cache = crate::tidy::root().join("target/peers");
    let cached = cache.join("bin/wt");
    let found = version(Path::new("wt")).map(|version| (PathBuf::from("wt"), version));
    let found = found.or_else(|| Some((cached.clone(), version(&cached)?)));
    let found = found.or_else(|| {
        say("installing worktrunk to compare with (once; minutes)");
        let done = VERSIONS.iter().any(|known| install(known, &cache));
        done.then(|| Some((cached.clone(), version(&cached)?)))?
    });
    match found {
        Some((path, version)) => {
            say(&format!("worktrunk: {version}"));
            Some(path)
        }
        None => {
            say("skipped: worktrunk (it is not installed, and `cargo install worktrunk` fails)");
            None
        }
    }
}

fn install(what: &str, cache: &Path) -> bool {
    let mut cargo = command("cargo");
    cargo.args(["install", "--quiet", "--locked", what, "--root"]);
    cargo
        .arg(cache)
        .arg("--target-dir")
        .arg(cache.join("build"));
    match run(&mut cargo) {
        Ok(()) => true,
        Err(error) => {
            say(&error.to_string());
            false
        }
    }
}

fn version(program: &Path) -> Option<String> {
    let output = command(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}
