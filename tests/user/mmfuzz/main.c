/*
 * mmfuzz: random sequences of calls on the address space. What they did must be equal on every
 * kernel that does it right.
 *
 *     mmfuzz [--verbose] [--disk-file FILE] --seeds FIRST END     seeds FIRST to END - 1
 *     mmfuzz [--verbose] [--disk-file FILE] SEED[/MASK]...        MASK: hexadecimal, the steps to run
 *
 * Prints a line for each sequence, `SEED/MASK STEPS HASH`, behind its log with --verbose. MASK has
 * those steps alone that the sequence has.
 */
#include "tests/user/mmfuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_BYTES (512 * 1024)

static const char *disk_file = "/data/odd.bin";
static bool is_verbose;

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325UL;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3UL;
    return hash;
}

static void run_one(uint64_t seed, uint64_t mask)
{
    unsigned count = sequence_steps(seed);
    int status = 0;
    pid_t child;

    mask &= ~0UL >> (64 - count);
    log_clear();
    child = fork();
    if (child == 0)
        sequence_run(seed, mask, disk_file);
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        log_add("the sequence ended with status %#x\n", status);
    if (is_verbose)
        printf("%s", log_text());
    printf("%lu/%lx %d %016lx\n", seed, mask, __builtin_popcountl(mask), hash_of(log_text()));
}

static int usage(void)
{
    fprintf(stderr,
            "use: mmfuzz [--verbose] [--disk-file FILE] --seeds FIRST END | SEED[/MASK]...\n");
    return 2;
}

int main(int argc, char **argv)
{
    char *memory = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *end;
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--verbose") == 0)
            is_verbose = true;
        else if (strcmp(argv[at], "--disk-file") == 0 && at + 1 < argc)
            disk_file = argv[++at];
        else
            break;
    }
    if (memory == MAP_FAILED || at == argc)
        return usage();
    log_use(memory, LOG_BYTES);
    if (strcmp(argv[at], "--seeds") == 0) {
        if (argc != at + 3)
            return usage();
        for (uint64_t seed = strtoul(argv[at + 1], NULL, 10);
             seed < strtoul(argv[at + 2], NULL, 10); seed++)
            run_one(seed, ~0UL);
        return 0;
    }
    for (; at < argc; at++) {
        uint64_t seed = strtoul(argv[at], &end, 10);

        run_one(seed, *end == '/' ? strtoul(end + 1, NULL, 16) : ~0UL);
    }
    return 0;
}
