//! Creations that were cut short. A signal takes one back on the spot; after a kill whoever needs its name next finishes it
//! or takes it back.

use weald_core::name::TreeName;
use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeStatus};
use weald_core::tree_rules::TreeInput;

use super::site::identity_of;
use super::{TreeError, Trees, at};
use weald_control::files;
use weald_control::marker::TreeNote;

/// What became of a creation that was cut short.
pub enum Mended {
    /// Everything was there: it is on record now.
    Recorded(Box<Tree>),
    /// Nothing of it is left.
    TakenBack,
}

impl Trees<'_> {
    /// The registration of a creation that was cut short after everything was in its place.
    pub fn unrecorded(&self, tree: &Tree) -> Option<(TreeNote, String)> {
        let registered = self.registrations().list().unwrap_or_default();
        let mut notes = registered
            .into_iter()
            .filter_map(|known| Some((TreeNote::of(&known)?, known.name)));
        let (note, name) = notes.find(|(note, _)| note.tree == tree.id)?;
        let here = identity_of(&tree.path).ok();
        (here == Some(note.identity)).then_some((note, name))
    }

    /// Finishes a creation whose process is gone, or takes it back.
    pub fn end_creation(&self, tree: &Tree) -> Result<Mended, TreeError> {
        if let Some((note, name)) = self.unrecorded(tree) {
            self.find_again(tree);
            let made = self.activate(tree, note.identity, name)?;
            return Ok(Mended::Recorded(Box::new(made)));
        }
        self.clear_creation(tree)?;
        self.release_ports(tree);
        let input = TreeInput::CreateFailed {
            error: "interrupted".to_owned(),
        };
        self.decide(tree, Durability::Process, input)?;
        Ok(Mended::TakenBack)
    }

    /// The same for whoever needs the name; `None` if nothing of that name was cut short. One at a time: whoever comes
    /// second finds it done.
    pub(super) fn mend_creation(&self, name: &TreeName) -> Result<Option<Mended>, TreeError> {
        let Some(tree) = self.record(name)?.filter(|tree| self.is_cut_short(tree)) else {
            return Ok(None);
        };
        let turn = self.workshop().join(format!("create-{}", tree.id));
        let mended = files::edit_alone(&turn, || {
            let known = self.record(name)?.filter(|known| known.id == tree.id);
            match known.filter(|known| self.is_cut_short(known)) {
                Some(tree) => self.end_creation(&tree).map(Some),
                None => Ok(None),
            }
        });
        mended.map_err(at(&turn))?
    }

    /// Whether its creation ended in the middle, with its process.
    pub(super) fn is_cut_short(&self, tree: &Tree) -> bool {
        let worker = tree.worker.as_ref();
        tree.status == TreeStatus::Creating && worker.is_some_and(|worker| !self.may_live(worker))
    }
}
