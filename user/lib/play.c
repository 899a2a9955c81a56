/*
 * Play: see play.h.
 */
#define _GNU_SOURCE
#include "user/lib/play.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/checksum.h"
#include "user/lib/iolog.h"
#include "user/lib/pretouch.h"
#include "user/lib/resident.h"

/* How long a drop waits for pages that are just being read: before a run, and in a step. */
#define DROP_PATIENCE_MS      500
#define DROP_STEP_PATIENCE_MS 20

struct player {
    const struct play_options *options;
    const struct steps *steps;
    struct play_result *result;
    int fd;
    uint64_t file_bytes;
    const unsigned char *map; /* NULL where nothing is mapped */
    uint64_t map_bytes;
    unsigned char *buffer; /* for reads; NULL without one */
    uint64_t buffer_bytes;
    uint64_t checksum;
    uint64_t touched_pages;
};

/* Static: too large for the stack, and made resident with the program. */
static struct iolog io_log;

static const struct {
    const char *name;
    int file_advice; /* for posix_fadvise, or -1 */
    int map_advice;  /* for madvise, or -1 */
} advices[] = {
    [ADVICE_NONE] = {"none", -1, -1},
    [ADVICE_FILE_SEQUENTIAL] = {"fseq", POSIX_FADV_SEQUENTIAL, -1},
    [ADVICE_FILE_RANDOM] = {"frand", POSIX_FADV_RANDOM, -1},
    [ADVICE_MAP_SEQUENTIAL] = {"mseq", -1, MADV_SEQUENTIAL},
    [ADVICE_MAP_RANDOM] = {"mrand", -1, MADV_RANDOM},
    [ADVICE_MAP_WILLNEED] = {"mwill", -1, MADV_WILLNEED},
};

bool play_parse_advice(const char *name, enum play_advice *advice)
{
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        if (strcmp(name, advices[i].name) == 0) {
            *advice = i;
            return true;
        }
    }
    return false;
}

static __attribute__((format(printf, 3, 4))) int fail(struct player *p, int error,
                                                      const char *format, ...)
{
    size_t size = sizeof(p->result->error);
    va_list arguments;
    int used;

    va_start(arguments, format);
    used = vsnprintf(p->result->error, size, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used < size)
        snprintf(p->result->error + used, size - (size_t)used, ": %s", strerror(-error));
    return error;
}

static int open_file(struct player *p)
{
    struct stat status;

    p->fd = open(p->options->path, O_RDONLY | O_CLOEXEC);
    if (p->fd < 0)
        return fail(p, -errno, "cannot open %s", p->options->path);
    if (fstat(p->fd, &status) < 0)
        return fail(p, -errno, "cannot stat %s", p->options->path);
    p->file_bytes = (uint64_t)status.st_size;
    if (S_ISBLK(status.st_mode)) {
        off_t end = lseek(p->fd, 0, SEEK_END);

        p->file_bytes = end < 0 ? 0 : (uint64_t)end;
    }
    p->result->dev = status.st_dev;
    p->result->undropped_pages = resident_drop(p->fd, 0, 0, DROP_PATIENCE_MS);
    return 0;
}

/* Maps the whole file, and as far behind its end as the steps go. */
static int map_file(struct player *p)
{
    uint64_t pages = (p->file_bytes + PLAY_PAGE_BYTES - 1) / PLAY_PAGE_BYTES;
    bool wants_map = p->steps->has_touches || advices[p->options->advice].map_advice >= 0;
    void *map;

    if (pages < p->steps->touched_end_page)
        pages = p->steps->touched_end_page;
    if (!wants_map || pages == 0)
        return 0;
    map = mmap(NULL, pages * PLAY_PAGE_BYTES, PROT_READ, MAP_SHARED, p->fd, 0);
    if (map == MAP_FAILED)
        return fail(p, -errno, "cannot map %llu pages of %s", (unsigned long long)pages,
                    p->options->path);
    p->map = map;
    p->map_bytes = pages * PLAY_PAGE_BYTES;
    return 0;
}

static int give_advice(struct player *p)
{
    int file_advice = advices[p->options->advice].file_advice;
    int map_advice = advices[p->options->advice].map_advice;
    int error = 0;

    if (file_advice >= 0)
        error = posix_fadvise(p->fd, 0, 0, file_advice);
    if (!error && map_advice >= 0 && p->map &&
        madvise((void *)p->map, p->map_bytes, map_advice) < 0)
        error = errno;
    return error ? fail(p, -error, "advice %s was refused", advices[p->options->advice].name) : 0;
}

static int make_buffer(struct player *p)
{
    void *buffer;

    if (p->steps->longest_read_pages == 0)
        return 0;
    p->buffer_bytes = (uint64_t)p->steps->longest_read_pages * PLAY_PAGE_BYTES;
    buffer =
        mmap(NULL, p->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return fail(p, -errno, "no memory for a read of %u pages", p->steps->longest_read_pages);
    p->buffer = buffer;
    return 0;
}

/* The load of the first byte is the access; the bytes that belong to the file go into the sum. */
static int touch_pages(struct player *p, const struct step *step)
{
    for (uint64_t page = step->page; page < step->page + step->length_pages; page++) {
        const unsigned char *at = p->map + page * PLAY_PAGE_BYTES;
        uint64_t offset = page * PLAY_PAGE_BYTES;
        uint64_t bytes = offset < p->file_bytes ? p->file_bytes - offset : 0;

        (void)*(const volatile unsigned char *)at;
        if (bytes > PLAY_PAGE_BYTES)
            bytes = PLAY_PAGE_BYTES;
        p->checksum = checksum_add(p->checksum, at, bytes);
        p->touched_pages++;
    }
    return 0;
}

static int read_pages(struct player *p, const struct step *step)
{
    size_t bytes = (size_t)step->length_pages * PLAY_PAGE_BYTES;
    ssize_t got = pread(p->fd, p->buffer, bytes, (off_t)(step->page * PLAY_PAGE_BYTES));

    if (got < 0)
        return fail(p, -errno, "cannot read page %llu", (unsigned long long)step->page);
    p->checksum = checksum_add(p->checksum, p->buffer, (size_t)got);
    p->touched_pages += ((uint64_t)got + PLAY_PAGE_BYTES - 1) / PLAY_PAGE_BYTES;
    return 0;
}

static int drop_step(struct player *p, const struct step *step)
{
    resident_drop(p->fd, step->page, step->length_pages, DROP_STEP_PATIENCE_MS);
    return 0;
}

static int willneed_step(struct player *p, const struct step *step)
{
    int error = posix_fadvise(p->fd, (off_t)(step->page * PLAY_PAGE_BYTES),
                              (off_t)step->length_pages * PLAY_PAGE_BYTES, POSIX_FADV_WILLNEED);

    return error ? fail(p, -error, "the announcement of page %llu was refused",
                        (unsigned long long)step->page)
                 : 0;
}

static int (*const step_actions[STEP_KINDS])(struct player *p, const struct step *step) = {
    [STEP_TOUCH] = touch_pages,      [STEP_READ] = read_pages, [STEP_MARKED_TOUCH] = touch_pages,
    [STEP_MARKED_READ] = read_pages, [STEP_DROP] = drop_step,  [STEP_WILLNEED] = willneed_step,
};

static int carry_out(struct player *p)
{
    struct step_cursor cursor;
    struct step step;
    int error = 0;

    steps_rewind(p->steps, &cursor);
    while (!error && steps_next(&cursor, &step)) {
        error = step_actions[step.kind](p, &step);
        if (p->options->io_prefix)
            iolog_take(&io_log, &step);
    }
    return error;
}

static int measure(struct player *p)
{
    struct play_result *result = p->result;
    int error, log_error = -ENOENT;

    if (p->options->io_prefix) {
        log_error = iolog_open(&io_log, p->fd, STDOUT_FILENO);
        if (log_error && log_error != -ENOENT)
            return fail(p, log_error, "cannot read the log of windows");
        fflush(stdout);
        iolog_begin(&io_log, p->options->io_prefix);
    }
    pretouch_program();
    pretouch_buffer(p->buffer, p->buffer_bytes);
    pretouch_buffer(result, sizeof(*result));

    stats_begin(&result->stats, p->fd);
    error = carry_out(p);
    stats_end(&result->stats);

    if (p->options->io_prefix)
        iolog_end(&io_log);
    result->has_io_log = log_error == 0;
    if (result->has_io_log) {
        result->io_windows = io_log.windows;
        result->io_window_pages = io_log.window_pages;
        result->io_lost = io_log.lost;
    }
    result->checksum = p->checksum;
    result->touched_pages = p->touched_pages;
    result->resident_pages = resident_pages(p->fd, 0, 0);
    return error;
}

int play_run(const struct play_options *options, const struct steps *steps,
             struct play_result *result)
{
    struct player p = {
        .options = options, .steps = steps, .result = result, .fd = -1, .checksum = CHECKSUM_START};
    int error;

    *result = (struct play_result){.resident_pages = -1, .undropped_pages = -1};
    error = open_file(&p);
    if (!error)
        error = map_file(&p);
    if (!error)
        error = give_advice(&p);
    if (!error)
        error = make_buffer(&p);
    if (!error)
        error = measure(&p);
    if (p.buffer)
        munmap(p.buffer, p.buffer_bytes);
    if (p.map)
        munmap((void *)p.map, p.map_bytes);
    stats_end_use(&result->stats);
    if (p.fd >= 0)
        close(p.fd);
    return error;
}
