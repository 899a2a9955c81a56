/*
 * Formatted text. One engine (format_sink) takes the format apart and hands pieces to a sink; the
 * functions that write into a buffer are sinks.
 *
 * A conversion is read into a struct spec first and printed second, so each of the two steps is
 * simple, and what the flags mean together is decided in one place (emit_number).
 */
#include "lib/format.h"

#include "lib/string.h"

#define NO_PRECISION (-1)
#define FIELD_MAX    4096 /* width and precision are cut here */
#define DIGITS_MAX   24   /* 64 bits in octal need 22 */

struct out {
    format_put_fn put;
    void *ctx;
    size_t total;
};

struct spec {
    bool left, zero, plus, space, alternate;
    int width;
    int precision;
    int length; /* size of the integer argument in bytes */
    char conversion;
};

static void emit(struct out *out, const char *s, size_t n)
{
    if (n == 0)
        return;
    out->put(out->ctx, s, n);
    out->total += n;
}

static void emit_fill(struct out *out, char c, int n)
{
    static const char blanks[] = "                ";
    static const char zeros[] = "0000000000000000";
    const char *piece = c == '0' ? zeros : blanks;

    while (n > 0) {
        int step = MIN(n, (int)sizeof(blanks) - 1);

        emit(out, piece, (size_t)step);
        n -= step;
    }
}

/* Text in a field of spec->width. */
static void emit_field(struct out *out, const struct spec *spec, const char *s, size_t n)
{
    int fill = spec->width - (int)MIN(n, (size_t)FIELD_MAX);

    if (!spec->left)
        emit_fill(out, ' ', fill);
    emit(out, s, n);
    if (spec->left)
        emit_fill(out, ' ', fill);
}

/* Writes the digits so that they end at `end`; returns where they begin. No digit for 0. */
static char *digits_backwards(char *end, u64 value, unsigned base, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";

    while (value > 0) {
        *--end = digits[value % base];
        value /= base;
    }
    return end;
}

/*
 * [blanks] prefix [zeros] digits [blanks]: the prefix is a sign or 0x; the zeros come from the
 * precision, or from the flag 0 where neither a precision nor left alignment overrules it.
 */
static void emit_number(struct out *out, const struct spec *spec, const char *prefix, u64 value,
                        unsigned base)
{
    char buf[DIGITS_MAX];
    char *end = buf + sizeof(buf);
    char *begin = digits_backwards(end, value, base, spec->conversion == 'X');
    int digits = (int)(end - begin);
    int prefix_length = (int)strlen(prefix);
    int wanted = spec->precision == NO_PRECISION ? 1 : spec->precision;
    int zeros, blanks;

    if (spec->zero && !spec->left && spec->precision == NO_PRECISION)
        wanted = MAX(wanted, spec->width - prefix_length);
    zeros = MAX(wanted - digits, 0);
    blanks = spec->width - prefix_length - zeros - digits;

    if (!spec->left)
        emit_fill(out, ' ', blanks);
    emit(out, prefix, (size_t)prefix_length);
    emit_fill(out, '0', zeros);
    emit(out, begin, (size_t)digits);
    if (spec->left)
        emit_fill(out, ' ', blanks);
}

static void emit_signed(struct out *out, const struct spec *spec, s64 value)
{
    const char *sign = spec->plus ? "+" : spec->space ? " " : "";
    u64 magnitude = (u64)value;

    if (value < 0) {
        sign = "-";
        magnitude = 0 - magnitude;
    }
    emit_number(out, spec, sign, magnitude, 10);
}

static void emit_unsigned(struct out *out, const struct spec *spec, u64 value)
{
    const char *prefix = "";

    if (spec->conversion == 'u') {
        emit_number(out, spec, "", value, 10);
        return;
    }
    if (spec->conversion == 'p')
        prefix = "0x";
    else if (spec->alternate && value != 0)
        prefix = spec->conversion == 'X' ? "0X" : "0x";
    emit_number(out, spec, prefix, value, 16);
}

static void emit_string(struct out *out, const struct spec *spec, const char *s)
{
    size_t n;

    if (!s)
        s = "(null)";
    n = spec->precision == NO_PRECISION ? strlen(s) : strnlen(s, (size_t)spec->precision);
    emit_field(out, spec, s, n);
}

/* Reads the flags; returns the format behind them. */
static const char *read_flags(const char *fmt, struct spec *spec)
{
    for (;; fmt++) {
        switch (*fmt) {
        case '-': spec->left = true; break;
        case '0': spec->zero = true; break;
        case '+': spec->plus = true; break;
        case ' ': spec->space = true; break;
        case '#': spec->alternate = true; break;
        default: return fmt;
        }
    }
}

static const char *read_digits(const char *fmt, int *value)
{
    int n = 0;

    for (; *fmt >= '0' && *fmt <= '9'; fmt++)
        n = MIN(n * 10 + (*fmt - '0'), FIELD_MAX);
    *value = n;
    return fmt;
}

static const char *read_length(const char *fmt, struct spec *spec)
{
    spec->length = sizeof(int);
    switch (*fmt) {
    case 'h':
        fmt++;
        spec->length = sizeof(short);
        if (*fmt == 'h') {
            fmt++;
            spec->length = sizeof(char);
        }
        return fmt;
    case 'l': spec->length = sizeof(long); return fmt[1] == 'l' ? fmt + 2 : fmt + 1;
    case 'z':
    case 'j':
    case 't': spec->length = sizeof(long); return fmt + 1;
    default: return fmt;
    }
}

/* The argument list is handed on by reference: each function takes from it what it consumes. */
struct arguments {
    va_list list;
};

/* Reads what stands between % and the conversion, and the conversion; returns what is behind. */
static const char *read_spec(const char *fmt, struct spec *spec, struct arguments *args)
{
    memset(spec, 0, sizeof(*spec));
    spec->precision = NO_PRECISION;
    fmt = read_flags(fmt, spec);
    if (*fmt == '*') {
        int width = va_arg(args->list, int);

        if (width < 0)
            spec->left = true;
        width = MAX(width, -FIELD_MAX);
        spec->width = MIN(width < 0 ? -width : width, FIELD_MAX);
        fmt++;
    } else {
        fmt = read_digits(fmt, &spec->width);
    }
    if (*fmt == '.') {
        fmt++;
        if (*fmt == '*') {
            int precision = va_arg(args->list, int);

            spec->precision = precision < 0 ? NO_PRECISION : MIN(precision, FIELD_MAX);
            fmt++;
        } else {
            fmt = read_digits(fmt, &spec->precision);
        }
    }
    fmt = read_length(fmt, spec);
    spec->conversion = *fmt;
    return *fmt ? fmt + 1 : fmt;
}

static u64 take_unsigned(const struct spec *spec, struct arguments *args)
{
    switch (spec->length) {
    case sizeof(char): return (unsigned char)va_arg(args->list, unsigned);
    case sizeof(short): return (unsigned short)va_arg(args->list, unsigned);
    case sizeof(int): return va_arg(args->list, unsigned);
    default: return va_arg(args->list, unsigned long);
    }
}

static s64 take_signed(const struct spec *spec, struct arguments *args)
{
    switch (spec->length) {
    case sizeof(char): return (signed char)va_arg(args->list, int);
    case sizeof(short): return (short)va_arg(args->list, int);
    case sizeof(int): return va_arg(args->list, int);
    default: return va_arg(args->list, long);
    }
}

/* Prints one conversion; `text` to `end` is how it was written, for one that is unknown. */
static void emit_conversion(struct out *out, const struct spec *spec, struct arguments *args,
                            const char *text, const char *end)
{
    char c;

    switch (spec->conversion) {
    case 'd':
    case 'i': emit_signed(out, spec, take_signed(spec, args)); break;
    case 'u':
    case 'x':
    case 'X': emit_unsigned(out, spec, take_unsigned(spec, args)); break;
    case 'p': emit_unsigned(out, spec, (uintptr_t)va_arg(args->list, void *)); break;
    case 'c':
        c = (char)va_arg(args->list, int);
        emit_field(out, spec, &c, 1);
        break;
    case 's': emit_string(out, spec, va_arg(args->list, const char *)); break;
    case '%': emit(out, "%", 1); break;
    default: emit(out, text, (size_t)(end - text)); break;
    }
}

int format_sink(format_put_fn put, void *ctx, const char *fmt, va_list list)
{
    struct out out = {put, ctx, 0};
    struct arguments args;

    va_copy(args.list, list);
    while (*fmt) {
        const char *text = fmt;
        struct spec spec;

        while (*fmt && *fmt != '%')
            fmt++;
        emit(&out, text, (size_t)(fmt - text));
        if (!*fmt)
            break;
        text = fmt;
        fmt = read_spec(fmt + 1, &spec, &args);
        emit_conversion(&out, &spec, &args, text, fmt);
    }
    va_end(args.list);
    return (int)MIN(out.total, (size_t)INT32_MAX);
}

struct buffer {
    char *text;
    size_t size;
    size_t used; /* without the terminating zero: at most size - 1 */
};

static void buffer_put(void *ctx, const char *s, size_t n)
{
    struct buffer *buffer = ctx;

    if (buffer->size == 0)
        return;
    n = MIN(n, buffer->size - 1 - buffer->used);
    memcpy(buffer->text + buffer->used, s, n);
    buffer->used += n;
}

int format_v(char *buf, size_t size, const char *fmt, va_list args)
{
    struct buffer buffer = {buf, size, 0};
    int length = format_sink(buffer_put, &buffer, fmt, args);

    if (size > 0)
        buf[buffer.used] = 0;
    return length;
}

int format_to(char *buf, size_t size, const char *fmt, ...)
{
    va_list args;
    int length;

    va_start(args, fmt);
    length = format_v(buf, size, fmt, args);
    va_end(args);
    return length;
}

void format_append(char *buf, size_t size, size_t *used, const char *fmt, ...)
{
    va_list args;
    int length;

    if (*used >= size)
        return;
    va_start(args, fmt);
    length = format_v(buf + *used, size - *used, fmt, args);
    va_end(args);
    *used = MIN(*used + (size_t)length, size - 1);
}
