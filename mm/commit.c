/*
 * Committed memory: the count, and the three modes of vm.overcommit_memory.
 *
 * The count is a per-CPU counter: charging is one addition on the CPU's own line, whatever the
 * mode. Only mode 2 has to know the sum. It adds first and then looks: of two CPUs that ask for
 * the last pages at the same time at least one sees both, so that the limit is never passed (both
 * may be refused).
 *
 * What is charged is told by the areas themselves: VMA_ACCOUNT. An edit (mm/vma_edit.c) charges
 * the difference between the areas that come and those that go, as the last step that can fail;
 * so no call has anything to undo.
 */
#include "mm/commit.h"

#include "kernel/sync/counter.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "mm/core/frames.h"
#include "mm/huge_pool.h"
#include "mm/vma.h"

#define RATIO_DEFAULT        50
#define KIB_PER_PAGE         (PAGE_SIZE / 1024)
#define USER_RESERVE_MAX_KIB (128ul << 10)
#define SHARE_FOR_RESERVE    32 /* of the memory, and of the asker's size */
#define UNSET                (~0ul)
#define INT_MAX_VALUE        0x7ffffffful

static COUNTER(committed); /* may be negative on one CPU; the sum is not */

/* Set by knobs at any time, each read by itself. */
static u64 ratio_percent = RATIO_DEFAULT, limit_kib, user_reserve_kib = UNSET;

u64 commit_total_pages(void)
{
    s64 pages = (s64)counter_sum(committed);
    return pages > 0 ? (u64)pages : 0; /* the CPUs' parts are not read at one moment */
}

u64 commit_limit_pages(void)
{
    struct huge_pool_counts pool;
    u64 kib = READ_ONCE(limit_kib);
    if (kib)
        return kib / KIB_PER_PAGE;
    huge_pool_count(&pool);
    return (frames_total() - pool.total * HUGE_PAGE_FRAMES) * READ_ONCE(ratio_percent) / 100;
}

/* ---- Modes ---- */

struct commit_mode {
    bool (*allows)(const struct mm *mm, u64 n_pages); /* n_pages are counted already */
    bool honours_noreserve;
};

/* Only what could never be there. */
static bool guess_allows(const struct mm *mm, u64 n_pages)
{
    (void)mm;
    return n_pages <= frames_total();
}

static bool always_allows(const struct mm *mm, u64 n_pages)
{
    (void)mm, (void)n_pages;
    return true;
}

static u64 reserve_kib(void)
{
    u64 kib = READ_ONCE(user_reserve_kib);
    return kib == UNSET
               ? MIN(frames_total() * KIB_PER_PAGE / SHARE_FOR_RESERVE, USER_RESERVE_MAX_KIB)
               : kib;
}

/* A large program leaves something to those who come to end it. */
static bool never_allows(const struct mm *mm, u64 n_pages)
{
    (void)n_pages;
    u64 allowed = commit_limit_pages(), reserve = 0;
    if (mm)
        reserve = MIN(READ_ONCE(mm->total_pages) / SHARE_FOR_RESERVE, reserve_kib() / KIB_PER_PAGE);
    return commit_total_pages() + reserve < allowed;
}

static const struct commit_mode modes[] = {
    {guess_allows, true},
    {always_allows, true},
    {never_allows, false},
};
static const struct commit_mode *mode = &modes[0];

bool commit_honours_noreserve(void)
{
    return READ_ONCE(mode)->honours_noreserve;
}

/* ---- Charging ---- */

bool commit_is_due(u32 prot, u32 vma_flags)
{
    return (prot & PROT_WRITE) && !(vma_flags & (VMA_SHARED | VMA_NORESERVE | VMA_HUGETLB));
}

int commit_charge(const struct mm *mm, u64 n_pages)
{
    counter_add(committed, n_pages);
    if (READ_ONCE(mode)->allows(mm, n_pages))
        return 0;
    commit_uncharge(n_pages);
    return -ENOMEM;
}

void commit_uncharge(u64 n_pages)
{
    counter_add(committed, -n_pages);
}

/* ---- Knobs ---- */

static int parse_number(const char *value, u64 max, u64 *out)
{
    return parse_u64(value, PARSE_WHOLE_STRING, 10, out) || *out > max ? -EINVAL : 0;
}

int commit_set_mode(const char *value)
{
    u64 n;
    if (parse_number(value, ARRAY_SIZE(modes) - 1, &n))
        return -EINVAL;
    WRITE_ONCE(mode, &modes[n]);
    return 0;
}

void commit_get_mode(char *buf, size_t size)
{
    format_to(buf, size, "%lu", (u64)(READ_ONCE(mode) - modes));
}

/* Ratio and kbytes exclude each other: the one that is not in use reads as 0. */
int commit_set_ratio(const char *value)
{
    u64 n;
    if (parse_number(value, INT_MAX_VALUE, &n))
        return -EINVAL;
    WRITE_ONCE(ratio_percent, n);
    WRITE_ONCE(limit_kib, 0);
    return 0;
}

void commit_get_ratio(char *buf, size_t size)
{
    format_to(buf, size, "%lu", READ_ONCE(ratio_percent));
}

int commit_set_kbytes(const char *value)
{
    u64 n;
    if (parse_number(value, ~0ul >> 1, &n))
        return -EINVAL;
    WRITE_ONCE(limit_kib, n);
    WRITE_ONCE(ratio_percent, 0);
    return 0;
}

void commit_get_kbytes(char *buf, size_t size)
{
    format_to(buf, size, "%lu", READ_ONCE(limit_kib));
}

int commit_set_user_reserve(const char *value)
{
    u64 n;
    if (parse_number(value, ~0ul >> 1, &n))
        return -EINVAL;
    WRITE_ONCE(user_reserve_kib, n);
    return 0;
}

void commit_get_user_reserve(char *buf, size_t size)
{
    format_to(buf, size, "%lu", reserve_kib());
}
