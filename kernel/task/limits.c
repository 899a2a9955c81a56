/*
 * Resource limits: what a first program gets, and how they are asked for.
 *
 *   NOFILE       numbers in the table of open files            kernel/task/fd_table.c
 *   NPROC        all threads of all programs (one user)        kernel/task/thread.c
 *   AS, DATA     the address space keeps copies                mm/vma_limits.c
 *   STACK        the address space keeps a copy                mm/vma.c
 *   MEMLOCK      the same; only for who has given CAP_IPC_LOCK up
 *   SIGPENDING   queued signals
 *   FSIZE        size of files that are written               fs/file_limits.c
 * CORE is 0: no core files are written. The others are kept, and limit nothing.
 */
#include "kernel/task/limits.h"

#include "fs/file_limits.h"
#include "kernel/task/process.h"
#include "kernel/task/signal.h"
#include "mm/core/frames.h"
#include "mm/vma.h"

#define STACK_BYTES    (8ul << 20)
#define MEMLOCK_BYTES  (8ul << 20)
#define MSGQUEUE_BYTES 819200ul
#define OPEN_FILES     1024ul
#define FRAMES_PER_THREAD \
    32 /* of all memory: a stack of 4, page tables and slabs, and as much for the program */

void limits_init(struct limit *limits)
{
    u64 threads = frames_total() / FRAMES_PER_THREAD;
    const struct limit infinite = {LIMIT_INFINITY, LIMIT_INFINITY};
    for (unsigned i = 0; i < LIMIT_COUNT; i++)
        limits[i] = infinite;
    limits[LIMIT_STACK].soft = STACK_BYTES;
    limits[LIMIT_CORE].soft = 0;
    limits[LIMIT_NPROC] = limits[LIMIT_SIGPENDING] = (struct limit){threads, threads};
    limits[LIMIT_NOFILE] = (struct limit){OPEN_FILES, FD_MAX};
    limits[LIMIT_MEMLOCK] = (struct limit){MEMLOCK_BYTES, MEMLOCK_BYTES};
    limits[LIMIT_MSGQUEUE] = (struct limit){MSGQUEUE_BYTES, MSGQUEUE_BYTES};
    limits[LIMIT_NICE] = limits[LIMIT_RTPRIO] = (struct limit){0, 0};
}

u64 limit_current(enum limit_number number)
{
    const struct process *process = process_current();
    return process ? READ_ONCE(process->limits[number].soft) : LIMIT_INFINITY;
}

/* ---- What the address space asks ---- */

/* A soft limit of 0 is a program's wish to have no break, not to have no data: then the hard one holds. */
static u64 data_limit(const struct process *process)
{
    const struct limit *limit = &process->limits[LIMIT_DATA];
    u64 soft = READ_ONCE(limit->soft);
    return soft ? soft : READ_ONCE(limit->hard);
}

void limits_tell_memory(struct mm *mm)
{
    const struct process *process = process_current();
    struct mm_limits limits = MM_NO_LIMITS;

    limits.brk_bytes = limit_current(LIMIT_DATA);
    limits.as_bytes = limit_current(LIMIT_AS);
    limits.stack_bytes = limit_current(LIMIT_STACK);
    if (process) {
        limits.data_bytes = data_limit(process);
        if (!(READ_ONCE(process->capabilities.effective) >> CAP_IPC_LOCK & 1))
            limits.locked_bytes = limit_current(LIMIT_MEMLOCK);
    }
    mm_set_limits(mm, &limits);
}

/* ---- What files ask ---- */

static u64 file_size_limit(void)
{
    return limit_current(LIMIT_FSIZE);
}

static void file_size_exceeded(void)
{
    if (thread_current())
        signal_send_self(SIGXFSZ);
}

/* The kernel itself, init, and the console's shell. */
static bool may_use_reserve(void)
{
    const struct process *process = process_current();

    return !process || process->is_protected;
}

void limits_register(void)
{
    static const struct file_limits of_files = {
        .size_bytes = file_size_limit,
        .size_exceeded = file_size_exceeded,
        .may_use_reserve = may_use_reserve,
    };

    file_set_limits(&of_files);
}
