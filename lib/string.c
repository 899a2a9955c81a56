/*
 * Memory and string functions. Copy and fill use the string instructions, eight bytes a step and
 * the rest bytewise: no vector registers in the kernel, and few instructions when they are counted.
 *
 * The compiler knows these functions by name and may turn a loop that looks like one of them into a
 * call of it, which would never end; the pragma forbids that for this file.
 */
#include "lib/string.h"

#ifndef __clang__
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

/* On the host the plain names belong to the C library; the tests reach these as lib_memcpy etc. */
#if __STDC_HOSTED__
#define OWN(name) lib_##name
void *lib_memcpy(void *restrict dst, const void *restrict src, size_t n);
void *lib_memmove(void *dst, const void *src, size_t n);
void *lib_memset(void *dst, int byte, size_t n);
int lib_memcmp(const void *a, const void *b, size_t n);
void *lib_memchr(const void *s, int byte, size_t n);
size_t lib_strlen(const char *s);
size_t lib_strnlen(const char *s, size_t max);
int lib_strcmp(const char *a, const char *b);
int lib_strncmp(const char *a, const char *b, size_t n);
char *lib_strchr(const char *s, int c);
char *lib_strrchr(const char *s, int c);
char *lib_strstr(const char *haystack, const char *needle);
#else
#define OWN(name) name
#endif

/* A word that may stand anywhere and overlay anything. */
typedef u64 __attribute__((aligned(1), may_alias)) any_word;

#define WORD_BYTES sizeof(any_word)

/* Rising addresses: right also for overlapping areas where dst lies below src. */
static void copy_up(void *dst, const void *src, size_t n)
{
    size_t words = n / WORD_BYTES;
    size_t bytes = n % WORD_BYTES;

    __asm__ volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(words) : : "memory");
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes) : : "memory");
}

/* Falling addresses: right also for overlapping areas where dst lies above src. */
static void copy_down(u8 *dst, const u8 *src, size_t n)
{
    while (n >= WORD_BYTES) {
        n -= WORD_BYTES;
        *(any_word *)(dst + n) = *(const any_word *)(src + n);
    }
    while (n > 0) {
        n--;
        dst[n] = src[n];
    }
}

void *OWN(memcpy)(void *restrict dst, const void *restrict src, size_t n)
{
    copy_up(dst, src, n);
    return dst;
}

void *OWN(memmove)(void *dst, const void *src, size_t n)
{
    if ((uintptr_t)dst - (uintptr_t)src < n)
        copy_down(dst, src, n);
    else
        copy_up(dst, src, n);
    return dst;
}

void *OWN(memset)(void *dst, int byte, size_t n)
{
    void *at = dst;
    u64 pattern = (u8)byte * 0x0101010101010101ul;
    size_t words = n / WORD_BYTES;
    size_t bytes = n % WORD_BYTES;

    __asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(pattern) : "memory");
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(pattern) : "memory");
    return dst;
}

int OWN(memcmp)(const void *a, const void *b, size_t n)
{
    const u8 *x = a, *y = b;

    while (n >= WORD_BYTES && *(const any_word *)x == *(const any_word *)y) {
        x += WORD_BYTES;
        y += WORD_BYTES;
        n -= WORD_BYTES;
    }
    for (; n > 0; n--, x++, y++) {
        if (*x != *y)
            return *x - *y;
    }
    return 0;
}

void *OWN(memchr)(const void *s, int byte, size_t n)
{
    const u8 *p = s;

    for (; n > 0; n--, p++) {
        if (*p == (u8)byte)
            return (void *)p;
    }
    return NULL;
}

size_t OWN(strlen)(const char *s)
{
    size_t n = 0;

    while (s[n])
        n++;
    return n;
}

size_t OWN(strnlen)(const char *s, size_t max)
{
    size_t n = 0;

    while (n < max && s[n])
        n++;
    return n;
}

int OWN(strcmp)(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (u8)*a - (u8)*b;
}

int OWN(strncmp)(const char *a, const char *b, size_t n)
{
    for (; n > 0; n--, a++, b++) {
        if (*a != *b || !*a)
            return (u8)*a - (u8)*b;
    }
    return 0;
}

/* The terminating zero counts as part of the string, as the standard says. */
char *OWN(strchr)(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c)
            return (char *)s;
        if (!*s)
            return NULL;
    }
}

char *OWN(strrchr)(const char *s, int c)
{
    const char *last = NULL;

    for (;; s++) {
        if (*s == (char)c)
            last = s;
        if (!*s)
            return (char *)last;
    }
}

char *OWN(strstr)(const char *haystack, const char *needle)
{
    size_t length = OWN(strlen)(needle);

    for (;; haystack++) {
        if (OWN(strncmp)(haystack, needle, length) == 0)
            return (char *)haystack;
        if (!*haystack)
            return NULL;
    }
}

size_t string_copy(char *dst, const char *src, size_t size)
{
    size_t length = strlen(src);

    if (size > 0) {
        size_t n = MIN(length, size - 1);

        memcpy(dst, src, n);
        dst[n] = 0;
    }
    return length;
}

bool string_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool string_ends_with(const char *s, const char *suffix)
{
    size_t length = strlen(s);
    size_t tail = strlen(suffix);

    return tail <= length && memcmp(s + length - tail, suffix, tail) == 0;
}
