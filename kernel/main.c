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
#include "kernel/cmdline.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/log/log.h"
#include "kernel/sched/grace.h"
#include "kernel/sched/sync_point.h"
#include "kernel/sched/task.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/process.h"
#include "lib/error_text.h"
#include "lib/format.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/page_table.h"
#include "mm/core/slab.h"
#include "mm/page_cache.h"
#include "mm/vma.h"
#include "tests/kernel/ktest.h"

#define STATUS_CANNOT_RUN 127

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
    grace_init();
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

/* No program can run: say why where a person will see it, and end with the shell's status for that. */
NORETURN static PRINTF_LIKE(1, 2) void give_up(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int len = format_v(text, sizeof(text) - 1, fmt, args);
    va_end(args);
    log_error("%s", text);
    len = MIN(len, (int)sizeof(text) - 2);
    text[len] = '\n';
    console_write(text, len + 1);
    machine_end(MACHINE_EXIT, STATUS_CANNOT_RUN);
}

static struct block_device *root_device(void)
{
    static const char *const candidates[] = {"ram0", "vda"};
    if (cmdline.root) {
        struct block_device *device = block_device_find(cmdline.root);
        if (!device)
            give_up("There is no disk \"%s\" (root=%s). Disks are called vda, vdb, ram0.", cmdline.root,
                    cmdline.root);
        return device;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(candidates); i++) {
        struct block_device *device = block_device_find(candidates[i]);
        if (device)
            return device;
    }
    give_up("There is no disk to take programs from: no virtio-blk device and no RAM disk. "
            "Give one to tools/qemu by --disk IMG or --ramdisk IMG.");
}

/* => whether a root file system is there */
static int mount_root(struct block_device *device)
{
    struct super_block *root;
    int error = ext2_mount(device, &root);
    if (!error)
        error = vfs_mount("/", root);
    return error;
}

static void mount_others(void)
{
    struct super_block *proc = proc_create(), *sys = sysfs_create(), *dev = devfs_create();
    if (!proc || !sys || !dev || vfs_mount("/proc", proc) || vfs_mount("/sys", sys) || vfs_mount("/dev", dev))
        panic("out of memory while mounting /proc, /sys and /dev");
    proc_add_system_files(proc, boot_info->cmdline);
    process_add_proc_files(proc);
    sysfs_add_files(sys);
}

static void files_init(void)
{
    vfs_init();
    mount_others();
    process_init();
    syscall_init();
}

static void run_tests(void)
{
    struct block_device *device = block_device_find("ram0");
    if (!device)
        device = block_device_find("vda");
    if (device && mount_root(device))
        log_warn("%s holds no ext2 file system: tests that need files are skipped", device->name);
    unsigned failed = ktest_run_all(cmdline.ktest, cmdline.ktest_after ? cmdline.ktest_after : "");
    machine_end(MACHINE_EXIT, failed ? 1 : 0);
}

/* What runs where the command line names no program: a shell if the image has one, else the demonstration. */
static const char *default_program(void)
{
    static const char *const candidates[] = {"/bin/sh", "/bin/demo"};
    for (unsigned i = 0; i < ARRAY_SIZE(candidates); i++) {
        struct inode *inode;
        if (vfs_lookup(NULL, "/", candidates[i], true, &inode, NULL) == 0) {
            inode_put(inode);
            return candidates[i];
        }
    }
    give_up("The disk has neither /bin/sh nor /bin/demo, and the command line names no program (init=/path).");
}

NORETURN static void run_init(void)
{
    static const char *const environment[] = {"PATH=/bin:/sbin:/usr/bin:/tests", "HOME=/", "TERM=vt100", NULL};
    const char *argv[CMDLINE_MAX_ARGS + 2] = {cmdline.init ? cmdline.init : default_program()};
    int error;
    memcpy(argv + 1, cmdline.args, cmdline.n_args * sizeof(*argv));
    struct process *init = process_spawn(argv[0], argv, environment, true, &error);
    if (!init)
        give_up("The program %s cannot be started: %s.", argv[0], error_text(error));
    int status = process_wait(init);
    log_info("%s ended with status %d", argv[0], status);
    machine_end(MACHINE_EXIT, status);
}

/* Everything that may sleep, in a task of its own. */
static void start(void *arg)
{
    (void)arg;
    disks_init(boot_info);
    page_cache_rooms_init();
    mm_rooms_init();
    cmdline_apply_knobs();
    files_init();
    if (cmdline.ktest)
        run_tests();
    struct block_device *device = root_device();
    int error = mount_root(device);
    if (error)
        give_up("The disk %s cannot be used: %s. It must hold an ext2 file system (tools/mkimage makes one).",
                device->name, error_text(error));
    run_init();
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
