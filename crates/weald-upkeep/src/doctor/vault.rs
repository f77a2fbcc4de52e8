//! The vault: whether git can use it, whether its packs are whole, and whether it holds what its refs claim.

use std::fs;
use std::path::Path;

use weald_git::{MainRef, Vault, VaultError, list_refs, set_aside};

use super::Code;
use super::finding::{Finding, Ledger};
use weald_control::place::Place;
use weald_trees::{TreeError, at};

/// From when on the vault is large for its repository.
const LARGE: u64 = 1 << 30;
const TIMES: u64 = 4;

/// Looks at the vault; `is_needed` says that trees borrow from it.
pub(super) fn check_vault(
    ledger: &mut Ledger,
    place: &Place,
    is_needed: bool,
) -> Result<(), VaultError> {
    let common = place.repository().common_dir();
    let vault = Vault::of(common);
    let aside = place.private().join("aside");
    let feed = || -> Result<(), TreeError> {
        Ok(vault.feed_again(&list_refs(common, &["refs/remotes/", "refs/tags/"])?)?)
    };
    if !vault.exists() {
        if is_needed {
            let what = format!(
                "{} is gone, and worktrees borrow objects from it",
                vault.path().display()
            );
            let would = "rebuild it from the repository; the rest is in the worktrees";
            ledger.note(Finding::new(Code::VaultMissing, what, would).repair(feed));
        }
        return Ok(());
    }
    let faults = vault.shape_faults();
    for (number, fault) in faults.iter().enumerate() {
        let what = format!("{} {}", fault.path.display(), fault.what);
        // One round mends all of them.
        let mend = || match number {
            0 => Ok(vault.mend_shape(&aside)?),
            _ => Ok(()),
        };
        let finding = Finding::new(Code::VaultBroken, what, "write it again");
        ledger.note(finding.at(&fault.path).repair(mend));
    }
    if !faults.is_empty() && !vault.shape_faults().is_empty() {
        return Ok(());
    }
    check_packs(ledger, &vault, common, &aside);
    check_vault_refs(ledger, &vault, &aside);
    check_pins(ledger, &vault, feed)?;
    let (size, main) = vault.sizes();
    if size > LARGE + TIMES * main {
        let what = format!(
            "the vault's packs take {} MiB, those of the repository {} MiB",
            size >> 20,
            main >> 20
        );
        let would = "to share what can be shared: weald clean --vault --apply";
        ledger.note(Finding::new(Code::VaultLarge, what, would));
    }
    Ok(())
}

fn check_packs(ledger: &mut Ledger, vault: &Vault, common: &Path, aside: &Path) {
    let would = "set it aside and fetch everything from the repository again";
    for (number, fault) in vault.broken_packs().iter().enumerate() {
        let what = format!("{} {}", fault.path.display(), fault.what);
        let mend = || match number {
            0 => {
                let refs = list_refs(common, &["refs/remotes/", "refs/tags/"])?;
                Ok(vault.mend_packs(&refs, aside)?)
            }
            _ => Ok(()),
        };
        let finding = Finding::new(Code::VaultPack, what, would);
        ledger.note(finding.at(&fault.path).repair(mend));
    }
}

/// A ref that names nothing protects nothing; the next look at its tree writes it again.
fn check_vault_refs(ledger: &mut Ledger, vault: &Vault, aside: &Path) {
    for broken in vault.broken_refs() {
        let what = format!("{} points to no commit", broken.path.display());
        let would = "set it aside; the next inspection of its worktree writes it again";
        let mend = || {
            set_aside(&broken.path, aside)
                .map(drop)
                .map_err(at(&broken.path))
        };
        let finding = Finding::new(Code::VaultRefBroken, what, would);
        ledger.note(finding.at(&broken.path).repair(mend));
    }
}

/// A pin is believed without a look, so a false one is worse than none. What main has is brought first.
fn check_pins(
    ledger: &mut Ledger,
    vault: &Vault,
    feed: impl Fn() -> Result<(), TreeError>,
) -> Result<(), VaultError> {
    let mut dangling = vault.dangling_pins()?;
    if dangling.is_empty() {
        return Ok(());
    }
    let before = dangling.clone();
    if ledger.fix && feed().is_ok() {
        dangling = vault.dangling_pins()?;
    }
    for pin in before {
        let is_back = !dangling.contains(&pin);
        let what = format!(
            "{} in the vault points to {}, which is missing",
            pin.name, pin.commit
        );
        let would = "fetch it from the repository; if it is missing there, too, delete the name";
        let finding = Finding::new(Code::PinDangling, what, would);
        ledger.note(finding.repair(|| match is_back {
            true => Ok(()),
            false => drop_pin(vault, &pin),
        }));
    }
    Ok(())
}

fn drop_pin(vault: &Vault, pin: &MainRef) -> Result<(), TreeError> {
    // git refuses to touch a ref beside a log that it can't write.
    let _ = fs::create_dir_all(vault.path().join("refs"));
    Ok(vault.drop_pin(pin)?)
}
