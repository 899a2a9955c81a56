/*
 * mloop: threads that fault on a file, beside one that maps and unmaps memory in a loop.
 *
 * What the one must wait while the others wait for the disk is the question that vm.fault_retry answers. Each faulting
 * thread has a descriptor and a mapping of its own and touches pages in one of three orders:
 *
 *     random   anywhere in the file, by a generator that begins with the thread's number
 *     own      its own part of the file, a step at a time: nobody else's pages
 *     same     all threads the same pages, from page 0 on
 *
 * The loop maps a page of memory and unmaps it, and with --writer touch also stores to it in between. It ends when the
 * last faulting thread has ended. Its turns are timed one by one and kept in buckets, 32 to a power of two, so a
 * percentile is known to 3 % and nothing is allocated.
 *
 * With --scan other processes press on memory meanwhile.
 *
 * Exit status: 0; 1 where the run failed; 2 where the call was wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/lib/checksum.h"
#include "user/lib/pretouch.h"
#include "user/lib/resident.h"
#include "user/lib/text.h"

#define EXIT_USAGE  2
#define PAGE        4096ul
#define THREADS_MAX 64
#define STACK_BYTES (16 * 1024)
#define PATIENCE_MS 500
/* For each scanner: few enough that its page tables do not press, too. */
#define SCANNED_PAGES 16384ul
#define NS_PER_SECOND 1000000000ull

enum order { ORDER_RANDOM, ORDER_OWN, ORDER_SAME, ORDERS };
static const char *const order_names[ORDERS] = {"random", "own", "same"};

enum writer { WRITER_NONE, WRITER_BARE, WRITER_TOUCH, WRITERS };
static const char *const writer_names[WRITERS] = {"none", "bare", "touch"};

static struct {
    const char *path;
    const char *scanned;
    uint64_t threads, touches, step, scanners, scan_limit_s;
    int order, writer;
    bool sums; /* look at every byte of a page, as a program would that wants the data */
} options = {.threads = 4, .touches = 100, .step = 1, .scanners = 1};

static uint64_t file_pages;
static pthread_barrier_t start_line;
static atomic_uint still_faulting;

struct faulter {
    pthread_t thread;
    const unsigned char *map;
    uint64_t number;
    uint64_t checksum, end_ns;
};
static struct faulter faulters[THREADS_MAX];
static uint64_t scanners_over; /* that ended by --scan-limit */

/* Resident before the run, as all of the program. */
static char stacks[THREADS_MAX + 1][STACK_BYTES] __attribute__((aligned(4096)));

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "mloop: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* ---- The threads that fault ---- */

/* A step of a generator over 64 bits (xorshift): good enough to be nowhere near the last page. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t page_to_touch(const struct faulter *self, uint64_t turn, uint64_t *random)
{
    uint64_t part = file_pages / options.threads;

    switch (options.order) {
    case ORDER_RANDOM: return next_random(random) % file_pages;
    case ORDER_OWN: return self->number * part + turn * options.step % part;
    default: return turn * options.step % file_pages;
    }
}

static void *fault(void *argument)
{
    struct faulter *self = argument;
    uint64_t random = 0x9e3779b97f4a7c15ull * (self->number + 1);

    pthread_barrier_wait(&start_line);
    for (uint64_t turn = 0; turn < options.touches; turn++) {
        const unsigned char *at = self->map + page_to_touch(self, turn, &random) * PAGE;

        self->checksum += *(const volatile unsigned char *)at;
        if (options.sums)
            self->checksum = checksum_add(self->checksum, at, PAGE);
    }
    self->end_ns = now_ns();
    atomic_fetch_sub(&still_faulting, 1);
    return NULL;
}

/* ---- The thread that loops ---- */

#define SUB_BITS     5 /* 32 buckets to a power of two */
#define BUCKET_COUNT ((64 - SUB_BITS + 1) << SUB_BITS)

static struct {
    uint64_t loops, longest_ns;
    uint64_t buckets[BUCKET_COUNT];
} turns;

static unsigned int bucket_of(uint64_t ns)
{
    unsigned int log2 = 63 - (unsigned int)__builtin_clzll(ns | 1);

    if (log2 < SUB_BITS)
        return (unsigned int)ns;
    return ((log2 - SUB_BITS + 1) << SUB_BITS) |
           ((ns >> (log2 - SUB_BITS)) & ((1u << SUB_BITS) - 1));
}

/* The smallest number that belongs into a later bucket. */
static uint64_t bucket_end(unsigned int bucket)
{
    unsigned int shift = bucket >> SUB_BITS, sub = bucket & ((1u << SUB_BITS) - 1);

    return shift == 0 ? sub + 1ull : ((1ull << SUB_BITS) + sub + 1) << (shift - 1);
}

static uint64_t percentile_ns(unsigned int percent)
{
    uint64_t seen = 0, wanted = (turns.loops * percent + 99) / 100;

    for (unsigned int bucket = 0; bucket < BUCKET_COUNT; bucket++) {
        seen += turns.buckets[bucket];
        if (seen >= wanted && seen > 0)
            return bucket_end(bucket) < turns.longest_ns ? bucket_end(bucket) : turns.longest_ns;
    }
    return 0;
}

static void turn_once(void)
{
    char *area = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (area == MAP_FAILED)
        die("mmap: %s", strerror(errno));
    if (options.writer == WRITER_TOUCH)
        *(volatile char *)area = 1;
    munmap(area, PAGE);
}

static void *loop(void *argument)
{
    uint64_t begin, end;

    pthread_barrier_wait(&start_line);
    begin = now_ns();
    while (atomic_load(&still_faulting) > 0) {
        turn_once();
        end = now_ns();
        if (end - begin > turns.longest_ns)
            turns.longest_ns = end - begin;
        turns.buckets[bucket_of(end - begin)]++;
        turns.loops++;
        begin = end;
    }
    return argument;
}

/* ---- Counters ---- */

/* The system's: nobody else runs beside a measurement. */
#define COUNTERS "/proc/vmstat"
static const char *const shown[] = {"fault_", "ra_", "read_", "disk_"};

struct sample {
    struct rusage usage;
    uint64_t ns;
    char text[32768];
};
static struct sample before, after;

static void take_sample(struct sample *sample)
{
    if (text_read_file(COUNTERS, sample->text, sizeof(sample->text)) < 0)
        sample->text[0] = '\0'; /* Linux has the file, but other names */
    getrusage(RUSAGE_SELF, &sample->usage);
    sample->ns = now_ns();
}

/* The number behind `name ` at the beginning of a line; 0 where there is none. */
static uint64_t counter_in(const char *text, const char *name, size_t length)
{
    for (const char *line = text; *line; line = strchrnul(line, '\n'), line += *line == '\n') {
        const char *at = line + length;
        uint64_t value;

        if (strncmp(line, name, length) == 0 && *at == ' ' && text_take_number(&at, &value))
            return value;
    }
    return 0;
}

static bool is_shown(const char *name)
{
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
        if (strncmp(name, shown[i], strlen(shown[i])) == 0)
            return true;
    return false;
}

static void print_counters(void)
{
    for (const char *line = after.text; *line;
         line = strchrnul(line, '\n'), line += *line == '\n') {
        size_t length = strcspn(line, " \n");

        if (is_shown(line))
            printf("%.*s: %" PRIu64 "\n", (int)length, line,
                   counter_in(after.text, line, length) - counter_in(before.text, line, length));
    }
}

static uint64_t used_us(const struct timeval *from, const struct timeval *to)
{
    return (uint64_t)((to->tv_sec - from->tv_sec) * 1000000 + to->tv_usec - from->tv_usec);
}

static void print_turns(uint64_t begin_ns, uint64_t end_ns)
{
    printf("loops: %" PRIu64 "\n", turns.loops);
    printf("loops_per_1000_s: %" PRIu64 "\n",
           (uint64_t)((__uint128_t)turns.loops * 1000 * NS_PER_SECOND / (end_ns - begin_ns)));
    printf("turn_median_ns: %" PRIu64 "\n", percentile_ns(50));
    printf("turn_99_ns: %" PRIu64 "\n", percentile_ns(99));
    printf("turn_longest_ns: %" PRIu64 "\n", turns.longest_ns);
}

static void print_results(void)
{
    uint64_t first = UINT64_MAX, last = 0, checksum = 0;

    for (uint64_t i = 0; i < options.threads; i++) {
        first = faulters[i].end_ns < first ? faulters[i].end_ns : first;
        last = faulters[i].end_ns > last ? faulters[i].end_ns : last;
        checksum += faulters[i].checksum;
    }
    printf("touched: %" PRIu64 "\n", options.threads * options.touches);
    printf("first_end_us: %" PRIu64 "\n", (first - before.ns) / 1000);
    printf("last_end_us: %" PRIu64 "\n", (last - before.ns) / 1000);
    if (options.writer != WRITER_NONE)
        print_turns(before.ns, last);
    printf("checksum: %016" PRIx64 "\n", checksum);
    if (options.scanned)
        printf("scanners_over: %" PRIu64 "\n", scanners_over);
    print_counters();
    printf("user_us: %" PRIu64 "\n", used_us(&before.usage.ru_utime, &after.usage.ru_utime));
    printf("system_us: %" PRIu64 "\n", used_us(&before.usage.ru_stime, &after.usage.ru_stime));
    printf("real_us: %" PRIu64 "\n", (after.ns - before.ns) / 1000);
}

/* ---- The run ---- */

/* => the number of its whole pages, `wanted` or more */
static uint64_t open_file(struct faulter *self, const char *path, uint64_t wanted)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    uint64_t pages;

    if (fd < 0 || fstat(fd, &status) < 0)
        die("cannot open %s: %s", path, strerror(errno));
    pages = (uint64_t)status.st_size / PAGE;
    if (pages < wanted)
        die("%s has fewer than %" PRIu64 " whole pages", path, wanted);
    resident_drop(fd, 0, 0, PATIENCE_MS);
    self->map = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (self->map == MAP_FAILED)
        die("cannot map %s: %s", path, strerror(errno));
    close(fd);
    return pages;
}

static void start(pthread_t *thread, uint64_t stack, void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks[stack], STACK_BYTES);
    if (pthread_create(thread, &attributes, function, argument) != 0)
        die("no more threads");
    pthread_attr_destroy(&attributes);
}

/* A thread for each; `stack` is the first one's. */
static void start_all(struct faulter *all, uint64_t count, uint64_t stack,
                      void *(*function)(void *))
{
    for (uint64_t i = 0; i < count; i++)
        start(&all[i].thread, stack + i, function, &all[i]);
}

static void join_all(struct faulter *all, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        pthread_join(all[i].thread, NULL);
}

/*
 * Processes that press on memory: each goes through a part of the file page by page, over and over. They have address spaces
 * of their own, so they wait for no lock of the threads here.
 */
static pid_t start_scanner(uint64_t number)
{
    struct faulter scanner = {.number = number};
    pid_t pid = fork();

    if (pid < 0)
        die("no more processes");
    if (pid > 0)
        return pid;
    alarm((unsigned int)options.scan_limit_s);
    open_file(&scanner, options.scanned, options.scanners * SCANNED_PAGES);
    for (uint64_t page = number * SCANNED_PAGES;;)
        for (uint64_t turn = 0; turn < SCANNED_PAGES; turn++)
            (void)*(const volatile unsigned char *)(scanner.map + (page + turn) * PAGE);
}

/* => how many had reached their limit before */
static uint64_t stop_scanners(const pid_t *scanners)
{
    uint64_t n_over = 0;

    for (uint64_t i = 0; i < options.scanners; i++) {
        int status;

        kill(scanners[i], SIGKILL);
        waitpid(scanners[i], &status, 0);
        n_over += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    }
    return n_over;
}

static void run(void)
{
    uint64_t writers = options.writer != WRITER_NONE;
    struct faulter writer = {0};
    pid_t scanners[THREADS_MAX];

    if (!options.scanned)
        options.scanners = 0;
    for (uint64_t i = 0; i < options.threads; i++) {
        faulters[i].number = i;
        file_pages = open_file(&faulters[i], options.path, options.threads);
    }
    pthread_barrier_init(&start_line, NULL, (unsigned int)(options.threads + writers + 1));
    atomic_store(&still_faulting, (unsigned int)options.threads);
    pretouch_program();
    for (uint64_t i = 0; i < options.scanners; i++)
        scanners[i] = start_scanner(i);
    start_all(faulters, options.threads, 0, fault);
    start_all(&writer, writers, THREADS_MAX, loop);

    take_sample(&after); /* once before, so that the second time finds everything there */
    take_sample(&before);
    pthread_barrier_wait(&start_line);
    join_all(faulters, options.threads);
    join_all(&writer, writers);
    take_sample(&after);
    scanners_over = stop_scanners(scanners);
}

/* ---- The call ---- */

static const char help_text[] =
    "Usage: mloop [options] FILE\n"
    "\n"
    "Threads touch pages of FILE through mappings of their own, which drops its cached pages.\n"
    "Beside them one maps and unmaps a page of memory until the last of them has ended.\n"
    "\n"
    "  --threads N      how many fault (4, at most 64)\n"
    "  --touches N      pages that each of them touches (100)\n"
    "  --order ORDER    random: anywhere; own: each its part of the file; same: all from page 0\n"
    "  --step N         the distance of two touches for own and same (1)\n"
    "  --writer WRITER  none, bare: map and unmap; touch: map, store, unmap\n"
    "  --scan FILE      processes go through FILE meanwhile, over and over, 64 MiB each, so that\n"
    "                   memory is short\n"
    "  --scanners N     how many (1, at most 64)\n"
    "  --scan-limit S   they end after S seconds (never): where a policy starves the threads, "
    "this\n"
    "                   lets them end; scanners_over says how many had to\n"
    "  --sum            look at every byte of each page\n"
    "\n"
    "Prints lines `name: value`. *_end_us: when the first and the last thread had ended.\n"
    "turn_*: how long one turn of the loop took, to 3 %. fault_*, ra_*, read_*, disk_*: what\n"
    "moved in /proc/vmstat.\n";

static __attribute__((noreturn)) void usage_error(const char *message, const char *word)
{
    fprintf(stderr, "mloop: %s%s%s\nTry `mloop --help`.\n", message, word ? ": " : "",
            word ? word : "");
    exit(EXIT_USAGE);
}

static uint64_t take_number(const char *word, uint64_t limit)
{
    uint64_t value;

    if (!text_parse_number(word, limit, &value) || value == 0)
        usage_error("not a number from 1 on that fits", word);
    return value;
}

static int take_name(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    usage_error("there is no such order or writer", word);
}

static void take_arguments(int argc, char **argv)
{
    static const struct option names[] = {{"threads", required_argument, NULL, 't'},
                                          {"touches", required_argument, NULL, 'n'},
                                          {"order", required_argument, NULL, 'o'},
                                          {"step", required_argument, NULL, 's'},
                                          {"writer", required_argument, NULL, 'w'},
                                          {"scan", required_argument, NULL, 'f'},
                                          {"scanners", required_argument, NULL, 'm'},
                                          {"scan-limit", required_argument, NULL, 'l'},
                                          {"sum", no_argument, NULL, 'b'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    int option;

    while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        switch (option) {
        case 't': options.threads = take_number(optarg, THREADS_MAX); break;
        case 'n': options.touches = take_number(optarg, UINT32_MAX); break;
        case 'f': options.scanned = optarg; break;
        case 'm': options.scanners = take_number(optarg, THREADS_MAX); break;
        case 'l': options.scan_limit_s = take_number(optarg, UINT32_MAX); break;
        case 's': options.step = take_number(optarg, UINT32_MAX); break;
        case 'o': options.order = take_name(optarg, order_names, ORDERS); break;
        case 'w': options.writer = take_name(optarg, writer_names, WRITERS); break;
        case 'b': options.sums = true; break;
        case 'h': fputs(help_text, stdout); exit(EXIT_SUCCESS);
        default: usage_error("this call is not understood", NULL);
        }
    }
    if (argc - optind != 1)
        usage_error("there must be one FILE", NULL);
    options.path = argv[optind];
}

int main(int argc, char **argv)
{
    take_arguments(argc, argv);
    run();
    print_results();
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
