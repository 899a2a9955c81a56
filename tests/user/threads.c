/*
 * Threads as the C library makes them: mutexes, condition variables, barriers, thread-local storage, cancellation, and
 * the futex calls below them. Prints nothing that depends on who is first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/user/under_init.h"

/* <linux/futex.h>, which musl does not bring along */
enum {
    FUTEX_WAIT = 0,
    FUTEX_WAKE = 1,
    FUTEX_PRIVATE = 128,
    FUTEX_CLOCK_REALTIME = 256,
    FUTEX_WAIT_BITSET = 9,
    FUTEX_WAIT_PRIVATE = 0 | FUTEX_PRIVATE,
    FUTEX_WAKE_PRIVATE = 1 | FUTEX_PRIVATE,
    FUTEX_CMP_REQUEUE_PRIVATE = 4 | FUTEX_PRIVATE,
    FUTEX_WAIT_BITSET_PRIVATE = 9 | FUTEX_PRIVATE,
    FUTEX_WAKE_BITSET_PRIVATE = 10 | FUTEX_PRIVATE,
};

#define THREADS 8
#define ROUNDS  500

static void show(const char *what, long value)
{
    printf("%s: %ld\n", what, value);
    fflush(stdout);
}

static void run(void *(*fn)(void *), int n, void **results)
{
    pthread_t threads[64];
    for (long i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, fn, (void *)i)) {
            printf("thread %ld could not be made\n", i);
            exit(1);
        }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], results ? &results[i] : NULL);
}

/* ---- Mutex ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *count(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        if (i % 50 == 0)
            sched_yield();
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void mutexes(void)
{
    void *results[THREADS];
    long sum = 0;
    run(count, THREADS, results);
    for (int i = 0; i < THREADS; i++)
        sum += (long)results[i];
    show("counted under a mutex", counter);
    show("sum of results", sum);
}

/* ---- Condition variables ---- */

static pthread_cond_t full = PTHREAD_COND_INITIALIZER, empty = PTHREAD_COND_INITIALIZER;
static long slot, slot_used, taken_sum;

static void *produce(void *arg)
{
    (void)arg;
    for (long i = 1; i <= ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (slot_used)
            pthread_cond_wait(&empty, &mutex);
        slot = i;
        slot_used = 1;
        pthread_cond_signal(&full);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *consume(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (!slot_used)
            pthread_cond_wait(&full, &mutex);
        taken_sum += slot;
        slot_used = 0;
        pthread_cond_signal(&empty);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int go, gone;

static void *wait_for_go(void *arg)
{
    pthread_mutex_lock(&mutex);
    while (!go)
        pthread_cond_wait(&full, &mutex);
    gone++;
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void conditions(void)
{
    pthread_t producer, consumer, waiters[THREADS];
    pthread_create(&producer, NULL, produce, NULL);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    show("sum of what was passed", taken_sum);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&waiters[i], NULL, wait_for_go, NULL);
    usleep(20000);
    pthread_mutex_lock(&mutex);
    go = 1;
    pthread_cond_broadcast(&full); /* requeues to the mutex */
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < THREADS; i++)
        pthread_join(waiters[i], NULL);
    show("woken by a broadcast", gone);

    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += 20000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&mutex);
    show("timed wait", pthread_cond_timedwait(&empty, &mutex, &deadline));
    pthread_mutex_unlock(&mutex);
}

/* ---- Barrier and thread-local storage ---- */

static pthread_barrier_t barrier;
static __thread long own = 100;
static atomic_long serial_threads, behind;

static void *pass_barriers(void *arg)
{
    own += (long)arg;
    for (int i = 0; i < 50; i++) {
        behind++;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            serial_threads++;
        if (behind < (i + 1) * THREADS)
            return (void *)-1l;
        own++;
        pthread_barrier_wait(&barrier);
    }
    return (void *)own;
}

static void barriers(void)
{
    void *results[THREADS];
    long sum = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    run(pass_barriers, THREADS, results);
    for (int i = 0; i < THREADS; i++)
        sum += (long)results[i];
    show("barriers passed", serial_threads);
    show("sum of thread-local values", sum);
    show("main's thread-local value", own);
}

static pthread_key_t key;
static atomic_long destroyed;

static void destroy(void *value)
{
    destroyed += (long)value;
}

static void *use_key(void *arg)
{
    pthread_setspecific(key, (void *)((long)arg + 1));
    return NULL;
}

static void keys(void)
{
    pthread_key_create(&key, destroy);
    run(use_key, THREADS, NULL);
    show("destructors of keys", destroyed);
}

/* ---- Cancellation ---- */

static atomic_long cleaned;
static sem_t never;

static void clean(void *arg)
{
    cleaned += (long)arg;
}

static void *sleep_for_ever(void *arg)
{
    pthread_cleanup_push(clean, (void *)((long)arg + 1));
    while (1)
        sem_wait(&never);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *spin_for_ever(void *arg)
{
    pthread_cleanup_push(clean, (void *)((long)arg + 1));
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (volatile long i = 0;; i++)
        ;
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancellation(void)
{
    pthread_t threads[THREADS];
    int cancelled = 0;
    void *result;
    sem_init(&never, 0, 0);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, i % 4 == 3 ? spin_for_ever : sleep_for_ever, (void *)i);
    usleep(20000);
    for (int i = 0; i < THREADS; i++)
        pthread_cancel(threads[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    show("cancelled", cancelled);
    show("clean-ups", cleaned);
}

/* ---- Many threads ---- */

static void *nothing(void *arg)
{
    return arg;
}

static void many(void)
{
    long made = 0;
    for (int i = 0; i < 20; i++) {
        run(nothing, 32, NULL);
        made += 32;
    }
    show("threads made and joined", made);
}

/* ---- Futex ---- */

static long futex(void *word, int op, unsigned value, const void *timeout, void *word2,
                  unsigned value3)
{
    long result = syscall(SYS_futex, word, op, value, timeout, word2, value3);
    return result < 0 ? -errno : result;
}

static unsigned words[2];
static atomic_int sleeping, awake;

static void *sleep_on_word(void *arg)
{
    sleeping++;
    futex(&words[0], FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 1u << (long)arg);
    awake++;
    return NULL;
}

static void wait_until(atomic_int *value, int wanted)
{
    for (int i = 0; i < 5000 && *value < wanted; i++)
        usleep(1000);
}

static void futexes(void)
{
    pthread_t threads[4];
    struct timespec moment = {0, 10000000};
    show("another value", futex(&words[0], FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
    show("timeout", futex(&words[0], FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0));
    show("timeout long ago",
         futex(&words[0], FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &moment, NULL, ~0u));
    show("not aligned", futex((char *)words + 1, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
    show("no memory", futex((void *)8, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
    show("no bits", futex(&words[0], FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0));
    show("nobody waits", futex(&words[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, sleep_on_word, (void *)i);
    wait_until(&sleeping, 4);
    usleep(50000);
    show("wake one by its bit",
         futex(&words[0], FUTEX_WAKE_BITSET_PRIVATE, 9, NULL, NULL, 1u << 2));
    wait_until(&awake, 1);
    show("compare and requeue, changed",
         futex(&words[0], FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)9l, &words[1], 5));
    show("compare and requeue",
         futex(&words[0], FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)9l, &words[1], 0));
    wait_until(&awake, 2);
    show("nobody is left there", futex(&words[0], FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0));
    show("they are here", futex(&words[1], FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    show("awake", awake);
}

/* A word that two processes share, at different addresses. */
static void shared_futex(void)
{
    unsigned *mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        unsigned *moved =
            mremap(mine, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)mine - 0x100000);
        if (moved == MAP_FAILED)
            moved = mine;
        moved[1] = 1;
        while (moved[0] == 0)
            futex(moved, FUTEX_WAIT, 0, NULL, NULL, 0);
        _exit(moved[0]);
    }
    while (*(volatile unsigned *)&mine[1] == 0)
        usleep(1000);
    usleep(20000);
    *(volatile unsigned *)&mine[0] = 5;
    show("woken in another process", futex(mine, FUTEX_WAKE, 1, NULL, NULL, 0));
    waitpid(pid, &status, 0);
    show("it saw", WEXITSTATUS(status));
}

static void *take_and_die(void *arg)
{
    pthread_mutex_lock(arg);
    return NULL;
}

static void robust(void)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t lock;
    pthread_t thread;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &attr);
    pthread_create(&thread, NULL, take_and_die, &lock);
    pthread_join(thread, NULL);
    show("the owner died", pthread_mutex_lock(&lock));
    pthread_mutex_consistent(&lock);
    pthread_mutex_unlock(&lock);
    show("and again", pthread_mutex_lock(&lock));
}

/* ---- Ends ---- */

static void *pause_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void *exit_with_5(void *arg)
{
    (void)arg;
    exit(5);
}

static volatile int *volatile nowhere = (int *)16;

static void *bad_access(void *arg)
{
    *nowhere = 1;
    return arg;
}

static void *outlive_main(void *arg)
{
    usleep(20000);
    syscall(SYS_exit, 9);
    return arg;
}

static int status_of(int which)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        for (int i = 0; i < 3; i++)
            pthread_create(&thread, NULL, pause_for_ever, NULL);
        if (which == 0)
            pthread_create(&thread, NULL, exit_with_5, NULL);
        if (which == 1)
            pthread_create(&thread, NULL, bad_access, NULL);
        if (which == 2)
            _exit(6);
        pause_for_ever(NULL);
    }
    if (which == 3) {
        usleep(20000);
        kill(pid, SIGKILL);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void ends(void)
{
    int status;
    show("exit in a thread", WEXITSTATUS(status_of(0)));
    show("bad access in a thread: signal", WTERMSIG(status_of(1)));
    show("_exit with threads", WEXITSTATUS(status_of(2)));
    show("killed with threads: signal", WTERMSIG(status_of(3)));
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, outlive_main, NULL);
        syscall(SYS_exit, 8);
    }
    waitpid(pid, &status, 0);
    show("the first thread ends before the last", WEXITSTATUS(status));
}

static void affinity(void)
{
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof(all), &all);
    int last = CPU_SETSIZE - 1, wrong = 0;
    while (!CPU_ISSET(last, &all))
        last--;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    show("setaffinity", sched_setaffinity(0, sizeof(one), &one));
    for (int i = 0; i < 200; i++) {
        wrong += sched_getcpu() != last;
        sched_yield();
    }
    show("on another CPU", wrong);
    CPU_ZERO(&one);
    show("no CPU", sched_setaffinity(0, sizeof(one), &one) < 0 ? errno : 0);
    sched_setaffinity(0, sizeof(all), &all);
}

int main(void)
{
    under_init();
    mutexes();
    conditions();
    barriers();
    keys();
    cancellation();
    many();
    futexes();
    shared_futex();
    robust();
    ends();
    affinity();
    return 0;
}
