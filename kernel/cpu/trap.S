/*
 * The doors into the kernel, and back out: 256 stubs for traps and interrupts, the SYSCALL entry,
 * and the first way into user mode.
 *
 * Every door pushes a whole `struct trap_frame` and calls C with its address. The CFI here
 * describes the frame as a signal frame, so gdb walks from any handler into the interrupted code,
 * user or kernel.
 *
 * Which GS base is active?
 *   ordinary doors   came from user mode (cs) <=> the program's; swapped at once
 *   paranoid doors   NMI, double fault, machine check: they may hit the few instructions between a
 *   door and
 *                    its SWAPGS. The kernel's GS base is negative, a program's never is (FSGSBASE
 *                    is off).
 * IRET and SYSRET to user mode cannot fault: trap.c makes every frame safe first.
 *
 * Sources: Intel SDM vol. 3, 6.14 (64-bit interrupts), 5.8.8 (SYSCALL, SYSRET); DWARF 5, 6.4.
 */
#include "kernel/cpu/smap.h"

#define FRAME_CS 160
#define FRAME_BYTES 192
#define CPU_KERNEL_STACK_TOP 16
#define CPU_USER_RSP_SCRATCH 24
#define USER_CS 0x2b
#define USER_SS 0x23
#define TRAP_VECTOR_SYSCALL 0x100
#define MSR_GS_BASE 0xc0000101

#define VECTOR_NMI 2
#define VECTOR_DOUBLE_FAULT 8
#define VECTOR_MACHINE_CHECK 18
/* Exceptions that push an error code: 8, 10 … 14, 17, 21, 29, 30. */
#define VECTORS_WITH_ERROR 0x60227d00

#define STUB_BYTES 16

    .cfi_sections .debug_frame
    .text
SMAP_SITES_BEGIN(trap_smap_sites)

.macro save reg
    pushq %\reg
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %\reg, 0
.endm

.macro restore reg
    popq %\reg
    .cfi_adjust_cfa_offset -8
    .cfi_restore %\reg
.endm

/* From `error` and `vector` pushed to a whole frame. */
.macro save_registers
    save rdi
    save rsi
    save rdx
    save rcx
    save rax
    save r8
    save r9
    save r10
    save r11
    save rbx
    save rbp
    save r12
    save r13
    save r14
    save r15
    pushq $0 /* unused */
    .cfi_adjust_cfa_offset 8
    pushq $0 /* fault_address */
    .cfi_adjust_cfa_offset 8
.endm

/* Back to `vector` and `error`. */
.macro restore_registers
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    restore r15
    restore r14
    restore r13
    restore r12
    restore rbp
    restore rbx
    restore r11
    restore r10
    restore r9
    restore r8
    restore rax
    restore rcx
    restore rdx
    restore rsi
    restore rdi
.endm

/* What the CPU pushed lies right below the CFA. */
.macro frame_pushed_by_cpu bytes
    .cfi_startproc simple
    .cfi_signal_frame
    .cfi_def_cfa %rsp, \bytes
    .cfi_offset %rip, -40
    .cfi_offset %rsp, -16
.endm

/* One stub for each vector, STUB_BYTES apart: the IDT is computed from trap_stubs. */
    .balign STUB_BYTES
    .globl trap_stubs
    .type trap_stubs, @function
trap_stubs:
    .set vector, 0
    .rept 256
    .balign STUB_BYTES
    .if vector < 32 && (VECTORS_WITH_ERROR >> (vector & 31)) & 1
    frame_pushed_by_cpu 48
    .else
    frame_pushed_by_cpu 40
    pushq $0
    .cfi_adjust_cfa_offset 8
    .endif
    pushq $vector
    .cfi_adjust_cfa_offset 8
    .if vector == VECTOR_NMI || vector == VECTOR_DOUBLE_FAULT || vector == VECTOR_MACHINE_CHECK
    jmp trap_paranoid
    .else
    jmp trap_common
    .endif
    .cfi_endproc
    .set vector, vector + 1
    .endr
    .size trap_stubs, . - trap_stubs

    .globl trap_common, trap_dispatch_return
    .type trap_common, @function
trap_common:
    frame_pushed_by_cpu 56
    save_registers
    cld
    smap_close
    testb $3, FRAME_CS(%rsp)
    jz 1f
    swapgs
1:  movq %rsp, %rdi
    call trap_dispatch
trap_dispatch_return:
    testb $3, FRAME_CS(%rsp)
    jz trap_leave
trap_leave_to_user:
    swapgs
trap_leave:
    restore_registers
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    iretq
    .cfi_endproc
    .size trap_common, . - trap_common

    .globl trap_paranoid, trap_paranoid_return
    .type trap_paranoid, @function
trap_paranoid:
    frame_pushed_by_cpu 56
    save_registers
    cld
    smap_close
    xorl %ebx, %ebx /* 1: swap back at the end */
    movl $MSR_GS_BASE, %ecx
    rdmsr
    testl %edx, %edx
    js 1f
    swapgs
    incl %ebx
1:  movq %rsp, %rdi
    call trap_dispatch_paranoid
trap_paranoid_return:
    testl %ebx, %ebx
    jz 2f
    swapgs
2:  restore_registers
    addq $16, %rsp
    .cfi_adjust_cfa_offset -16
    iretq
    .cfi_endproc
    .size trap_paranoid, . - trap_paranoid

/*
 * rax: number; rdi rsi rdx r10 r8 r9: arguments; rcx: return address; r11: flags. Interrupts are
 * off.
 */
    .globl trap_syscall_entry, trap_syscall_return
    .type trap_syscall_entry, @function
trap_syscall_entry:
    .cfi_startproc simple
    .cfi_signal_frame
    .cfi_def_cfa %rsp, 0
    .cfi_val_offset %rsp, 0
    .cfi_register %rip, %rcx
    swapgs
    movq %rsp, %gs:CPU_USER_RSP_SCRATCH
    movq %gs:CPU_KERNEL_STACK_TOP, %rsp
    pushq $USER_SS
    .cfi_adjust_cfa_offset 8
    pushq %gs:CPU_USER_RSP_SCRATCH
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rsp, -16
    pushq %r11
    .cfi_adjust_cfa_offset 8
    pushq $USER_CS
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rip, -40
    pushq %rax /* error: the call's number */
    .cfi_adjust_cfa_offset 8
    pushq $TRAP_VECTOR_SYSCALL
    .cfi_adjust_cfa_offset 8
    save_registers
    movq %rsp, %rdi
    call trap_syscall
trap_syscall_return:
    testb %al, %al
    jz trap_leave_to_user
    restore_registers
    movq 40(%rsp), %rsp /* frame.rsp, seen from frame.vector */
    .cfi_def_cfa %rsp, 0
    .cfi_val_offset %rsp, 0
    .cfi_register %rip, %rcx
    swapgs
    sysretq
    .cfi_endproc
    .size trap_syscall_entry, . - trap_syscall_entry

/* void trap_enter_user(struct trap_frame *frame) */
    .globl trap_enter_user
    .type trap_enter_user, @function
trap_enter_user:
    .cfi_startproc
    .cfi_undefined %rip
    movq %rdi, %rbx
    andq $-16, %rsp
    call trap_prepare_user
    movq %rbx, %rsp
    jmp trap_leave_to_user
    .cfi_endproc
    .size trap_enter_user, . - trap_enter_user

SMAP_SITES_END(trap_smap_sites_end)
