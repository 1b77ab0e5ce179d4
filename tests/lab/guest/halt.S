// SPDX-License-Identifier: Apache-2.0
# The smallest guest: a 64 KiB firmware whose processors halt at the reset vector, without ever reading a disk or a table.
# Good for many VMs at once, where only the VMM's threads matter. Secondary processors wait for a start-up message that never comes.
        .code16
        .org 0
halt:   cli
        hlt
        jmp halt

        .org 0xfff0
reset:  jmp halt
        .org 0x10000
