/*
 * Reading per-CPU counters: the sum of every CPU's copy.
 */
#include "kernel/sync/counter.h"

u64 counter_sum_address(const u64 *percpu_variable)
{
    u64 sum = 0;

    for (unsigned i = 0; i < MAX_CPUS; i++) {
        const struct cpu *cpu = cpu_get(i);

        if (cpu)
            sum += READ_ONCE(*(const u64 *)((const char *)percpu_variable + cpu->percpu_delta));
    }
    return sum;
}
