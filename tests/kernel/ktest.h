/*
 * In-kernel tests. A file tests/kernel/test_<subject>.c holds
 *
 *     KTEST(fault_retry, a_retried_fault_is_one_count)
 *     {
 *         KEXPECT_EQ(count, 1);        records a failure and goes on
 *         KASSERT_EQ(error, 0);        records a failure and returns from the test
 *     }
 *
 * Tests run one after the other in a kernel thread of their own, may sleep, and leave no trace: each must end with
 * what it took given back. Output is KTAP on the console, one line written whole.
 */
#ifndef TESTS_KERNEL_KTEST_H
#define TESTS_KERNEL_KTEST_H

#include "lib/errno.h"
#include "lib/types.h"

struct ktest {
    const char *suite, *name;
    void (*run)(void);
    bool ends_the_machine;
};

#define KTEST_ENTRY(suite_, name_, ends_)                                                         \
    static void ktest_##suite_##_##name_(void);                                                   \
    static const struct ktest ktest_entry_##suite_##_##name_                                      \
        __attribute__((section(".ktest"), used, aligned(8))) = {#suite_, #name_,                  \
                                                                ktest_##suite_##_##name_, ends_}; \
    static void ktest_##suite_##_##name_(void)

#define KTEST(suite_, name_) KTEST_ENTRY(suite_, name_, false)
/* Ends in a report and not in a result: runs only where the pattern says panic/NAME (tests/user/test_reports.py). */
#define KTEST_PANIC(name_) KTEST_ENTRY(panic, name_, true)

void ktest_fail(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);
void ktest_skip(
    const char *reason); /* marks the running test as skipped; the test should then return */
void ktest_note(const char *fmt, ...) PRINTF_LIKE(1, 2); /* a "# …" diagnostic line */
bool ktest_has_failed(void);                             /* the running test */

#define KEXPECT(cond)                                              \
    ({                                                             \
        bool ok_ = (cond);                                         \
        if (!ok_)                                                  \
            ktest_fail(__FILE__, __LINE__, "expected: %s", #cond); \
        ok_;                                                       \
    })
#define KEXPECT_EQ(a, b)                                                                       \
    ({                                                                                         \
        s64 a_ = (s64)(a), b_ = (s64)(b);                                                      \
        if (a_ != b_)                                                                          \
            ktest_fail(__FILE__, __LINE__, "%s is %ld (0x%lx), expected %s = %ld (0x%lx)", #a, \
                       (long)a_, (unsigned long)a_, #b, (long)b_, (unsigned long)b_);          \
        a_ == b_;                                                                              \
    })
#define KEXPECT_STREQ(a, b)                                                              \
    ({                                                                                   \
        const char *a_ = (a), *b_ = (b);                                                 \
        bool ok_ = strcmp(a_, b_) == 0;                                                  \
        if (!ok_)                                                                        \
            ktest_fail(__FILE__, __LINE__, "%s is \"%s\", expected \"%s\"", #a, a_, b_); \
        ok_;                                                                             \
    })
#define KASSERT(cond)       \
    do {                    \
        if (!KEXPECT(cond)) \
            return;         \
    } while (0)
#define KASSERT_EQ(a, b)       \
    do {                       \
        if (!KEXPECT_EQ(a, b)) \
            return;            \
    } while (0)
#define KTEST_SKIP(reason)  \
    do {                    \
        ktest_skip(reason); \
        return;             \
    } while (0)

/*
 * Runs every test whose "suite/name" matches the glob (a bare "suite" means all of it; "list" prints the names).
 *   after  "suite/name" or "": skip everything up to and including it (the runner boots again behind a panic)
 * => number of failed tests, 1 where none matches; prints KTAP. Called by kernel/main.c in a kernel thread.
 */
unsigned ktest_run_all(const char *pattern, const char *after);

#endif
