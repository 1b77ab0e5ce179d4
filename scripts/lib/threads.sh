# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The threads of a VM as the kernel tells of them: read from /proc by these lines of shell, with no help from the
# programs under test.

# $1: pid of a VMM. Prints "TID<tab>NAME<tab>ROLE<tab>ALLOWED CPUS" for each of its threads and vhost workers.
threads_of() {
  local task name
  for task in /proc/"$1"/task/* $(vhost_workers "$1"); do
    { read -r name <"$task/comm"; } 2>/dev/null || continue
    printf '%s\t%s\t%s\t%s\n' "${task##*/}" "$name" "$(role_of "$name")" "$(allowed_of "$task")"
  done
}

# $1: a directory of /proc. In the shell itself: a process for each thread would take longer than all the rest. The
# file is read at one go: a loop of `read` seeks in it, where the lines may have moved meanwhile.
allowed_of() {
  local lines line
  { mapfile -t lines <"$1/status"; } 2>/dev/null || return 0
  for line in "${lines[@]}"; do
    [[ $line != Cpus_allowed_list:* ]] || echo "${line#*$'\t'}"
  done
}

# Kernels before 6.4 run vhost workers as kernel threads outside the VMM's process.
vhost_workers() { grep -lsx "vhost-$1" /proc/[0-9]*/comm | xargs -r -n 1 dirname; }

# $1: a thread's name, as QEMU gives it with debug-threads=on.
role_of() {
  case "$1" in
    "CPU "*/*) local index=${1#CPU }; echo "vCPU ${index%/*}" ;;
    "IO mon_iothread") echo emulator ;;
    "IO "*) echo "iothread ${1#IO }" ;;
    vhost-*) echo vhost ;;
    *) echo emulator ;;
  esac
}

# $1, $2: outputs of threads_of. Prints one table of both: who, what, allowed CPUs before and after.
threads_table() {
  awk -F '\t' '
    NR == FNR {before[$1] = $4; next}
    FNR == 1 {printf "  %-7s %-18s %-14s %-12s    %s\n", "tid", "thread", "role", "before", "after"}
    {was = $1 in before ? before[$1] : "(new)"
     printf "  %-7s %-18s %-14s %-12s %s %s\n", $1, $2, $3, was, was == $4 ? "  " : "->", $4}
  ' <(printf '%s\n' "$1") <(printf '%s\n' "$2")
}

# $1: output of threads_of, $2: pid, $3: seconds. Prints on which CPUs the vCPUs were seen at work meanwhile, one CPU a
# line. Only threads that run count: a sleeping one keeps the number of its last CPU.
vcpus_at_work() {
  local until=$((SECONDS + $3)) tid role stat fields
  while [ "$SECONDS" -lt "$until" ]; do
    while IFS=$'\t' read -r tid _ role _; do
      [[ $role == vCPU* ]] && { read -r stat <"/proc/$2/task/$tid/stat"; } 2>/dev/null || continue
      read -ra fields <<<"${stat##*) }"
      [ "${fields[0]}" != R ] || echo "${fields[36]} $role"
    done <<<"$1"
    sleep 0.02
  done | sort -u | awk '
    {on[$1] = on[$1] (on[$1] ? ", " : "") $2 " " $3}
    END {for (cpu in on) print "CPU " cpu ": " on[cpu]}' | sort -V
}

# CPU lists as the kernel writes them: "0-3,8". cpus_of prints a list's members, one a line; list_of is the reverse.
cpus_of() {
  local part
  for part in ${1//,/ }; do seq "${part%-*}" "${part#*-}"; done
}

list_of() {
  sort -nu | awk '
    NR == 1 {first = last = $1; next}
    $1 == last + 1 {last = $1; next}
    {print first == last ? first : first "-" last; first = last = $1}
    END {if (NR) print first == last ? first : first "-" last}
  ' | paste -sd,
}

# $1 without the members of $2.
list_minus() { comm -23 <(cpus_of "$1" | sort) <(cpus_of "$2" | sort) | list_of; }
