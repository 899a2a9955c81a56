/*
 * start: what the loader hands to a program: arguments, environment, auxiliary vector, registers.
 *
 * Lines that begin with `host:` differ from kernel to kernel; all others must be equal.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char **environ;

static const struct {
    unsigned long type;
    const char *name;
    int same_everywhere;
} entries[] = {
    {AT_PHENT, "AT_PHENT", 1}, {AT_PHNUM, "AT_PHNUM", 1},   {AT_PAGESZ, "AT_PAGESZ", 1},
    {AT_ENTRY, "AT_ENTRY", 1}, {AT_SECURE, "AT_SECURE", 1}, {AT_CLKTCK, "AT_CLKTCK", 1},
    {AT_PHDR, "AT_PHDR", 1},   {AT_UID, "AT_UID", 0},       {AT_EUID, "AT_EUID", 0},
    {AT_GID, "AT_GID", 0},     {AT_EGID, "AT_EGID", 0},     {AT_HWCAP, "AT_HWCAP", 0},
};

static int zeroed[3000]; /* .bss: all of it must be zero, the end of the last file page too */
static int initialised = 12345;

int main(int argc, char **argv)
{
    const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
    const char *name = (const char *)getauxval(AT_EXECFN);
    unsigned int nonzero = 0, random_bits = 0;

    printf("argc %d\n", argc);
    for (int i = 1; i < argc; i++)
        printf("argv[%d] <%s>\n", i, argv[i]);
    printf("argv ends with NULL: %d\n", argv[argc] == NULL);
    for (char **variable = environ; *variable; variable++)
        printf("host: env <%s>\n", *variable);
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        printf("%s%s %#lx\n", entries[i].same_everywhere ? "" : "host: ", entries[i].name,
               getauxval(entries[i].type));
    for (int i = 0; random && i < 16; i++)
        random_bits |= random[i];
    printf("AT_RANDOM points to 16 bytes: %d\n", random != NULL && random_bits != 0);
    printf("AT_EXECFN is argv[0]: %d\n", name && strcmp(name, argv[0]) == 0);
    printf("stack pointer is aligned: %d\n", ((uintptr_t)__builtin_frame_address(0) & 15) == 0);
    for (size_t i = 0; i < sizeof(zeroed) / sizeof(zeroed[0]); i++)
        nonzero += zeroed[i] != 0;
    printf("bss: %u words are not zero; data: %d\n", nonzero, initialised);
    return 0;
}
