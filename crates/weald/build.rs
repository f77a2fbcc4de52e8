//! Links the debug binary at a fixed address: tests start it many thousand times, and relocating its 160 MB was a fifth of a
//! short run.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "Cargo speaks with build scripts by their environment and output"
)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}
