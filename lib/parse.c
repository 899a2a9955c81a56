/*
 * Reading numbers, sizes, patterns and command lines. Everything comes from outside (a boot loader,
 * a user who writes to /proc/sys), so every number is checked for overflow and nothing is guessed:
 * a text is read as a whole or refused.
 */
#include "lib/parse.h"

#include "lib/errno.h"
#include "lib/string.h"

#define DIGIT_NONE 99

static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'z')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'Z')
        return (unsigned)(c - 'A') + 10;
    return DIGIT_NONE;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The text without what ends it: a zero byte within len, one newline at its end. */
static size_t text_length(const char *s, size_t len)
{
    len = strnlen(s, len);
    if (len > 0 && s[len - 1] == '\n')
        len--;
    return len;
}

/* Takes a 0x or 0 off the front as the base allows, and settles base 0. */
static const char *skip_prefix(const char *s, const char *end, unsigned *base)
{
    bool hex = end - s > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X');

    if (hex && (*base == 0 || *base == 16)) {
        *base = 16;
        return s + 2;
    }
    if (*base == 0)
        *base = end > s && s[0] == '0' ? 8 : 10;
    return s;
}

/* Reads digits from s to end, all of them. */
static int parse_digits(const char *s, const char *end, unsigned base, u64 *out)
{
    u64 value = 0;
    bool overflow = false;

    s = skip_prefix(s, end, &base);
    if (s == end)
        return -EINVAL;
    for (; s < end; s++) {
        unsigned digit = digit_value(*s);

        if (digit >= base)
            return -EINVAL;
        overflow |= __builtin_mul_overflow(value, (u64)base, &value);
        overflow |= __builtin_add_overflow(value, (u64)digit, &value);
    }
    if (overflow)
        return -ERANGE;
    *out = value;
    return 0;
}

int parse_u64(const char *s, size_t len, unsigned base, u64 *out)
{
    return parse_digits(s, s + text_length(s, len), base, out);
}

int parse_s64(const char *s, size_t len, unsigned base, s64 *out)
{
    const char *end = s + text_length(s, len);
    bool negative = s < end && *s == '-';
    u64 limit = (u64)INT64_MAX + (negative ? 1 : 0);
    u64 magnitude;
    int error;

    if (s < end && (*s == '-' || *s == '+'))
        s++;
    error = parse_digits(s, end, base, &magnitude);
    if (error)
        return error;
    if (magnitude > limit)
        return -ERANGE;
    *out = (s64)(negative ? 0 - magnitude : magnitude);
    return 0;
}

/* The power of two that a size suffix stands for; 0 for none. */
static unsigned suffix_shift(char c)
{
    switch (c) {
    case 'k':
    case 'K': return 10;
    case 'm':
    case 'M': return 20;
    case 'g':
    case 'G': return 30;
    case 't':
    case 'T': return 40;
    default: return 0;
    }
}

int parse_size(const char *s, size_t len, u64 *out)
{
    size_t n = text_length(s, len);
    unsigned shift = n > 0 ? suffix_shift(s[n - 1]) : 0;
    u64 value;
    int error;

    if (shift)
        n--;
    error = parse_digits(s, s + n, 0, &value);
    if (error)
        return error;
    if (value > UINT64_MAX >> shift)
        return -ERANGE;
    *out = value << shift;
    return 0;
}

/*
 * Walks both strings; at a `*` remembers where it stood and takes it for nothing. When a later
 * character does not fit, the latest `*` swallows one more. Earlier ones need no second try: what
 * the latest can swallow includes what they would have.
 */
bool glob_match(const char *pattern, const char *string)
{
    const char *star = NULL, *resume = NULL;

    while (*string) {
        if (*pattern == '*') {
            star = pattern++;
            resume = string;
        } else if (*pattern == '?' || *pattern == *string) {
            pattern++;
            string++;
        } else if (star) {
            pattern = star + 1;
            string = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

int cmdline_next_word(const char **cursor, char *buf, size_t size)
{
    const char *s = *cursor;
    bool quoted = false;
    size_t n = 0;

    while (is_blank(*s))
        s++;
    if (!*s) {
        *cursor = s;
        return 0;
    }
    for (; *s && (quoted || !is_blank(*s)); s++) {
        if (*s == '"') {
            quoted = !quoted;
            continue;
        }
        if (*s == '\\' && s[1])
            s++;
        if (n + 1 < size)
            buf[n] = *s;
        n++;
    }
    *cursor = s;
    if (size > 0)
        buf[MIN(n, size - 1)] = 0;
    return n + 1 <= size ? 1 : -E2BIG;
}

const char *cmdline_value(const char *word, const char *key)
{
    size_t length = strlen(key);

    if (strncmp(word, key, length) != 0 || word[length] != '=')
        return NULL;
    return word + length + 1;
}
