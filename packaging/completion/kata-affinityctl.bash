# SPDX-License-Identifier: Apache-2.0
# bash completion for kata-affinityctl, kata-affinityd and kata-affinity-agent, from their --help. It offers only what
# the program would accept: no file name for a number, no option a second time, no name that is ambiguous.

# $@: a program and the path of a command. --help-all lists what --help leaves out; the agent has none.
_kata_affinity_help() { "$@" --help-all 2>/dev/null || "$@" --help 2>/dev/null; }

_kata_affinity_commands() { sed -nE '/^(Subcommands|[A-Z][a-z]* commands):$/,/^$/s/^  ([a-z][a-z-]*).*/\1/p'; }

# A line for each option: its name, the type of its value or "flag", "..." if it may be repeated or ".", and the
# positional argument that it replaces.
_kata_affinity_options() {
  awk '
    /^[A-Z].*:$/ { inside = /^(Options|Further options):/; next }
    inside && /^ +-/ {
      head = $0; sub(/^ +/, "", head); text = head
      if (match(head, /  +/)) { text = substr(head, RSTART + RLENGTH); head = substr(head, 1, RSTART - 1) }
      count = split(head, words, " "); type = count > 1 ? words[2] : "flag"; sub(/=.*/, "", type)
      instead = text ~ /^instead of [A-Z]+/ ? text : ""; sub(/^instead of /, "", instead); sub(/[^A-Z].*/, "", instead)
      names = split(words[1], name, ",")
      for (i = 1; i <= names; ++i) print name[i], type, head ~ / \.\.\./ ? "..." : ".", instead
    }'
}

# Pods; the containers of one behind its slash.
_kata_affinity_pods() {
  local pod=${current%/*} name
  "$1" "${socket[@]}" names 2>/dev/null
  [[ $current != */* ]] || "$1" "${socket[@]}" names "$pod" 2>/dev/null | while read -r name; do echo "$pod/$name"; done
}

# $1: the type of a value or a positional argument; the rest: arguments for `names`.
_kata_affinity_values() {
  local program=${COMP_WORDS[0]}
  case "$1" in
    {*}) tr -d '{}' <<<"$1" | tr , '\n' ;;
    COMMAND) _kata_affinity_commands <<<"$help" ;;
    SANDBOX) "$program" "${socket[@]}" names 2>/dev/null ;;
    CONTAINER) "$program" "${socket[@]}" names "${arguments[0]}" 2>/dev/null ;;
    POD) _kata_affinity_pods "$program" ;;
    CLASS) printf '%s\n' none exclusive share ;;
    MACHINE) printf '%s\n' host synthetic: ;;
  esac
}

_kata_affinity() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} help word name kind more instead pending="" wanted="" taken=""
  local -a path=() socket=() arguments=() names=() positionals
  local -A type=() again=() replaces=() given=()
  load() {
    help=$(_kata_affinity_help "$program" "${path[@]}")
    while read -r name kind more instead; do
      type[$name]=$kind again[$name]=$more replaces[$name]=$instead
    done < <(_kata_affinity_options <<<"$help")
  }
  load
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == = ]]; then
      continue
    elif [[ $pending ]]; then
      [[ $pending != --socket ]] || socket=(--socket "$word")
      pending=""
    elif [[ $word == -* ]]; then
      given[$word]=1
      [[ ${type[$word]:-flag} == flag ]] || pending=$word
    elif [[ ${#arguments[@]} -eq 0 ]] && grep -qxF -- "$word" <<<"$(_kata_affinity_commands <<<"$help")"; then
      path+=("$word")
      unset 'type[--help-all]' 'type[--version]'
      load
    else
      arguments+=("$word")
    fi
  done
  [[ $current != = ]] || current=""
  if [[ $pending ]]; then
    wanted=${type[$pending]}
  elif [[ $current == -* ]]; then
    for name in "${!given[@]}"; do taken+=" ${replaces[$name]} "; done
    for name in "${!type[@]}"; do
      [[ $name == --* && (-z ${given[$name]} || ${again[$name]} == ...) ]] || continue
      [[ -n ${replaces[$name]} && (${#arguments[@]} -gt 0 || $taken == *" ${replaces[$name]} "*) ]] || names+=("$name")
    done
  else
    read -ra positionals < <(sed -nE 's/^Usage: .*\[OPTIONS\]//p' <<<"$help" | tr -d '[]')
    wanted=${positionals[${#arguments[@]}]}
    for name in "${!given[@]}"; do [[ -z $wanted || ${replaces[$name]} != "$wanted" ]] || wanted=""; done
  fi
  [[ -z $wanted ]] || mapfile -t names < <(_kata_affinity_values "$wanted")
  case "$wanted" in MACHINE | FILE | PATH | DIR | IMAGE) compopt -o default 2>/dev/null ;; esac
  mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$current")
}

complete -F _kata_affinity kata-affinityctl kata-affinityd kata-affinity-agent
