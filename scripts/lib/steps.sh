# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Steps of a long run: each prints its name, its time, and ends the run when it fails. (After common.sh.)

# $1: what the step is called; then its command.
step() {
  local began=$SECONDS
  say "== $1"
  "${@:2}" </dev/null || die 1 "$1: failed after $((SECONDS - began)) s"
  say "   $1: $((SECONDS - began)) s (${SECONDS} s in all)"
}

# How many lab scenarios of one run may be lost to emulation and begin again (tests/lab/nodelab/machine.py).
lost_at_most=2

# ctest in $1, further options behind. What failed (in full: -Q prints nothing of it), what was skipped, and which
# scenarios were lost to emulation, is explained before ctest's own closing lines, which stay the last thing that is
# printed. No test is repeated.
run_ctest() {
  local tree=$1 status=0 closing lost
  closing=$(mktemp)
  ctest --test-dir "$tree" --no-tests=error "${@:2}" |
    awk -v closing="$closing" '/% tests passed, / {last = 1} {if (last) print > closing; else {print; fflush()}}' ||
    status=$?
  local log=$tree/Testing/Temporary/LastTest.log
  [ "$status" -eq 0 ] || failures "$log"
  grep -hE '^(SKIPPED|skipped): ' "$log" | sort -u || true
  lost=$(grep -c ': lost to emulation: ' "$log" || true)
  [ "${lost:-0}" -eq 0 ] || {
    grep -h ': lost to emulation: ' "$log"
    say "$lost lab scenarios were lost to emulation and began again; $((lost_at_most + 1)) fail the run"
  }
  [ "${lost:-0}" -le "$lost_at_most" ] || status=1
  cat "$closing"
  rm -f "$closing"
  return "$status"
}

# Of ctest's log $1: the output of each test that failed, then their names.
failures() {
  awk '/^[0-9]+\/[0-9]+ Testing: / {output = ""; name = $3}
       {output = output $0 "\n"}
       /^Test Failed\.$/ {printf "%s", output; names = names "\n  " name}
       END {print "failed:" names}' "$1"
}
