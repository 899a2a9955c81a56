/*
 * From the boot loader to kernel_boot(): the headers by which loaders know us, and the way from
 * 32-bit protected mode to C in the higher half.
 *
 *   GRUB (BIOS and UEFI)   Multiboot2: finds the header below, enters at start_multiboot2 with
 *                          eax = magic, ebx = its information block
 *   QEMU -kernel           PVH: finds the note below, enters at start_pvh with ebx = start_info
 *
 * Both enter in 32-bit protected mode, paging off, interrupts off. From there on there is one way:
 *
 *   check the CPU -> page tables -> long mode -> jump to the higher half -> clear .bss -> C
 *
 * The page tables made here map the first 4 GiB three times: where they are (identity), in the
 * direct map, and the first GiB at KERNEL_BASE. mm/core replaces them; other CPUs pass through
 * them once more on their way up (boot/trampoline.S), so they stay as they are.
 *
 * There must be no Multiboot1 header: QEMU would try it before the PVH note, and refuse.
 *
 * Sources: Multiboot2 specification 3.1; Xen "x86/HVM direct boot ABI" (PVH); Intel SDM vol. 3,
 * 4.5, 9.8.5.
 */

#define MULTIBOOT2_HEADER_MAGIC 0xe85250d6
#define MULTIBOOT2_LOADER_MAGIC 0x36d76289
#define MULTIBOOT2_ARCH_I386 0

#define XEN_ELFNOTE_PHYS32_ENTRY 18

#define BOOT_MULTIBOOT2 0 /* enum boot_protocol */
#define BOOT_PVH 1

#define COM1 0x3f8
#define COM1_LINE_STATUS (COM1 + 5)
#define LINE_STATUS_CAN_SEND 0x20
#define DEBUGCON 0xe9
#define DEBUG_EXIT 0xf4

#define CR0_PE (1 << 0)
#define CR0_WP (1 << 16)
#define CR0_PG (1 << 31)
#define CR4_PAE (1 << 5)
#define MSR_EFER 0xc0000080
#define EFER_LME (1 << 8)
#define EFLAGS_ID (1 << 21)
#define CPUID_EXT_LONG_MODE (1 << 29)

#define PTE_TABLE 0x03      /* present, writable */
#define PTE_LARGE_PAGE 0x83 /* and a page of 2 MiB */
#define PML4_SLOT_DIRECT 256 /* 0xffff800000000000 */
#define PML4_SLOT_IMAGE 511  /* 0xffffffff80000000 lies in entry 510 of this one's table */
#define PDPT_SLOT_IMAGE 510
#define BOOT_GIB 4

#define BOOT_STACK_BYTES 16384

    .cfi_sections .debug_frame

    .section .boot.header, "a"
    .balign 8
multiboot2_header:
    .long MULTIBOOT2_HEADER_MAGIC
    .long MULTIBOOT2_ARCH_I386
    .long multiboot2_header_end - multiboot2_header
    .set checksum, MULTIBOOT2_HEADER_MAGIC + MULTIBOOT2_ARCH_I386
    .long -(checksum + (multiboot2_header_end - multiboot2_header))
    /*
     * What we want to be told: command line, modules, memory map, ACPI root pointers (optional: 1).
     */
    .balign 8
1:  .short 1, 1
    .long 2f - 1b
    .long 1, 3, 6, 14, 15
2:
    /* Modules start on a page. */
    .balign 8
    .short 6, 0
    .long 8
    .balign 8
    .short 0, 0
    .long 8
multiboot2_header_end:

    .section .note.Xen, "a", @note
    .balign 4
    .long 4, 4, XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long start_pvh

    .section .boot.text, "ax"
    .code32

    .globl start_multiboot2, start_pvh
    .type start_multiboot2, @function
    .type start_pvh, @function
start_multiboot2:
    .cfi_startproc
    .cfi_undefined %eip
    movl $message_loader, %esi
    cmpl $MULTIBOOT2_LOADER_MAGIC, %eax
    jne boot_refuse
    movl $BOOT_MULTIBOOT2, %edi
    jmp start32
    .cfi_endproc

start_pvh:
    .cfi_startproc
    .cfi_undefined %eip
    movl $BOOT_PVH, %edi
    /* fall through */
    .cfi_endproc

/* edi: protocol, ebx: the loader's block. Both are kept until long mode. */
start32:
    .cfi_startproc
    .cfi_undefined %eip
    cli
    cld
    movl $boot_stack32_top, %esp
    movl %ebx, %ebp

    /* CPUID exists where the ID flag can be changed. */
    pushfl
    popl %eax
    movl %eax, %ecx
    xorl $EFLAGS_ID, %eax
    pushl %eax
    popfl
    pushfl
    popl %eax
    movl $message_long_mode, %esi
    xorl %ecx, %eax
    testl $EFLAGS_ID, %eax
    jz boot_refuse

    movl $0x80000000, %eax
    cpuid
    cmpl $0x80000001, %eax
    jb boot_refuse
    movl $0x80000001, %eax
    cpuid
    testl $CPUID_EXT_LONG_MODE, %edx
    jz boot_refuse

    call boot_fill_tables

    movl %cr4, %eax
    orl $CR4_PAE, %eax
    movl %eax, %cr4
    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl $MSR_EFER, %ecx
    rdmsr
    orl $EFER_LME, %eax
    wrmsr
    movl %cr0, %eax
    orl $(CR0_PG | CR0_WP | CR0_PE), %eax
    movl %eax, %cr0
    lgdt boot_gdtr
    ljmp $0x08, $start64
    .cfi_endproc

/* Fills the page tables in, which the loader may have left dirty. Keeps edi and ebp. */
boot_fill_tables:
    pushl %edi
    movl $boot_tables, %edi
    movl $((boot_tables_end - boot_tables) / 4), %ecx
    xorl %eax, %eax
    rep stosl

    movl $(boot_pdpt_low + PTE_TABLE), boot_pml4
    movl $(boot_pdpt_low + PTE_TABLE), boot_pml4 + 8 * PML4_SLOT_DIRECT
    movl $(boot_pdpt_high + PTE_TABLE), boot_pml4 + 8 * PML4_SLOT_IMAGE
    movl $(boot_pd + PTE_TABLE), boot_pdpt_high + 8 * PDPT_SLOT_IMAGE

    movl $(boot_pd + PTE_TABLE), %eax
    xorl %ecx, %ecx
1:  movl %eax, boot_pdpt_low(, %ecx, 8)
    addl $4096, %eax
    incl %ecx
    cmpl $BOOT_GIB, %ecx
    jb 1b

    movl $PTE_LARGE_PAGE, %eax
    xorl %ecx, %ecx
2:  movl %eax, boot_pd(, %ecx, 8)
    addl $0x200000, %eax
    incl %ecx
    cmpl $(512 * BOOT_GIB), %ecx
    jb 2b
    popl %edi
    ret

/* esi: what is wrong. Says so on COM1, tells QEMU that we panicked, and halts. */
boot_refuse:
    cld
1:  movw $COM1_LINE_STATUS, %dx
    movl $100000, %ecx
2:  inb %dx, %al
    testb $LINE_STATUS_CAN_SEND, %al
    loopz 2b
    lodsb
    testb %al, %al
    jz 3f
    movw $COM1, %dx
    outb %al, %dx
    jmp 1b
3:  movl $message_status, %esi
    movw $DEBUGCON, %dx
    movl $(message_status_end - message_status), %ecx
    rep outsb
    movw $DEBUG_EXIT, %dx
    movl $1, %eax
    outl %eax, %dx
4:  cli
    hlt
    jmp 4b

    .code64
start64:
    .cfi_startproc
    .cfi_undefined %rip
    movl $0x10, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    /* The upper halves of the registers are undefined after the switch of modes. */
    movl %edi, %r12d
    movl %ebp, %r13d
    movabsq $start_high, %rax
    jmpq *%rax
    .cfi_endproc

    .section .boot.rodata, "a"
message_loader:
    .asciz "\r\nFaultline: started by a boot loader that speaks neither Multiboot2 nor PVH. Halted.\r\n"
message_long_mode:
    .asciz "\r\nFaultline: this CPU has no 64-bit mode (in QEMU: choose a 64-bit -cpu). Halted.\r\n"
message_status:
    .ascii "panic\n"
message_status_end:

    .section .boot.data, "aw"
    .balign 16
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff /* 0x08: code, 64-bit, ring 0 */
    .quad 0x00cf93000000ffff /* 0x10: data */
boot_gdtr:
    .short boot_gdtr - boot_gdt - 1
    .quad boot_gdt

    .section .boot.bss, "aw", @nobits
    .balign 4096
    .globl boot_pml4
boot_tables:
boot_pml4:
    .skip 4096
boot_pdpt_low:
    .skip 4096
boot_pdpt_high:
    .skip 4096
boot_pd:
    .skip 4096 * BOOT_GIB
boot_tables_end:
    .skip 256
boot_stack32_top:

    .text
    .globl start_high
    .type start_high, @function
start_high:
    .cfi_startproc
    .cfi_undefined %rip
    movq $__bss_start, %rdi
    movq $__bss_end, %rcx
    subq %rdi, %rcx
    shrq $3, %rcx
    xorl %eax, %eax
    rep stosq

    movq $boot_stack_top, %rsp
    xorl %ebp, %ebp
    movl %r12d, %edi
    movq %r13, %rsi
    call kernel_boot
1:  cli
    hlt
    jmp 1b
    .cfi_endproc
    .size start_high, . - start_high

/* The boot CPU's first stack, later its idle stack. mm/core leaves the guard page unmapped. */
    .section .bss, "aw", @nobits
    .balign 4096
    .globl boot_stack_guard, boot_stack, boot_stack_top
boot_stack_guard:
    .skip 4096
boot_stack:
    .skip BOOT_STACK_BYTES
boot_stack_top:
