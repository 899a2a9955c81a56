/*
 * /proc and /sys as programs see them: opened by name, read into a program's memory, written from
 * it. The trees are the ones mounted at boot; no root file system is needed.
 */
#include "drivers/block/ramdisk.h"
#include "fs/vfs.h"
#include "kernel/log/trace.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/core/slab.h"
#include "mm/file_read.h"
#include "mm/knobs.h"
#include "mm/page_cache.h"
#include "mm/readahead.h"
#include "mm/user_memory.h"
#include "tests/kernel/gated_file.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define TEXT_BYTES       65536
#define USER_TEXT        0x300000000ul
#define NAMES_MAX        128
#define NAME_BYTES       64
#define KNOB_VALUE_BYTES 128

/* Names are relative to a mount: "/proc", "vmstat". */
static struct file *open_in(const char *mount, const char *path, u32 flags, int *error)
{
    struct super_block *super = vfs_mount_at(mount);

    *error = -ENODEV;
    return super ? file_open(super->root, mount, path, flags, 0, error) : NULL;
}

static int open_error(const char *mount, const char *path, u32 flags)
{
    int error;
    struct file *file = open_in(mount, path, flags, &error);

    if (file)
        file_put(file);
    return file ? 0 : error;
}

/* A program's memory for texts, at USER_TEXT. */
static bool user_text_enter(void)
{
    struct mm *mm = test_mm_enter();

    return mm && KEXPECT_EQ(mm_mmap(mm, USER_TEXT, TEXT_BYTES, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL, 0),
                            USER_TEXT);
}

/* Reads the open file to its end, `step` bytes a call. => length, text terminated, or an error */
static ssize_t read_open(struct file *file, char *text, size_t size, size_t step)
{
    size_t used = 0;
    ssize_t n = 0;

    while (used + step < size && (n = file_read(file, USER_TEXT, step, NULL)) > 0) {
        if (copy_from_user(text + used, USER_TEXT, n))
            return -EFAULT;
        used += n;
    }
    text[used] = '\0';
    return n < 0 ? n : (ssize_t)used;
}

static ssize_t read_in(const char *mount, const char *path, char *text, size_t size, size_t step)
{
    int error;
    struct file *file = open_in(mount, path, O_RDONLY, &error);
    ssize_t len = error;

    if (!file)
        return error;
    if (user_text_enter()) {
        len = read_open(file, text, size, step);
        test_mm_leave();
    }
    file_put(file);
    return len;
}

/* => the text, to be given back by kfree; NULL (a failed expectation) if it cannot be read */
static char *text_in(const char *mount, const char *path)
{
    char *text = kmalloc(TEXT_BYTES);
    ssize_t len = text ? read_in(mount, path, text, TEXT_BYTES, TEXT_BYTES / 2) : -ENOMEM;

    if (len >= 0)
        return text;
    ktest_fail(__FILE__, __LINE__, "%s/%s: error %ld", mount, path, (long)len);
    kfree(text);
    return NULL;
}

static ssize_t write_in(const char *mount, const char *path, const char *value)
{
    int error;
    struct file *file = open_in(mount, path, O_WRONLY, &error);
    ssize_t done = error;

    if (!file)
        return error;
    if (user_text_enter()) {
        done = copy_to_user(USER_TEXT, value, strlen(value));
        if (!done)
            done = file_write(file, USER_TEXT, strlen(value), NULL);
        test_mm_leave();
    }
    file_put(file);
    return done;
}

/* The number behind "name" and blanks at the beginning of a line. => false: there is none */
static bool find_number(const char *text, const char *name, u64 *number)
{
    size_t len = strlen(name);

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) != 0 || (line[len] != ' ' && line[len] != '\t'))
            continue;
        line += len;
        while (*line == ' ' || *line == '\t')
            line++;
        for (*number = 0; *line >= '0' && *line <= '9'; line++)
            *number = *number * 10 + (*line - '0');
        return true;
    }
    return false;
}

static u64 number_of(const char *text, const char *name)
{
    u64 number = 0;

    if (!find_number(text, name, &number))
        ktest_fail(__FILE__, __LINE__, "no line \"%s\"", name);
    return number;
}

static unsigned count_of(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

/* ---- vmstat ---- */

KTEST(proc, vmstat_is_one_name_and_one_number_a_line)
{
    char *text = text_in("/proc", "vmstat");

    KASSERT(text != NULL);
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n'), *blank = strchr(line, ' ');
        u64 number;

        if (!KEXPECT(end && blank && blank > line && blank < end))
            break;
        KEXPECT_EQ(parse_u64(blank + 1, end - blank - 1, 10, &number), 0);
        line = end + 1;
    }
    kfree(text);
}

KTEST(proc, vmstat_fault_counters_add_up)
{
    char *text = text_in("/proc", "vmstat");
    static const char *const outcomes[] = {"fault_major",   "fault_minor", "fault_sigbus",
                                           "fault_sigsegv", "fault_oom",   "fault_killed"};
    u64 ended = 0;

    KASSERT(text != NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(outcomes); i++)
        ended += number_of(text, outcomes[i]);
    KEXPECT_EQ(number_of(text, "fault_started"), ended);
    KEXPECT_EQ(number_of(text, "fault_attempts"), ended + number_of(text, "fault_retries"));
    kfree(text);
}

/* => the sum of all lines NAME_N */
static u64 sum_of(const char *text, const char *name)
{
    u64 sum = 0;
    for (unsigned bucket = 0; bucket < FAULT_TIME_BUCKETS; bucket++) {
        char line[40];
        format_to(line, sizeof(line), "%s_%u", name, bucket);
        u64 number = 0;
        find_number(text, line, &number); /* empty ones have no line */
        sum += number;
    }
    return sum;
}

KTEST(proc, vmstat_has_the_latency_of_each_fault_and_what_became_of_pages_read_ahead)
{
    char *text = text_in("/proc", "vmstat");

    KASSERT(text != NULL);
    KEXPECT_EQ(sum_of(text, "fault_latency"), number_of(text, "fault_started"));
    KEXPECT(sum_of(text, "fault_lock_hold") > 0);
    KEXPECT(number_of(text, "fault_read_pages") >= number_of(text, "fault_reads"));
    KEXPECT(number_of(text, "ra_ahead") >=
            number_of(text, "ra_ahead_used") + number_of(text, "ra_ahead_dropped"));
    KEXPECT(strstr(text, "\nread_waits ") && strstr(text, "\nread_wait_ns "));
    kfree(text);
}

KTEST(proc, vmstat_counts_the_one_page_that_reading_it_touches)
{
    char *before = text_in("/proc", "vmstat"), *after = text_in("/proc", "vmstat");
    static const char *const moved[] = {"fault_started", "fault_minor", "fault_reason_zero",
                                        "pgfault"};
    static const char *const unmoved[] = {"fault_major", "fault_retries", "pgmajfault",
                                          "ra_windows", "disk_data_requests"};

    KASSERT(before && after);
    for (unsigned i = 0; i < ARRAY_SIZE(moved); i++)
        KEXPECT_EQ(number_of(after, moved[i]) - number_of(before, moved[i]), 1);
    for (unsigned i = 0; i < ARRAY_SIZE(unmoved); i++)
        KEXPECT_EQ(number_of(after, unmoved[i]), number_of(before, unmoved[i]));
    kfree(before);
    kfree(after);
}

/* ---- meminfo, buddyinfo ---- */

KTEST(proc, meminfo_has_linux_columns)
{
    char *text = text_in("/proc", "meminfo");

    KASSERT(text != NULL);
    KEXPECT(string_starts_with(text, "MemTotal:       "));
    size_t len;
    for (char *line = text; *line; line += len) {
        const char *unit = string_starts_with(line, "HugePages_") ? "\n" : " kB\n";
        len = 24 + strlen(unit);
        if (!KEXPECT(strnlen(line, len) == len && memcmp(line + 24, unit, len - 24) == 0))
            break;
        KEXPECT(memchr(line, ':', 16) != NULL);
        KEXPECT(line[23] >= '0' && line[23] <= '9');
    }
    kfree(text);
}

KTEST(proc, meminfo_parts_fit_into_the_whole)
{
    char *text = text_in("/proc", "meminfo");
    u64 total, used;

    KASSERT(text != NULL);
    total = number_of(text, "MemTotal:");
    used = number_of(text, "MemFree:") + number_of(text, "Buffers:") + number_of(text, "Cached:") +
           number_of(text, "Slab:") + number_of(text, "AnonPages:") +
           number_of(text, "PageTables:");
    KEXPECT_EQ(total, frames_total() * (PAGE_SIZE / 1024));
    KEXPECT(used <= total);
    KEXPECT(number_of(text, "MemAvailable:") <= total);
    KEXPECT(number_of(text, "MemFree:") > 0);
    kfree(text);
}

KTEST(proc, buddyinfo_blocks_are_no_more_than_what_is_free)
{
    char *text = text_in("/proc", "buddyinfo");
    u64 in_blocks = 0;
    const char *at;

    KASSERT(text != NULL);
    at = strstr(text, "Normal");
    KASSERT(at != NULL);
    at += strlen("Normal");
    for (unsigned order = 0; order <= FRAME_MAX_ORDER; order++) {
        u64 blocks = 0;

        while (*at == ' ')
            at++;
        KEXPECT(*at >= '0' && *at <= '9');
        for (; *at >= '0' && *at <= '9'; at++)
            blocks = blocks * 10 + (*at - '0');
        in_blocks += blocks << order;
    }
    KEXPECT(in_blocks > 0 && in_blocks <= frames_total());
    kfree(text);
}

/* ---- Knobs ---- */

KTEST(proc, writing_a_knob_changes_what_it_shows_and_does)
{
    char *text;

    KEXPECT_EQ(write_in("/proc", "sys/vm/readahead", "none\n"), 5);
    KEXPECT_STREQ(readahead_policy_name(), "none");
    text = text_in("/proc", "sys/vm/readahead");
    if (text)
        KEXPECT_STREQ(text, "none\n");
    kfree(text);
    KEXPECT_EQ(write_in("/proc", "sys/vm/readahead", "ondemand"), 8);
    KEXPECT_STREQ(readahead_policy_name(), "ondemand");
}

KTEST(proc, every_knob_takes_its_own_value_and_refuses_nonsense)
{
    for (unsigned i = 0; i < knobs_count; i++) {
        char path[NAME_BYTES], before[KNOB_VALUE_BYTES], after[KNOB_VALUE_BYTES];

        format_to(path, sizeof(path), "sys/vm/%s", knobs[i].name);
        knobs[i].get(before, sizeof(before));
        KEXPECT_EQ(write_in("/proc", path, before), strlen(before));
        KEXPECT_EQ(write_in("/proc", path, "no such value"), -EINVAL);
        KEXPECT_EQ(write_in("/proc", path, "-1"), -EINVAL);
        knobs[i].get(after, sizeof(after));
        KEXPECT_STREQ(after, before);
    }
}

KTEST(proc, drop_caches_drops_clean_pages)
{
    u8 *data = kzalloc(4 * PAGE_SIZE);
    struct block_device *disk = data ? ramdisk_create("ramproc", data, 4 * PAGE_SIZE) : NULL;
    struct inode *bdev = disk ? bdev_inode(disk) : NULL;
    struct page *page;

    if (KEXPECT(bdev != NULL) &&
        KEXPECT_EQ(page_cache_get_page(&bdev->cache, 1, false, &page), 0)) {
        KEXPECT_EQ(write_in("/proc", "sys/vm/drop_caches", "1"), 1);
        KEXPECT_EQ(READ_ONCE(bdev->cache.n_pages), 1); /* somebody uses it */
        page_put(page);
        KEXPECT_EQ(write_in("/proc", "sys/vm/drop_caches", "3\n"), 2);
        KEXPECT_EQ(READ_ONCE(bdev->cache.n_pages), 0);
    }
    if (bdev)
        bdev_forget(disk);
    if (disk)
        ramdisk_destroy(disk);
    kfree(data);
}

KTEST(proc, drop_caches_refuses_other_numbers)
{
    static const char *const bad[] = {"0", "4", "-1", "1x", "yes"};

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        KEXPECT_EQ(write_in("/proc", "sys/vm/drop_caches", bad[i]), -EINVAL);
    KEXPECT_EQ(open_error("/proc", "sys/vm/drop_caches", O_RDONLY), -EACCES);
}

/* ---- readahead_log ---- */

static void read_first_page(void *arg)
{
    struct gated_file *file = arg;
    char byte;

    KEXPECT_EQ(file_read_kernel(&file->mapped, 0, &byte, 1), 1);
}

/* The lines that the reading of a gated file's first page adds, while the disk still holds it. */
static void check_log_grows(struct file *log, struct gated_file *file, char *text)
{
    struct test_threads threads = {.n = 0};
    ssize_t len;
    s64 end;

    KEXPECT_EQ(file_read_kernel(&file->mapped, 40 * PAGE_SIZE, text, 1), 1); /* something to skip */
    end = file_seek(log, 0, SEEK_END);
    KEXPECT(end > 0 && end % READAHEAD_LOG_LINE == 0);
    KEXPECT_EQ(read_open(log, text, TEXT_BYTES, PAGE_SIZE), 0);
    gated_file_hold(file, 0, GATED_FILE_MAX_PAGES - 1);
    /* The request comes to the gate before the window comes into the log: so wait until both are over. */
    threads_add_and_wait_asleep(&threads, read_first_page, file);
    len = read_open(log, text, TEXT_BYTES, PAGE_SIZE);
    gate_open(file->disk);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT(len > 0 && len % READAHEAD_LOG_LINE == 0);
    KEXPECT_EQ(file_seek(log, 0, SEEK_CUR), end + len);
    for (ssize_t at = 0; at < len; at += READAHEAD_LOG_LINE)
        KEXPECT_EQ(text[at + READAHEAD_LOG_LINE - 1], '\n');
    KEXPECT(strstr(text, " read 0 0 ") != NULL);
}

KTEST(proc, readahead_log_grows_by_whole_lines_when_a_window_is_asked_for)
{
    struct gated_file *file = gated_file_create(64);
    char *text = kmalloc(TEXT_BYTES);
    int error;
    struct file *log = open_in("/proc", "readahead_log", O_RDONLY, &error);

    if (KEXPECT(file && text && log) && user_text_enter()) {
        check_log_grows(log, file, text);
        test_mm_leave();
    }
    if (log)
        file_put(log);
    kfree(text);
    if (file)
        gated_file_destroy(file);
}

/* ---- Names and listings ---- */

struct listing {
    unsigned n;
    struct {
        char name[NAME_BYTES];
        u64 ino;
        unsigned type;
    } entries[NAMES_MAX];
    unsigned room; /* entries that this call may still take */
};

static int take_entry(void *ctx, const char *name, size_t len, u64 ino, unsigned type, u64 next)
{
    struct listing *list = ctx;

    (void)next;
    if (list->n == NAMES_MAX || !list->room)
        return 1;
    list->room--;
    string_copy(list->entries[list->n].name, name, MIN(len + 1, (size_t)NAME_BYTES));
    list->entries[list->n].ino = ino;
    list->entries[list->n++].type = type;
    return 0;
}

/* Lists the directory, at most `step` entries a call. */
static struct listing *list_in(const char *mount, const char *path, unsigned step)
{
    struct listing *list = kzalloc(sizeof(*list));
    int error;
    struct file *dir = open_in(mount, path, O_RDONLY | O_DIRECTORY, &error);

    if (!KEXPECT(list && dir))
        return list;
    for (unsigned before = ~0u; before != list->n;) {
        before = list->n;
        list->room = step;
        KEXPECT_EQ(file_iterate(dir, take_entry, list), 0);
    }
    file_put(dir);
    return list;
}

static void check_listing(const char *mount, const char *path, unsigned step)
{
    struct listing *list = list_in(mount, path, step);

    KASSERT(list != NULL);
    KEXPECT(list->n > 2);
    KEXPECT_STREQ(list->entries[0].name, ".");
    KEXPECT_STREQ(list->entries[1].name, "..");
    for (unsigned i = 2; i < list->n; i++) {
        char full[2 * NAME_BYTES];
        struct inode *inode;

        format_to(full, sizeof(full), "%s/%s", path, list->entries[i].name);
        if (!KEXPECT_EQ(vfs_lookup(vfs_mount_at(mount)->root, mount, full, false, &inode, NULL), 0))
            continue;
        KEXPECT_EQ(inode->ino, list->entries[i].ino);
        KEXPECT_EQ(DT_OF_MODE(inode->mode), list->entries[i].type);
        inode_put(inode);
    }
    kfree(list);
}

KTEST(proc, listings_contain_what_lookups_find)
{
    check_listing("/proc", ".", NAMES_MAX);
    check_listing("/proc", "sys/vm", NAMES_MAX);
    check_listing("/sys", ".", NAMES_MAX);
    check_listing("/sys", "devices/system/cpu", NAMES_MAX);
}

KTEST(proc, a_listing_in_small_pieces_is_the_same)
{
    struct listing *whole = list_in("/proc", ".", NAMES_MAX), *pieces = list_in("/proc", ".", 1);

    KASSERT(whole && pieces);
    KEXPECT_EQ(pieces->n, whole->n);
    for (unsigned i = 0; i < MIN(whole->n, pieces->n); i++)
        KEXPECT_STREQ(pieces->entries[i].name, whole->entries[i].name);
    kfree(whole);
    kfree(pieces);
}

KTEST(proc, unknown_names_are_not_there)
{
    static const char *const names[] = {"nothing", "sys/vm/nothing",      "4000000000", "007", "0",
                                        "-1",      "99999999999999999999"};

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        KEXPECT_EQ(open_error("/proc", names[i], O_RDONLY), -ENOENT);
    KEXPECT_EQ(open_error("/proc", "vmstat/x", O_RDONLY), -ENOTDIR);
    KEXPECT_EQ(open_error("/sys", "block/nodisk/size", O_RDONLY), -ENOENT);
}

KTEST(proc, self_is_a_link_that_leads_nowhere_without_a_process)
{
    struct inode *inode;

    KASSERT_EQ(vfs_lookup(vfs_mount_at("/proc")->root, "/proc", "self", false, &inode, NULL), 0);
    KEXPECT(inode_is(inode, S_IFLNK));
    inode_put(inode);
    KEXPECT_EQ(open_error("/proc", "self/maps", O_RDONLY), -ENOENT);
}

KTEST(proc, what_only_shows_cannot_be_written)
{
    KEXPECT_EQ(open_error("/proc", "vmstat", O_WRONLY), -EACCES);
    KEXPECT_EQ(open_error("/proc", "meminfo", O_RDWR), -EACCES);
    KEXPECT_EQ(open_error("/proc", "readahead_log", O_WRONLY), -EACCES);
    KEXPECT_EQ(open_error("/proc", "sys/vm", O_WRONLY), -EISDIR);
}

/* ---- The machine ---- */

KTEST(proc, slabinfo_is_whole_when_read_in_small_pieces)
{
    char *text = kmalloc(TEXT_BYTES);
    ssize_t len;

    KASSERT(text != NULL);
    len = read_in("/proc", "slabinfo", text, TEXT_BYTES, 37);
    KEXPECT(len > 37);
    KEXPECT_EQ(text[len - 1], '\n');
    KEXPECT(string_starts_with(text, "slabinfo - version: 2.1\n"));
    KEXPECT_EQ(count_of(text, "\ninode "), 1);
    KEXPECT_EQ(count_of(text, " : slabdata "), count_of(text, "\n") - 1);
    kfree(text);
}

/* The value changes between the two pieces; reading from the beginning again shows the new one. */
KTEST(proc, a_text_read_in_two_pieces_is_one_state)
{
    char start[8], rest[16];
    int error;
    struct file *file = open_in("/proc", "sys/vm/readahead", O_RDONLY, &error);

    KASSERT(file != NULL);
    if (user_text_enter()) {
        KEXPECT_EQ(file_read(file, USER_TEXT, 2, NULL), 2);
        KEXPECT_EQ(copy_from_user(start, USER_TEXT, 2), 0);
        KEXPECT_EQ(knob_set("readahead", "none"), 0);
        KEXPECT(read_open(file, rest, sizeof(rest), 8) > 0);
        KEXPECT(memcmp(start, "on", 2) == 0);
        KEXPECT_STREQ(rest, "demand\n");
        KEXPECT_EQ(file_seek(file, 0, SEEK_SET), 0);
        KEXPECT(read_open(file, rest, sizeof(rest), 8) > 0);
        KEXPECT_STREQ(rest, "none\n");
        KEXPECT_EQ(knob_set("readahead", "ondemand"), 0);
        test_mm_leave();
    }
    file_put(file);
}

KTEST(proc, cpus_are_counted_the_same_everywhere)
{
    char *info = text_in("/proc", "cpuinfo"), *interrupts = text_in("/proc", "interrupts");
    char *online = text_in("/sys", "devices/system/cpu/online");
    char expected[16] = "0\n";

    if (cpu_count() > 1)
        format_to(expected, sizeof(expected), "0-%u\n", cpu_count() - 1);
    KASSERT(info && interrupts && online);
    KEXPECT_EQ(count_of(info, "processor\t: "), cpu_count());
    KEXPECT_EQ(count_of(interrupts, "CPU"), cpu_count());
    KEXPECT_STREQ(online, expected);
    kfree(info);
    kfree(interrupts);
    kfree(online);
}

KTEST(proc, mounts_name_what_is_mounted)
{
    char *text = text_in("/proc", "mounts");

    KASSERT(text != NULL);
    KEXPECT(strstr(text, "proc /proc proc rw 0 0\n") != NULL);
    KEXPECT(strstr(text, "sysfs /sys sysfs rw 0 0\n") != NULL);
    if (vfs_root())
        KEXPECT(strstr(text, " / ") != NULL && strchr(text, '\n') > strstr(text, " / "));
    kfree(text);
}

KTEST(proc, diskstats_count_a_finished_read)
{
    u8 *data = kzalloc(4 * PAGE_SIZE);
    struct block_device *disk = data ? ramdisk_create("ramproc", data, 4 * PAGE_SIZE) : NULL;
    struct inode *bdev = disk ? bdev_inode(disk) : NULL;
    struct page *page;
    char *text;

    if (KEXPECT(bdev != NULL) &&
        KEXPECT_EQ(page_cache_get_page(&bdev->cache, 2, false, &page), 0)) {
        page_put(page);
        text = text_in("/proc", "diskstats");
        if (text)
            KEXPECT(strstr(text, " ramproc 1 0 8 ") != NULL);
        kfree(text);
    }
    if (bdev)
        bdev_forget(disk);
    if (disk)
        ramdisk_destroy(disk);
    kfree(data);
}

KTEST(proc, trace_is_switched_and_shows_events)
{
    u8 before[TRACE_IDS];
    char *text;

    memcpy(before, trace_enabled, sizeof(before));
    KEXPECT_EQ(write_in("/proc", "trace", "1\n"), 2);
    for (unsigned id = TRACE_ID_print + 1; id < TRACE_IDS; id++)
        KEXPECT(trace_enabled[id]);
    TRACE(fault_retry, .addr = 0x4711000, .attempt = 42);
    KEXPECT_EQ(write_in("/proc", "trace", "2"), -EINVAL);
    KEXPECT_EQ(write_in("/proc", "trace", "0"), 1);
    KEXPECT(!trace_is_any_enabled());
    text = text_in("/proc", "trace");
    if (text) {
        KEXPECT(string_starts_with(text, "tracing is off\n"));
        KEXPECT(strstr(text, ": fault_retry: addr=0x4711000 attempt=42\n") != NULL);
    }
    kfree(text);
    memcpy(trace_enabled, before, sizeof(before));
}

/* ---- Disks in /sys ---- */

static void take_first(struct block_device *device, void *ctx)
{
    struct block_device **first = ctx;

    if (!*first)
        *first = device;
}

static struct block_device *first_disk(char *path, size_t size, const char *file)
{
    struct block_device *disk = NULL;

    block_for_each(take_first, &disk);
    if (disk)
        format_to(path, size, "block/%s/%s", disk->name, file);
    return disk;
}

KTEST(proc, read_ahead_kb_takes_0_to_4096)
{
    static const char *const bad[] = {"4097", "-1", "64k", "0x10", "", "99999999999999999999"};
    char path[NAME_BYTES];
    struct block_device *disk = first_disk(path, sizeof(path), "queue/read_ahead_kb");
    u32 before;

    if (!disk)
        KTEST_SKIP("needs a disk");
    before = disk->read_ahead_kb;
    KEXPECT_EQ(write_in("/sys", path, "0\n"), 2);
    KEXPECT_EQ(disk->read_ahead_kb, 0);
    KEXPECT_EQ(write_in("/sys", path, "4096"), 4);
    KEXPECT_EQ(disk->read_ahead_kb, 4096);
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        KEXPECT_EQ(write_in("/sys", path, bad[i]), -EINVAL);
    KEXPECT_EQ(disk->read_ahead_kb, 4096);
    disk->read_ahead_kb = before;
}

KTEST(proc, gate_files_set_one_number_of_the_delay_model_each)
{
    char path[NAME_BYTES];
    struct block_device *disk = first_disk(path, sizeof(path), "gate/per_request_ns");
    struct gate_delay before, delay;
    char *text;

    if (!disk)
        KTEST_SKIP("needs a disk");
    gate_get_delay(disk, &before);
    KEXPECT_EQ(write_in("/sys", path, "12345"), 5);
    gate_get_delay(disk, &delay);
    KEXPECT_EQ(delay.per_request_ns, 12345);
    KEXPECT_EQ(delay.latency_ns, before.latency_ns);
    KEXPECT_EQ(delay.bandwidth, before.bandwidth);
    text = text_in("/sys", path);
    if (text)
        KEXPECT_STREQ(text, "12345\n");
    kfree(text);
    KEXPECT_EQ(write_in("/sys", path, "fast"), -EINVAL);
    gate_set_delay(disk, &before);
}

KTEST(proc, gate_fail_file_makes_sectors_bad_and_good_again)
{
    static const char *const bad[] = {"", "8", "8 7", "8 9 10", "x 9", "8 x", "0 999999999999"};
    char path[NAME_BYTES];
    struct block_device *disk = first_disk(path, sizeof(path), "gate/fail");
    struct gate_rule rule;
    char *text;

    if (!disk)
        KTEST_SKIP("needs a disk");
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        KEXPECT_EQ(write_in("/sys", path, bad[i]), -EINVAL);
    KEXPECT(!gate_rule_get(disk, 0, &rule));
    KEXPECT_EQ(write_in("/sys", path, "160 167\n"), 8);
    KEXPECT_EQ(write_in("/sys", path, "8 9"), 3);
    text = text_in("/sys", path);
    if (text)
        KEXPECT_STREQ(text, "160 167\n8 9\n");
    kfree(text);
    KEXPECT_EQ(write_in("/sys", path, "none\n"), 5);
    KEXPECT(!gate_rule_get(disk, 0, &rule));
}
