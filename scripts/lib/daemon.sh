# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The daemon in a directory of its own, for the demo and the integration tests. $programs is where the programs are.

# $1: a directory; then further lines of the [affinity] table. Starts the daemon, sets daemon_pid and api_socket, and
# returns when it answers. It does not follow the container runtime, the kubelet and the Kata runtimes of this
# machine: what else runs here is left alone.
daemon_start() {
  local dir=$1
  mkdir -p "$dir"
  api_socket=$dir/api.sock
  printf '%s\n' '[affinity]' "state_dir = \"$dir/state\"" 'nri_socket = ""' 'kubelet_state = ""' "${@:2}" \
    >"$dir/affinity.toml"
  daemon_run "$dir"
}

# Starts it with the configuration that is there already.
daemon_run() {
  "$programs/kata-affinityd" --config "$1/affinity.toml" --socket "$1/api.sock" \
    --run "$1" >>"$1/log" 2>&1 &
  daemon_pid=$!
  local tries
  for tries in $(seq 100); do
    ctl status >/dev/null 2>&1 && return
    kill -0 "$daemon_pid" 2>/dev/null || break
    sleep 0.1
  done
  say "no response from kata-affinityd (after $tries tries):" >&2
  tail -n 20 "$1/log" >&2
  return 1
}

daemon_stop() {
  kill "$1" 2>/dev/null || return 0
  wait "$1" 2>/dev/null || true
}

ctl() { "$programs/kata-affinityctl" "$@" --socket "$api_socket"; }
