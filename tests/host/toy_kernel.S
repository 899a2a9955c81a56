/*
 * A kernel of a page, to test tools/qemu with: it prints its command line on COM2 (and a line
 * of log on COM1), and then does what the line's first letter says:
 *
 *     e  exit 42          p  panic           o  power off       t  exit 124
 *     r  triple fault     h  hang            c  echo COM2 up to a q, then exit 42
 *
 * Rules: 32-bit protected mode throughout, as both entries leave it; no stack, no memory written.
 */
    .set COM1, 0x3f8
    .set COM2, 0x2f8
    .set COM2_STATUS, 0x2fd
    .set STATUS_PORT, 0xe9
    .set EXIT_PORT, 0xf4
    .set MULTIBOOT2_MAGIC, 0xe85250d6
    .set TAG_COMMAND_LINE, 1
    .set PVH_COMMAND_LINE, 24

    .section .boot.header, "a"
    .balign 8
header:
    .long MULTIBOOT2_MAGIC, 0, header_end - header, -(MULTIBOOT2_MAGIC + header_end - header)
    .short 0, 0
    .long 8
header_end:

    .section .note.Xen, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long start_pvh

    .section .boot.text, "ax"
    .code32
    .globl start_multiboot2
start_multiboot2:               /* ebx: a size, a reserved word, then tags, each on 8 bytes */
    lea 8(%ebx), %esi
1:  cmpl $TAG_COMMAND_LINE, (%esi)
    je 2f
    mov 4(%esi), %eax
    add $7, %eax
    and $-8, %eax
    add %eax, %esi
    jmp 1b
2:  add $8, %esi
    jmp main
start_pvh:
    mov PVH_COMMAND_LINE(%ebx), %esi
main:
    mov %esi, %edi
1:  lodsb
    test %al, %al
    jz 2f
    mov $COM2, %edx
    outb %al, %dx
    jmp 1b
2:  mov $10, %al
    mov $COM2, %edx
    outb %al, %dx
    mov $log_text, %esi
3:  lodsb
    test %al, %al
    jz 4f
    mov $COM1, %edx
    outb %al, %dx
    jmp 3b
4:  xor %ebx, %ebx
    mov $exit_text, %esi
    cmpb $'e', (%edi)
    je say_status
    mov $exit_124_text, %esi
    cmpb $'t', (%edi)
    je say_status
    mov $off_text, %esi
    cmpb $'o', (%edi)
    je say_status
    cmpb $'c', (%edi)
    je echo
    cmpb $'r', (%edi)
    je reset
    mov $1, %ebx
    mov $panic_text, %esi
    cmpb $'p', (%edi)
    je say_status
hang:
    hlt
    jmp hang

say_status:                     /* esi: the line; ebx: what isa-debug-exit gets */
    lodsb
    test %al, %al
    jz 1f
    outb %al, $STATUS_PORT
    jmp say_status
1:  mov %ebx, %eax
    mov $EXIT_PORT, %edx
    outl %eax, %dx
    jmp hang

echo:
    mov $COM2_STATUS, %edx
1:  pause
    inb %dx, %al
    test $1, %al
    jz 1b
    mov $COM2, %edx
    inb %dx, %al
    outb %al, %dx
    mov $exit_text, %esi
    cmpb $'q', %al
    je say_status
    jmp echo

reset:
    lidt no_idt
    int3

    .section .boot.rodata, "a"
no_idt:
    .long 0, 0
exit_text:
    .asciz "exit 42\n"
exit_124_text:
    .asciz "exit 124\n"
panic_text:
    .asciz "panic\n"
off_text:
    .asciz "poweroff\n"
log_text:
    .asciz "[    0.000000] log\n"
