# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the scripts beside this folder: where things are, how to speak, how to become root.
# Source it; it defines functions and these variables, and does nothing else.

# The top of the checkout.
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# What is slow to make and may be deleted at any time.
# shellcheck disable=SC2034
cache=${KATA_AFFINITY_CACHE:-${HOME:-/root}/.cache/kata-affinity}

say() { printf '%s\n' "$*"; }

# One line on standard error, then out. $1: exit status.
die() {
  local status=$1
  shift
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit "$status"
}

# Prints the usage text of a script: the comment block below its first line.
usage() { sed -n '2,/^[^#]/{/^# \(shellcheck\|SPDX\)/d;s/^# \{0,1\}//p}' "$0"; }

# True when as_root can work without asking anyone.
can_be_root() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# How many compilers may run at once: one a CPU that we may use, and 1.2 GB for each of them.
build_jobs() {
  local by_cpu by_memory
  by_cpu=$(nproc)
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 1200000)}' /proc/meminfo)
  [ "$by_memory" -ge 1 ] || by_memory=1
  if [ "$by_cpu" -lt "$by_memory" ]; then echo "$by_cpu"; else echo "$by_memory"; fi
}

# $1: preset; then further options of cmake. Quiet unless it fails.
configure() {
  local log="$project/build/$1.configure.log"
  mkdir -p "$project/build"
  (cd "$project" && cmake --preset "$@") >"$log" 2>&1 || { cat "$log" >&2; return 1; }
}

# As build, with a line for each tenth that is done.
build_with_progress() {
  local log="$project/build/$1.build.log"
  ninja -C "$project/build/$1" -j "$(build_jobs)" "${@:2}" | tee "$log" | awk -F '[][/]' '
    /^\[[0-9]+\/[0-9]+\]/ {tenth = int(10 * $2 / $3); if (tenth > last) {printf "  built %d of %d\n", $2, $3; fflush(); last = tenth}}' ||
    { tail -n 40 "$log" >&2; return 1; }
}

# $1: preset; then targets (none: all). Quiet unless it fails.
build() {
  # There is one thing that ninja says all the same.
  ninja --quiet -C "$project/build/$1" -j "$(build_jobs)" "${@:2}" | { grep -vxF 'ninja: no work to do.' || true; }
}
