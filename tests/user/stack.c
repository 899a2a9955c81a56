/*
 * stack: recursion to a given depth in pages; a stack grows by itself, up to its limit.
 *
 * Use: stack PAGES. 1,500 pages fit into the usual 8 MiB; 4,000 end by SIGSEGV.
 */
#include <stdio.h>
#include <stdlib.h>

#define PAGE 4096

static __attribute__((noinline)) unsigned long descend(unsigned long pages)
{
    volatile unsigned char frame[PAGE];
    unsigned long below;

    frame[0] = (unsigned char)pages;
    frame[PAGE - 1] = (unsigned char)(pages >> 8);
    below = pages > 1 ? descend(pages - 1) : 0;
    return below + (frame[0] == (unsigned char)pages) +
           (frame[PAGE - 1] == (unsigned char)(pages >> 8));
}

int main(int argc, char **argv)
{
    unsigned long pages = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

    printf("down %lu pages\n", pages);
    fflush(stdout);
    printf("bytes that kept their value: %lu\n", descend(pages));
    return 0;
}
