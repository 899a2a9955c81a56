/*
 * The order of initialisation, readable as a table of contents: memory, CPU, tasks, devices, files, programs.
 */
#include "boot/boot_info.h"
#include "drivers/block/gate.h"
#include "drivers/block/ramdisk.h"
#include "drivers/devices.h"
#include "drivers/virtio/blk.h"
#include "fs/proc/proc.h"
#include "fs/sys/sys.h"
#include "fs/tmpfs.h"
#include "fs/trace/tracefs.h"
#include "fs/tty/tty.h"
#include "kernel/cmdline.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/first_program.h"
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/hung.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sched/task.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/process.h"
#include "kernel/task/terminal.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"
#include "mm/core/tlb.h"
#include "mm/huge_pool.h"
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
    timer_device_init(cmdline.icount, cmdline.recorded);
    serial_init_irq();
    irq_enable();
}

static void tasks_init(void)
{
    cpus_start(cmdline.max_cpus);
    grace_init();
    sync_points_set_seed(cmdline.sync_seed);
    /* Time that counts instructions jumps where nothing runs: a wait may be long in no time. */
    if (!cmdline.icount && hung_task_set_timeout_secs(cmdline.hung_task_timeout_secs))
        log_warn("kernel.hung_task_timeout_secs is too large; ignored");
}

static void create_ramdisk(const struct boot_module *module)
{
    ramdisk_create("ram0", phys_to_virt(module->start), module->end - module->start);
}

/* The words of the command line that are about disks. */
static void set_up_disk(const char *name)
{
    struct block_device *device = block_device_find(name);
    struct gate_delay delay = {cmdline.gate_latency_ns, cmdline.gate_per_request_ns,
                               cmdline.gate_bandwidth};
    if (!device)
        return;
    if (cmdline.read_ahead_kb != ~0ul)
        device->read_ahead_kb = MIN(cmdline.read_ahead_kb, (u64)READ_AHEAD_MAX_KB);
    if ((delay.latency_ns || delay.per_request_ns || delay.bandwidth) &&
        gate_set_delay(device, &delay))
        log_warn("%s: gate.latency_ns and gate.per_request_ns may be at most an hour", name);
}

static void disks_init(const struct boot_info *boot)
{
    static const char *const names[] = {"vda", "vdb", "ram0"};
    block_report_init();
    pci_init();
    virtio_blk_init();
    if (boot->n_modules > 0)
        create_ramdisk(&boot->modules[0]);
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        set_up_disk(names[i]);
}

/* Where programs can write. */
static void mount_memory(void)
{
    static const char *const places[] = {"/tmp", "/dev/shm"};
    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        struct super_block *super = tmpfs_create();
        if (!super || vfs_mount(places[i], super))
            panic("out of memory while mounting %s", places[i]);
    }
}

/* Where programs look for the trace, today's place and the old one. */
static void mount_trace(struct super_block *sys)
{
    static const char *const places[] = {"kernel/tracing", "kernel/debug/tracing"};
    struct super_block *trace = tracefs_create();
    char path[32];

    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        format_to(path, sizeof(path), "/sys/%s", places[i]);
        if (textfs_add_directory(sys, places[i]) || vfs_mount(path, trace))
            panic("out of memory while mounting %s", path);
    }
}

static void mount_others(void)
{
    struct super_block *proc = proc_create(), *sys = sysfs_create(), *dev = devfs_create();
    if (!proc || !sys || !dev || vfs_mount("/proc", proc) || vfs_mount("/sys", sys) ||
        vfs_mount("/dev", dev))
        panic("out of memory while mounting /proc, /sys and /dev");
    mount_memory();
    proc_add_system_files(proc, boot_info->cmdline);
    process_add_proc_files(proc);
    sysfs_add_files(sys);
    mount_trace(sys);
}

/* Somebody sits in front of the console: it becomes a terminal. */
static void terminals_init(void)
{
    terminal_init();
    if (cmdline.console && strcmp(cmdline.console, "tty") == 0)
        tty_start_console(cmdline.console_rows, cmdline.console_columns);
    else if (cmdline.console && strcmp(cmdline.console, "raw") != 0)
        log_warn("command line: console=%s: it can be tty or raw; raw it is", cmdline.console);
}

static void files_init(void)
{
    vfs_init();
    mount_others();
    process_init();
    terminals_init();
    syscall_init();
}

/* Breaks the kernel on purpose: who runs the tests wants to see them fail. */
static void apply_mutant(const char *name)
{
    if (strcmp(name, "no_shootdown") == 0)
        tlb_mutant_no_shootdown = tlb_check_is_off = true; /* the tests themselves are to find it */
    else
        log_warn("ktest.mutant=%s is unknown", name);
}

static void run_tests(void)
{
    if (cmdline.ktest_mutant)
        apply_mutant(cmdline.ktest_mutant);
    struct block_device *device = block_device_find("ram0");
    if (!device)
        device = block_device_find("vda");
    if (device && first_program_mount_root(device))
        log_warn("%s holds no ext2 file system: tests that need files are skipped", device->name);
    unsigned failed = ktest_run_all(cmdline.ktest, cmdline.ktest_after ? cmdline.ktest_after : "");
    machine_end(MACHINE_EXIT, failed ? 1 : 0);
}

/* Everything that may sleep, in a task of its own. */
static void start(void *arg)
{
    (void)arg;
    disks_init(boot_info);
    page_cache_rooms_init();
    mm_rooms_init();
    huge_pool_resize(cmdline.hugepages);
    cmdline_apply_knobs();
    files_init();
    if (cmdline.ktest)
        run_tests();
    first_program_run();
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
