/*
 * The runner of in-kernel tests: collects the tests of the .ktest section by suite and prints KTAP
 * ("KTAP version 1": a plan of suites, each suite an indented plan of its own).
 */
#include "tests/kernel/ktest.h"

#include "drivers/devices.h"
#include "lib/format.h"
#include "lib/parse.h"
#include "lib/string.h"

#include <stdarg.h>

extern const struct ktest __ktest_start[], __ktest_end[];

static bool test_failed;
static const char *skip_reason;

static PRINTF_LIKE(1, 2) void print_line(const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int len = format_v(line, sizeof(line) - 1, fmt, args);
    va_end(args);
    size_t n = MIN((size_t)len, sizeof(line) - 2);
    line[n++] = '\n';
    console_write(line, n);
}

void ktest_fail(const char *file, int line, const char *fmt, ...)
{
    char text[320];
    va_list args;
    va_start(args, fmt);
    format_v(text, sizeof(text), fmt, args);
    va_end(args);
    test_failed = true;
    print_line("    # %s:%d: %s", file, line, text);
}

void ktest_note(const char *fmt, ...)
{
    char text[320];
    va_list args;
    va_start(args, fmt);
    format_v(text, sizeof(text), fmt, args);
    va_end(args);
    print_line("    # %s", text);
}

void ktest_skip(const char *reason)
{
    skip_reason = reason;
}

bool ktest_has_failed(void)
{
    return test_failed;
}

static bool test_is_selected(const struct ktest *test, const char *pattern)
{
    char full[160];
    if (test->ends_the_machine && strncmp(pattern, "panic/", 6) != 0)
        return false;
    format_to(full, sizeof(full), "%s/%s", test->suite, test->name);
    return glob_match(pattern, full) || glob_match(pattern, test->suite);
}

/* The first test of its suite stands for the suite. */
static bool is_first_of_suite(const struct ktest *test)
{
    for (const struct ktest *t = __ktest_start; t < test; t++)
        if (strcmp(t->suite, test->suite) == 0)
            return false;
    return true;
}

/* Whether `test` still has to run when everything up to `after` was run before. Order: suites as linked, tests as linked. */
static bool comes_behind(const struct ktest *test, const struct ktest *after)
{
    if (!after)
        return true;
    if (strcmp(test->suite, after->suite) == 0)
        return test > after;
    const struct ktest *first_test = test, *first_after = after;
    for (const struct ktest *t = __ktest_end - 1; t >= __ktest_start; t--) {
        if (strcmp(t->suite, test->suite) == 0)
            first_test = t;
        if (strcmp(t->suite, after->suite) == 0)
            first_after = t;
    }
    return first_test > first_after;
}

static const struct ktest *find_test(const char *full_name)
{
    char full[160];
    for (const struct ktest *t = __ktest_start; t < __ktest_end; t++) {
        format_to(full, sizeof(full), "%s/%s", t->suite, t->name);
        if (strcmp(full, full_name) == 0)
            return t;
    }
    return NULL;
}

static unsigned count_selected(const char *suite, const char *pattern, const struct ktest *after)
{
    unsigned n = 0;
    for (const struct ktest *t = __ktest_start; t < __ktest_end; t++)
        if (strcmp(t->suite, suite) == 0 && test_is_selected(t, pattern) && comes_behind(t, after))
            n++;
    return n;
}

/* => whether it passed */
static bool run_test(const struct ktest *test, unsigned number)
{
    test_failed = false;
    skip_reason = NULL;
    print_line("    # running %s/%s", test->suite, test->name);
    test->run();
    if (test_failed)
        print_line("  not ok %u %s", number, test->name);
    else if (skip_reason)
        print_line("  ok %u %s # SKIP %s", number, test->name, skip_reason);
    else
        print_line("  ok %u %s", number, test->name);
    return !test_failed;
}

static unsigned run_suite(const char *suite, const char *pattern, const struct ktest *after,
                          unsigned n_tests)
{
    unsigned number = 0, failed = 0;
    print_line("  KTAP version 1");
    print_line("  # Subtest: %s", suite);
    print_line("  1..%u", n_tests);
    for (const struct ktest *t = __ktest_start; t < __ktest_end; t++) {
        if (strcmp(t->suite, suite) != 0 || !test_is_selected(t, pattern) ||
            !comes_behind(t, after))
            continue;
        if (!run_test(t, ++number))
            failed++;
    }
    return failed;
}

static void list_tests(void)
{
    for (const struct ktest *t = __ktest_start; t < __ktest_end; t++)
        print_line("%s/%s", t->suite, t->name);
}

unsigned ktest_run_all(const char *pattern, const char *after_name)
{
    if (strcmp(pattern, "list") == 0) {
        list_tests();
        return 0;
    }
    const struct ktest *after = *after_name ? find_test(after_name) : NULL;
    unsigned n_suites = 0, number = 0, failed = 0;
    for (const struct ktest *t = __ktest_start; t < __ktest_end; t++)
        if (is_first_of_suite(t) && count_selected(t->suite, pattern, after))
            n_suites++;
    print_line("KTAP version 1");
    print_line("1..%u", n_suites);
    if (!n_suites && !after) {
        print_line("# no test is called \"%s\"; ktest=list prints the names", pattern);
        return 1; /* a run of nothing is no success */
    }
    for (const struct ktest *t = __ktest_start; t < __ktest_end; t++) {
        unsigned n_tests = is_first_of_suite(t) ? count_selected(t->suite, pattern, after) : 0;
        if (!n_tests)
            continue;
        unsigned suite_failed = run_suite(t->suite, pattern, after, n_tests);
        failed += suite_failed;
        print_line("%s %u %s", suite_failed ? "not ok" : "ok", ++number, t->suite);
    }
    return failed;
}
