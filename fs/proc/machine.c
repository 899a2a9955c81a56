/*
 * /proc files about the machine and the kernel on it: version, cmdline, uptime, cpuinfo,
 * interrupts, filesystems, mounts, diskstats. Formats of proc(5).
 */
#include "drivers/block/block.h"
#include "fs/disk_stats.h"
#include "fs/proc/proc.h"
#include "fs/text_out.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/trap.h"
#include "kernel/sched/task.h"

#define NS_PER_S   1000000000ul
#define NS_PER_CS  10000000ul
#define CS_PER_S   100
#define HZ_PER_MHZ 1000000ul
#define HZ_PER_KHZ 1000ul

static size_t show_version(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "Linux version %s (faultline) %s\n", KERNEL_RELEASE, KERNEL_VERSION);
    return out.len;
}

static const char *command_line = "";

static size_t show_cmdline(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "%s\n", command_line);
    return out.len;
}

static void put_seconds(struct text_out *out, u64 ns, char behind)
{
    text_out_put(out, "%lu.%02lu%c", ns / NS_PER_S, ns / NS_PER_CS % CS_PER_S, behind);
}

static size_t show_uptime(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    u64 idle_ns = 0;

    (void)arg;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        idle_ns += sched_idle_ns(cpu);
    put_seconds(&out, clock_ns(), ' ');
    put_seconds(&out, idle_ns, '\n');
    return out.len;
}

/* ---- CPUs ---- */

static const struct {
    const char *flag;
    const bool *is_there;
} cpu_flags[] = {
    {"pge", &cpu_features.pge},
    {"nx", &cpu_features.nx},
    {"smep", &cpu_features.smep},
    {"smap", &cpu_features.smap},
    {"umip", &cpu_features.umip},
    {"pku", &cpu_features.pku},
    {"fsgsbase", &cpu_features.fsgsbase},
    {"xsave", &cpu_features.xsave},
    {"avx", &cpu_features.avx},
    {"rdtscp", &cpu_features.rdtscp},
    {"pdpe1gb", &cpu_features.gib_pages},
    {"erms", &cpu_features.erms},
    {"constant_tsc", &cpu_features.invariant_tsc},
};

static void put_cpu(struct text_out *out, unsigned cpu)
{
    u64 khz = clock_frequency() / HZ_PER_KHZ;

    text_out_put(out, "processor\t: %u\n", cpu);
    text_out_put(out, "model name\t: %s\n", cpu_features.brand);
    text_out_put(out, "cpu MHz\t\t: %lu.%03lu\n", khz / (HZ_PER_MHZ / HZ_PER_KHZ),
                 khz % (HZ_PER_MHZ / HZ_PER_KHZ));
    text_out_put(out, "apicid\t\t: %u\n", cpu_get(cpu)->apic_id);
    text_out_put(out, "flags\t\t: fpu tsc msr pae apic sep mmx fxsr sse sse2 syscall lm");
    for (unsigned i = 0; i < ARRAY_SIZE(cpu_flags); i++)
        if (*cpu_flags[i].is_there)
            text_out_put(out, " %s", cpu_flags[i].flag);
    text_out_put(out, "\naddress sizes\t: %u bits physical, 48 bits virtual\n\n",
                 cpu_features.phys_bits);
}

static size_t show_cpuinfo(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        put_cpu(&out, cpu);
    return out.len;
}

static size_t show_interrupts(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "    ");
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        text_out_put(&out, "       CPU%-2u", cpu);
    text_out_put(&out, "\n");
    for (unsigned vector = IRQ_VECTOR_FIRST; vector <= IRQ_VECTOR_SPURIOUS; vector++) {
        const char *name = irq_name(vector);

        if (!name)
            continue;
        text_out_put(&out, "%3u:", vector);
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            text_out_put(&out, " %11lu", irq_count(vector, cpu));
        text_out_put(&out, "  %s\n", name);
    }
    return out.len;
}

/* ---- File systems and disks ---- */

static size_t show_filesystems(void *arg, char *buf, size_t size)
{
    static const char text[] =
        "nodev\tproc\nnodev\tsysfs\nnodev\tdevfs\nnodev\ttmpfs\nnodev\ttracefs\n\text2\n";
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_bytes(&out, text, sizeof(text) - 1);
    return out.len;
}

static void put_mount(const char *path, const struct super_block *super, void *ctx)
{
    const struct block_device *device = block_device_find_dev(super->dev);

    text_out_put(ctx, "%s%s %s %s %s 0 0\n", device ? "/dev/" : "",
                 device ? device->name : super->type, path, super->type,
                 super->is_read_only ? "ro" : "rw");
}

static size_t show_mounts(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    vfs_for_each_mount(put_mount, &out);
    return out.len;
}

static void put_disk(struct block_device *device, void *ctx)
{
    struct text_out *out = ctx;

    text_out_put(out, "%4u %7u %s", device->dev >> 8, device->dev & 0xff, device->name);
    disk_stats_put(out, device);
}

static size_t show_diskstats(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    block_for_each(put_disk, &out);
    return out.len;
}

static const struct text_file files[] = {
    {.path = "version", .show = show_version},
    {.path = "cmdline", .show = show_cmdline},
    {.path = "uptime", .show = show_uptime},
    {.path = "cpuinfo", .show = show_cpuinfo},
    {.path = "interrupts", .show = show_interrupts},
    {.path = "filesystems", .show = show_filesystems},
    {.path = "mounts", .show = show_mounts},
    {.path = "diskstats", .show = show_diskstats},
};

void proc_add_machine_files(struct super_block *proc, const char *cmdline)
{
    command_line = cmdline;
    proc_add_table(proc, files, ARRAY_SIZE(files));
}
