# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What must hold of a VM's threads, judged by what /proc says (after threads.sh). $wrong counts what did not hold.
wrong=0

# Says what is wrong, and goes on.
wrong() {
  wrong=$((wrong + 1))
  say "   WRONG: $*"
}

# $1: output of threads_of; $2: CPUs each of which must have exactly one vCPU, and nothing else; $3: the CPUs on which
# every other thread must be allowed, exactly.
expect_placement() {
  local dedicated cpu
  mapfile -t dedicated < <(cpus_of "$2")
  for cpu in "${dedicated[@]}"; do
    [ "$(awk -F '\t' -v cpu="$cpu" '$3 ~ /^vCPU/ && $4 == cpu' <<<"$1" | wc -l)" = 1 ] ||
      wrong "CPU $cpu must have one vCPU to itself"
  done
  local tid name role allowed
  while IFS=$'\t' read -r tid name role allowed; do
    [ "$allowed" != "$3" ] || continue
    [[ $role == vCPU* && " ${dedicated[*]} " == *" $allowed "* ]] ||
      wrong "$name ($tid, $role) is allowed on $allowed, and must be on $3"
  done <<<"$1"
}
