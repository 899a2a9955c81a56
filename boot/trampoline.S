/*
 * Where the other CPUs begin: in real mode, at the start of the page below 1 MiB that the start-up
 * IPI named. smp_start_all() copies this code there, with arguments at its end.
 *
 *   real mode -> protected mode -> long mode with the boot page tables (which map this page where
 *   it
 *   is, and the kernel) -> kernel page tables -> smp_cpu_main(cpu) on a stack of its own
 *
 * The code does not know its address: ebx holds it throughout, and both far pointers are completed
 * here. A CPU for which the arguments are not meant (it woke up too late) halts.
 *
 * Source: Intel SDM vol. 3, 8.4.4, 9.8.5.
 */

#define CR0_PE (1 << 0)
#define CR0_WP (1 << 16)
#define CR0_PG (1 << 31)
#define CR4_PAE (1 << 5)
#define MSR_EFER 0xc0000080
#define CPUID_BASIC 1
#define APIC_ID_SHIFT 24

#define OFFSET(label) (label - ap_trampoline_start)

    .cfi_sections .debug_frame
    .section .rodata.trampoline, "a"
    .balign 16
    .globl ap_trampoline_start, ap_trampoline_arguments, ap_trampoline_end
ap_trampoline_start:
    .code16
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    xorl %ebx, %ebx
    movw %ax, %bx
    shll $4, %ebx

    leal OFFSET(gdt)(%ebx), %eax
    movl %eax, OFFSET(gdtr_base)
    leal OFFSET(protected_mode)(%ebx), %eax
    movl %eax, OFFSET(far_pointer_32)
    lgdtl OFFSET(gdtr)
    movl %cr0, %eax
    orl $CR0_PE, %eax
    movl %eax, %cr0
    ljmpl *OFFSET(far_pointer_32)

    .code32
protected_mode:
    movl $0x10, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl %cr4, %eax
    orl $CR4_PAE, %eax
    movl %eax, %cr4
    movl OFFSET(arg_boot_cr3)(%ebx), %eax
    movl %eax, %cr3
    movl OFFSET(arg_efer)(%ebx), %eax
    xorl %edx, %edx
    movl $MSR_EFER, %ecx
    wrmsr
    movl %cr0, %eax
    orl $(CR0_PG | CR0_WP), %eax
    movl %eax, %cr0
    leal OFFSET(long_mode)(%ebx), %eax
    movl %eax, OFFSET(far_pointer_64)(%ebx)
    ljmpl *OFFSET(far_pointer_64)(%ebx)

    .code64
long_mode:
    movl %ebx, %esi /* cpuid writes ebx */
    movl $CPUID_BASIC, %eax
    xorl %ecx, %ecx
    cpuid
    shrl $APIC_ID_SHIFT, %ebx
    cmpl %ebx, OFFSET(arg_apic_id)(%rsi)
    jne not_for_us
    movl $1, %eax
    xchgl %eax, OFFSET(arg_taken)(%rsi)
    testl %eax, %eax
    jnz not_for_us
    movq OFFSET(arg_kernel_cr3)(%rsi), %rax
    movq OFFSET(arg_stack_top)(%rsi), %rdx
    movq OFFSET(arg_cpu)(%rsi), %rdi
    movabsq $ap_start_high, %rcx
    jmpq *%rcx
not_for_us:
    cli
    hlt
    jmp not_for_us

    .balign 8
gdt:
    .quad 0
    .quad 0x00af9b000000ffff /* 0x08: code, 64-bit */
    .quad 0x00cf93000000ffff /* 0x10: data */
    .quad 0x00cf9b000000ffff /* 0x18: code, 32-bit */
gdtr:
    .short gdtr - gdt - 1
gdtr_base:
    .long 0
    .balign 8
far_pointer_32:
    .long 0
    .short 0x18
    .balign 8
far_pointer_64:
    .long 0
    .short 0x08

    .balign 8
ap_trampoline_arguments: /* struct trampoline_arguments of kernel/cpu/smp_start.c */
arg_boot_cr3:
    .quad 0
arg_efer:
    .quad 0
arg_kernel_cr3:
    .quad 0
arg_stack_top:
    .quad 0
arg_cpu:
    .quad 0
arg_apic_id:
    .long 0
arg_taken:
    .long 0
ap_trampoline_end:

/* rax: kernel page tables, rdx: top of the stack, rdi: struct cpu */
    .text
    .type ap_start_high, @function
ap_start_high:
    .cfi_startproc
    .cfi_undefined %rip
    movq %rax, %cr3
    movq %rdx, %rsp
    xorl %ebp, %ebp
    call smp_cpu_main
1:  cli
    hlt
    jmp 1b
    .cfi_endproc
    .size ap_start_high, . - ap_start_high
