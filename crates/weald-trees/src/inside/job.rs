//! What a job is, and the list of all: the host starts nothing else in a tree's sandbox.
//!
//! A kind of job is one file of this folder: what is asked, how it is done, what is answered, and what of an answer is
//! believed.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::{InsideError, Workplace};
use crate::untrusted::{Answer, Reply};

/// How much memory a process may write in a visit that reads: enough for a few million files.
pub(crate) const READING: u64 = 2 << 30;

/// Whether a visit may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    /// It writes the tree.
    Write,
}

/// What a visit is asked to do.
pub trait Job: Listed {
    type Reply: Reply;

    /// Whether it writes the tree.
    const ACCESS: Access;

    /// Whether an interrupt of the host's process ends it. What is looked at or taken in goes to its end; files that nobody
    /// wants any more need not be written.
    const ENDS_ON_INTERRUPT: bool = false;

    /// Does it.
    fn work(&self, at: &Workplace) -> Result<Self::Reply, InsideError>;

    /// Writes what follows the reply to standard output.
    fn send(&self, _at: &Workplace, _reply: &Self::Reply) -> Result<(), InsideError> {
        Ok(())
    }
}

/// A kind of job that is in the list of all.
pub trait Listed: Into<AnyJob> {
    const NAME: &'static str;
}

/// What to do, and where.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    pub at: Workplace,
    pub job: AnyJob,
}

macro_rules! jobs {
    ($($file:ident::$kind:ident,)*) => {
        $(pub use super::$file::$kind;)*

        /// A job of any kind, as it goes in.
        #[derive(Serialize, Deserialize)]
        pub enum AnyJob {
            $($kind($kind),)*
        }

        $(
            impl From<$kind> for AnyJob {
                fn from(job: $kind) -> Self {
                    Self::$kind(job)
                }
            }

            impl Listed for $kind {
                const NAME: &'static str = stringify!($kind);
            }
        )*

        impl Request {
            pub(super) fn work(&self) -> Result<(), InsideError> {
                self.at.require_open()?;
                match &self.job {
                    $(AnyJob::$kind(job) => answer(job, &self.at),)*
                }
            }
        }
    };
}

/// Hands the list of all kinds to a macro.
macro_rules! every_job {
    ($macro:ident) => {
        $macro! {
            commit::CommitChanges,
            diff::DiffSnapshots,
            diff::DiffWork,
            fingerprint::Fingerprint,
            fresh_git::CompareFresh,
            fresh_git::ResetFresh,
            large_files::SendLargeFiles,
            look::Inspect,
            modules::ListModules,
            modules::SendModule,
            population::Forward,
            population::Populate,
            population::PopulateSubmodules,
            population::Reset,
            putting_back::RestoreSnapshot,
            repository::UpdateRefs,
            repository::WriteAlternates,
            size::MeasureSize,
            snapshot::TakeSnapshot,
            survey::Survey,
            sync::BringIn,
            times::MatchTimes,
            usage::ClearEvicted,
            usage::Evict,
            usage::MeasureUsage,
        }
    };
}

every_job!(jobs);
#[cfg(any(test, fuzzing))]
pub(crate) use every_job;

fn answer<J: Job>(job: &J, at: &Workplace) -> Result<(), InsideError> {
    let reply = job.work(at)?;
    say(&Answer::of(J::NAME, &reply))?;
    job.send(at, &reply)
}

/// Prints the answer's first line.
pub(super) fn say(answer: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}
