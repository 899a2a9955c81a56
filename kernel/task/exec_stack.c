/*
 * The first stack of a program, from high to low addresses:
 *
 *     stack_top   8 zero bytes
 *                 AT_EXECFN string, environment strings, argument strings
 *                 16 random bytes (AT_RANDOM)
 *                 padding
 *                 auxiliary vector, ended by AT_NULL
 *                 envp[], NULL, argv[], NULL
 *     rsp ->      argc                                        (16-byte aligned)
 */
#include "kernel/task/exec_stack.h"

#include "kernel/cpu/clock.h"
#include "kernel/task/elf.h"
#include "lib/errno.h"
#include "lib/hash.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/mmap.h"
#include "mm/user_memory.h"

#define STACK_TOP         USER_ADDRESS_END
#define STACK_FIRST_BYTES (132ul * 1024)
#define STRINGS_SHARE     4           /* of the stack limit */
#define STRINGS_MAX_BYTES (2ul << 20) /* and at most this, however large that is */
#define AUX_PAIRS         20
#define CLOCK_TICKS       100
#define MIN_SIGNAL_STACK  2048

struct builder {
    u64 sp; /* next free byte above which everything is written */
    int error;
};

static u64 push_bytes(struct builder *b, const void *data, size_t n)
{
    if (b->error)
        return 0;
    b->sp -= n;
    b->error = copy_to_user(b->sp, data, n);
    return b->sp;
}

static u64 push_string(struct builder *b, const char *s)
{
    return push_bytes(b, s, strlen(s) + 1);
}

static size_t strings_bytes(const struct exec_arguments *a)
{
    size_t n = 0;
    for (int i = 0; i < a->argc; i++)
        n += strlen(a->argv[i]) + 1 + sizeof(u64);
    for (int i = 0; i < a->envc; i++)
        n += strlen(a->envp[i]) + 1 + sizeof(u64);
    return n;
}

static int map_stack(struct mm *mm)
{
    s64 addr = mm_mmap(mm, STACK_TOP - STACK_FIRST_BYTES, STACK_FIRST_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN, NULL, 0);
    if (addr < 0)
        return addr;
    mm->stack_top = STACK_TOP;
    limits_tell_memory(mm);
    return 0;
}

/* Under icount the same in every run. */
static u64 push_random(struct builder *b)
{
    u64 seed = clock_is_icount ? 1 : tsc_read();
    u64 random[2] = {mix64(seed), mix64(seed + 1)};
    return push_bytes(b, random, sizeof(random));
}

static u32 cpuid_1_edx(void)
{
    u32 eax = 1, ebx, ecx = 0, edx;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return edx;
}

/* => number of u64 written */
static unsigned fill_auxiliary(u64 *out, const struct exec_auxiliary *aux, u64 random, u64 execfn)
{
    const u64 pairs[][2] = {
        {AT_HWCAP, cpuid_1_edx()},
        {AT_PAGESZ, PAGE_SIZE},
        {AT_CLKTCK, CLOCK_TICKS},
        {AT_PHDR, aux->phdr},
        {AT_PHENT, sizeof(struct elf_segment)},
        {AT_PHNUM, aux->phnum},
        {AT_BASE, aux->base},
        {AT_FLAGS, 0},
        {AT_ENTRY, aux->entry},
        {AT_UID, 0},
        {AT_EUID, 0},
        {AT_GID, 0},
        {AT_EGID, 0},
        {AT_SECURE, 0},
        {AT_RANDOM, random},
        {AT_HWCAP2, 0},
        {AT_EXECFN, execfn},
        {AT_MINSIGSTKSZ, MAX(cpu_features.xsave_size + 1024u, (u32)MIN_SIGNAL_STACK)},
        {AT_NULL, 0},
    };
    _Static_assert(ARRAY_SIZE(pairs) <= AUX_PAIRS, "AUX_PAIRS is too small");
    memcpy(out, pairs, sizeof(pairs));
    return sizeof(pairs) / sizeof(u64);
}

static int build(struct mm *mm, const struct exec_arguments *a, const struct exec_auxiliary *aux,
                 u64 *vector, u64 *rsp)
{
    struct builder b = {.sp = STACK_TOP - sizeof(u64)};
    unsigned n = 0, n_auxiliary;
    u64 execfn = push_string(&b, aux->exec_path);
    mm->env_end = b.sp;
    u64 *argv = vector + 1, *envp = argv + a->argc + 1;
    for (int i = a->envc - 1; i >= 0; i--)
        envp[i] = push_string(&b, a->envp[i]);
    mm->env_start = mm->arg_end = b.sp;
    for (int i = a->argc - 1; i >= 0; i--)
        argv[i] = push_string(&b, a->argv[i]);
    mm->arg_start = b.sp;
    u64 random = push_random(&b);

    vector[0] = a->argc;
    n = 1 + a->argc + 1 + a->envc + 1;
    n_auxiliary = fill_auxiliary(vector + n, aux, random, execfn);
    n += n_auxiliary;
    b.sp = ALIGN_DOWN(b.sp - n * sizeof(u64), 16ul);
    mm->auxv_end = b.sp + n * sizeof(u64);
    mm->auxv_start = mm->auxv_end - n_auxiliary * sizeof(u64);
    if (!b.error)
        b.error = copy_to_user(b.sp, vector, n * sizeof(u64));
    *rsp = b.sp;
    return b.error;
}

int exec_build_stack(struct mm *mm, const struct exec_arguments *arguments,
                     const struct exec_auxiliary *aux, u64 *rsp)
{
    u64 share = limit_current(LIMIT_STACK) / STRINGS_SHARE;
    if (strings_bytes(arguments) > MIN(share, STRINGS_MAX_BYTES))
        return -E2BIG;
    int error = map_stack(mm);
    if (error)
        return error;
    size_t words = 3 + arguments->argc + arguments->envc + 2 * AUX_PAIRS;
    u64 *vector = kzalloc(words * sizeof(u64));
    if (!vector)
        return -ENOMEM;
    error = build(mm, arguments, aux, vector, rsp);
    kfree(vector);
    return error ? -ENOMEM : 0;
}
