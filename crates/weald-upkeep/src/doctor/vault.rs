//! The vault: whether git can use it, whether its packs are whole, and whether it holds what its refs claim.

use weald_git::{Vault, VaultFault};

use crate::Code;
use crate::finding::{Finding, Found};
use crate::repair::Repair;
use weald_control::place::Place;

/// From when on the vault is large for its repository.
const LARGE: u64 = 1 << 30;
const TIMES: u64 = 4;

/// Whether git takes it for a repository; `borrows` says that trees need it.
pub(super) fn shape(place: &Place, borrows: bool) -> Vec<Finding> {
    let vault = Vault::of(place.repository().common_dir());
    if vault.exists() {
        let would = "write it again";
        return faults(
            vault.shape_faults(),
            Code::VaultBroken,
            would,
            Repair::MendVault,
        );
    }
    if !borrows {
        return Vec::new();
    }
    let what = format!(
        "{} is gone, and worktrees borrow objects from it",
        vault.path().display()
    );
    let would = "rebuild it from the repository; the rest is in the worktrees";
    vec![Finding::new(Code::VaultMissing, what, would).repair(Repair::FeedVault)]
}

/// A vault that git can read.
fn readable(place: &Place) -> Option<Vault> {
    let vault = Vault::of(place.repository().common_dir());
    (vault.exists() && vault.shape_faults().is_empty()).then_some(vault)
}

pub(super) fn packs(place: &Place) -> Vec<Finding> {
    let broken = readable(place).map(|vault| vault.broken_packs());
    let would = "set it aside and fetch everything from the repository again";
    let broken = broken.unwrap_or_default();
    faults(broken, Code::VaultPack, would, Repair::MendPacks)
}

/// Faults that one repair takes away.
fn faults(faults: Vec<VaultFault>, code: Code, would: &str, repair: Repair) -> Vec<Finding> {
    let repairs = std::iter::once(repair).chain(std::iter::repeat(Repair::WithLast));
    let found = faults.into_iter().zip(repairs).map(|(fault, repair)| {
        let what = format!("{} {}", fault.path.display(), fault.what);
        Finding::new(code, what, would)
            .at(&fault.path)
            .repair(repair)
    });
    found.collect()
}

/// Refs that name nothing protect nothing, and a pin is believed without a look, so a false one is worse than none.
pub(super) fn refs(place: &Place) -> Found {
    let Some(vault) = readable(place) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for broken in vault.broken_refs() {
        let what = format!("{} points to no commit", broken.path.display());
        let would = "set it aside; the next inspection of its worktree writes it again";
        let finding = Finding::new(Code::VaultRefBroken, what, would).at(&broken.path);
        found.push(finding.repair(Repair::SetAside(broken.path)));
    }
    let dangling = vault.dangling_pins()?;
    let mut repair = Repair::MendPins(dangling.clone());
    for pin in dangling {
        let what = format!(
            "{} in the vault points to {}, which is missing",
            pin.name, pin.commit
        );
        let would = "fetch it from the repository; if it is missing there, too, delete the name";
        let repair = std::mem::replace(&mut repair, Repair::WithLast);
        found.push(Finding::new(Code::PinDangling, what, would).repair(repair));
    }
    let (size, main) = vault.sizes();
    if size > LARGE + TIMES * main {
        let what = format!(
            "the vault's packs take {} MiB, those of the repository {} MiB",
            size >> 20,
            main >> 20
        );
        let would = "to share what can be shared: weald clean --vault --apply";
        found.push(Finding::new(Code::VaultLarge, what, would));
    }
    Ok(found)
}
