//! User namespaces where AppArmor denies them to programs without a profile.

use std::fs;
use std::path::Path;

use crate::env;

#[test]
fn u20_install_apparmor_shows_a_profile_for_this_binary_and_wants_root() {
    let env = env();
    let weald = fs::canonicalize(env!("CARGO_BIN_EXE_weald")).unwrap();
    let name = format!("weald{}", weald.display().to_string().replace('/', "."));
    let file = format!("/etc/apparmor.d/{name}");
    let shown = env.weald_alone(&["install", "apparmor", "--dry-run"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    for line in [
        format!("+++ {file}"),
        format!("+profile {name} {} flags=(unconfined) {{", weald.display()),
        "+  userns,".to_owned(),
        "would be installed in apparmor; to remove it: sudo weald install apparmor --remove"
            .to_owned(),
    ] {
        assert!(shown.stdout.contains(&line), "{line}: {}", shown.stdout);
    }
    assert!(!Path::new(&file).exists());

    let command = format!("sudo {} install apparmor", weald.display());
    let project = env.weald_alone(&["install", "apparmor", "--project"]);
    assert_eq!(project.code, 2, "{project:#?}");
    assert!(project.stderr.contains(&command), "{}", project.stderr);
    if rustix::process::geteuid().is_root() {
        return;
    }
    let refused = env.weald_alone(&["install", "apparmor"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(
        refused
            .stderr
            .contains("AppArmor profiles are root's; nothing was changed")
    );
    assert!(refused.stderr.contains(&command), "{}", refused.stderr);
}
