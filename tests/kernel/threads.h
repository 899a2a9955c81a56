/*
 * Threads for tests: start some, wait until one sleeps, join them all.
 */
#ifndef TESTS_KERNEL_THREADS_H
#define TESTS_KERNEL_THREADS_H

#include "kernel/sched/task.h"

#define TEST_THREADS_MAX 64

struct test_threads {
    struct task *tasks[TEST_THREADS_MAX];
    unsigned n;
    unsigned failed; /* could not be created */
};

/* All fail softly: a thread that could not be made counts in what threads_join returns. Sleep. */
struct task *threads_add(struct test_threads *threads, void (*fn)(void *), void *arg);
struct task *threads_add_on(struct test_threads *threads, unsigned cpu, void (*fn)(void *),
                            void *arg);
/* As threads_add, and waits until the new thread sleeps (in the lock or queue that fn goes for). */
struct task *threads_add_and_wait_asleep(struct test_threads *threads, void (*fn)(void *),
                                         void *arg);
void threads_start_on_each_cpu(struct test_threads *threads, void (*fn)(void *), void *arg);
/* => sum of exit codes, plus 1000 for each thread that could not be created */
int threads_join(struct test_threads *threads);

/*
 * One turn of a loop that keeps a CPU busy. Under icount each PAUSE gives the turn to another CPU,
 * which costs the host far more than an instruction: a loop of nothing but PAUSE makes hardly any
 * virtual time.
 */
static inline void busy_moment(void)
{
    for (unsigned i = 0; i < 2000; i++)
        __asm__ volatile("");
    cpu_pause();
}

void threads_wait_asleep(const struct task *task);
/* What a sleeping task says it waits for. */
void threads_wait_reason(const struct task *task, char *text, size_t size);

#endif
