/*
 * The table of knobs. Each switches a policy for everything that starts from then on; nothing in flight changes.
 */
#include "mm/knobs.h"

#include "kernel/sync/mutant.h"
#include "lib/errno.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"
#include "mm/account.h"
#include "mm/commit.h"
#include "mm/fault_lock.h"
#include "mm/huge_pool.h"
#include "mm/mmap.h"
#include "mm/readahead.h"

static bool never(const struct fault *f)
{
    (void)f;
    return false;
}

static bool first_attempt_only(const struct fault *f)
{
    return f->attempt == 0 || MUTANT(retry_forever);
}

static bool always(const struct fault *f)
{
    (void)f;
    return true;
}

static const struct fault_retry_policy retry_policies[] = {
    {"once", first_attempt_only, false},
    {"hold", never, false},
    {"many", always, false},
    {"recheck", always, true},
};

static const struct fault_drop_policy drop_policies[] = {
    {"submit", true},
    {"wait", false},
};

const struct fault_retry_policy *fault_retry_policy = &retry_policies[0];
const struct fault_drop_policy *fault_drop_policy = &drop_policies[0];
u32 fault_pin = 1;
u32 map_around_bytes = 65536;

static int set_fault_retry(const char *value)
{
    for (unsigned i = 0; i < ARRAY_SIZE(retry_policies); i++) {
        if (strcmp(retry_policies[i].name, value) == 0) {
            fault_retry_policy = &retry_policies[i];
            return 0;
        }
    }
    return -EINVAL;
}

static void get_fault_retry(char *buf, size_t size)
{
    format_to(buf, size, "%s", fault_retry_policy->name);
}

static int set_fault_pin(const char *value)
{
    u64 n;
    if (parse_u64(value, strlen(value), 0, &n) || n > 1)
        return -EINVAL;
    fault_pin = n;
    return 0;
}

static void get_fault_pin(char *buf, size_t size)
{
    format_to(buf, size, "%u", fault_pin);
}

#define MAP_AROUND_MAX_BYTES (1u << 20)

static int set_map_around(const char *value)
{
    u64 n;
    if (parse_u64(value, strlen(value), 0, &n) || n < PAGE_SIZE || n > MAP_AROUND_MAX_BYTES ||
        (n & (n - 1)))
        return -EINVAL;
    map_around_bytes = n;
    return 0;
}

static void get_map_around(char *buf, size_t size)
{
    format_to(buf, size, "%u", map_around_bytes);
}

static int set_fault_drop(const char *value)
{
    for (unsigned i = 0; i < ARRAY_SIZE(drop_policies); i++) {
        if (strcmp(drop_policies[i].name, value) == 0) {
            fault_drop_policy = &drop_policies[i];
            return 0;
        }
    }
    return -EINVAL;
}

static void get_fault_drop(char *buf, size_t size)
{
    format_to(buf, size, "%s", fault_drop_policy->name);
}

static void get_fault_lock(char *buf, size_t size)
{
    format_to(buf, size, "%s", fault_lock_policy_name());
}

static void get_readahead(char *buf, size_t size)
{
    format_to(buf, size, "%s", readahead_policy_name());
}

static void get_account(char *buf, size_t size)
{
    format_to(buf, size, "%s", account_rule_name());
}

/* vm.nr_hugepages: what is not surplus, as Linux shows it. */
static int set_nr_hugepages(const char *value)
{
    u64 n;
    if (parse_u64(value, strlen(value), 10, &n))
        return -EINVAL;
    huge_pool_resize(n);
    return 0;
}

static void get_nr_hugepages(char *buf, size_t size)
{
    struct huge_pool_counts counts;
    huge_pool_count(&counts);
    format_to(buf, size, "%lu", counts.total - counts.surplus);
}

static int set_nr_overcommit_hugepages(const char *value)
{
    u64 n;
    if (parse_u64(value, strlen(value), 10, &n))
        return -EINVAL;
    huge_pool_set_max_surplus(n);
    return 0;
}

static void get_nr_overcommit_hugepages(char *buf, size_t size)
{
    struct huge_pool_counts counts;
    huge_pool_count(&counts);
    format_to(buf, size, "%lu", counts.max_surplus);
}

const struct knob knobs[] = {
    {"fault_retry", set_fault_retry, get_fault_retry},
    {"fault_lock", fault_lock_set_policy, get_fault_lock},
    {"fault_drop", set_fault_drop, get_fault_drop},
    {"fault_pin", set_fault_pin, get_fault_pin},
    {"readahead", readahead_set_policy, get_readahead},
    {"map_around_bytes", set_map_around, get_map_around},
    {"account", account_set_rule, get_account},
    {"nr_hugepages", set_nr_hugepages, get_nr_hugepages},
    {"nr_overcommit_hugepages", set_nr_overcommit_hugepages, get_nr_overcommit_hugepages},
    {"overcommit_memory", commit_set_mode, commit_get_mode},
    {"overcommit_ratio", commit_set_ratio, commit_get_ratio},
    {"overcommit_kbytes", commit_set_kbytes, commit_get_kbytes},
    {"user_reserve_kbytes", commit_set_user_reserve, commit_get_user_reserve},
    {"max_map_count", vma_set_max_map_count, vma_get_max_map_count},
};
const unsigned knobs_count = ARRAY_SIZE(knobs);

int knob_set(const char *name, const char *value)
{
    for (unsigned i = 0; i < knobs_count; i++)
        if (strcmp(knobs[i].name, name) == 0)
            return knobs[i].set(value);
    return -ENOENT;
}
