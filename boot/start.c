/*
 * The first C: the CPU is made fit for C, the loader's block is read, and the kernel proper begins.
 */
#include "boot/boot_info.h"
#include "boot/parse.h"
#include "kernel/cpu/cpu.h"
#include "kernel/log/log.h"

extern char __kernel_phys_start[], __kernel_phys_end[];

NORETURN void kernel_main(struct boot_info *boot);
NORETURN void kernel_boot(u32 protocol, phys_t block);

/* Called by boot/start.S on the boot stack, with the boot page tables, interrupts off. */
void kernel_boot(u32 protocol, phys_t block)
{
    static struct boot_info info;

    cpu_init_boot();
    const char *wrong = boot_info_collect(protocol, block, &info);
    if (wrong)
        panic("The boot loader's information is malformed: %s.", wrong);
    if (!boot_memory_is_usable(&info, (phys_t)__kernel_phys_start, (phys_t)__kernel_phys_end))
        panic("The kernel was loaded over memory that the firmware keeps for itself.");
    kernel_main(&info);
}
