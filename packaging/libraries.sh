# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The libraries that programs need, to be shipped beside them, and where they come from. To be sourced.

# $@: programs. Their libraries, down to the loader.
libraries_of() { ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// && $2 ~ /^\(/ {print $1}' | sort -u; }

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
