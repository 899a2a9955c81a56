/*
 * Many threads at once: each has a stack, thread-local memory and a private page of its own, all
 * meet at a barrier, and all are joined.
 *
 * Use: swarm [THREADS]; default 500.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/user/under_init.h"

#define THREADS_DEFAULT 500
#define THREADS_MAX     4096
#define STACK_BYTES     (32 * 1024)
#define PAGE            4096

static pthread_barrier_t all_are_here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static atomic_int wrong;
static __thread long own;

static void *one(void *arg)
{
    long number = (long)arg;
    volatile char *page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    own = number;
    if (page != MAP_FAILED)
        page[0] = (char)number;
    pthread_barrier_wait(&all_are_here);
    pthread_mutex_lock(&lock);
    sum += own;
    pthread_mutex_unlock(&lock);
    if (page == MAP_FAILED || page[0] != (char)number || munmap((void *)page, PAGE))
        wrong++;
    return arg;
}

int main(int argc, char **argv)
{
    static pthread_t threads[THREADS_MAX];
    long n = argc > 1 ? atol(argv[1]) : THREADS_DEFAULT, joined = 0;
    pthread_attr_t attributes;

    under_init();
    if (n > THREADS_MAX)
        return 2;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_barrier_init(&all_are_here, NULL, n);
    for (long i = 0; i < n; i++)
        if (pthread_create(&threads[i], &attributes, one, (void *)i)) {
            printf("thread %ld could not be made\n", i);
            return 1;
        }
    for (long i = 0; i < n; i++) {
        void *result;

        joined += pthread_join(threads[i], &result) == 0 && result == (void *)i;
    }
    printf("joined: %ld\nsum: %ld\nwrong: %d\n", joined, sum, wrong);
    return joined == n && wrong == 0 ? 0 : 1;
}
