/*
 * Messages through pipes between processes on two CPUs: each message goes there and comes back
 * changed. Prints what arrived.
 *
 * Use: messages [COUNT]; default 10000.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_DEFAULT 10000
#define WORDS         16 /* a message has 1 to 16 of them */

static unsigned length_of(unsigned number)
{
    return sizeof(unsigned) * (1 + number % WORDS);
}

/* The n-th of the CPUs that this program may use, or the last one where there are fewer. */
static int cpu_number(int n)
{
    cpu_set_t all;
    int found = -1;

    if (sched_getaffinity(0, sizeof(all), &all))
        return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE && n >= 0; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            found = cpu;
            n--;
        }
    return found;
}

static int pin(int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one);
}

static int receive(int fd, void *buf, unsigned len)
{
    unsigned done = 0;

    while (done < len) {
        ssize_t n = read(fd, (char *)buf + done, len - done);

        if (n <= 0)
            return 0;
        done += n;
    }
    return 1;
}

static _Noreturn void answer(int in, int out, int cpu, unsigned count)
{
    unsigned message[WORDS], away = 0;

    if (pin(cpu))
        _exit(2);
    for (unsigned i = 0; i < count; i++) {
        if (!receive(in, message, length_of(i)))
            _exit(3);
        away += sched_getcpu() != cpu;
        for (unsigned w = 0; w < length_of(i) / sizeof(*message); w++)
            message[w] = ~message[w];
        if (write(out, message, length_of(i)) != (ssize_t)length_of(i))
            _exit(4);
    }
    _exit(away ? 5 : 0);
}

static unsigned ask(int in, int out, unsigned count)
{
    unsigned message[WORDS], back[WORDS], right = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned words = length_of(i) / sizeof(*message), same = 0;

        for (unsigned w = 0; w < words; w++)
            message[w] = i * 2654435761u + w;
        if (write(out, message, length_of(i)) != (ssize_t)length_of(i) ||
            !receive(in, back, length_of(i)))
            break;
        for (unsigned w = 0; w < words; w++)
            same += back[w] == ~message[w];
        right += same == words;
    }
    return right;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : COUNT_DEFAULT;
    int there[2], back[2], status = -1, mine = cpu_number(0), other = cpu_number(1);
    char byte;
    pid_t child;

    if (pipe(there) || pipe(back))
        return 1;
    child = fork();
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        answer(there[0], back[1], other, count);
    }
    close(there[0]);
    close(back[1]);
    printf("pinned: %d\n", pin(mine));
    printf("right answers: %u\n", ask(back[0], there[1], count));
    close(there[1]);
    printf("then: %zd bytes\n", read(back[0], &byte, 1));
    waitpid(child, &status, 0);
    printf("status of the other one: %d\n", status);
    return 0;
}
