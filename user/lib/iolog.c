/*
 * I/O log: see iolog.h.
 */
#include "user/lib/iolog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/lib/text.h"

#define LOG_PATH         "/proc/readahead_log"
#define RECORD_BYTES     64
#define RECORDS_PER_READ 64
/* ` @willneed` and three numbers of 20 digits with what is around them. */
#define ENTRY_TEXT_BYTES 96

int iolog_open(struct iolog *log, int file_fd, int out_fd)
{
    struct stat status;
    int error = 0;

    log->windows = log->window_pages = log->lost = 0;
    log->used = 0;
    log->out_fd = out_fd;
    log->log_fd = open(LOG_PATH, O_RDONLY | O_CLOEXEC);
    if (log->log_fd < 0)
        return -errno;
    if (fstat(file_fd, &status) < 0 || lseek(log->log_fd, 0, SEEK_END) < 0) {
        error = -errno;
        close(log->log_fd);
        log->log_fd = -1;
        return error;
    }
    log->dev = status.st_dev;
    log->ino = status.st_ino;
    return 0;
}

static void flush(struct iolog *log)
{
    text_write_all(log->out_fd, log->text, log->used);
    log->used = 0;
}

static void put_text(struct iolog *log, const char *text)
{
    size_t length = strlen(text);

    if (log->used + length > sizeof(log->text))
        flush(log);
    memcpy(log->text + log->used, text, length);
    log->used += length;
}

static const char *const step_labels[STEP_KINDS] = {
    [STEP_TOUCH] = "@",        [STEP_READ] = "@",     [STEP_MARKED_TOUCH] = "@M",
    [STEP_MARKED_READ] = "@R", [STEP_DROP] = "@drop", [STEP_WILLNEED] = "@willneed",
};

/* ` @LABELpage:(start,pages)` */
static void put_window(struct iolog *log, const struct step *step, uint64_t start, uint64_t pages)
{
    char *at;

    if (log->used + ENTRY_TEXT_BYTES > sizeof(log->text))
        flush(log);
    put_text(log, " ");
    put_text(log, step_labels[step->kind]);
    at = text_put_number(log->text + log->used, step->page);
    *at++ = ':';
    *at++ = '(';
    at = text_put_number(at, start);
    *at++ = ',';
    at = text_put_number(at, pages);
    *at++ = ')';
    log->used = (size_t)(at - log->text);
}

static bool take_character(const char **at, char wanted)
{
    if (**at != wanted)
        return false;
    (*at)++;
    return true;
}

/* Behind the spaces and the word that come next. */
static void skip_word(const char **at)
{
    while (**at == ' ')
        (*at)++;
    while (**at && **at != ' ')
        (*at)++;
}

/* One record, closed with a zero. */
static void take_record(struct iolog *log, const struct step *step, const char *at)
{
    uint64_t sequence, dev, ino, access, start, pages;
    bool good = text_take_number(&at, &sequence) && text_take_number(&at, &dev) &&
                take_character(&at, ':') && text_take_number(&at, &ino);

    skip_word(&at);
    good = good && text_take_number(&at, &access) && text_take_number(&at, &start) &&
           text_take_number(&at, &pages);
    if (!good) {
        log->lost++;
        return;
    }
    if (dev != log->dev || ino != log->ino)
        return;
    log->windows++;
    log->window_pages += pages;
    put_window(log, step, start, pages);
}

void iolog_begin(struct iolog *log, const char *prefix)
{
    put_text(log, prefix);
}

void iolog_take(struct iolog *log, const struct step *step)
{
    static char records[RECORDS_PER_READ * RECORD_BYTES];
    ssize_t got = sizeof(records);

    while (log->log_fd >= 0 && got == sizeof(records)) {
        got = read(log->log_fd, records, sizeof(records));
        if (got < 0 || got % RECORD_BYTES != 0) {
            log->lost++;
            return;
        }
        for (ssize_t at = 0; at < got; at += RECORD_BYTES) {
            records[at + RECORD_BYTES - 1] = '\0';
            take_record(log, step, records + at);
        }
    }
}

void iolog_end(struct iolog *log)
{
    if (log->log_fd < 0)
        put_text(log, " n/a (needs Faultline)");
    put_text(log, "\n");
    flush(log);
    if (log->log_fd >= 0)
        close(log->log_fd);
    log->log_fd = -1;
}
