/*
 * Switching kernel stacks. What the caller of context_switch() may lose anyway (System V ABI) is
 * not saved; the rest lies on the stack that is left behind:
 *
 *     rsp -> r15 r14 r13 r12 rbx rbp return address
 */
    .cfi_sections .debug_frame
    .text

/* void context_switch(u64 *from_rsp, u64 to_rsp) */
    .globl context_switch
    .type context_switch, @function
context_switch:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size context_switch, . - context_switch

/* Where a fresh stack begins: rbx = entry, r12 = its argument (context_prepare). */
    .globl context_start
    .type context_start, @function
context_start:
    .cfi_startproc
    .cfi_undefined %rip
    xorl %ebp, %ebp
    movq %r12, %rdi
    call *%rbx
    ud2
    .cfi_endproc
    .size context_start, . - context_start
