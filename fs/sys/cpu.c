/*
 * /sys/devices/system/cpu: which CPUs there are, as a list of ranges. Programs size their pools of
 * threads by these.
 */
#include "kernel/cpu/cpu.h"
#include "fs/sys/sys.h"
#include "fs/text_out.h"
#include "kernel/log/log.h"

/* CPUs are numbered without gaps, none comes or goes: all three lists are the same. */
static size_t show_cpus(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    unsigned last = cpu_count() - 1;

    (void)arg;
    if (last)
        text_out_put(&out, "0-%u\n", last);
    else
        text_out_put(&out, "0\n");
    return out.len;
}

static const struct text_file files[] = {
    {.path = "devices/system/cpu/online", .show = show_cpus},
    {.path = "devices/system/cpu/possible", .show = show_cpus},
    {.path = "devices/system/cpu/present", .show = show_cpus},
};

void sysfs_add_cpus(struct super_block *sys)
{
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++)
        if (textfs_add(sys, &files[i]))
            panic("/sys/%s cannot be made", files[i].path);
}

void sysfs_add_files(struct super_block *sys)
{
    sysfs_add_block_devices(sys);
    sysfs_add_cpus(sys);
    sysfs_add_huge_pages(sys);
    sysfs_add_debug_files(sys);
}
