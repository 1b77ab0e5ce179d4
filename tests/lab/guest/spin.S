// SPDX-License-Identifier: Apache-2.0
# A neighbour that burns CPU: a 64 KiB firmware whose first processor starts all others, and all of them spin for ever.
# Real mode throughout. Local APICs are driven through x2APIC's registers (Intel SDM vol. 3, 11.12), which need no memory access.
        .set IA32_APIC_BASE, 0x1b
        .set X2APIC_ICR, 0x830
        .set ENABLE_X2APIC, 0xc00
        .set ALL_BUT_SELF_INIT, 0xc4500
        # Vector 0xf0: the others begin at address 0xf0000, where this firmware's first byte is mapped.
        .set ALL_BUT_SELF_START, 0xc46f0

        .code16
        .org 0
spin:   jmp spin

boot:   cli
        movl $IA32_APIC_BASE, %ecx
        rdmsr
        orl $ENABLE_X2APIC, %eax
        wrmsr
        movl $X2APIC_ICR, %ecx
        xorl %edx, %edx
        movl $ALL_BUT_SELF_INIT, %eax
        wrmsr
        movl $ALL_BUT_SELF_START, %eax
        wrmsr
        jmp spin

        .org 0xfff0
reset:  jmp boot
        .org 0x10000
