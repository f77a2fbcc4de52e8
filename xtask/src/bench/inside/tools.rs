//! Developer tools, and how to see that one works. Each script starts in an empty folder and needs no network.

pub struct Tool {
    /// What it is called in the table.
    pub name: &'static str,
    /// The program that has to be there.
    pub program: &'static str,
    /// Ends with 0 if it works.
    pub script: &'static str,
}

const fn tool(name: &'static str, program: &'static str, script: &'static str) -> Tool {
    Tool {
        name,
        program,
        script,
    }
}

/// A script with a package of Python's before it: `zz`, whose program of the same name prints 7.
macro_rules! with_wheel {
    ($script:literal) => {
        concat!("python3 -c \"import zipfile; z=zipfile.ZipFile('zz-1-py3-none-any.whl','w'); d='zz-1.dist-info/'; z.writestr('zz.py','main=lambda: print(7)'); z.writestr(d+'METADATA','Metadata-Version: 2.1\\nName: zz\\nVersion: 1\\n'); z.writestr(d+'WHEEL','Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'); z.writestr(d+'entry_points.txt','[console_scripts]\\nzz=zz:main\\n'); z.writestr(d+'RECORD',''); z.close()\"; ", $script)
    };
}

pub const TOOLS: &[Tool] = &[
    // Debuggers, and what names processes.
    tool(
        "gdb: run",
        "gdb",
        "gdb -nx -batch -ex 'break exit' -ex run -ex kill --args /bin/true 2>&1 | grep -q 'Inferior 1'",
    ),
    tool(
        "gdb: attach",
        "gdb",
        "sleep 9 & gdb -nx -batch -p $! -ex 'info registers rip' 2>&1 | grep -q '^rip'",
    ),
    tool(
        "strace",
        "strace",
        "strace -f sh -c 'exit 0' 2>&1 | grep -q exit_group",
    ),
    tool(
        "strace: attach",
        "strace",
        "sleep 2 & timeout 1 strace -p $! 2>&1 | grep -q attached",
    ),
    tool(
        "py-spy",
        "py-spy",
        "python3 -c 'import time; time.sleep(9)' & sleep 0.5; py-spy dump --pid $! | grep -q module",
    ),
    tool(
        "address sanitizer with leaks",
        "gcc",
        "printf '#include <stdlib.h>\\nint main(void) { char *volatile p = malloc(7); p = 0; return p != 0; }' > l.c; gcc -fsanitize=address l.c -o l; ASAN_OPTIONS=detect_leaks=1 ./l 2>&1 | grep -q '7 byte(s) leaked'",
    ),
    tool("valgrind", "valgrind", "valgrind -q /bin/true"),
    tool("perf", "perf", "perf stat -e task-clock true"),
    tool("proot", "proot", "proot -0 id -u | grep -qx 0"),
    tool("fakeroot", "fakeroot", "fakeroot id -u | grep -qx 0"),
    tool("taskset", "taskset", "sleep 9 & taskset -p 1 $!"),
    tool("renice", "renice", "sleep 9 & renice -n 5 -p $!"),
    tool("ionice", "ionice", "sleep 9 & ionice -c 3 -p $!"),
    tool(
        "prlimit",
        "prlimit",
        "sleep 9 & prlimit -p $! --nofile=64:64",
    ),
    tool("setarch", "setarch", "setarch -R true"),
    tool(
        "OpenMP with bound threads",
        "gcc",
        "printf '#include <omp.h>\\nint main(void) { int n = 0;\\n#pragma omp parallel reduction(+:n)\\nn++;\\nreturn n != 2; }' > o.c; gcc -fopenmp o.c -o o; OMP_NUM_THREADS=2 OMP_PROC_BIND=true OMP_PLACES=threads ./o",
    ),
    tool(
        "32-bit program",
        "gcc",
        "printf 'int main(void) { return 0; }' > p.c; gcc -m32 p.c -o p; ./p",
    ),
    tool("unshare", "unshare", "unshare -Ur true"),
    tool("bubblewrap", "bwrap", "bwrap --ro-bind / / true"),
    // What writes to the home.
    tool(
        "git config --global",
        "git",
        "git config --global alias.st status; git config --global alias.st",
    ),
    tool(
        "ccache",
        "ccache",
        "printf 'int main(void) { return 0; }' > p.c; ccache gcc -c p.c; ccache gcc -c p.c",
    ),
    tool(
        "sccache",
        "sccache",
        "printf 'int main(void) { return 0; }' > p.c; sccache gcc -c p.c; sccache --stop-server",
    ),
    tool(
        "cargo install",
        "cargo",
        "cargo init -q --name p .; cargo install -q --offline --path .; ~/.cargo/bin/p",
    ),
    tool(
        "rustup toolchain file",
        "rustup",
        "root=$(rustc --print sysroot); export RUSTUP_HOME=~/.rustup-own; rustup toolchain link mine \"$root\"; printf '[toolchain]\\nchannel = \"mine\"\\n' > rust-toolchain.toml; cargo --version; rustup show active-toolchain | grep -q ^mine",
    ),
    tool(
        "npm -g",
        "npm",
        "mkdir p; echo '{\"name\":\"loc\",\"version\":\"1.0.0\"}' > p/package.json; npm config set prefix ~/.npm-global; npm install -g --offline --no-audit --no-fund ./p",
    ),
    tool(
        "pnpm",
        "pnpm",
        "mkdir p; echo '{\"name\":\"loc\",\"version\":\"1.0.0\"}' > p/package.json; echo '{\"name\":\"x\"}' > package.json; pnpm add --offline ./p",
    ),
    tool(
        "yarn",
        "yarn",
        "mkdir p; echo '{\"name\":\"loc\",\"version\":\"1.0.0\"}' > p/package.json; echo '{\"name\":\"x\",\"version\":\"1.0.0\"}' > package.json; yarn add file:./p",
    ),
    tool(
        "bun",
        "bun",
        "mkdir p; echo '{\"name\":\"loc\",\"version\":\"1.0.0\"}' > p/package.json; echo '{\"name\":\"x\"}' > package.json; bun add ./p",
    ),
    tool(
        "pip --user",
        "pip",
        with_wheel!(
            "W='--user --no-index ./zz-1-py3-none-any.whl'; python3 -m pip install -q --break-system-packages $W || python3 -m pip install -q $W; ~/.local/bin/zz | grep -qx 7"
        ),
    ),
    tool(
        "pipx",
        "pipx",
        with_wheel!(
            "PIP_NO_INDEX=1 pipx install ./zz-1-py3-none-any.whl; ~/.local/bin/zz | grep -qx 7"
        ),
    ),
    tool(
        "uv tool",
        "uv",
        with_wheel!(
            "uv tool install -q --offline --python /usr/bin/python3 ./zz-1-py3-none-any.whl; ~/.local/bin/zz | grep -qx 7"
        ),
    ),
    tool(
        "uvx",
        "uvx",
        with_wheel!(
            "uvx -q --offline --python /usr/bin/python3 --from ./zz-1-py3-none-any.whl zz | grep -qx 7"
        ),
    ),
    tool(
        "pre-commit",
        "pre-commit",
        "git init -q .; printf 'repos:\\n- repo: local\\n  hooks:\\n  - {id: t, name: t, entry: \"true\", language: system, always_run: true}\\n' > .pre-commit-config.yaml; git add -A; pre-commit run",
    ),
    tool("pipenv", "pipenv", "pipenv --python /usr/bin/python3"),
    tool(
        "uv venv",
        "uv",
        "uv venv -q --offline --python /usr/bin/python3 v",
    ),
    tool("conan", "conan", "conan profile detect --force"),
    tool(
        "huggingface",
        "hf",
        "mkdir -p ~/.cache/huggingface/hub; hf cache ls || hf cache list || hf cache scan",
    ),
    tool(
        "direnv",
        "direnv",
        "echo 'export A=b' > .envrc; direnv allow .; direnv exec . sh -c 'test $A = b'",
    ),
    tool(
        "gpg",
        "gpg",
        "gpg --batch --quiet --passphrase '' --quick-gen-key x@example.com default default never; gpg --list-keys x@example.com",
    ),
    tool(
        "maven",
        "mvn",
        "printf '<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version><packaging>pom</packaging></project>' > pom.xml; mvn -o -q validate",
    ),
    tool("gradle", "gradle", "gradle --offline -q help"),
    tool(
        "bazel",
        "bazel",
        "touch MODULE.bazel BUILD; bazel info workspace",
    ),
    tool(
        "jupyter",
        "jupyter-server",
        "jupyter server --generate-config -y; test -s ~/.jupyter/jupyter_server_config.py",
    ),
    tool("mix", "mix", "mix new p"),
    tool("zig", "zig", "zig init; zig build"),
];
