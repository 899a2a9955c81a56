/*
 * Tests on the host, printed as KTAP. A test file fills a table of tests and calls tap_main().
 *
 * A failed CHECK prints where and what, and lets the test go on; a test with a failed CHECK is
 * "not ok", and the program's exit status is then 1.
 */
#ifndef TESTS_HOST_TAP_H
#define TESTS_HOST_TAP_H

#include <stdio.h>

#include "lib/types.h"

struct tap_test {
    const char *name;
    void (*run)(void);
};

#define TAP_MESSAGES_MAX 20 /* a test that fails a million times says so twenty times */

static int tap_failures;

static inline bool tap_check(bool ok, const char *file, int line, const char *what)
{
    if (!ok) {
        tap_failures++;
        if (tap_failures <= TAP_MESSAGES_MAX)
            printf("# %s:%d: %s\n", file, line, what);
    }
    return ok;
}

#define CHECK(condition) tap_check((condition), __FILE__, __LINE__, #condition)

/* Runs the tests; the program's exit status. */
static inline int tap_main(const struct tap_test *tests, size_t count)
{
    bool all_passed = true;

    printf("KTAP version 1\n1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        tap_failures = 0;
        tests[i].run();
        if (tap_failures)
            all_passed = false;
        printf("%s %zu %s\n", tap_failures ? "not ok" : "ok", i + 1, tests[i].name);
        fflush(stdout);
    }
    return all_passed ? 0 : 1;
}

#endif
