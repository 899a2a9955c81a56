/*
 * Text that grows into a buffer of unknown sufficiency: what show() of a generated file writes
 * with. What does not fit is counted all the same, so that the caller learns how large a buffer it
 * takes.
 */
#ifndef FS_TEXT_OUT_H
#define FS_TEXT_OUT_H

#include <stdarg.h>

#include "lib/types.h"

struct text_out {
    char *buf;
    size_t size;
    size_t len; /* of the whole text; beyond size where it does not fit */
};

/* All: any context, never sleep. */
void text_out_put(struct text_out *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_out_put_v(struct text_out *out, const char *fmt, va_list args) PRINTF_LIKE(2, 0);
void text_out_bytes(struct text_out *out, const char *bytes, size_t n);
/* The free end of the buffer, for whoever formats by himself; add what he wrote to len. */
static inline size_t text_out_room(const struct text_out *out)
{
    return out->len < out->size ? out->size - out->len : 0;
}

#endif
