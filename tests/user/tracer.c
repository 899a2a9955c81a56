/*
 * The trace through its files, as any program of Linux uses them: a line for each question, the same there and here; lines of
 * the trace itself begin with "| ".
 *
 *     tracer FILE     FILE: on a disk, for events of the block layer
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT       "/sys/kernel/tracing"
#define TEXT_BYTES (4 << 20)
#define MARK       "tracing_mark_write: "

static char text[TEXT_BYTES], again[TEXT_BYTES];

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), ROOT "/%s", name);
    return path;
}

static const char *error_name(int error)
{
    switch (error) {
    case 0: return "ok";
    case EINVAL: return "EINVAL";
    case EBADF: return "EBADF";
    case EAGAIN: return "EAGAIN";
    case EFAULT: return "EFAULT";
    case EINTR: return "EINTR";
    case ENOENT: return "ENOENT";
    case ENOMEM: return "ENOMEM";
    default: return strerror(error);
    }
}

/* => 0 or errno */
static int put(const char *name, const char *value, int flags)
{
    int fd = open(path_of(name), O_WRONLY | flags), error = 0;

    if (fd < 0)
        return errno;
    if (*value && write(fd, value, strlen(value)) < 0)
        error = errno;
    close(fd);
    return error;
}

static void must_put(const char *name, const char *value)
{
    int error = put(name, value, 0);

    if (error)
        printf("%s <- %s: %s\n", name, value, error_name(error));
}

/* The whole file, `step` bytes a read, into buf. => its length */
static size_t get(const char *name, char *buf, size_t step)
{
    int fd = open(path_of(name), O_RDONLY);
    size_t used = 0;
    ssize_t n = 0;

    while (fd >= 0 && used + step < TEXT_BYTES && (n = read(fd, buf + used, step)) > 0)
        used += n;
    if (fd < 0 || n < 0)
        printf("%s: %s\n", name, error_name(errno));
    close(fd);
    buf[used] = '\0';
    return used;
}

static void show_first_line(const char *name)
{
    get(name, text, 4096);
    text[strcspn(text, "\n")] = '\0';
    printf("%s: %s\n", name, text);
}

static void clear(void)
{
    close(open(path_of("trace"), O_WRONLY | O_TRUNC));
}

static ssize_t mark(const char *words, size_t bytes)
{
    int fd = open(path_of("trace_marker"), O_WRONLY);
    ssize_t n = write(fd, words, bytes);
    int error = errno;

    close(fd);
    errno = error;
    return n;
}

static unsigned count(const char *needle)
{
    unsigned n = 0;

    get("trace", text, 65536);
    for (const char *at = text; (at = strstr(at, needle)) != NULL; at++)
        n++;
    return n;
}

/* Lines of the trace with this text. */
static void show_lines(const char *needle, unsigned max)
{
    get("trace", text, 65536);
    for (char *line = strtok(text, "\n"); line && max; line = strtok(NULL, "\n")) {
        if (strstr(line, needle)) {
            printf("| %s\n", line);
            max--;
        }
    }
}

/* ---- Marks ---- */

static void marks(void)
{
    static const size_t sizes[] = {1, 100, 1000, 4000};
    static char long_text[8192];

    clear();
    get("trace", text, 65536);
    printf("header:\n");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        printf("| %s\n", line);
    printf("mark: %zd\n", mark("first words", 11));
    printf("mark with a newline: %zd\n", mark("second words\n", 13));
    printf("mark of two lines: %zd\n", mark("third\nfourth\n", 13));
    show_lines("words", 2);
    printf("marks: %u, fourth: %u\n", count(MARK), count("\nfourth\n"));
    printf("marks again: %u\n", count(MARK));
    memset(long_text, 'x', sizeof(long_text));
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        clear();
        printf("mark of %zu: %zd", sizes[i], mark(long_text, sizes[i]));
        printf(", in the trace: %u\n", count("x"));
    }
    printf("mark of nothing: %zd\n", mark("", 0));
    printf("mark at a bad address: %s\n",
           mark((const char *)16, 10) < 0 ? error_name(errno) : "written");
    must_put("tracing_on", "0");
    printf("mark while tracing is off: %s\n", mark("unheard", 7) < 0 ? error_name(errno) : "ok");
    must_put("tracing_on", "1");
    clear();
    printf("marks after clearing: %u\n", count(MARK));
}

static void reading(void)
{
    size_t whole, pieces;
    int fd;

    clear();
    for (unsigned i = 0; i < 20; i++)
        mark("some words", 10);
    whole = get("trace", text, 65536);
    pieces = get("trace", again, 7);
    printf("in pieces of 7: %s\n",
           whole == pieces && memcmp(text, again, whole) == 0 ? "same" : "other");
    fd = open(path_of("trace"), O_RDONLY);
    printf("pread at 500: %s\n",
           pread(fd, again, 100, 500) == 100 && memcmp(text + 500, again, 100) == 0 ? "same"
                                                                                    : "other");
    read(fd, again, 1000);
    lseek(fd, 0, SEEK_SET);
    printf("after lseek: %s\n",
           read(fd, again, 300) == 300 && memcmp(text, again, 300) == 0 ? "same" : "other");
    close(fd);
    must_put("trace", "anything");
    printf("after a write without O_TRUNC: %u\n", count(MARK));
    printf("with O_TRUNC: %s\n", error_name(put("trace", "x", O_TRUNC)));
    printf("then: %u\n", count(MARK));
}

/* ---- trace_pipe ---- */

static void on_alarm(int number)
{
    (void)number;
}

static bool lines_are_marks(const char *lines, unsigned n)
{
    unsigned found = 0;

    for (const char *at = lines; (at = strstr(at, MARK)) != NULL; at++)
        found++;
    return found == n;
}

static void pipe_in_use(void)
{
    struct pollfd item = {.events = POLLIN};
    struct sigaction action = {.sa_handler = on_alarm};
    int fd, status;
    ssize_t n;

    clear();
    fd = item.fd = open(path_of("trace_pipe"), O_RDONLY | O_NONBLOCK);
    printf("pipe, empty: %s\n", read(fd, text, 100) < 0 ? error_name(errno) : "something");
    printf("poll, empty: %d\n", poll(&item, 1, 0));
    mark("a", 1);
    mark("b", 1);
    printf("poll: %d %#x\n", poll(&item, 1, -1), item.revents & POLLIN);
    n = read(fd, text, sizeof(text) - 1);
    text[n < 0 ? 0 : n] = '\0';
    printf("pipe: %s\n", lines_are_marks(text, 2) ? "both marks" : text);
    printf("pipe, then: %s\n", read(fd, text, 100) < 0 ? error_name(errno) : "something");
    printf("in trace, then: %u\n", count(MARK));
    close(fd);

    fd = item.fd = open(path_of("trace_pipe"), O_RDONLY);
    if (fork() == 0) {
        usleep(50000);
        mark("from a child", 12);
        _exit(0);
    }
    n = read(fd, text, sizeof(text) - 1);
    text[n < 0 ? 0 : n] = '\0';
    printf("pipe, waiting: %s\n", strstr(text, MARK "from a child\n") ? "the child's mark" : text);
    wait(&status);
    if (fork() == 0) {
        usleep(50000);
        mark("to poll", 7);
        _exit(0);
    }
    printf("poll, waiting: %d\n", poll(&item, 1, 20000));
    wait(&status);
    read(fd, text, sizeof(text));

    sigaction(SIGALRM, &action, NULL);
    ualarm(50000, 0);
    printf("pipe, a signal: %s\n", read(fd, text, 100) < 0 ? error_name(errno) : "something");
    must_put("tracing_on", "0");
    printf("pipe, tracing off: %zd\n", read(fd, text, 100));
    must_put("tracing_on", "1");
    close(fd);
}

/* ---- Events ---- */

static void touch_disk(const char *name)
{
    int fd = open(name, O_RDONLY);

    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    pread(fd, text, 4096, 40960);
    close(fd);
}

static void events(const char *name)
{
    must_put("events/enable", "0");
    clear();
    touch_disk(name);
    printf("off: %u\n", count("block_bio_queue: "));
    must_put("events/block/block_bio_queue/enable", "1");
    printf("states: ");
    fflush(stdout);
    show_first_line("events/block/block_bio_queue/enable");
    show_first_line("events/block/enable");
    show_first_line("events/block/block_rq_issue/enable");
    touch_disk(name);
    must_put("events/block/block_bio_queue/enable", "0");
    printf("seen: %s\n", count("block_bio_queue: ") ? "yes" : "no");
    show_lines("block_bio_queue: ", 1);
    printf("others: %u\n", count("block_rq"));

    clear();
    must_put("events/block/enable", "1");
    show_first_line("events/block/enable");
    must_put("events/sched/sched_switch/enable", "1");
    must_put("events/sched/sched_waking/enable", "1");
    must_put("events/filemap/mm_filemap_add_to_page_cache/enable", "1");
    must_put("events/filemap/mm_filemap_delete_from_page_cache/enable", "1");
    touch_disk(name);
    usleep(30000);
    must_put("events/enable", "0");
    show_first_line("events/block/enable");
    static const char *const names[] = {"block_rq_issue: ",
                                        "block_rq_complete: ",
                                        "sched_switch: ",
                                        "sched_waking: ",
                                        "mm_filemap_add_to_page_cache: ",
                                        "mm_filemap_delete_from_page_cache: "};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        show_lines(names[i], 1);

    printf("set_event: %s\n", error_name(put("set_event", "block:block_rq_issue\n", 0)));
    printf("set_event: %s\n", error_name(put("set_event", "sched_switch\n", 0)));
    get("set_event", text, 4096);
    printf("%s", text);
    printf("set_event, off: %s\n", error_name(put("set_event", "!sched:sched_switch\n", 0)));
    get("set_event", text, 4096);
    printf("%s", text);
    printf("set_event, O_TRUNC: %s\n", error_name(put("set_event", "", O_TRUNC)));
    printf("left: %zu\n", get("set_event", text, 4096));
}

static void formats(void)
{
    static const char *const names[] = {"exceptions/page_fault_user",
                                        "exceptions/page_fault_kernel",
                                        "filemap/mm_filemap_add_to_page_cache",
                                        "filemap/mm_filemap_delete_from_page_cache",
                                        "block/block_bio_queue",
                                        "sched/sched_switch",
                                        "sched/sched_waking"};
    char name[256];

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(name, sizeof(name), "events/%s/format", names[i]);
        get(name, text, 4096);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            if (strncmp(line, "ID: ", 4) != 0 && strncmp(line, "print fmt: ", 11) != 0)
                printf("%s\n", line);
    }
}

static void bad_input(void)
{
    static const struct {
        const char *name, *value;
    } tries[] = {
        {"tracing_on", "x"},
        {"tracing_on", "2"},
        {"tracing_on", "-1"},
        {"tracing_on", "1"},
        {"events/enable", "2"},
        {"events/enable", "x"},
        {"events/block/enable", "yes"},
        {"events/block/block_bio_queue/enable", "2"},
        {"events/block/block_bio_queue/enable", " 0"},
        {"buffer_size_kb", "0"},
        {"buffer_size_kb", "abc"},
        {"buffer_size_kb", "-5"},
        {"buffer_size_kb", "99999999"},
        {"buffer_size_kb", "64"},
        {"current_tracer", "nosuch"},
        {"current_tracer", "nop"},
        {"set_event", "nosuch:event"},
        {"set_event", "nosuch"},
        {"events/nosuch/enable", "1"},
    };

    for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
        printf("%s <- %s: %s\n", tries[i].name, tries[i].value,
               error_name(put(tries[i].name, tries[i].value, 0)));
    show_first_line("current_tracer");
    show_first_line("tracing_on");
    get("available_events", text, 65536);
    printf("available: %s\n", strstr(text, "block:block_bio_queue\n") ? "yes" : "no");
}

static void small_buffer(void)
{
    const char *at;

    must_put("buffer_size_kb", "8");
    clear();
    for (unsigned i = 0; i < 5000; i++)
        mark("a mark of a program that marks a lot", 36);
    get("trace", text, 65536);
    at = strstr(text, "entries-written: ");
    unsigned entries = 0, written = 0;
    if (at)
        sscanf(at, "entries-written: %u/%u", &entries, &written);
    printf("small buffer: %u written, %s\n", written,
           entries > 10 && entries < 2000 && entries == count(MARK) ? "the last are there" : text);
    must_put("buffer_size_kb", "1408");
}

/* Rings get a new size while every CPU writes into them; afterwards they work as before. */
static void resize_in_use(void)
{
    pid_t writers[2];
    char kb[16];

    for (unsigned i = 0; i < 2; i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            for (;;)
                mark("under way", 9);
    }
    for (unsigned i = 0; i < 20; i++) {
        snprintf(kb, sizeof(kb), "%u", 16 << i % 6);
        must_put("buffer_size_kb", kb);
        count(MARK);
    }
    for (unsigned i = 0; i < 2; i++) {
        kill(writers[i], SIGKILL);
        waitpid(writers[i], NULL, 0);
    }
    must_put("buffer_size_kb", "1408");
    clear();
    mark("after all", 9);
    printf("after resizing in use: %u\n", count(MARK "after all"));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    mount("nodev", ROOT, "tracefs", 0, NULL); /* where it is not mounted yet */
    if (argc != 2 || access(path_of("trace"), R_OK) != 0) {
        fprintf(stderr, "tracer FILE, and a kernel with tracefs\n");
        return 2;
    }
    marks();
    reading();
    pipe_in_use();
    events(argv[1]);
    formats();
    bad_input();
    small_buffer();
    resize_in_use();
    return 0;
}
