/*
 * Threads for tests. See threads.h.
 */
#include "tests/kernel/threads.h"

#include "kernel/sync/atomic.h"
#include "lib/format.h"

static struct task *add(struct test_threads *threads, void (*fn)(void *), void *arg, int cpu)
{
    struct task *task =
        threads->n < TEST_THREADS_MAX ? task_create("test thread", fn, arg, cpu) : NULL;

    if (task)
        threads->tasks[threads->n++] = task;
    else
        threads->failed++;
    return task;
}

struct task *threads_add(struct test_threads *threads, void (*fn)(void *), void *arg)
{
    return add(threads, fn, arg, -1);
}

struct task *threads_add_on(struct test_threads *threads, unsigned cpu, void (*fn)(void *),
                            void *arg)
{
    return add(threads, fn, arg, (int)cpu);
}

/* Asleep and off its CPU: whatever it queued for, it is queued. */
void threads_wait_asleep(const struct task *task)
{
    while (task && (atomic_load(&task->state) != TASK_SLEEPING || atomic_load(&task->on_cpu))) {
        cpu_pause();
        sched_yield();
    }
}

struct task *threads_add_and_wait_asleep(struct test_threads *threads, void (*fn)(void *),
                                         void *arg)
{
    struct task *task = threads_add(threads, fn, arg);

    threads_wait_asleep(task);
    return task;
}

void threads_start_on_each_cpu(struct test_threads *threads, void (*fn)(void *), void *arg)
{
    *threads = (struct test_threads){0};
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        add(threads, fn, arg, (int)cpu);
}

int threads_join(struct test_threads *threads)
{
    int sum = (int)threads->failed * 1000;

    for (unsigned i = 0; i < threads->n; i++)
        sum += task_join(threads->tasks[i]);
    threads->n = 0;
    threads->failed = 0;
    return sum;
}

void threads_wait_reason(const struct task *task, char *text, size_t size)
{
    const char *reason = READ_ONCE(task->wait_reason);

    format_to(text, size, reason ? reason : "", task->wait_args[0], task->wait_args[1]);
}
