//! A git process, as others see it.

use super::*;

#[test]
fn a_failure_carries_what_git_said() {
    let directory = tempfile::tempdir().unwrap();
    let error = Git::new(directory.path(), "rev-parse")
        .args(["HEAD"])
        .run()
        .unwrap_err();
    assert!(
        matches!(
            &error,
            GitError::Failed {
                code: Some(128),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_hanging_git_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    Git::outside(directory.path(), "init")
        .args(["-q", "--bare", "."])
        .run()
        .unwrap();
    let started = Instant::now();
    let alias = "-c";
    let error = Git::outside(directory.path(), alias)
        .args(["alias.hang=!sleep 60", "hang"])
        .limit(Duration::from_millis(100))
        .run()
        .unwrap_err();
    assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn only_named_variables_reach_git() {
    let directory = tempfile::tempdir().unwrap();
    let show = Git::outside(directory.path(), "-c").args(["alias.show-env=!env", "show-env"]);
    let said = String::from_utf8(show.run().unwrap()).unwrap();
    assert!(said.contains("GIT_CONFIG_GLOBAL=/dev/null"), "{said}");
    // Every test of cargo's has this one.
    assert!(!said.contains("CARGO_MANIFEST_DIR"), "{said}");
}
