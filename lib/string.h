/*
 * Memory and string functions under their usual names, and the two page-sized ones that the
 * fault path lives on. In the kernel lib/string.c provides them all; on the host the C library
 * provides the standard ones and lib/string.c the rest (its own versions of the standard ones are
 * compiled there too, as lib_memcpy and so on, for tests/host/test_string.c).
 *
 * All of them: any context, no locks, never sleep, never touch user memory.
 */
#ifndef LIB_STRING_H
#define LIB_STRING_H

#include "lib/types.h"

#if __STDC_HOSTED__
#include <string.h>
#else
/* The C standard's contracts (ISO C17, 7.24). */
void *memcpy(void *restrict dst, const void *restrict src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memchr(const void *s, int byte, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *haystack, const char *needle);
#endif

/*
 * Copies a string into a buffer of `size` bytes, cutting it where it does not fit; the result is
 * always terminated if size > 0. Returns strlen(src): a result >= size means that it was cut.
 */
size_t string_copy(char *dst, const char *src, size_t size);
#ifdef strlcpy
#undef strlcpy
#endif
#define strlcpy string_copy

bool string_starts_with(const char *s, const char *prefix);
bool string_ends_with(const char *s, const char *suffix);

/* Copies PAGE_SIZE bytes. Both page aligned, not overlapping (equal is allowed). */
static inline void page_copy(void *dst, const void *src)
{
    size_t words = PAGE_SIZE / sizeof(u64);

    __asm__ volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(words) : : "memory");
}

/* Fills PAGE_SIZE bytes with zero. Page aligned. */
static inline void page_clear(void *page)
{
    size_t words = PAGE_SIZE / sizeof(u64);

    __asm__ volatile("rep stosq" : "+D"(page), "+c"(words) : "a"(0ul) : "memory");
}

#endif
