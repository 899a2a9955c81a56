/*
 * The order of initialisation, readable as a table of contents: memory, CPU, tasks, devices, files, programs.
 */
#include "boot/boot_info.h"
#include "drivers/block/gate.h"
#include "drivers/block/ramdisk.h"
#include "drivers/devices.h"
#include "drivers/virtio/blk.h"
#include "kernel/cmdline.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sched/task.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"
#include "mm/page_cache.h"
#include "mm/vma.h"
#include "tests/kernel/ktest.h"

NORETURN void kernel_main(struct boot_info *boot);

static const struct boot_info *boot_info;

static void *contiguous_pages(unsigned n)
{
    unsigned order = 0;
    while ((1u << order) < n)
        order++;
    struct page *page = frames_alloc(order, FRAME_ZERO);
    return page ? page_virt(page) : NULL;
}

static void memory_init(const struct boot_info *boot)
{
    frames_init(boot);
    page_table_init(boot);
    slab_init();
    smp_set_allocator(contiguous_pages, kernel_stack_alloc);
    log_info("memory: %lu MiB for the kernel and its programs", frames_total() * PAGE_SIZE >> 20);
}

static void platform_init(const struct boot_info *boot)
{
    acpi_init(boot);
    apic_init();
    timer_device_init(cmdline.icount);
    serial_init_irq();
    irq_enable();
}

static void tasks_init(void)
{
    trap_set_time_hooks(sched_account_user_exit, sched_account_user_enter);
    cpus_start(cmdline.max_cpus);
    sync_points_set_seed(cmdline.sync_seed);
}

static void create_ramdisk(const struct boot_module *module)
{
    ramdisk_create("ram0", phys_to_virt(module->start), module->end - module->start);
}

static void set_up_disk(struct block_device *device, void *ctx)
{
    struct gate_delay delay = {cmdline.gate_latency_ns, cmdline.gate_per_request_ns,
                               cmdline.gate_bandwidth};
    (void)ctx;
    if (cmdline.read_ahead_kb != ~0ul)
        device->read_ahead_kb = cmdline.read_ahead_kb;
    if (delay.latency_ns || delay.per_request_ns || delay.bandwidth)
        gate_set_delay(device, &delay);
}

static void disks_init(const struct boot_info *boot)
{
    pci_init();
    virtio_blk_init();
    for (u32 i = 0; i < boot->n_modules && i < 1; i++)
        create_ramdisk(&boot->modules[i]);
    block_for_each(set_up_disk, NULL);
}

static void run_tests(void)
{
    unsigned failed = ktest_run_all(cmdline.ktest, cmdline.ktest_after ? cmdline.ktest_after : "");
    machine_end(MACHINE_EXIT, failed ? 1 : 0);
}

/* Everything that may sleep, in a task of its own. */
static void start(void *arg)
{
    (void)arg;
    disks_init(boot_info);
    page_cache_rooms_init();
    cmdline_apply_knobs();
    if (cmdline.ktest)
        run_tests();
    machine_end(MACHINE_POWEROFF, 0);
}

void kernel_main(struct boot_info *boot)
{
    boot_info = boot;
    serial_init_early();
    cmdline_parse(boot->cmdline);
    log_set_level(cmdline.loglevel);
    log_info("Faultline, started by %s: \"%s\"", boot->loader, boot->cmdline);

    memory_init(boot);
    sched_init();
    platform_init(boot);
    tasks_init();
    task_create("start", start, NULL, -1);
    sched_idle_loop();
}
