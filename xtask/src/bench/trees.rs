//! Trees against plain git and worktrunk: creating, listing, looking, removing, disk and memory.
//!
//! Rivals take turns on the same fresh file system, and figures are medians. Everything is on disk before a command is
//! timed, and nothing is created after many files were deleted.

mod create;
pub(super) mod ground;
mod growth;
mod memory;
mod peer;
pub(super) mod repository;
pub(super) mod rivals;
mod sharing;
pub(super) mod table;
mod thousand;

use std::io;
use std::os::unix::process::CommandExt;

use rivals::{Made, Tools, command};
use table::Table;
use tempfile::TempDir;

use super::{release_binary, say};

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Sizes of the repositories, in files
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "1k,10k,80k"
    )]
    files: Vec<String>,
    #[command(flatten)]
    table: super::TableOptions,
}

/// A repository's size, and what is expected there.
pub struct Size {
    /// As people say it.
    pub label: &'static str,
    pub files: usize,
    /// How often each rival makes a tree.
    pub rounds: usize,
    /// Room that those trees need.
    pub gigabytes: u64,
    /// How many times faster than git, without a spare.
    pub cold: f64,
    /// The same with a spare.
    pub warm: Option<f64>,
}

const SIZES: [Size; 3] = [
    Size {
        label: "1k",
        files: 1_000,
        rounds: 9,
        gigabytes: 8,
        cold: 4.0,
        warm: None,
    },
    Size {
        label: "10k",
        files: 10_000,
        rounds: 7,
        gigabytes: 20,
        cold: 3.5,
        warm: Some(50.0),
    },
    Size {
        label: "80k",
        files: 80_000,
        rounds: 3,
        gigabytes: 45,
        cold: 2.2,
        warm: Some(200.0),
    },
];

/// How many trees there are where that matters.
pub struct Scale {
    /// Files of the repository.
    pub small: usize,
    /// How often each rival makes a tree.
    pub rounds: usize,
    /// The second count; the first is one.
    pub some: usize,
    /// How many are looked at.
    pub looked_at: usize,
    pub many: usize,
}

/// Runs it all and prints the table.
pub fn run(options: &Options) -> io::Result<()> {
    let mut sizes = sizes(&options.files)?;
    if rustix::process::geteuid().is_root() && !options.table.alone {
        // With a mount namespace of its own nothing stays mounted, however this ends.
        run_alone();
    }
    let tools = Tools {
        weald: release_binary()?,
        peer: peer::find(),
        lab: TempDir::with_prefix("weald-bench-")?,
    };
    let mut scale = Scale {
        small: 1_000,
        rounds: 5,
        some: 100,
        looked_at: 200,
        many: 1_000,
    };
    if options.table.quick {
        sizes.truncate(1);
        for size in &mut sizes {
            size.rounds = 3;
        }
        scale = Scale {
            small: 100,
            rounds: 3,
            some: 10,
            looked_at: 20,
            many: 40,
        };
    }
    let mut table = Table::new(options.table.only.clone());
    for size in &sizes {
        let done = create::measure(&mut table, &tools, size);
        table.stage(done);
    }
    let done = growth::measure(&mut table, &tools, &scale);
    table.stage(done);
    let shared = sizes.iter().rfind(|size| size.files <= 10_000);
    if let Some(size) = shared.or(sizes.first()) {
        let done = sharing::measure(&mut table, &tools, size);
        table.stage(done);
    }
    let done = thousand::measure(&mut table, &tools, &sizes, &scale);
    table.stage(done);
    table.close()
}

fn sizes(wanted: &[String]) -> io::Result<Vec<Size>> {
    let known = |label: &String| SIZES.iter().any(|size| size.label == label);
    match wanted.iter().find(|label| !known(label)) {
        Some(odd) => Err(io::Error::other(format!(
            "{odd} is not one of 1k, 10k, 80k"
        ))),
        None => Ok(SIZES
            .into_iter()
            .filter(|size| wanted.iter().any(|label| label == size.label))
            .collect()),
    }
}

/// Starts this command again without anybody seeing its mounts. Comes back only if that can't be.
pub(super) fn run_alone() {
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut again = command("unshare");
    again
        .args(["--mount", "--propagation", "private", "--"])
        .arg(program);
    let error = again
        .args(std::env::args_os().skip(1))
        .arg("--alone")
        .exec();
    say(&format!("mounts are seen by everybody (unshare: {error})"));
}

/// What one rival made, or why it stopped.
#[derive(Default)]
pub(super) struct Samples {
    made: Vec<Made>,
    failure: Option<String>,
}

impl Samples {
    /// One more, unless an earlier one failed.
    pub(super) fn take(&mut self, make: impl FnOnce() -> io::Result<Made>) {
        self.take_if_any(|| make().map(Some));
    }

    /// The same of a rival that may not be there.
    fn take_if_any(&mut self, make: impl FnOnce() -> io::Result<Option<Made>>) {
        if self.works() {
            match make() {
                Ok(made) => self.made.extend(made),
                Err(error) => self.failure = Some(error.to_string()),
            }
        }
    }

    /// A step that has to succeed before.
    fn take_nothing(&mut self, done: io::Result<()>) {
        self.take_if_any(|| done.map(|()| None));
    }

    /// True while nothing failed.
    fn works(&self) -> bool {
        self.failure.is_none()
    }

    /// The median in milliseconds.
    pub(super) fn middle(&self) -> Result<f64, String> {
        match (&self.failure, self.made.is_empty()) {
            (Some(failure), _) => Err(failure.clone()),
            (None, true) => Err("it was not run".to_owned()),
            (None, false) => Ok(middle(self.made.iter().map(|made| made.wall))),
        }
    }
}

pub(super) fn middle(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
