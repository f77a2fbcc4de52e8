
# Bash completes words. Where it only lists them, what they mean stands beside them.
_weald_complete() {
  _clap_complete_weald "$@"
  [[ ${COMP_TYPE-} == 63 && ${#COMPREPLY[@]} -gt 1 ]] || return 0
  local value about line
  local -a told=()
  while IFS=$'\t' read -r value about; do
    printf -v line '%-16s %s' "$value" "${about:0:60}"
    told+=("$line")
  done < <(COMPLETE=fish command WEALD -- "${COMP_WORDS[@]:0:COMP_CWORD}" "$2" 2> /dev/null)
  [[ ${#told[@]} -gt 1 ]] && COMPREPLY=("${told[@]}")
  return 0
}
complete -o nospace -o bashdefault -F _weald_complete weald

# `git weald …`: git's own completion looks for a function of this name.
_git_weald() {
  local at=${__git_cmd_idx:-1}
  COMP_WORDS=(weald "${COMP_WORDS[@]:at + 1}")
  COMP_CWORD=$((COMP_CWORD - at))
  _weald_complete weald "${COMP_WORDS[COMP_CWORD]}"
}
