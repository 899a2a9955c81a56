/*
 * /proc/stat and /proc/loadavg: what the CPUs and the tasks have been doing. Formats of proc(5).
 *
 * The load averages are not sampled every five seconds, which would wake a machine that has nothing
 * to do: each reading counts the tasks that want to run and lets that count stand for the time since
 * the reading before. Who reads often (top) sees what Linux would show.
 */
#include "fs/proc/proc.h"
#include "fs/text_out.h"
#include "kernel/cpu/clock.h"
#include "kernel/cpu/trap.h"
#include "kernel/sched/task.h"
#include "kernel/sync/spin.h"

#define NS_PER_TICK 10000000ul /* of the 100 Hz that times are counted in */
#define NS_PER_S    1000000000ul

/* ---- Tasks ---- */

struct task_counts {
    unsigned total, wanting; /* wanting: runs or waits for a CPU */
    u32 newest_pid;
};

static void count_task(struct task *task, void *ctx)
{
    struct task_counts *counts = ctx;
    u32 state = READ_ONCE(task->state);

    if (task->is_idle || state == TASK_DEAD)
        return;
    counts->total++;
    counts->wanting += state == TASK_RUNNABLE || state == TASK_RUNNING;
    counts->newest_pid = MAX(counts->newest_pid, task->pid);
}

static struct task_counts count_tasks(void)
{
    struct task_counts counts = {0};

    task_for_each(count_task, &counts);
    return counts;
}

/* ---- stat ---- */

struct cpu_times {
    u64 user, system, idle; /* ticks */
};

static struct cpu_times times_of(unsigned cpu)
{
    u64 user_ns = sched_user_ns(cpu), idle_ns = sched_idle_ns(cpu), all_ns = clock_ns();
    u64 known_ns = user_ns + idle_ns;

    return (struct cpu_times){
        .user = user_ns / NS_PER_TICK,
        .system = all_ns > known_ns ? (all_ns - known_ns) / NS_PER_TICK : 0,
        .idle = idle_ns / NS_PER_TICK,
    };
}

/* user nice system idle iowait irq softirq steal guest guest_nice */
static void put_cpu(struct text_out *out, struct cpu_times times)
{
    text_out_put(out, " %lu 0 %lu %lu 0 0 0 0 0 0\n", times.user, times.system, times.idle);
}

static void put_interrupts(struct text_out *out)
{
    u64 sum = 0;

    for (unsigned vector = IRQ_VECTOR_FIRST; vector <= IRQ_VECTOR_SPURIOUS; vector++)
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            sum += irq_count(vector, cpu);
    text_out_put(out, "intr %lu\n", sum);
}

static size_t show_stat(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct task_counts counts = count_tasks();
    struct cpu_times sum = {0};

    (void)arg;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        struct cpu_times one = times_of(cpu);

        sum.user += one.user;
        sum.system += one.system;
        sum.idle += one.idle;
    }
    text_out_put(&out, "cpu ");
    put_cpu(&out, sum);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        text_out_put(&out, "cpu%u", cpu);
        put_cpu(&out, times_of(cpu));
    }
    put_interrupts(&out);
    text_out_put(&out, "ctxt %lu\nbtime %lu\nprocesses %u\nprocs_running %u\nprocs_blocked 0\n",
                 sched_switch_count(), (clock_wall_ns() - clock_ns()) / NS_PER_S, counts.newest_pid,
                 counts.wanting);
    return out.len;
}

/* ---- loadavg ---- */

#define ONE       2048u /* fixed point */
#define STEP_NS   (5 * NS_PER_S)
#define STEPS_MAX 720 /* an hour: what was before counts no more */
#define PER_CENT  100

/* What is left of an average after 5 s: 2048 / e^(5/60), e^(5/300), e^(5/900). */
static const u32 kept[] = {1884, 2014, 2037};

LOCK_CLASS(load_lock_class, "load averages");
static struct spinlock load_lock = SPINLOCK_INIT(&load_lock_class);
static u64 averages[ARRAY_SIZE(kept)]; /* load_lock */
static u64 counted_until_ns;           /* load_lock */

static void age_averages_locked(unsigned wanting)
{
    u64 now = clock_ns(), steps = (now - counted_until_ns) / STEP_NS;

    counted_until_ns += steps * STEP_NS;
    for (u64 step = 0; step < MIN(steps, (u64)STEPS_MAX); step++)
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
            averages[i] = (averages[i] * kept[i] + (u64)wanting * ONE * (ONE - kept[i])) / ONE;
}

static size_t show_loadavg(void *arg, char *buf, size_t size)
{
    struct text_out out = {buf, size, 0};
    struct task_counts counts = count_tasks();
    u64 shown[ARRAY_SIZE(kept)];

    (void)arg;
    spin_lock(&load_lock);
    age_averages_locked(counts.wanting > 0 ? counts.wanting - 1 : 0); /* but for the reader */
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        shown[i] = averages[i] * PER_CENT / ONE;
    spin_unlock(&load_lock);
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        text_out_put(&out, "%lu.%02lu ", shown[i] / PER_CENT, shown[i] % PER_CENT);
    text_out_put(&out, "%u/%u %u\n", counts.wanting, counts.total, counts.newest_pid);
    return out.len;
}

static const struct text_file files[] = {
    {.path = "stat", .show = show_stat},
    {.path = "loadavg", .show = show_loadavg},
};

void proc_add_load_files(struct super_block *proc)
{
    proc_add_table(proc, files, ARRAY_SIZE(files));
}
