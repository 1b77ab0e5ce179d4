# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Debian packages that the project needs, by group. Debian 12 and 13 name a few of them differently.

# The groups, in the order in which they are installed.
# shellcheck disable=SC2034
package_groups=(build test vm check lab)

# Debian's main release number; empty on anything else.
debian_release() { (. /etc/os-release 2>/dev/null && [ "${ID:-}" = debian ] && echo "${VERSION_ID:-}"); }

# $1: group. Prints its packages, one a line.
packages_of() {
  case "$1" in
    build) # the programs
      printf '%s\n' g++ cmake ninja-build pkgconf libexpected-dev libhwloc-dev libnuma-dev libtomlplusplus-dev \
        libcli11-dev libfmt-dev prometheus-cpp-dev libsystemd-dev libprotobuf-dev \
        protobuf-compiler libnghttp2-dev libssl-dev libvirt-dev
      # Debian 12's default Boost is 1.74, which lacks what we use; its 1.81 has names of its own.
      if [ "$(debian_release)" = 12 ]; then
        printf '%s\n' libboost1.81-dev libboost-json1.81-dev
      else
        printf '%s\n' libboost-dev libboost-json-dev
      fi
      ;;
    test) # the tests that need no VM
      printf '%s\n' catch2 librapidcheck-dev libbenchmark-dev valgrind python3 python3-grpcio jq bzip2 curl openssl busybox-static \
        systemd lintian dpkg-dev mandoc zsh \
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

# Of the packages given, those that are not installed, one a line.
packages_missing() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}
