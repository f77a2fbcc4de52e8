//! Which parts of a copied `target` folder would answer for main.
//!
//! cargo takes a moved folder for fresh, though `env!("CARGO_MANIFEST_DIR")` and its kin were compiled in: a test in the
//! tree would read main's files. A unit that says so in its list of dependencies is built again.

use std::path::Path;

use super::links::starts_as_path;

/// Whether a unit's list of dependencies (a `.d` file) shows that a path of main was compiled into it. What a package of
/// elsewhere has from its own build script stays: cargo knows how to move that.
pub fn is_bound_to(dependencies: &str, main: &Path) -> bool {
    let main = main.as_os_str().as_encoded_bytes();
    let is_local = is_local(dependencies, main);
    let mut bound =
        variables(dependencies).filter(|(_, value)| starts_as_path(value.as_bytes(), main));
    bound.any(|(name, _)| is_local || name != "OUT_DIR")
}

/// The variables that a unit was compiled with.
fn variables(dependencies: &str) -> impl Iterator<Item = (&str, &str)> {
    dependencies
        .lines()
        .filter_map(|line| line.strip_prefix("# env-dep:")?.split_once('='))
}

/// Sources of the workspace are named relative to it; those of packages from elsewhere in full. What a build script made
/// belongs to neither.
fn is_local(dependencies: &str, main: &[u8]) -> bool {
    let made = variables(dependencies).find(|(name, _)| *name == "OUT_DIR");
    let is_made = |source: &str| made.is_some_and(|(_, folder)| source.starts_with(folder));
    let sources = dependencies
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.strip_suffix(':'));
    sources
        .filter(|source| source.ends_with(".rs") && !is_made(source))
        .any(|source| !source.starts_with('/') || starts_as_path(source.as_bytes(), main))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k14_what_was_compiled_with_a_path_of_main_is_built_again() {
        let local = "/srv/app/target/debug/deps/app-1.d: src/main.rs\n\nsrc/main.rs:\n";
        let foreign =
            "/srv/app/target/debug/deps/x-1.d: /h/registry/x/lib.rs\n\n/h/registry/x/lib.rs:\n";
        for (text, lines, expected) in [
            (local, "", false),
            (local, "# env-dep:CARGO_PKG_VERSION=1.0\n", false),
            (local, "# env-dep:CARGO_MANIFEST_DIR=/srv/app\n", true),
            (
                local,
                "# env-dep:CARGO_MANIFEST_DIR=/srv/app/crates/x\n",
                true,
            ),
            (local, "# env-dep:CARGO_MANIFEST_DIR=/srv/app2\n", false),
            (
                local,
                "# env-dep:CARGO_BIN_EXE_app=/srv/app/target/debug/app\n",
                true,
            ),
            (
                local,
                "# env-dep:OUT_DIR=/srv/app/target/debug/build/app-1/out\n",
                true,
            ),
            (
                foreign,
                "# env-dep:OUT_DIR=/srv/app/target/debug/build/x-1/out\n",
                false,
            ),
            (
                foreign,
                "/srv/app/target/b/out/x.rs:\n# env-dep:OUT_DIR=/srv/app/target/b/out\n",
                false,
            ),
            (
                foreign,
                "# env-dep:CARGO_MANIFEST_DIR=/h/registry/x\n",
                false,
            ),
        ] {
            let text = format!("{text}{lines}");
            assert_eq!(
                is_bound_to(&text, Path::new("/srv/app")),
                expected,
                "{text}"
            );
        }
    }
}
