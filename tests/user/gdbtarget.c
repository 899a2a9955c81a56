/*
 * gdbtarget: faults and a system call in functions that gdb is to find again on the stack
 * (tests/gdb/test_gdb.py). Run with vm.map_around_bytes=4096, so that each page is a fault of its
 * own.
 *
 *     main -> outer -> inner           an ordinary function in the middle of its work
 *     main -> first_instruction        the load is the function's first instruction
 *     main -> last_instruction         its return is the first instruction of a page of its own
 *     main -> last_load                its last instruction, a jump, loads where it goes to
 *     main -> full_registers           every register holds a known value at the load
 *     main -> ask_kernel               a system call
 *     main -> hand_to_kernel           write(2) of bytes that the kernel faults on
 *
 * Exit status: 0, or 1 where the file cannot be mapped or a register came back changed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE        4096
#define PAGES       4 /* of the file; what lies behind its end is not touched */
#define SYS_WRITE   1
#define SYS_GETPPID 110

#define NOINLINE __attribute__((noinline, noclone, noipa))

int first_instruction(const volatile char *page);
void last_instruction(void);
void last_load(void (*const *page)(void));
void only_return(void);
unsigned long full_registers(const volatile char *page);

__asm__(".pushsection .text.gdbtarget, \"ax\", @progbits\n"
        ".globl first_instruction, last_instruction, last_load, only_return, full_registers\n"
        ".type first_instruction, @function\n"
        "first_instruction:\n"
        ".cfi_startproc\n"
        "    movsbl (%rdi), %eax\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size first_instruction, . - first_instruction\n"

        ".type last_load, @function\n"
        "last_load:\n"
        ".cfi_startproc\n"
        "    pushq %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbx, 0\n"
        "    xorl %ebx, %ebx\n"
        "    popq %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbx\n"
        "    jmp *(%rdi)\n"
        ".cfi_endproc\n"
        ".size last_load, . - last_load\n"

        ".type only_return, @function\n"
        "only_return:\n"
        ".cfi_startproc\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size only_return, . - only_return\n"

        ".type full_registers, @function\n"
        "full_registers:\n"
        ".cfi_startproc\n"
        "    pushq %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbx, 0\n"
        "    pushq %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbp, 0\n"
        "    pushq %r12\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %r12, 0\n"
        "    movl $0x1001, %eax\n"
        "    movl $0x1002, %ebx\n"
        "    movl $0x1003, %ecx\n"
        "    movl $0x1004, %edx\n"
        "    movl $0x1005, %esi\n"
        "    movl $0x1006, %ebp\n"
        "    movl $0x1008, %r8d\n"
        "    movl $0x1009, %r9d\n"
        "    movl $0x100a, %r10d\n"
        "    movl $0x100b, %r11d\n"
        "    movl $0x100c, %r12d\n"
        "    cmpb $0, (%rdi)\n"
        "    addq %rbx, %rax\n"
        "    addq %rcx, %rax\n"
        "    addq %rdx, %rax\n"
        "    addq %rsi, %rax\n"
        "    addq %rbp, %rax\n"
        "    addq %r8, %rax\n"
        "    addq %r9, %rax\n"
        "    addq %r10, %rax\n"
        "    addq %r11, %rax\n"
        "    addq %r12, %rax\n"
        "    popq %r12\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %r12\n"
        "    popq %rbp\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbp\n"
        "    popq %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore %rbx\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size full_registers, . - full_registers\n"

        "    .balign 4096\n"
        "    .skip 4095, 0x90\n"
        ".type last_instruction, @function\n"
        "last_instruction:\n"
        ".cfi_startproc\n"
        "    nop\n"
        "    ret\n" /* at the beginning of the next page, where nothing else is */
        ".cfi_endproc\n"
        ".size last_instruction, . - last_instruction\n"
        "    .balign 4096\n"
        ".popsection\n");

#define FULL_REGISTERS_SUM                                                                       \
    (0x1001UL + 0x1002 + 0x1003 + 0x1004 + 0x1005 + 0x1006 + 0x1008 + 0x1009 + 0x100a + 0x100b + \
     0x100c)

NOINLINE int inner(const volatile char *page, int scale)
{
    volatile int factor = scale * 2; /* a leaf keeps it below its stack pointer */
    int value = *page;

    return value * factor;
}

NOINLINE int outer(const volatile char *page)
{
    return inner(page, 3) + 1;
}

NOINLINE long ask_kernel(void)
{
    long result;

    __asm__ volatile("syscall" : "=a"(result) : "0"((long)SYS_GETPPID) : "rcx", "r11", "memory");
    return result;
}

NOINLINE long hand_to_kernel(int fd, const char *page)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_WRITE), "D"((long)fd), "S"(page), "d"(2 * sizeof(long))
                     : "rcx", "r11", "memory");
    return result;
}

/* A page that holds the address of only_return, and is in no entry yet. */
static void *page_with_address(void)
{
    void (*const go)(void) = only_return;
    int fd = open("/tmp/gdbtarget", O_RDWR | O_CREAT, 0600);
    void *page;

    if (fd < 0 || write(fd, &go, sizeof(go)) != sizeof(go))
        return MAP_FAILED;
    page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return page;
}

int main(void)
{
    int fd = open("/data/medium.bin", O_RDONLY);
    const volatile char *file;
    void *address = page_with_address();
    int out = open("/tmp/gdbtarget", O_WRONLY);
    int sum;

    if (fd < 0)
        fd = open("/proc/self/exe", O_RDONLY);
    file = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || file == MAP_FAILED || address == MAP_FAILED || out < 0) {
        perror("gdbtarget: a file to map");
        return 1;
    }
    sum = outer(file);
    sum += first_instruction(file + PAGE);
    last_instruction();
    last_load(address);
    if (full_registers(file + 2 * PAGE) != FULL_REGISTERS_SUM) {
        puts("gdbtarget: a register came back changed");
        return 1;
    }
    ask_kernel();
    if (hand_to_kernel(out, (const char *)file + 3 * PAGE) != 2 * sizeof(long))
        return 1;
    printf("gdbtarget: done (%d)\n", sum != 0);
    return 0;
}
