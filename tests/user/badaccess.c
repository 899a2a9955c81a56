/*
 * badaccess: one access that must end the program by a signal. Use: badaccess KIND.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

static volatile unsigned char *anonymous_page(int protection)
{
    void *page = mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        perror("mmap");
        exit(99);
    }
    return page;
}

/* The page behind the last one of a file, inside a mapping that goes further than the file. */
static volatile unsigned char *page_past_end(void)
{
    int fd = open("/data/small.txt", O_RDONLY);
    struct stat status;
    char *map;

    if (fd < 0)
        fd = open("/proc/self/exe", O_RDONLY);
    if (fd < 0 || fstat(fd, &status) < 0) {
        perror("a file to map");
        exit(99);
    }

    size_t pages = ((size_t)status.st_size + PAGE - 1) / PAGE;

    map = mmap(NULL, (pages + 2) * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror("mmap");
        exit(99);
    }
    return (volatile unsigned char *)map + pages * PAGE;
}

static void read_null(void)
{
    volatile unsigned char *volatile null = NULL;

    (void)*null;
}

static void write_readonly(void)
{
    *anonymous_page(PROT_READ) = 1;
}

static void write_text(void)
{
    *(volatile unsigned char *)(uintptr_t)write_text = 0xc3;
}

static void read_none(void)
{
    (void)*anonymous_page(PROT_NONE);
}

static void execute_data(void)
{
    volatile unsigned char *page = anonymous_page(PROT_READ | PROT_WRITE);

    page[0] = 0xc3; /* ret */
    ((void (*)(void))(uintptr_t)page)();
}

static void read_unmapped(void)
{
    volatile unsigned char *page = anonymous_page(PROT_READ);

    (void)*page;
    munmap((void *)page, PAGE);
    (void)*page;
}

static void read_kernel(void)
{
    (void)*(volatile unsigned char *)0xffffffff80000000UL;
}

static void read_noncanonical(void)
{
    (void)*(volatile unsigned char *)0x1234567800000000UL;
}

static void read_past_end(void)
{
    (void)*page_past_end();
}

static void privileged(void)
{
    __asm__ volatile("hlt");
}

static void undefined(void)
{
    __asm__ volatile("ud2");
}

static void divide(void)
{
    volatile int zero = 0;

    zero = 1000 / zero;
}

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"read-null", read_null},         {"write-readonly", write_readonly},
    {"write-text", write_text},       {"read-none", read_none},
    {"execute-data", execute_data},   {"read-unmapped", read_unmapped},
    {"read-kernel", read_kernel},     {"read-noncanonical", read_noncanonical},
    {"read-past-end", read_past_end}, {"privileged", privileged},
    {"undefined", undefined},         {"divide", divide},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(argv[1], kinds[i].name) != 0)
            continue;
        printf("%s\n", argv[1]);
        fflush(stdout);
        kinds[i].run();
        printf("still alive\n");
        return 1;
    }
    printf("use: badaccess KIND\n");
    return 98;
}
