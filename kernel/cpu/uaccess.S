/*
 * The instructions that touch user memory. Each that may fault has an entry in .ex_table: the
 * address to go on at when nobody could serve the fault.
 *
 * No frame is pushed in here: the CFA is the caller's, and gdb unwinds from a fault in the middle.
 */
#include "kernel/cpu/smap.h"

#define EFAULT 14

    .cfi_sections .debug_frame
    .text
SMAP_SITES_BEGIN(uaccess_smap_sites)

.macro may_fault at, fixup
    .pushsection .ex_table, "a"
    .balign 4
    .long \at - .
    .long \fixup - .
    .popsection
.endm

.macro function name
    .balign 16
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
.endm

.macro end_function name
    .cfi_endproc
    .size \name, . - \name
.endm

/*
 * size_t uaccess_copy_in(void *kernel_dst, u64 user_src, size_t n)
 * size_t uaccess_copy_out(u64 user_dst, const void *kernel_src, size_t n)
 * Words, then bytes. Where a word faults that reaches into the next page, bytes go on up to the very
 * one that is missing; any other word is missing from its first byte on, and is not tried again: one
 * access is one fault.
 */
.equ LAST_WORD_OF_PAGE, 4096 - 8

.macro copy_function name, user
function \name
    movq %rdx, %rcx
    shrq $3, %rcx
    andl $7, %edx
    smap_open
1:  rep movsq
    movl %edx, %ecx
2:  rep movsb
3:  smap_close
    movq %rcx, %rax
    ret
4:  leaq (%rdx, %rcx, 8), %rcx
    movl \user, %eax
    andl $4095, %eax
    cmpl $LAST_WORD_OF_PAGE, %eax
    ja 2b
    jmp 3b
    may_fault 1b, 4b
    may_fault 2b, 3b
end_function \name
.endm

copy_function uaccess_copy_in, %esi
copy_function uaccess_copy_out, %edi

/* size_t uaccess_clear(u64 user_dst, size_t n) */
function uaccess_clear
    movq %rsi, %rcx
    shrq $3, %rcx
    movl %esi, %edx
    andl $7, %edx
    xorl %eax, %eax
    smap_open
1:  rep stosq
    movl %edx, %ecx
2:  rep stosb
3:  smap_close
    movq %rcx, %rax
    ret
4:  leaq (%rdx, %rcx, 8), %rcx
    movl %edi, %esi
    andl $4095, %esi
    cmpl $LAST_WORD_OF_PAGE, %esi
    ja 2b
    jmp 3b
    may_fault 1b, 4b
    may_fault 2b, 3b
end_function uaccess_clear

/* ssize_t uaccess_copy_string(char *dst, u64 user_src, size_t max) */
function uaccess_copy_string
    xorl %eax, %eax
    smap_open
1:  cmpq %rdx, %rax
    jae 3f
2:  movb (%rsi, %rax), %cl
    movb %cl, (%rdi, %rax)
    testb %cl, %cl
    jz 3f
    incq %rax
    jmp 1b
3:  smap_close
    ret
4:  movq $-EFAULT, %rax
    jmp 3b
    may_fault 2b, 4b
end_function uaccess_copy_string

/* int uaccess_touch_read(u64 addr) */
function uaccess_touch_read
    smap_open
1:  movb (%rdi), %cl
    xorl %eax, %eax
2:  smap_close
    ret
3:  movl $-EFAULT, %eax
    jmp 2b
    may_fault 1b, 3b
end_function uaccess_touch_read

/* int uaccess_touch_write(u64 addr) */
function uaccess_touch_write
    smap_open
1:  lock orb $0, (%rdi)
    movl $0, %eax
2:  smap_close
    ret
3:  movl $-EFAULT, %eax
    jmp 2b
    may_fault 1b, 3b
end_function uaccess_touch_write

/* int uaccess_read_u32(u64 addr, u32 *out) */
function uaccess_read_u32
    smap_open
1:  movl (%rdi), %ecx
    movl %ecx, (%rsi)
    xorl %eax, %eax
2:  smap_close
    ret
3:  movl $-EFAULT, %eax
    jmp 2b
    may_fault 1b, 3b
end_function uaccess_read_u32

/* int uaccess_change_u32(u64 addr, u32 old, u32 new_, u32 *seen) */
function uaccess_change_u32
    movl %esi, %eax
    smap_open
1:  lock cmpxchgl %edx, (%rdi)
    movl %eax, (%rcx)
    xorl %eax, %eax
2:  smap_close
    ret
3:  movl $-EFAULT, %eax
    jmp 2b
    may_fault 1b, 3b
end_function uaccess_change_u32

/* int kernel_probe_read(u64 addr, u64 *out) */
function kernel_probe_read
1:  movq (%rdi), %rcx
    movq %rcx, (%rsi)
    xorl %eax, %eax
    ret
2:  movl $-EFAULT, %eax
    ret
    may_fault 1b, 2b
end_function kernel_probe_read

/* int kernel_probe_write(u64 addr) */
function kernel_probe_write
1:  lock orq $0, (%rdi)
    movl $0, %eax
    ret
2:  movl $-EFAULT, %eax
    ret
    may_fault 1b, 2b
end_function kernel_probe_write

SMAP_SITES_END(uaccess_smap_sites_end)
