//! A tree whose directory is gone, made again from what main and the vault have.
//!
//! Two processes are kept apart by a lock file here, and by the store in a removal. A removal needs its facts and its
//! announcement in one transaction with those of runs; a directory only has to be made once.

use std::fs;

use weald_core::store::Durability;
use weald_core::tree::{Tree, TreeKind};
use weald_core::tree_rules::TreeInput;

use super::building::building;
use super::inner::Inner;
use super::privacy::close_to_others;
use super::remove::rename;
use super::site::{Site, identity_of, pointer_text};
use super::{CreateOutcome, Created, TreeError, Trees, at};
use weald_control::files;
use weald_control::steps::step;

impl Trees<'_> {
    /// A tree whose directory was deleted is made again from what main and the vault have.
    pub(crate) fn recreate(&self, tree: &Tree) -> Result<Created, TreeError> {
        let turn = self.workshop().join(format!("recreate-{}", tree.id));
        // One at a time; whoever comes second finds it made.
        let made = files::edit_alone(&turn, || match self.site(tree) {
            Err(TreeError::Missing { .. }) => self.recreate_alone(tree),
            _ => Ok(Created::of(
                self.record(&tree.name)?.unwrap_or_else(|| tree.clone()),
                CreateOutcome::Reused,
            )),
        });
        made.map_err(at(&turn))?
    }

    /// What a tree that is made again starts from: what was imported, unless main's branch has all of that and more.
    fn start_again(&self, tree: &Tree) -> Result<String, TreeError> {
        let held = self.branch_tip(&tree.branch)?;
        match (&tree.head, held) {
            (Some(head), Some(held)) if tree.kind == TreeKind::Sealed => {
                self.vault().require(&self.main_refs()?, &[&held])?;
                Ok(match self.contains(&held, head)? {
                    true => held,
                    false => head.clone(),
                })
            }
            (_, Some(held)) => Ok(held),
            (Some(head), None) => Ok(head.clone()),
            (None, None) => Ok(tree.base.commit.clone()),
        }
    }

    fn recreate_alone(&self, tree: &Tree) -> Result<Created, TreeError> {
        self.require_safe_place("tree.path", &tree.path)?;
        let start = self.start_again(tree)?;
        self.clear_building(tree)?;
        let building = building(tree);
        if let Some(root) = building.parent() {
            fs::create_dir_all(root).map_err(at(root))?;
        }
        fs::create_dir(&building).map_err(at(&building))?;
        let building = building.canonicalize().map_err(at(&building))?;
        step("recreate.begun");
        let registrations = self.registrations();
        let registration = match tree.kind {
            TreeKind::Sealed => {
                let refs = self.main_refs()?;
                let target = self.target_tip(tree)?;
                let mut wanted = vec![start.as_str()];
                wanted.extend(target.as_deref());
                self.vault().require(&refs, &wanted)?;
                self.require_files(&start)?;
                let inner = Inner::of(tree, &start, target.as_deref(), &refs);
                let git_dir = building.join(".git");
                fs::create_dir(&git_dir).map_err(at(&git_dir))?;
                self.write_settings(&git_dir, &start)?;
                self.write_refs(&git_dir, &inner)?;
                self.populate(tree, Site::sealed(&building), &start, None)?;
                self.reinstate_registration(tree, identity_of(&building)?)?
            }
            TreeKind::Linked => {
                // Its index and HEAD are still in the registration, but speak of files that are gone.
                let name = self.reinstate_registration(tree, identity_of(&building)?)?;
                let git_dir = registrations.directory(&name);
                let pointer = pointer_text(&git_dir);
                fs::write(building.join(".git"), pointer).map_err(at(&building))?;
                let site = Site {
                    path: building.clone(),
                    git_dir,
                    kind: tree.kind,
                };
                self.populate(tree, site, &start, None)?;
                name
            }
        };
        close_to_others(&building, None).map_err(at(&building))?;
        step("recreate.built");
        let identity = identity_of(&building)?;
        // Recorded first: a directory that nobody knows at its place would be taken for somebody else's.
        let input = TreeInput::Repaired {
            identity,
            path: tree.path.clone(),
            registration,
        };
        let tree = self.decide(tree, Durability::Process, input)?;
        step("recreate.recorded");
        rename(&building, &tree.path)?;
        step("recreate.renamed");
        self.find_again(&tree);
        let note = format!(
            "the directory was gone and was recreated from {}; work that was never imported is not in it",
            &start[..12.min(start.len())]
        );
        Ok(Created {
            notes: vec![note],
            ..Created::of(tree, CreateOutcome::Recreated)
        })
    }
}
