/* host-test-sources: lib/parse.c lib/string.c */
/*
 * Numbers, sizes, patterns and command lines, with what is to be refused.
 */
#include <string.h>

#include "lib/errno.h"
#include "lib/parse.h"
#include "lib/rng.h"
#include "tests/host/tap.h"

#define UNTOUCHED 0x5555

struct number_case {
    const char *text;
    unsigned base;
    int error;
    u64 value;
};

static void test_u64(void)
{
    static const struct number_case cases[] = {
        {"0", 0, 0, 0},
        {"42", 0, 0, 42},
        {"42\n", 0, 0, 42},
        {"0x2A", 0, 0, 42},
        {"0X2a", 16, 0, 42},
        {"2a", 16, 0, 42},
        {"052", 0, 0, 42},
        {"052", 10, 0, 52},
        {"101", 2, 0, 5},
        {"zz", 36, 0, 35 * 36 + 35},
        {"18446744073709551615", 0, 0, UINT64_MAX},
        {"0xffffffffffffffff", 0, 0, UINT64_MAX},
        {"18446744073709551616", 0, -ERANGE, 0},
        {"0x10000000000000000", 0, -ERANGE, 0},
        {"99999999999999999999999999", 0, -ERANGE, 0},
        {"99999999999999999999999999x", 0, -EINVAL, 0},
        {"", 0, -EINVAL, 0},
        {"\n", 0, -EINVAL, 0},
        {"42\n\n", 0, -EINVAL, 0},
        {"0x", 0, -EINVAL, 0},
        {"-1", 0, -EINVAL, 0},
        {"+1", 0, -EINVAL, 0},
        {" 1", 0, -EINVAL, 0},
        {"1 ", 0, -EINVAL, 0},
        {"1x", 0, -EINVAL, 0},
        {"08", 0, -EINVAL, 0},
        {"0x2a", 10, -EINVAL, 0},
        {"12", 2, -EINVAL, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        u64 value = UNTOUCHED;
        int error = parse_u64(cases[i].text, PARSE_WHOLE_STRING, cases[i].base, &value);

        if (!CHECK(error == cases[i].error && value == (error ? UNTOUCHED : cases[i].value)))
            printf("# \"%s\" gave %d, %lu\n", cases[i].text, error, value);
    }
}

static void test_length_limits_reading(void)
{
    static const char text[3] = {'1', '2', '3'};
    u64 value;

    CHECK(parse_u64(text, 3, 10, &value) == 0 && value == 123);
    CHECK(parse_u64(text, 2, 10, &value) == 0 && value == 12);
    CHECK(parse_u64(text, 0, 10, &value) == -EINVAL);
    CHECK(parse_u64("12\0junk", 7, 10, &value) == 0 && value == 12);
}

static void test_s64(void)
{
    s64 value = UNTOUCHED;

    CHECK(parse_s64("-9223372036854775808", PARSE_WHOLE_STRING, 0, &value) == 0);
    CHECK(value == INT64_MIN);
    CHECK(parse_s64("9223372036854775807", PARSE_WHOLE_STRING, 0, &value) == 0);
    CHECK(value == INT64_MAX);
    CHECK(parse_s64("9223372036854775808", PARSE_WHOLE_STRING, 0, &value) == -ERANGE);
    CHECK(parse_s64("-9223372036854775809", PARSE_WHOLE_STRING, 0, &value) == -ERANGE);
    CHECK(parse_s64("-0x10\n", PARSE_WHOLE_STRING, 0, &value) == 0 && value == -16);
    CHECK(parse_s64("+7", PARSE_WHOLE_STRING, 0, &value) == 0 && value == 7);
    CHECK(parse_s64("-", PARSE_WHOLE_STRING, 0, &value) == -EINVAL);
    CHECK(parse_s64("--1", PARSE_WHOLE_STRING, 0, &value) == -EINVAL);
}

static void test_size(void)
{
    u64 value = UNTOUCHED;

    CHECK(parse_size("4096", PARSE_WHOLE_STRING, &value) == 0 && value == 4096);
    CHECK(parse_size("4k\n", PARSE_WHOLE_STRING, &value) == 0 && value == 4096);
    CHECK(parse_size("1M", PARSE_WHOLE_STRING, &value) == 0 && value == 1ul << 20);
    CHECK(parse_size("0x10G", PARSE_WHOLE_STRING, &value) == 0 && value == 1ul << 34);
    CHECK(parse_size("1000T", PARSE_WHOLE_STRING, &value) == 0 && value == 1000ul << 40);
    CHECK(parse_size("0K", PARSE_WHOLE_STRING, &value) == 0 && value == 0);
    value = UNTOUCHED;
    CHECK(parse_size("17179869184G", PARSE_WHOLE_STRING, &value) == -ERANGE);
    CHECK(parse_size("K", PARSE_WHOLE_STRING, &value) == -EINVAL);
    CHECK(parse_size("", PARSE_WHOLE_STRING, &value) == -EINVAL);
    CHECK(parse_size("4KK", PARSE_WHOLE_STRING, &value) == -EINVAL);
    CHECK(parse_size("4P", PARSE_WHOLE_STRING, &value) == -EINVAL);
    CHECK(value == UNTOUCHED);
}

/* The obvious, slow definition. */
static bool slow_match(const char *p, const char *s)
{
    if (!*p)
        return !*s;
    if (*p == '*')
        return slow_match(p + 1, s) || (*s && slow_match(p, s + 1));
    return *s && (*p == '?' || *p == *s) && slow_match(p + 1, s + 1);
}

static void random_text(struct rng *rng, char *buf, size_t max, const char *letters)
{
    size_t n = rng_below(rng, max);

    for (size_t i = 0; i < n; i++)
        buf[i] = letters[rng_below(rng, strlen(letters))];
    buf[n] = 0;
}

static void test_glob(void)
{
    struct rng rng;
    char pattern[8], string[10];

    CHECK(glob_match("*", ""));
    CHECK(glob_match("fault_*/unmap*", "fault_retry/unmap_while_reading"));
    CHECK(!glob_match("fault_*", "Fault_x"));
    CHECK(!glob_match("?", ""));
    CHECK(glob_match("", ""));
    CHECK(!glob_match("", "a"));
    rng_seed(&rng, 1);
    for (int i = 0; i < 200000; i++) {
        random_text(&rng, pattern, sizeof(pattern), "ab*?");
        random_text(&rng, string, sizeof(string), "ab");
        if (!CHECK(glob_match(pattern, string) == slow_match(pattern, string)))
            printf("# \"%s\" \"%s\"\n", pattern, string);
    }
}

/* The words of a line, joined by '|'; how many. */
static int split(const char *line, char *joined)
{
    char word[64];
    int words = 0;

    *joined = 0;
    while (cmdline_next_word(&line, word, sizeof(word)) == 1) {
        strcat(strcat(joined, word), "|");
        words++;
    }
    CHECK(*line == 0);
    return words;
}

static void test_cmdline(void)
{
    static const struct {
        const char *line;
        int words;
        const char *joined;
    } cases[] = {
        {"", 0, ""},
        {" \t\n", 0, ""},
        {"init=/bin/sh -- -c ls", 4, "init=/bin/sh|--|-c|ls|"},
        {"  a   b  ", 2, "a|b|"},
        {"\"a b\" c", 2, "a b|c|"},
        {"x=\"a b\"c d", 2, "x=a bc|d|"},
        {"a \"\" b", 3, "a||b|"},
        {"a\\ b \\\"c\\\\", 2, "a b|\"c\\|"},
        {"\"a\\\"b\"", 1, "a\"b|"},
        {"\"open to the end", 1, "open to the end|"},
        {"end\\", 1, "end\\|"},
    };
    char joined[256];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (!CHECK(split(cases[i].line, joined) == cases[i].words &&
                   strcmp(joined, cases[i].joined) == 0))
            printf("# <%s> gave <%s>\n", cases[i].line, joined);
    }
}

static void test_long_words(void)
{
    const char *line = "abcdef gh";
    char word[4];

    CHECK(cmdline_next_word(&line, word, sizeof(word)) == -E2BIG && strcmp(word, "abc") == 0);
    CHECK(cmdline_next_word(&line, word, sizeof(word)) == 1 && strcmp(word, "gh") == 0);
    CHECK(cmdline_next_word(&line, word, sizeof(word)) == 0);
    line = "abc";
    CHECK(cmdline_next_word(&line, word, sizeof(word)) == 1 && strcmp(word, "abc") == 0);
}

static void test_value(void)
{
    CHECK(strcmp(cmdline_value("init=/bin/sh", "init"), "/bin/sh") == 0);
    CHECK(strcmp(cmdline_value("a=b=c", "a"), "b=c") == 0);
    CHECK(strcmp(cmdline_value("a=", "a"), "") == 0);
    CHECK(cmdline_value("init", "init") == NULL);
    CHECK(cmdline_value("inits=1", "init") == NULL);
    CHECK(cmdline_value("ini", "init") == NULL);
}

static const struct tap_test tests[] = {
    {"parse/u64_all_or_nothing", test_u64},
    {"parse/length_limits_reading", test_length_limits_reading},
    {"parse/s64_limits", test_s64},
    {"parse/size_suffixes", test_size},
    {"parse/glob_equals_definition", test_glob},
    {"parse/cmdline_quotes_and_backslashes", test_cmdline},
    {"parse/cmdline_long_word_is_refused", test_long_words},
    {"parse/cmdline_value", test_value},
};

int main(void)
{
    return tap_main(tests, ARRAY_SIZE(tests));
}
