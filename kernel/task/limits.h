/*
 * Resource limits of a process: getrlimit(2).
 */
#ifndef KERNEL_TASK_LIMITS_H
#define KERNEL_TASK_LIMITS_H

#include "lib/types.h"

enum limit_number {
    LIMIT_CPU,
    LIMIT_FSIZE,
    LIMIT_DATA,
    LIMIT_STACK,
    LIMIT_CORE,
    LIMIT_RSS,
    LIMIT_NPROC,
    LIMIT_NOFILE,
    LIMIT_MEMLOCK,
    LIMIT_AS,
    LIMIT_LOCKS,
    LIMIT_SIGPENDING,
    LIMIT_MSGQUEUE,
    LIMIT_NICE,
    LIMIT_RTPRIO,
    LIMIT_RTTIME,
    LIMIT_COUNT,
};

#define LIMIT_INFINITY (~0ul)

/* struct rlimit of Linux: bytes, numbers or seconds. */
struct limit {
    u64 soft, hard;
};

struct process;
/* The limits of a first program. */
void limits_init(struct limit *limits);
/* Tells the rooms below, which ask for limits through tables. Once, at boot. */
void limits_register(void);
/* The soft limit of the current process. Any context of a program. */
u64 limit_current(enum limit_number number);

struct mm;
/* Tells an address space the limits that hold for it: those of the current process. Takes mmap_lock. */
void limits_tell_memory(struct mm *mm);

#endif
