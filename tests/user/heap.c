/*
 * heap: the program break, and thread-local storage of a static program.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

static __thread int tls_data = 77;
static __thread int tls_zero;
static __thread _Alignas(64) char tls_aligned[64];

/* The bare call: gives the break that holds afterwards. */
static uintptr_t set_break(uintptr_t wanted)
{
    return (uintptr_t)syscall(SYS_brk, wanted);
}

static void check_break(void)
{
    uintptr_t start = set_break(0);
    uintptr_t grown = set_break(start + 5 * PAGE);
    unsigned char *bytes = (unsigned char *)start;
    unsigned int nonzero = 0;

    printf("brk(0) gives an address: %d\n", start != 0);
    printf("grown by %ld\n", (long)(grown - start));
    for (size_t i = 0; i < 5 * PAGE; i++)
        nonzero += bytes[i] != 0;
    printf("new bytes that are not zero: %u\n", nonzero);
    memset(bytes, 0xa5, 5 * PAGE);
    printf("shrunk by %ld\n", (long)(grown - set_break(start + 2 * PAGE)));
    printf("kept bytes are kept: %d\n", bytes[0] == 0xa5 && bytes[2 * PAGE - 1] == 0xa5);
    printf("grown again by %ld\n", (long)(set_break(start + 3 * PAGE) - start));
    printf("given back and taken again, zero: %d\n", bytes[2 * PAGE + 9] == 0);
    printf("below the start is refused: %d\n", set_break(PAGE) == start + 3 * PAGE);
    printf("far too much is refused: %d\n", set_break(1UL << 62) == start + 3 * PAGE);
    printf("an uneven break: %ld\n", (long)(set_break(start + 3 * PAGE + 10) - start));
}

static void check_tls(void)
{
    printf("tls data %d, zero %d, aligned %d\n", tls_data, tls_zero,
           ((uintptr_t)tls_aligned & 63) == 0);
    tls_data++;
    tls_zero -= 3;
    printf("after a change %d %d\n", tls_data, tls_zero);
}

static void check_malloc(void)
{
    char *small = malloc(100), *large = malloc(3 << 20);

    printf("malloc: %d\n", small && large);
    memset(small, 1, 100);
    memset(large, 2, 3 << 20);
    printf("its bytes: %d %d\n", small[99], large[(3 << 20) - 1]);
    free(small);
    free(large);
}

int main(void)
{
    check_break();
    check_tls();
    check_malloc();
    return 0;
}
