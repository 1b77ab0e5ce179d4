# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The libraries that programs need, to be shipped beside them, and where they come from. To be sourced.

# $1: program. Debian's name of what it runs on: of that machine's tools, and of the directory that has its libraries.
triplet_of() {
  local machine
  machine=$(readelf --file-header "$1" | sed -n 's/^ *Machine: *//p')
  case "$machine" in
    *X86-64) echo x86_64-linux-gnu ;;
    AArch64) echo aarch64-linux-gnu ;;
    *) echo "$1 is for a machine of another kind: $machine" >&2; return 1 ;;
  esac
}

# $1: program; $@: its arguments. Emulated if it is for another machine than this one.
start() {
  local triplet
  triplet=$(triplet_of "$1") || return
  if [ "$triplet" = "$(uname -m)-linux-gnu" ]; then "$@"; else "qemu-${triplet%%-*}-static" "$@"; fi
}

# $1: triplet, $2: a library's name as programs have it.
library_file() {
  local directory
  for directory in /usr/lib /lib; do
    if [ -e "$directory/$1/$2" ]; then echo "$directory/$1/$2"; return; fi
  done
  echo "there is no $2 for $1 here" >&2
  return 1
}

# $@: programs for one kind of machine, perhaps not for this one. Their libraries, down to the loader.
libraries_of() {
  local -A files=()
  local -a left=("$@")
  local triplet needed name
  triplet=$(triplet_of "$1") || return
  while [ ${#left[@]} -gt 0 ]; do
    needed=$(patchelf --print-needed "${left[0]}") || return
    left=("${left[@]:1}")
    for name in $needed; do
      [ -z "${files[$name]:-}" ] || continue
      files[$name]=$(library_file "$triplet" "$name") || return
      left+=("${files[$name]}")
    done
  done
  printf '%s\n' "${files[@]}" | sort
}

# The Debian package that a library came from: name, version, architecture. dpkg may know it with or without /usr.
package_of() {
  local package path=${1#/usr}
  package=$({ dpkg-query --search "$path" "/usr$path" 2>/dev/null || true; } | sed -n '1s/: .*//p' | cut -d, -f1)
  [ -n "$package" ] || { echo "$1 is of no package" >&2; exit 1; }
  dpkg-query --show --showformat '${Package} ${Version} ${Architecture}\n' "$package"
}

# $@: libraries. Their packages, as package_of prints them.
packages_of() { local library; for library in "$@"; do package_of "$library"; done | sort -u; }

# $1: what packages_of printed, $2: where the files go.
copy_licences() {
  local package
  while read -r package _; do
    cp -L "/usr/share/doc/$package/copyright" "$2/$package.copyright" ||
      { echo "$package has no copyright file" >&2; return 1; }
  done <"$1"
}
