# SPDX-License-Identifier: Apache-2.0
# bash completion for kata-affinityctl, kata-affinityd and kata-affinity-agent, from their --help.

_kata_affinity() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} previous="" word help names
  local -a path=() socket=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $previous == --socket ]] && socket=(--socket "$word")
    previous=$word
    [[ $word == -* ]] && continue
    help=$("$program" "${path[@]}" --help 2>/dev/null)
    # A word that is not a command is a value or an id.
    grep -qE "^  $word( |$)" <<<"$(sed -n '/^Subcommands:/,/^$/p' <<<"$help")" && path+=("$word")
  done
  help=$("$program" "${path[@]}" --help 2>/dev/null)
  if [[ $current == -* ]]; then
    names=$(grep -oE '^ {2,4}(-[a-z],)?--[a-z-]+' <<<"$help" | sed 's/.*--/--/')
  elif [[ ${#path[@]} -gt 0 && $before == "${path[-1]}" ]] && grep -qE '^  SANDBOX( |$)' <<<"$help"; then
    names=$("$program" "${socket[@]}" names 2>/dev/null)
  else
    names=$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p' <<<"$help")
  fi
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current")
}

complete -o default -F _kata_affinity kata-affinityctl kata-affinityd kata-affinity-agent
