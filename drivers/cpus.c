/*
 * Starting the other processors that the MADT lists, and what each does first.
 */
#include "drivers/acpi.h"
#include "drivers/devices.h"
#include "kernel/cpu/smp.h"
#include "kernel/log/log.h"
#include "kernel/sched/task.h"
#include "mm/core/frames.h"

/* A new CPU's first call, on its idle stack, interrupts off. */
static void cpu_begin(void)
{
    sched_init_cpu();
    timer_device_init_cpu();
    sched_idle_loop();
}

unsigned cpus_start(unsigned max)
{
    u32 apic_ids[MAX_CPUS];
    unsigned n = acpi_cpu_apic_ids(apic_ids, MAX_CPUS);
    phys_t trampoline = frames_trampoline_page();

    if (n <= 1 || max <= 1)
        return 1;
    if (!trampoline) {
        log_warn("cpus: no free page below 1 MiB to start the other %u from", n - 1);
        return 1;
    }
    unsigned online = smp_start_all(apic_ids, n, max, trampoline, cpu_begin);

    log_info("cpus: %u of %u online", online, n);
    return online;
}
