//! Where trees lie and what they and their branches are called, by the configuration.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weald_core::config::Slashes;
use weald_core::id::TreeId;
use weald_core::name::{TreeName, numbered, of_branch, slug};
use weald_core::naming::{TemplateValues, distinguishes, task_in, task_word, without_task};
use weald_core::task::Task;
use weald_git::RefName;

use super::{TreeError, Trees};
use weald_control::marker::hash_of;

/// Where trees lie if the configured place can't be written.
const ELSEWHERE: &str = "{cache}/worktrees/{repo_hash16}/{name}";

/// Where a tree will be.
#[derive(Debug, Clone)]
pub struct Layout {
    pub path: PathBuf,
    pub branch: String,
    /// What a person should know about the choice.
    pub told: Option<String>,
}

impl Trees<'_> {
    /// Reads a name as the profile wants it: the length, and what becomes of slashes.
    pub fn name(&self, text: &str) -> Result<TreeName, TreeError> {
        let max = self.config.name_max;
        if self.config.name_slashes == Slashes::Plus && text.contains('/') {
            for segment in text.split('/') {
                TreeName::with_limit(segment, max)?;
            }
            return Ok(TreeName::joined(text, max)?);
        }
        Ok(TreeName::with_limit(text, max)?)
    }

    /// The name of a tree for a branch that is there: by the profile's rule for slashes, else with dashes for them.
    pub(super) fn name_of_branch(&self, branch: &str) -> Result<TreeName, TreeError> {
        match self.name(branch) {
            Ok(name) => Ok(name),
            Err(_) => Ok(of_branch(branch, self.config.name_max)?),
        }
    }

    /// The name of a task's tree.
    pub fn name_for(&self, task: &Task) -> Result<TreeName, TreeError> {
        self.name_by(task, &words_for(task)[0])
    }

    /// The name of a task's tree with this word for the task.
    fn name_by(&self, task: &Task, word: &str) -> Result<TreeName, TreeError> {
        let max = self.config.name_max;
        let template = &self.config.tree_task_name;
        let values = TemplateValues::default()
            .with("slug", slug(&task.subject, max).as_str())
            .with("task", said_once(task, template, word));
        self.name(&values.expand(template)?)
    }

    /// The first name that no tree of another task has: with the id that its tracker gave it, then with a number.
    pub fn free_name_for(&self, task: &Task) -> Result<TreeName, TreeError> {
        let max = self.config.name_max;
        let first = self.name_for(task)?;
        for word in words_for(task) {
            let name = self.name_by(task, &word)?;
            if !self.is_of_another(&name, task)? {
                return Ok(name);
            }
        }
        let mut name = first.clone();
        for number in 2.. {
            if !self.is_of_another(&name, task)? {
                break;
            }
            name = numbered(&first, number, max)?;
        }
        Ok(name)
    }

    /// Whether another task has the tree of this name, or a tree that is gone left its branch behind.
    fn is_of_another(&self, name: &TreeName, task: &Task) -> Result<bool, TreeError> {
        let Some(tree) = self.record(name)? else {
            return Ok(false);
        };
        if tree.is_wanted() {
            return Ok(tree.task.is_some_and(|id| id != task.id));
        }
        let is_own = task.last_worktree.as_ref() == Some(name);
        Ok(!is_own && self.branch_tip(&tree.branch)?.is_some())
    }

    /// Where a tree of this name goes.
    pub fn layout(
        &self,
        id: TreeId,
        name: &TreeName,
        task: Option<&Task>,
    ) -> Result<Layout, TreeError> {
        let values = self.values(id, name, task)?;
        let template = &self.config.tree_branch;
        let branch = match task {
            Some(task) => {
                let word = self.task_part(task, name, template)?;
                values.clone().with("task", word).expand(template)?
            }
            None => self.branch_without_task(&values, name, template)?,
        };
        if RefName::branch(&branch).is_none() {
            return Err(TreeError::NoBranchName {
                origin: self.config.get("tree.branch").1.to_string(),
                branch,
            });
        }
        let values = match task {
            Some(task) => values.with("task", self.task_part(task, name, &self.config.tree_path)?),
            None => values,
        };
        let (path, told) = self.path_by(&values)?;
        Ok(Layout { path, branch, told })
    }

    /// What stands for `{task}`: the id, with what the name has behind it where the template has nothing else to tell two
    /// trees of one task apart.
    fn task_part(&self, task: &Task, name: &TreeName, template: &str) -> Result<String, TreeError> {
        for word in words_for(task) {
            let own = self.name_by(task, &word)?;
            let Some(rest) = name.as_str().strip_prefix(own.as_str()) else {
                continue;
            };
            let said = said_once(task, template, &word);
            match rest {
                "" => return Ok(said.to_owned()),
                rest if rest.starts_with('-') && !distinguishes(template) => {
                    return Ok(format!("{said}{rest}"));
                }
                _ => {}
            }
        }
        let words = words_for(task);
        Ok(said_once(task, template, &words[0]).to_owned())
    }

    /// A tree without a task is nobody's card or issue, unless it is called like one.
    fn branch_without_task(
        &self,
        values: &TemplateValues,
        name: &TreeName,
        template: &str,
    ) -> Result<String, TreeError> {
        let is_number = name.as_str().bytes().all(|byte| byte.is_ascii_digit());
        let called = task_in(&self.config.tree_task_name, name.as_str());
        Ok(match called {
            Some(task) => values.clone().with("task", task).expand(template)?,
            None if is_number => values.expand(template)?,
            None => values.expand(&without_task(template))?,
        })
    }

    /// Where the configuration puts a tree, or elsewhere if that can't be written, and what to say about it.
    fn path_by(&self, values: &TemplateValues) -> Result<(PathBuf, Option<String>), TreeError> {
        let path = PathBuf::from(values.expand(&self.config.tree_path)?);
        self.require_safe_place("tree.path", &path)?;
        if is_writable_ancestor(&path) {
            return Ok((path, None));
        }
        let fallback = PathBuf::from(values.expand(ELSEWHERE)?);
        let told = format!(
            "{} can't be written, so the worktree is in {}",
            path.parent().unwrap_or(&path).display(),
            fallback.display()
        );
        Ok((fallback, Some(told)))
    }

    /// The directory that most trees lie in.
    pub fn tree_root(&self) -> Result<PathBuf, TreeError> {
        let values = self.values(TreeId(0), &"spare".parse()?, None)?;
        let (path, _) = self.path_by(&values)?;
        Ok(path.parent().unwrap_or(&path).to_owned())
    }

    /// Where removed trees wait: the configured place if it is on the tree's file system, else beside the tree.
    pub fn trash_directory(&self, path: &Path) -> Result<PathBuf, TreeError> {
        let root = path.parent().unwrap_or(path);
        let values = TemplateValues::default()
            .with("tree_root", root.display().to_string())
            .with("repo", self.place.root().display().to_string())
            .with("common_dir", self.common_dir().display().to_string());
        let wanted = PathBuf::from(values.expand(&self.config.trash_path)?);
        let place = match device_of(&wanted) == device_of(root) {
            true => wanted,
            false => root.join(".trash"),
        };
        self.require_safe_place("trash.path", &place.join("entry"))?;
        Ok(place)
    }

    /// Whether a tree could have been put at `path` by this configuration: never main, nothing above or in it.
    pub fn fits_path(&self, path: &Path) -> Result<bool, TreeError> {
        let Some(text) = path.to_str() else {
            return Ok(false);
        };
        let values = self.place_values()?;
        let templates = [&self.config.tree_path, ELSEWHERE];
        let common_dir = self.common_dir();
        let holds_main = self.place.root().starts_with(path) || common_dir.starts_with(path);
        Ok(!holds_main
            && !path.starts_with(common_dir)
            && templates
                .iter()
                .any(|template| values.could_give(template, text)))
    }

    /// The same for a branch.
    pub fn fits_branch(&self, branch: &str) -> Result<bool, TreeError> {
        let template = &self.config.tree_branch;
        let values = self.place_values()?;
        Ok(values.could_give(template, branch)
            || values.could_give(&without_task(template), branch))
    }

    /// Directories in which trees of this configuration lie.
    pub fn tree_roots(&self) -> Result<Vec<PathBuf>, TreeError> {
        let values = self.place_values()?;
        let templates = [&self.config.tree_path, ELSEWHERE];
        let parents = templates.iter().filter_map(|template| {
            let (parent, _) = template.rsplit_once('/')?;
            // One that differs from tree to tree is no root of all.
            values.expand(parent).ok().map(PathBuf::from)
        });
        Ok(parents.collect())
    }

    fn values(
        &self,
        id: TreeId,
        name: &TreeName,
        task: Option<&Task>,
    ) -> Result<TemplateValues, TreeError> {
        let hash = hash_of(self.common_dir());
        let values = self
            .place_values()?
            .with("name", name.as_str())
            .with("slug", name.as_str())
            .with("id", format!("{}-{}", name, id.0))
            .with(
                "hash8",
                format!(
                    "{:08x}",
                    hash_of(Path::new(&format!("{hash}{name}{id}"))) >> 32
                ),
            );
        Ok(match task {
            Some(task) => values.with("plan", plan_slug(task)),
            // A tree without a task stands for itself.
            None => values.with("task", name.as_str()).with("plan", "none"),
        })
    }

    /// What is the same for every tree.
    fn place_values(&self) -> Result<TemplateValues, TreeError> {
        let text = |path: &Path| {
            path.to_str()
                .map(str::to_owned)
                .ok_or_else(|| TreeError::OddPath {
                    path: path.to_owned(),
                })
        };
        let root = self.place.root();
        let parent = root.parent().unwrap_or(&root);
        let hash = hash_of(self.common_dir());
        let repo_name = root
            .file_name()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        let repo_name = repo_name.strip_suffix(".git").unwrap_or(&repo_name);
        Ok(TemplateValues::default()
            .with("repo", text(&root)?)
            .with("repo_parent", text(parent)?)
            .with("repo_name", repo_name)
            .with("repo_hash16", format!("{hash:016x}"))
            .with("cache", text(&self.host.cache)?)
            .with("common_dir", text(self.common_dir())?))
    }
}

/// What a task may be called in a name: without its tracker's name, then with it.
fn words_for(task: &Task) -> Vec<String> {
    let mut words = vec![task.id.bare(), task.id.to_string()];
    words.dedup();
    words
}

/// A word without what the template says before it, unless its tracker's name was taken off already.
fn said_once<'w>(task: &Task, template: &str, word: &'w str) -> &'w str {
    match task.id.bare() == task.id.to_string() {
        true => task_word(template, word),
        false => word,
    }
}

fn plan_slug(task: &Task) -> String {
    task.plan
        .as_deref()
        .map_or_else(|| "none".to_owned(), |plan| slug(plan, 40).to_string())
}

/// The file system that a path is on, or would be.
pub(crate) fn device_of(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find_map(|path| path.metadata().ok());
    existing.map(|found| found.dev())
}

/// Whether the first directory on the way that exists can be written.
fn is_writable_ancestor(path: &Path) -> bool {
    let existing = path.ancestors().skip(1).find(|ancestor| ancestor.exists());
    existing.is_some_and(|directory| {
        rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok()
    })
}
