/* host-test-sources: lib/format.c */
/*
 * Formatted text compared with the C library's snprintf: a table of conversions, all flags with all
 * widths, small buffers.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/format.h"
#include "tests/host/tap.h"

#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-truncation"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#pragma GCC diagnostic ignored "-Wformat-zero-length"
#pragma GCC diagnostic ignored "-Wformat-overflow"

/* Both must give the same text and length. */
#define SAME(...)                                                                        \
    do {                                                                                 \
        char ours[512], theirs[512];                                                     \
        int our_length = format_to(ours, sizeof(ours), __VA_ARGS__);                     \
        int their_length = snprintf(theirs, sizeof(theirs), __VA_ARGS__);                \
        if (!CHECK(our_length == their_length && strcmp(ours, theirs) == 0))             \
            printf("# ours \"%s\" (%d), theirs \"%s\" (%d)\n", ours, our_length, theirs, \
                   their_length);                                                        \
    } while (0)

static void test_integers(void)
{
    SAME("%d %i %u", 0, -1, 4000000000u);
    SAME("%d %d", INT_MIN, INT_MAX);
    SAME("%ld %ld %lu", LONG_MIN, LONG_MAX, ULONG_MAX);
    SAME("%lld %llx", LLONG_MIN, ULLONG_MAX);
    SAME("%zu %zd %zx", (size_t)-1, (ssize_t)-5, (size_t)77);
    SAME("%hd %hu %hhd %hhu", 70000, 70000, 300, 300);
    SAME("%x %X %#x %#X %#x", 0xdeadbeefu, 0xdeadbeefu, 255, 255, 0);
    SAME("%jd %tx", (intmax_t)-3, (ptrdiff_t)17);
}

/* Every set of flags, with width and precision, on interesting numbers. */
static void test_flags(void)
{
    static const char flags[] = "-0+ #";
    static const char *const fields[] = {"", "1", "8", "12.5", ".0", ".9", "3.7", "20.20"};
    static const long values[] = {0, 1, -1, 42, -12345, LONG_MAX, LONG_MIN};
    static const char conversions[] = "diuxX";

    for (unsigned set = 0; set < 1u << (sizeof(flags) - 1); set++) {
        for (size_t f = 0; f < ARRAY_SIZE(fields); f++) {
            for (const char *c = conversions; *c; c++) {
                char fmt[32] = "[%";

                for (unsigned i = 0; i < sizeof(flags) - 1; i++) {
                    if (set >> i & 1)
                        strncat(fmt, &flags[i], 1);
                }
                strcat(fmt, fields[f]);
                strcat(fmt, "l");
                strncat(fmt, c, 1);
                strcat(fmt, "]");
                for (size_t v = 0; v < ARRAY_SIZE(values); v++)
                    SAME(fmt, values[v]);
            }
        }
    }
}

static void test_text(void)
{
    static const char unterminated[3] = {'a', 'b', 'c'};
    char buf[16];

    SAME("plain");
    SAME("");
    SAME("100%%");
    SAME("%s|%10s|%-10s|", "abc", "abc", "abc");
    SAME("%.2s|%5.1s|%.0s|", "abc", "abc", "abc");
    SAME("%.3s", unterminated);
    SAME("%c%c|%4c|%-4c|", 'x', 'y', 'z', 'w');
    SAME("%*d|%-*d|%*d|%.*s", 6, 42, 6, 42, -6, 42, 2, "xyz");
    SAME("%.*d", -3, 42);
    SAME("%p", (void *)0x1234abcd);
    SAME("%20p|%-20p|", (void *)0x10, (void *)0x10);
    CHECK(format_to(buf, sizeof(buf), "%s", (char *)NULL) == 6 && strcmp(buf, "(null)") == 0);
    CHECK(format_to(buf, sizeof(buf), "%p", (void *)NULL) == 3 && strcmp(buf, "0x0") == 0);
    CHECK(format_to(buf, sizeof(buf), "a%q%d", 5) == 4 && strcmp(buf, "a%q5") == 0);
    CHECK(format_to(buf, sizeof(buf), "a%") == 2 && strcmp(buf, "a%") == 0);
    CHECK(format_to(buf, sizeof(buf), "a%l") == 3 && strcmp(buf, "a%l") == 0);
}

static void test_small_buffers(void)
{
    static const char whole[] = "number 12345 end";
    char buf[sizeof(whole) + 8];

    for (size_t size = 0; size < sizeof(buf); size++) {
        size_t kept = size ? MIN(size - 1, sizeof(whole) - 1) : 0;

        memset(buf, '#', sizeof(buf));
        CHECK(format_to(buf, size, "number %d %s", 12345, "end") == (int)sizeof(whole) - 1);
        CHECK(memcmp(buf, whole, kept) == 0);
        CHECK(size == 0 || buf[kept] == 0);
        for (size_t i = size ? kept + 1 : 0; i < sizeof(buf); i++)
            CHECK(buf[i] == '#');
    }
    CHECK(format_to(NULL, 0, "%5000d", 1) == 4096);
}

static void test_append(void)
{
    char buf[12];
    size_t used = 0;

    format_append(buf, sizeof(buf), &used, "%s-", "abc");
    format_append(buf, sizeof(buf), &used, "%d", 17);
    CHECK(used == 6 && strcmp(buf, "abc-17") == 0);
    format_append(buf, sizeof(buf), &used, "%s", "0123456789");
    CHECK(used == 11 && strcmp(buf, "abc-1701234") == 0);
    format_append(buf, sizeof(buf), &used, "more");
    CHECK(used == 11 && strcmp(buf, "abc-1701234") == 0);
}

struct collected {
    char text[256];
    size_t used;
};

static void collect(void *ctx, const char *s, size_t n)
{
    struct collected *c = ctx;

    CHECK(n > 0);
    memcpy(c->text + c->used, s, n);
    c->used += n;
}

static int sink_call(struct collected *c, const char *fmt, ...)
{
    va_list args;
    int length;

    va_start(args, fmt);
    length = format_sink(collect, c, fmt, args);
    va_end(args);
    return length;
}

static void test_sink(void)
{
    struct collected c = {.used = 0};

    CHECK(sink_call(&c, "page %lu of %s: %#06x%40d", 7ul, "inode 12", 0x1f, 3) == (int)c.used);
    c.text[c.used] = 0;
    CHECK(strncmp(c.text, "page 7 of inode 12: 0x001f      ", 32) == 0 && c.used == 66);
}

static const struct tap_test tests[] = {
    {"format/integers_as_snprintf", test_integers},
    {"format/flags_as_snprintf", test_flags},
    {"format/text_as_snprintf", test_text},
    {"format/never_writes_beyond_size", test_small_buffers},
    {"format/append_stops_at_the_end", test_append},
    {"format/sink_gets_every_piece", test_sink},
};

int main(void)
{
    return tap_main(tests, ARRAY_SIZE(tests));
}
