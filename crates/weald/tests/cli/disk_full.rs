//! A full disk: whatever write meets it, what was there before can be read, nothing half-made stays, and removals need no
//! room. Each test has a small disk of its own, in a mount namespace, so that nothing is left mounted.

use std::process::Command;

use weald_testkit::{full_scale, skipped};

/// A repository on the small disk, and words to fill it: `room KIB` leaves so much.
const GROUND: &str = r#"
set -e
mount -t tmpfs -o size=24m tmpfs "$ROOT" || exit 77
cd "$ROOT"; mkdir home; export HOME="$ROOT/home" WEALD_POOL_SIZE=0 WEALD_DOCTOR_MIN_FREE=1M GIT_CONFIG_NOSYSTEM=1
git init -q -b main app; cd app; git config user.name T; git config user.email t@e
for i in 1 2 3 4; do head -c 20000 /dev/urandom > f$i; done; git add .; git commit -qm one
die() { echo "$*"; exit 1; }
left() { df -k --output=avail "$ROOT" | tail -1; }
empty() { rm -f "$ROOT/fill"; }
room() { empty; head -c $(( ($(left) - $1) * 1024 )) /dev/zero > "$ROOT/fill" || :; }
# Runs a command that may fail, but not crash.
try() { set +e; "$WEALD" "$@" > "$OUT/out" 2>&1; rc=$?; set -e; [ $rc -lt 125 ] || die "$* ends with $rc: $(cat "$OUT/out")"; return 0; }
# What was there before can be read, and main is what it was.
readable() {
  "$WEALD" list --json > "$OUT/list" || die "$1: list: $(cat "$OUT/list")"
  "$WEALD" task list --json > /dev/null || die "$1: tasks"
  "$WEALD" doctor --json > "$OUT/doctor" || :
  grep -q findings "$OUT/doctor" || die "$1: doctor: $(cat "$OUT/doctor")"
  [ -z "$(git status --porcelain)" ] || die "$1: main: $(git status --porcelain)"
  git fsck --connectivity-only > /dev/null 2>&1 || die "$1: main is broken"
}
# With room again one repair mends what there is, and a second finds nothing.
healed() {
  empty; "$WEALD" doctor --fix > "$OUT/doctor" 2>&1 || die "$1: $(cat "$OUT/doctor")"
  "$WEALD" doctor --json | grep -q '"warn"\|"error"' && die "$1: $("$WEALD" doctor)"
  git --git-dir .git/weald/vault fsck --connectivity-only > /dev/null 2>&1 || die "$1: the vault is broken"
}
"#;

/// Runs a script on a small disk, as root or in a user namespace.
fn on_a_small_disk(script: &str) {
    let root = tempfile::TempDir::with_prefix("weald-full-").unwrap();
    let beside = tempfile::TempDir::with_prefix("weald-full-").unwrap();
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let steps = match full_scale() {
        true => "0 4 8 12 16 20 24 28 32 40 48 56 64 80 96 112 128 160 192 224 256 320 384 448 512",
        false => "0 12 40 80 160 320",
    };
    let output = unshare
        .args(["--mount", "sh", "-c"])
        .arg([GROUND, script].concat())
        .env("ROOT", root.path())
        .env("OUT", beside.path())
        .env("STEPS", steps)
        .env("WEALD", env!("CARGO_BIN_EXE_weald"))
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (told(&output.stdout), told(&output.stderr));
    if output.status.code() == Some(77) || err.contains("unshare:") {
        return skipped("a small disk can't be mounted here");
    }
    assert!(output.status.success(), "{out}\n{err}");
}

#[test]
fn z5_a_full_disk_loses_nothing_and_removal_needs_no_room() {
    on_a_small_disk(
        r#"
"$WEALD" new a; echo mine > ../app.weald/a/mine; "$WEALD" task add before
cp -r ../app.weald/a ../copy
room 0
! "$WEALD" new b || die "made b on a full disk"
[ ! -e ../app.weald/b ] || die "b is left"
! git rev-parse -q --verify wt/b || die "branch b is left"
"$WEALD" list | grep -q '^a ' || die "list does not work"
"$WEALD" doctor --json | grep -q disk_low || die "a full disk is not told"
"$WEALD" task list | grep -q before || die "tasks are lost"
! "$WEALD" task add during || die "wrote on a full disk"
diff -r ../app.weald/a ../copy
"$WEALD" rm a --discard
[ ! -e ../app.weald/a ]
empty
"$WEALD" trash restore a; diff -r -x .git ../app.weald/a ../copy
"$WEALD" doctor --fix; "$WEALD" new c; git fsck --connectivity-only
"#,
    );
}

/// Others take at once what becomes free: one removal after the other still works, and emptying the trash even when
/// nothing is held back any more.
#[test]
fn z5_removals_and_purges_go_on_at_zero_bytes() {
    on_a_small_disk(
        r#"
for t in a b c d e; do
  "$WEALD" new $t; cd ../app.weald/$t
  head -c 30000 /dev/urandom > big; git add big; git commit -qm "not imported yet"; echo mine > mine; cd ../../app
done
for t in a b c d e; do
  room 0; "$WEALD" rm $t --discard || die "rm $t"
  [ ! -e ../app.weald/$t ] || die "$t is left"
done
rm .git/weald/private/reserve; room 0
"$WEALD" trash purge --older-than 1ms --apply || die "purge"
[ -z "$(ls ../app.weald/.trash)" ] || die "something is left in the trash"
healed purge
"#,
    );
}

#[test]
fn z5_a_create_that_meets_a_full_disk_leaves_nothing() {
    on_a_small_disk(
        r#"
"$WEALD" new first; n=0
for kib in $STEPS; do
  n=$((n + 1)); room $kib; try new t$n; readable "new at $kib KiB"
  if [ $rc -ne 0 ]; then
    [ ! -e ../app.weald/t$n ] || die "$kib: half a tree"
    [ -z "$(ls -d ../app.weald/.weald-new-* 2>/dev/null)" ] || die "$kib: something half-built"
    ! git rev-parse -q --verify wt/t$n || die "$kib: a branch"
  fi
  healed "new at $kib KiB"; "$WEALD" ensure t$n; "$WEALD" rm t$n --discard
  "$WEALD" trash purge --older-than 1ms --apply > /dev/null
done
"#,
    );
}

#[test]
fn z5_an_import_or_a_snapshot_that_meets_a_full_disk_can_be_done_again() {
    on_a_small_disk(
        r#"
"$WEALD" new a; n=0
for kib in $STEPS; do
  n=$((n + 1)); (cd ../app.weald/a; head -c 20000 /dev/urandom > f$n; git add f$n; git commit -qm $n; echo $n > loose)
  tip=$(git -C ../app.weald/a rev-parse HEAD)
  room $kib; try status a; readable "import at $kib KiB"; try snapshot create a; readable "snapshot at $kib KiB"
  [ "$(git -C ../app.weald/a rev-parse HEAD)" = $tip ] && [ "$(cat ../app.weald/a/loose)" = $n ] || die "$kib: the tree changed"
  healed "import at $kib KiB"; "$WEALD" status a > /dev/null; "$WEALD" snapshot create a > /dev/null
  [ "$(git rev-parse wt/a)" = $tip ] || die "$kib: main's branch did not follow"
done
"#,
    );
}

#[test]
fn z5_a_landing_or_a_claim_that_meets_a_full_disk_happens_or_does_not() {
    on_a_small_disk(
        r#"
n=0
for kib in $STEPS; do
  n=$((n + 1)); "$WEALD" new l$n; "$WEALD" task add "task $n" > /dev/null
  (cd ../app.weald/l$n; head -c 20000 /dev/urandom > f1; echo $n > l$n; git add .; git commit -qm $n)
  before=$(git rev-parse main); room $kib; try land l$n; readable "landing at $kib KiB"
  if [ $rc -ne 0 ] && [ "$(git rev-parse main)" != $before ]; then git cat-file -e main:l$n || die "$kib: half a landing"; fi
  try task claim $n --session s$n; claimed=$rc
  healed "landing at $kib KiB"
  [ ! -e ../app.weald/l$n ] || "$WEALD" land l$n > /dev/null
  git cat-file -e main:l$n && [ "$(cat l$n)" = $n ] || die "$kib: it did not land"
  [ $claimed -eq 0 ] || "$WEALD" task claim $n --session s$n > /dev/null || die "$kib: nobody can claim it"
  "$WEALD" trash purge --older-than 1ms --apply > /dev/null
done
[ "$("$WEALD" task list --json | grep -o '"in_progress"' | wc -l)" -ge $n ] || die "claims are lost"
"#,
    );
}
