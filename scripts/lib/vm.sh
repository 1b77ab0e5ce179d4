# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Real VMs of Debian's own kernel and a guest that fits into an initramfs: for the demo and the integration tests.
# Source common.sh first. Every VM has a directory of its own, with its console's text and its sockets.

# What Kata tells its guest's kernel (virtcontainers/qemu_amd64.go), by which it boots in half the time.
vm_kata_words="tsc=reliable no_timer_check rcupdate.rcu_expedited=1 i8042.direct=1 i8042.dumbkbd=1 i8042.nopnp=1 \
i8042.noaux=1 noreplace-smp reboot=k cryptomgr.notests pci=lastbus=0"

# Path of a kernel that boots in a VM: an installed cloud kernel, else one unpacked into the cache. Nothing is installed.
vm_kernel() {
  local kernel
  for kernel in /boot/vmlinuz-*-cloud-amd64 "$cache"/kernel/boot/vmlinuz-*-cloud-amd64; do
    [ -r "$kernel" ] && { echo "$kernel"; return; }
  done
  vm_unpack_kernel >&2 || return
  compgen -G "$cache/kernel/boot/vmlinuz-*-cloud-amd64" | head -n 1
}

vm_unpack_kernel() {
  local package into
  package=$(vm_kernel_package) ||
    { as_root apt-get -q update >/dev/null 2>&1; package=$(vm_kernel_package); } ||
    { say "no linux-image-cloud-amd64 in Debian's package lists"; return 1; }
  mkdir -p "$cache"
  into=$(mktemp -d "$cache/kernel.XXXXXX")
  (cd "$into" && { apt-get -q download "$package" || { as_root apt-get -q update && apt-get -q download "$package"; }; } \
    >apt.log 2>&1 && dpkg-deb -x ./*.deb . && rm -f ./*.deb) || { cat "$into/apt.log"; rm -rf "$into"; return 1; }
  rm -rf "$cache/kernel"
  mv "$into" "$cache/kernel"
}

vm_kernel_package() {
  apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ {print $2; found = 1; exit}
    END {exit !found}'
}

# $1: the initramfs to make: busybox and the program guest/init.
vm_initramfs() {
  local root busybox
  busybox=$(command -v busybox) || { say "no busybox" >&2; return 1; }
  root=$(mktemp -d)
  mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev"
  cp "$busybox" "$root/bin/busybox"
  install -m 755 "$project/scripts/guest/init" "$root/init"
  (cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$1"
  rm -rf "$root"
}

# $1: directory of the VM; $2: accelerator; $3: vCPUs; then further options of QEMU. Starts it in the background and
# sets vm_pid. The caller has called vm_prepare. The QMP socket qmp.sock in that directory is free for one client.
# KATA_AFFINITY_VM_WORDS: further words for the guest's kernel.
vm_start() {
  local dir=$1 accel=$2 vcpus=$3
  mkdir -p "$dir"
  qemu-system-x86_64 -name "sandbox-$(basename "$dir"),debug-threads=on" -nodefaults -no-user-config -display none \
    -no-reboot -machine q35 -accel "$accel" -cpu "$(vm_cpu "$accel")" -smp "$vcpus" -m 256 \
    -kernel "$vm_kernel" -initrd "$vm_initrd" -append "console=ttyS0 panic=-1 $vm_kata_words ${KATA_AFFINITY_VM_WORDS:-}" \
    -serial "file:$dir/console" -qmp "unix:$dir/qmp.sock,server=on,wait=off" \
    -object iothread,id=io1 "${@:4}" >"$dir/qemu.log" 2>&1 &
  vm_pid=$!
  # Bash would otherwise print "Aborted" over the caller's output when a QEMU ends by a signal.
  disown "$vm_pid"
}

vm_cpu() { case "$1" in kvm*) echo host,pmu=off ;; *) echo max ;; esac; }

# Sets vm_kernel and vm_initrd, in directory $1.
vm_prepare() {
  vm_kernel=$(vm_kernel) || return
  vm_initrd=$1/initrd
  vm_initramfs "$vm_initrd"
}

# $1: directory, $2: pid of its VM; $3: seconds without a new word on the console after which it counts as stuck
# (KATA_AFFINITY_VM_PATIENCE has precedence: machines in software need more). True once the guest has spoken.
vm_wait() {
  local dir=$1 pid=$2 patience=${KATA_AFFINITY_VM_PATIENCE:-$3} size=0 now quiet=0
  while kill -0 "$pid" 2>/dev/null && [ "$quiet" -lt $((patience * 5)) ]; do
    now=$(stat -c %s "$dir/console" 2>/dev/null || echo 0)
    if [ "$now" -gt "$size" ]; then
      size=$now quiet=0
      ! grep -q '^guest up' "$dir/console" || return 0
    fi
    quiet=$((quiet + 1))
    sleep 0.2
  done
  return 1
}

# Bash reaps what it disowned by itself.
vm_stop() {
  local tries
  kill "$1" 2>/dev/null || return 0
  for tries in $(seq 200); do
    kill -0 "$1" 2>/dev/null || return 0
    [ "$tries" != 100 ] || kill -KILL "$1" 2>/dev/null || true
    sleep 0.05
  done
}

# Boots a VM by the best accelerator that really boots a guest here: /dev/kvm may open and the guest still get nowhere;
# software emulation always works. $1: directory of the VM; $2: vCPUs; then further options of QEMU. Sets vm_pid and
# vm_accel. The caller has called vm_prepare.
# shellcheck disable=SC2034 # for the caller
vm_boot() {
  if [ -w /dev/kvm ]; then
    vm_accel=kvm
    vm_start "$1" kvm "${@:2}"
    ! vm_wait "$1" "$vm_pid" 10 || return 0
    vm_stop "$vm_pid"
  fi
  vm_accel=tcg
  vm_start "$1" tcg,thread=multi "${@:2}"
  vm_wait "$1" "$vm_pid" 30
}

# Options for the vhost device that this kernel offers, one a line; none where it has none or we may not use it.
vm_vhost_options() {
  as_root modprobe -q vhost_vsock 2>/dev/null || true
  if [ -w /dev/vhost-vsock ]; then printf '%s\n' -device "vhost-vsock-pci,guest-cid=$((RANDOM + 1000))"; fi
}
