/*
 * /proc/sys/kernel.
 */
#include "fs/proc/proc.h"
#include "fs/text_out.h"
#include "kernel/sched/hung.h"
#include "lib/errno.h"
#include "lib/parse.h"

static size_t show_hung_timeout(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};

    (void)arg;
    text_out_put(&out, "%lu\n", hung_task_timeout_secs());
    return out.len;
}

static int store_hung_timeout(void *arg, const char *text, size_t len)
{
    u64 seconds;

    (void)arg;
    if (parse_u64(text, len, 10, &seconds))
        return -EINVAL;
    return hung_task_set_timeout_secs(seconds);
}

static const struct text_file files[] = {
    {.path = "sys/kernel/hung_task_timeout_secs",
     .show = show_hung_timeout,
     .store = store_hung_timeout},
};

void proc_add_kernel_files(struct super_block *proc)
{
    proc_add_table(proc, files, ARRAY_SIZE(files));
}
