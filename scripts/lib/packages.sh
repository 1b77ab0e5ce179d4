# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Debian packages that the project needs, by group. Debian 12 and 13 name a few of them differently.

# The groups, in the order in which they are installed; arm64 only where it is asked for.
# shellcheck disable=SC2034
package_groups=(build test vm check lab)

# Debian's main release number; empty on anything else.
debian_release() { (. /etc/os-release 2>/dev/null && [ "${ID:-}" = debian ] && echo "${VERSION_ID:-}"); }

# What builds the programs beside a compiler. The libraries in it are headers only.
tools() { printf '%s\n' cmake ninja-build pkgconf libexpected-dev libcli11-dev protobuf-compiler; }

# The libraries that the programs are linked with.
libraries() {
  printf '%s\n' libhwloc-dev libnuma-dev libtomlplusplus-dev libfmt-dev prometheus-cpp-dev libsystemd-dev libprotobuf-dev \
    libnghttp2-dev libssl-dev libvirt-dev
  # Debian 12's default Boost is 1.74, which lacks what we use; its 1.81 has names of its own.
  if [ "$(debian_release)" = 12 ]; then
    printf '%s\n' libboost1.81-dev libboost-json1.81-dev
  else
    printf '%s\n' libboost-dev libboost-json-dev
  fi
}

# $1: group. Prints its packages, one a line.
packages_of() {
  case "$1" in
    build) # the programs
      echo g++
      tools
      libraries
      ;;
    arm64) # the programs for arm64 on another machine; the emulator runs their --help for the manuals
      printf '%s\n' g++-aarch64-linux-gnu qemu-user-static
      tools
      libraries | sed 's/$/:arm64/'
      ;;
    test) # the tests that need no VM
      printf '%s\n' catch2 librapidcheck-dev libbenchmark-dev valgrind python3 python3-grpcio jq bzip2 curl openssl busybox-static \
        systemd lintian dpkg-dev mandoc zsh irqbalance \
        e2fsprogs xfsprogs erofs-utils cryptsetup-bin zstd
      # A libvirtd that the tests start themselves: not libvirt-daemon-system, which would start one of its own.
      printf '%s\n' libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients
      # Another vendor's package has the same programs, and Debian's would take its place.
      command -v containerd >/dev/null || printf '%s\n' containerd runc
      ;;
    vm) # a VM of Debian's own kernel: the demo and the integration tests
      printf '%s\n' qemu-system-x86 busybox-static curl jq socat strace xz-utils
      ;;
    check) # the fastest linker, the other compilers, fuzzers, the checks of style, and a browser to look at pictures
      printf '%s\n' mold g++-aarch64-linux-gnu qemu-user-static clang-19 libclang-rt-19-dev clang-tidy-19 clang-format-19 shellcheck codespell chromium fonts-dejavu-core
      ;;
    lab) # the node lab, and the container image
      printf '%s\n' mmdebstrap debian-archive-keyring e2fsprogs binutils patchelf python3 buildah
      ;;
    *) return 1 ;;
  esac
}

# $1: package, perhaps with an architecture; without one, another architecture's does not count.
is_installed() {
  local architecture=
  case "$1" in *:*) architecture=${1#*:} ;; *) architecture=$(dpkg --print-architecture) ;; esac
  dpkg-query -W -f='${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null |
    grep -E "^($architecture|all) installed$" >/dev/null
}

# Of the packages given, those that are not installed, one a line.
packages_missing() {
  local package
  for package in "$@"; do
    is_installed "$package" || echo "$package"
  done
}
