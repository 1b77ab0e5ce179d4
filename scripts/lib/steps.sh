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

# ctest in $1, further options behind. What was skipped is explained before ctest's own closing lines, which
# stay the last thing that is printed.
run_ctest() {
  local tree=$1 status=0 closing
  closing=$(mktemp)
  # CI's machines are shared, and a test may fail for want of time: its failure is shown, and it is tried once more.
  local again=()
  [ "${CI:-}" != true ] || again=(--repeat until-pass:2)
  ctest --test-dir "$tree" --output-on-failure --no-tests=error "${again[@]}" "${@:2}" |
    awk -v closing="$closing" '/% tests passed, / {last = 1} {if (last) print > closing; else {print; fflush()}}' ||
    status=$?
  grep -hE '^(SKIPPED|skipped): ' "$tree"/Testing/Temporary/LastTest.log | sort -u || true
  cat "$closing"
  rm -f "$closing"
  return "$status"
}
