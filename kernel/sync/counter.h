/*
 * Per-CPU event counters: adding costs one instruction on the CPU's own line; reading sums all
 * CPUs. The sum is exact when nothing runs, and never goes down.
 */
#ifndef KERNEL_SYNC_COUNTER_H
#define KERNEL_SYNC_COUNTER_H

#include "kernel/cpu/cpu.h"

/* COUNTER(name): defines one (in .percpu). COUNTER_DECLARE(name) in headers. */
#define COUNTER(name)         PERCPU(u64, name)
#define COUNTER_DECLARE(name) extern u64 name

#define counter_add(name, n) \
    __asm__ volatile("addq %1, (%0)" ::"r"(percpu_this(name)), "r"((u64)(n)) : "memory", "cc")
#define counter_inc(name) counter_add(name, 1)
#define counter_sum(name) counter_sum_address(&(name))

u64 counter_sum_address(const u64 *percpu_variable);

#endif
