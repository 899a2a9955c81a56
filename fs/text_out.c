/*
 * Text that grows into a buffer: see text_out.h.
 */
#include "fs/text_out.h"

#include "lib/format.h"
#include "lib/string.h"

void text_out_put_v(struct text_out *out, const char *fmt, va_list args)
{
    size_t room = text_out_room(out);

    out->len += (size_t)format_v(room ? out->buf + out->len : NULL, room, fmt, args);
}

void text_out_put(struct text_out *out, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    text_out_put_v(out, fmt, args);
    va_end(args);
}

void text_out_bytes(struct text_out *out, const char *bytes, size_t n)
{
    size_t room = text_out_room(out);

    if (room)
        memcpy(out->buf + out->len, bytes, MIN(n, room));
    out->len += n;
}
