# weald for this shell: `enter` and `exit` change the directory; so does `land` if it removes the worktree. Made by `weald shell-init`.
function weald
  if set -q COMPLETE; or not string match -qr '^(enter|exit|land)$' -- $argv
    command WEALD $argv
    return
  end
  set -l file (command mktemp); or begin
    command WEALD $argv
    return
  end
  WEALD_CD_FILE=$file command WEALD $argv
  set -l code $status
  # Where to go and what to set is data: nothing of it is run.
  for entry in (string split0 < $file)
    switch $entry
      case 'cd=*'
        builtin cd -- (string sub -s 4 -- $entry | string collect); or set code $status
      case 'WEALD_*=*'
        set -gx (string split -f 1 -m 1 = -- $entry | string collect) (string split -f 2 -m 1 = -- $entry | string collect --allow-empty)
      case 'WEALD_*'
        set -e $entry
    end
  end
  command rm -f -- $file
  return $code
end
