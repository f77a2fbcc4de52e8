//! `cargo run --release -p xtask -- …`

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks for people who work on weald.
#[derive(Parser)]
#[command(name = "xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, against git, a peer or a naive design in the same run
    #[command(subcommand)]
    Bench(Bench),
    /// Kill weald at every labelled step and at random moments, and look whether anything was lost
    Storm(xtask::storm::Options),
    /// Build the packages: static binary, tarball, .deb, installer, checksums
    Dist(xtask::dist::Options),
    /// Say what in the sources breaks a house rule
    Tidy,
    /// Print docs/operations.md: who can set which field of an operation
    Faces,
    /// Record `weald demo` and write docs/assets/demo.svg
    DemoSvg,
    /// Count what the sources consist of: lines, comments that say little, methods, circles of modules
    Measure,
}

#[derive(Subcommand)]
enum Bench {
    /// The control plane: start-up, queries at size, claims and events a second
    Control {
        /// How many tasks and (ten times as many) events the large database holds
        #[arg(long, default_value_t = 100_000)]
        tasks: u64,
    },
    /// What an agent costs: its supervisor while it does nothing, its start, a whole task
    Agents,
    /// What an agent's own interface costs: memory, key presses, a screenful
    Terminal,
    /// What the sandbox costs: starts, file-heavy work, and the network by name
    Sandbox,
    /// What programs find inside: facilities of the system and developer tools, outside and at both levels
    Inside(xtask::bench::inside::Options),
    /// How many processes and how much time rm, land and work take, beside git; the latency of MCP calls
    Processes(xtask::bench::processes::Options),
    /// Test suites of real projects, outside and inside: what passes, and in what time
    Real(xtask::bench::real::Options),
    /// Trees: creating, listing, looking and removing them, against git and worktrunk
    Trees(xtask::bench::trees::Options),
    /// Landing: merging, importing, snapshots, and conflicts, against git
    Landing(xtask::bench::TableOptions),
    /// Clean-up: a look at a thousand trees, and removing many, against git
    Cleanup(xtask::bench::TableOptions),
    /// What is measured inside of a network by name; started by `sandbox` itself
    #[command(hide = true)]
    NetworkClient {
        /// Whom it talks to
        address: std::net::SocketAddr,
        /// Where it writes what it found
        result: std::path::PathBuf,
    },
    /// One worker of the measured claims; started by `control` itself
    #[command(hide = true)]
    ClaimWorker {
        /// Where the store is
        directory: std::path::PathBuf,
        /// `weald` or `naive`
        design: String,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Bench(Bench::Control { tasks }) => xtask::bench::control::run(tasks),
        Command::Bench(Bench::Agents) => xtask::bench::agents::run(),
        Command::Bench(Bench::Terminal) => xtask::bench::terminal::run(),
        Command::Bench(Bench::Sandbox) => xtask::bench::sandbox::run(),
        Command::Bench(Bench::Inside(options)) => xtask::bench::inside::run(&options),
        Command::Bench(Bench::Processes(options)) => xtask::bench::processes::run(&options),
        Command::Bench(Bench::Real(options)) => xtask::bench::real::run(&options),
        Command::Bench(Bench::Trees(options)) => xtask::bench::trees::run(&options),
        Command::Bench(Bench::Landing(options)) => xtask::bench::landing::run_all(&options),
        Command::Bench(Bench::Cleanup(options)) => xtask::bench::cleanup::run_all(&options),
        Command::Bench(Bench::ClaimWorker { directory, design }) => {
            xtask::bench::workers::run(&directory, &design)
        }
        Command::Bench(Bench::NetworkClient { address, result }) => {
            xtask::bench::network::client(address, &result)
        }
        Command::Dist(options) => xtask::dist::run(&options),
        Command::Storm(options) => xtask::storm::run(&options),
        Command::Tidy => xtask::tidy::report(),
        Command::Faces => xtask::faces::report(),
        Command::DemoSvg => xtask::demo_svg::run(),
        Command::Measure => xtask::measure::report(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            xtask::bench::say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn every_command_can_be_parsed() {
        super::Cli::command().debug_assert();
    }
}
