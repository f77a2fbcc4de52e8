# weald for this shell: `enter` and `exit` change the directory; so does `land` if it removes the worktree. Made by `weald shell-init`.
weald() {
  local file code entry
  case " $* " in
    *" enter "* | *" exit "* | *" land "*) ;;
    *) command WEALD "$@"; return ;;
  esac
  if [ -n "${COMPLETE-}" ] || ! file="$(command mktemp "${TMPDIR:-/tmp}/weald-cd.XXXXXXXX")"; then
    command WEALD "$@"
    return
  fi
  WEALD_CD_FILE="$file" command WEALD "$@"
  code=$?
  # Where to go and what to set is data: nothing of it is run.
  while IFS= read -r -d '' entry; do
    case "$entry" in
      cd=*) builtin cd -- "${entry#cd=}" || code=$? ;;
      WEALD_*=*) export "${entry%%=*}=${entry#*=}" ;;
      WEALD_*) unset "$entry" ;;
    esac
  done < "$file"
  command rm -f -- "$file"
  return "$code"
}
