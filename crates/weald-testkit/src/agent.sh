# A scripted agent: each argument is one step, a line of shell that may use what is defined here.
#   write FILE TEXT   append FILE TEXT   commit MESSAGE   say TEXT   fail CODE   crash   hang   deaf   fork FILE   report TEXT
# What it wrote it says afterwards, as `wrote FILE HASH`, so that a test can ask for it later.
set -u

wrote() { say "wrote $1 $(git hash-object --no-filters -- "$1")"; }
write() { printf '%s\n' "$2" > "$1" && wrote "$1"; }
append() { printf '%s\n' "$2" >> "$1" && wrote "$1"; }
commit() { git add -A && git commit -q --allow-empty -m "$1" && say "committed $1"; }
say() { printf '%s\n' "$*"; }
fail() { exit "$1"; }
crash() { kill -KILL $$; }
hang() { while :; do sleep 3600; done; }
# From here on a request to end is not heard.
deaf() { trap '' TERM INT HUP; }
# A grandchild in a session of its own, that goes on writing when its parent is gone.
fork() {
  setsid sh -c 'while :; do echo tick >> "$0"; sleep 0.02; done' "$1" > /dev/null 2>&1 &
  until [ -s "$1" ]; do sleep 0.01; done
}
report() { weald task done "$WEALD_TASK" --token "$WEALD_TOKEN" --report "$1"; }

for step in "$@"; do
  eval "$step" || exit 1
done
