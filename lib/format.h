/*
 * Formatted text: the part of printf that a kernel needs.
 *
 *     %d %i      signed decimal            %u  unsigned decimal
 *     %x %X      hexadecimal               %p  pointer: 0x and hexadecimal
 *     %c         character                 %s  string (NULL prints "(null)")      %%  percent sign
 *     length     hh h l ll z j t
 *     flags      0 - + # and space         width and precision: digits or *
 *
 * Width and precision are cut at 4096. No floating point, no %n. An unknown conversion is printed
 * as it stands. Precision on %s limits the bytes read, so the string need not be terminated then.
 *
 * All functions: any context, no locks, never sleep.
 */
#ifndef LIB_FORMAT_H
#define LIB_FORMAT_H

#include <stdarg.h>

#include "lib/types.h"

/* Receives the text piece by piece; the pieces are not terminated. */
typedef void (*format_put_fn)(void *ctx, const char *s, size_t n);

/*
 * Writes at most size - 1 bytes and a terminating zero into buf (nothing if size is 0).
 * Returns the length that the whole text has, as snprintf does.
 */
int format_to(char *buf, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
int format_v(char *buf, size_t size, const char *fmt, va_list args) PRINTF_LIKE(3, 0);

/*
 * As format_to, appending at buf[*used]; *used moves on, and stops at size - 1 when the buffer is
 * full. For building a text in steps: the caller never computes what is left.
 */
void format_append(char *buf, size_t size, size_t *used, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Hands the text to put(ctx, piece, length). Returns the length of the whole text. */
int format_sink(format_put_fn put, void *ctx, const char *fmt, va_list args) PRINTF_LIKE(3, 0);

#endif
