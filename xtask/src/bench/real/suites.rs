//! The projects, how each is fetched and built, and how its tests report.

/// How the tests of a project report what passed.
#[derive(Debug, Clone, Copy)]
pub enum Report {
    /// Rust's test harness
    Libtest,
    /// `go test -v`
    Go,
    /// Redis' `runtest`
    Redis,
    /// `pytest -rA`
    Pytest,
    /// Python's `unittest -v`
    Unittest,
}

impl Report {
    /// The test that this line calls passed.
    pub fn passed(self, line: &str) -> Option<&str> {
        match self {
            Self::Libtest => line.strip_prefix("test ")?.strip_suffix(" ... ok"),
            Self::Go => line
                .trim_start()
                .strip_prefix("--- PASS: ")?
                .split(" (")
                .next(),
            Self::Redis => {
                let test = line
                    .split_once("[ok]: ")
                    .or_else(|| line.split_once("[ok\u{1b}[0m]: "))?
                    .1;
                Some(test.rsplit_once(" (").map_or(test, |(test, _)| test))
            }
            Self::Pytest => line.strip_prefix("PASSED "),
            Self::Unittest => line.strip_suffix(" ... ok"),
        }
    }
}

/// A project with tests.
pub struct Suite {
    pub name: &'static str,
    /// Fetches and builds it; its last words on stderr are the reason why it is skipped.
    pub prepare: &'static str,
    pub run: &'static str,
    pub report: Report,
}

/// Fetches the newest version of a crate, with its tests, and builds those; `executables` names them. Crates that its tests use
/// may depend on it, and then get this copy.
macro_rules! crate_with_tests {
    ($name:literal, $features:literal) => {
        concat!(
            "command -v cargo >/dev/null || { echo 'cargo is not installed' >&2; exit 1; }\n",
            "rm -rf fetch source && mkdir fetch && cd fetch && cargo init -q --lib --vcs none --name fetch .\n",
            "cargo add -q ", $name, "\ncargo fetch -q\n",
            "manifest=$(cargo metadata --format-version 1 | tr ',' '\\n' | sed -n 's/.*\"manifest_path\":\"\\(.*\\/", $name, "-[0-9][^\\/]*\\/Cargo.toml\\)\".*/\\1/p' | head -n 1)\n",
            "cp -r \"${manifest%/*}\" ../source && cd ../source && rm -f Cargo.lock\n",
            "printf '[workspace]\\n[patch.crates-io]\\n", $name, " = { path = \".\" }\\n' >> Cargo.toml\n",
            "CARGO_TARGET_DIR=$PWD/target cargo test ", $features, " --no-run 2>&1 | sed -n 's/.*Executable .*(\\(.*\\))$/\\1/p' > executables\n",
            "test -s executables || { echo 'its tests do not build' >&2; exit 1; }",
        )
    };
}

/// Runs what `crate_with_tests` built.
const RUN_EXECUTABLES: &str = "cd source && while read -r path; do
    name=${path##*/}; echo \"## ${name%-*}\"; timeout 600 \"./${path#$PWD/}\" 2>/dev/null
done < executables";

pub const SUITES: &[Suite] = &[
    Suite {
        name: "tokio",
        prepare: crate_with_tests!("tokio", "--features full,test-util"),
        run: RUN_EXECUTABLES,
        report: Report::Libtest,
    },
    Suite {
        name: "nix",
        prepare: crate_with_tests!("nix", "--all-features"),
        run: RUN_EXECUTABLES,
        report: Report::Libtest,
    },
    Suite {
        name: "serde_json",
        prepare: crate_with_tests!("serde_json", ""),
        run: RUN_EXECUTABLES,
        report: Report::Libtest,
    },
    Suite {
        name: "go net and os",
        prepare: "command -v go >/dev/null || { echo 'go is not installed' >&2; exit 1; }
            for package in net os os/exec os/signal os/user; do
                mkdir -p \"go/$package\"; cp -rL \"$(go env GOROOT)/src/$package/.\" \"go/$package/\"
                go test -c -o \"go/$package/run.test\" \"$package\"
            done",
        run: "for package in net os os/exec os/signal os/user; do
                (cd \"go/$package\" && echo \"## $package\" && timeout 600 ./run.test -test.v -test.short 2>/dev/null)
            done",
        report: Report::Go,
    },
    Suite {
        name: "redis",
        prepare: "command -v tclsh >/dev/null || { echo 'tclsh is not installed' >&2; exit 1; }
            command -v apt-get >/dev/null || { echo 'its source comes from apt-get source' >&2; exit 1; }
            mkdir -p apt/lists/partial source
            cat /etc/apt/sources.list.d/*.sources | sed 's/^Types: deb$/Types: deb-src/' > apt/all.sources
            set -- -o Dir::Etc::sourcelist=\"$PWD/apt/all.sources\" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=\"$PWD/apt/lists\"
            apt-get -qq \"$@\" update
            (cd apt && apt-get -qq \"$@\" --download-only source redis)
            tar xzf apt/redis_*.orig.tar.gz -C source --strip-components 1
            make -C source -j2 MALLOC=libc >/dev/null",
        run: "cd source && ./runtest --clients 2 --tags '-slow -large-memory -needs:debug' --timeout 300",
        report: Report::Redis,
    },
    Suite {
        name: "flask",
        prepare: "python3 -m venv v
            v/bin/pip -q install flask==3.1.2 pytest==8.4.2 flit_core
            v/bin/pip -q download --no-deps --no-binary :all: --no-build-isolation flask==3.1.2
            mkdir -p source && tar xzf flask-*.tar.gz -C source --strip-components 1",
        run: "cd source && ../v/bin/python -m pytest -q -rA -p no:cacheprovider tests",
        report: Report::Pytest,
    },
    Suite {
        name: "cpython",
        prepare: "python3 -c 'import test.test_socket' || { echo 'the tests of Python are not installed' >&2; exit 1; }",
        run: "for module in socket os posix signal subprocess fcntl mmap resource pty selectors asyncio.test_unix_events multiprocessing_fork.test_misc; do
                python3 -c \"import test.test_$module\" 2>/dev/null || continue
                echo \"## $module\"; timeout 300 python3 -m unittest -v \"test.test_$module\" 2>&1 >/dev/null
            done",
        report: Report::Unittest,
    },
];
