/*
 * The order of initialisation.
 */
#include "boot/boot_info.h"
#include "kernel/cpu/cpu.h"
#include "kernel/log/log.h"

NORETURN void kernel_main(struct boot_info *boot);

static void describe_boot(const struct boot_info *boot)
{
    log_info("Faultline, started by %s: \"%s\"", boot->loader, boot->cmdline);
    log_info("%s", cpu_features.brand);
    for (u32 i = 0; i < boot->n_regions; i++)
        log_info("memory %#014lx … %#014lx type %d", boot->regions[i].start, boot->regions[i].end,
                 boot->regions[i].type);
    for (u32 i = 0; i < boot->n_modules; i++)
        log_info("module %#lx … %#lx \"%s\"", boot->modules[i].start, boot->modules[i].end,
                 boot->modules[i].name);
    log_info("ACPI root pointer: %s", boot->has_rsdp ? "yes" : "no");
}

void kernel_main(struct boot_info *boot)
{
    describe_boot(boot);
    machine_end(MACHINE_EXIT, 0);
}
