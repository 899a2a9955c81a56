/*
 * /sys/kernel/mm/hugepages: the pool of huge pages, one folder for its page size. nr_hugepages counts
 * surplus pages too, unlike /proc/sys/vm/nr_hugepages; both set the size without them.
 */
#include "fs/sys/sys.h"
#include "fs/text_out.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "lib/parse.h"
#include "mm/huge_file.h"

#define FOLDER "kernel/mm/hugepages/hugepages-2048kB/"

/* arg: offset of the number in struct huge_pool_counts */
static size_t show_count(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct huge_pool_counts counts;

    huge_pool_count(&counts);
    text_out_put(&out, "%lu\n", *(u64 *)((char *)&counts + (size_t)arg));
    return out.len;
}

static int store_size(void *arg, const char *text, size_t len)
{
    u64 pages;

    (void)arg;
    if (parse_u64(text, len, 10, &pages))
        return -EINVAL;
    huge_pool_resize(pages);
    return 0;
}

static int store_max_surplus(void *arg, const char *text, size_t len)
{
    u64 pages;

    (void)arg;
    if (parse_u64(text, len, 10, &pages))
        return -EINVAL;
    huge_pool_set_max_surplus(pages);
    return 0;
}

#define COUNT(field) .show = show_count, .arg = (void *)offsetof(struct huge_pool_counts, field)

static const struct text_file files[] = {
    {.path = FOLDER "nr_hugepages", COUNT(total), .store = store_size},
    {.path = FOLDER "free_hugepages", COUNT(free)},
    {.path = FOLDER "resv_hugepages", COUNT(reserved)},
    {.path = FOLDER "surplus_hugepages", COUNT(surplus)},
    {.path = FOLDER "nr_overcommit_hugepages", COUNT(max_surplus), .store = store_max_surplus},
};

void sysfs_add_huge_pages(struct super_block *sys)
{
    if (huge_file_dev == 0)
        huge_file_dev = super_anonymous_dev();
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++)
        if (textfs_add(sys, &files[i]))
            panic("/sys/%s cannot be made", files[i].path);
}
