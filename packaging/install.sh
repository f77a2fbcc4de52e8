#!/bin/sh
# Installs weald from a release: checks this machine, verifies the checksum, copies the files.
#
#   sh install.sh [--from DIR|URL] [--prefix DIR]
#
# --from    where the tarball and SHA256SUMS are (default: the directory of this script)
# --prefix  where to install (default: /usr/local as root, ~/.local otherwise)
set -eu

# A release puts its address here.
from=
prefix=

die() { printf 'error: %s\n' "$1" >&2; [ -z "${2-}" ] || printf 'hint: %s\n' "$2" >&2; exit 1; }

while [ $# -gt 0 ]; do
  case $1 in
    --from) from=${2-}; shift 2 || die "--from needs a directory or an address" ;;
    --prefix) prefix=${2-}; shift 2 || die "--prefix needs a directory" ;;
    -h|--help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "unknown argument: $1" "sh install.sh --help" ;;
  esac
done

# What is missing here. Tests put a directory of their own in front of /proc and /sys.
system=${WEALD_INSTALL_SYSTEM-}
content() { cat "$system$1" 2>/dev/null || true; }
at_least() { # at_least VERSION MAJOR MINOR
  major=${1%%.*}; rest=${1#*.}; minor=${rest%%[!0-9]*}
  [ "$major" -gt "$2" ] || { [ "$major" -eq "$2" ] && [ "${minor:-0}" -ge "$3" ]; }
}
missing=0
lacks() { printf 'missing: %s\n' "$1" >&2; missing=1; }

[ "$(uname -s)" = Linux ] || die "weald needs Linux"
if version=$(git --version 2>/dev/null); then
  version=${version#git version }
  at_least "$version" 2 40 || lacks "git 2.40 or newer (this is $version)"
else
  lacks "git 2.40 or newer"
fi
kernel=$(content /proc/sys/kernel/osrelease)
at_least "${kernel:-0.0}" 6 12 || lacks "Linux 6.12 or newer (this is ${kernel:-unknown})"
modules=$(content /sys/kernel/security/lsm)
case ",$modules," in
  *,landlock,*) ;;
  ,,) ;; # Not readable here; weald itself looks below.
  *) lacks "Landlock: add landlock to the lsm= boot parameter (now: $modules)" ;;
esac
[ "$missing" = 0 ] || die "nothing was installed" "install what is missing, then run this again"

namespaces=
[ "$(content /proc/sys/kernel/unprivileged_userns_clone)" != 0 ] || namespaces="sudo sysctl -w kernel.unprivileged_userns_clone=1"
[ "$(content /proc/sys/user/max_user_namespaces)" != 0 ] || namespaces="sudo sysctl -w user.max_user_namespaces=10000"

# The release.
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
: "${from:=$here}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bring() { # bring NAME
  case $from in
    https://*)
      if command -v curl >/dev/null; then curl -fsSL --proto '=https' -o "$work/$1" "$from/$1"
      elif command -v wget >/dev/null; then wget -qO "$work/$1" "$from/$1"
      else die "neither curl nor wget is installed"
      fi ;;
    *://*) die "$from is not an https address" ;;
    *) cp "$from/$1" "$work/$1" ;;
  esac || die "$from/$1 can't be read"
}
bring SHA256SUMS
machine=$(uname -m)
tarball=$(sed -n "s/^[0-9a-f]\{64\}  \(weald-[0-9][0-9a-zA-Z.+-]*-$machine-linux\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS")
[ -n "$tarball" ] || die "$from has no package for $machine"
bring "$tarball"
(cd "$work" && grep "  $tarball\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) ||
  die "$tarball does not match its checksum; nothing was installed" "download it again"
tar -xzf "$work/$tarball" -C "$work"
unpacked=$work/${tarball%.tar.gz}

# The files.
if [ -z "$prefix" ]; then
  if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
fi
put() { # put MODE FILE PLACE
  mkdir -p "$(dirname "$prefix/$3")"
  # Renamed into its place: a weald that runs keeps its file.
  cp "$unpacked/$2" "$prefix/$3.new" && chmod "$1" "$prefix/$3.new" && mv -f "$prefix/$3.new" "$prefix/$3"
}
put 755 weald bin/weald
ln -sf weald "$prefix/bin/git-weald"
for page in "$unpacked"/man/man1/*; do
  put 644 "man/man1/${page##*/}" "share/man/man1/${page##*/}"
done
put 644 completions/weald.bash share/bash-completion/completions/weald
put 644 completions/_weald share/zsh/site-functions/_weald
put 644 completions/weald.fish share/fish/vendor_completions.d/weald.fish
printf 'installed: %s\n' "$prefix/bin/weald"
case :$PATH: in
  *":$prefix/bin:"*) ;;
  *) printf 'note: add %s to PATH\n' "$prefix/bin" ;;
esac

# User namespaces.
if [ "$(content /proc/sys/kernel/apparmor_restrict_unprivileged_userns)" = 1 ]; then
  if [ "$(id -u)" = 0 ] && [ -z "$system" ]; then
    "$prefix/bin/weald" install apparmor >/dev/null &&
      printf 'installed: AppArmor profile for %s\n' "$prefix/bin/weald"
  else
    printf 'next: sudo %s install apparmor (AppArmor denies user namespaces to programs without a profile)\n' "$prefix/bin/weald"
  fi
elif [ -n "$namespaces" ]; then
  printf 'next: %s (user namespaces are off, and level full of the sandbox needs them)\n' "$namespaces"
fi
printf 'try it: weald demo\n'
