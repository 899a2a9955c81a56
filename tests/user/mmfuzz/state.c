#include "tests/user/mmfuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPS_BYTES (64 * 1024)
#define MAX_LINES  512
/* What is looked at on both sides of an area: see NEAR_PAGES in log.c. */
#define BELOW_PAGES  1000UL
#define ABOVE_PAGES  1000UL
#define LOOK_PERCENT 30

struct line {
    unsigned long start, end, offset;
    char protection[5];
    char kind; /* which file, see kind_of */
};

static struct line lines[MAX_LINES];
static size_t line_count;
static uint64_t last_sum;

static char text[MAPS_BYTES];

static size_t read_whole(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got;

    while (fd >= 0 && length < sizeof text - 1 &&
           (got = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[length] = '\0';
    return length;
}

/* Names differ by the worker's number and the program's place; their kind does not. */
static char kind_of(const char *name)
{
    if (*name == '\0' || *name == '\n')
        return '-';
    if (strncmp(name, "/memfd:mmfuzz (deleted)\n", 24) == 0)
        return 'M';
    if (strncmp(name, "/tmp/mmfuzz", 11) == 0)
        return 'T';
    if (strncmp(name, "/data/", 6) == 0)
        return 'D';
    if (strncmp(name, "/dev/zero (deleted)\n", 20) == 0)
        return 'Z';
    return strncmp(name, "[heap]\n", 7) == 0 ? 'H' : '?';
}

/* Clips a line to the window around an area; false where nothing is left. */
static bool clip(struct line *line)
{
    for (int i = 0; i < AREAS; i++) {
        unsigned long base = (unsigned long)area_start[i];
        unsigned long low = i == AREA_HEAP ? base : base - BELOW_PAGES * PAGE;
        unsigned long high = base + (i == AREA_CHOSEN ? AREA_PAGES * PAGE : ABOVE_PAGES * PAGE);

        if (line->end <= low || line->start >= high)
            continue;
        if (line->start < low)
            line->start = low;
        if (line->end > high)
            line->end = high;
        return true;
    }
    return false;
}

static void parse_maps(void)
{
    char *at = text;

    line_count = 0;
    while (*at && line_count < MAX_LINES) {
        struct line *line = &lines[line_count];
        char *name;

        line->start = strtoul(at, &at, 16);
        line->end = strtoul(at + 1, &at, 16);
        memcpy(line->protection, at + 1, 4);
        line->offset = strtoul(at + 6, &at, 16);
        strtoul(at + 1, &at, 16);   /* device */
        strtoul(at + 1, &at, 16);   /* its lower number */
        strtoul(at + 1, &name, 10); /* inode */
        name += strspn(name, " ");
        line->kind = kind_of(name);
        at = name + strcspn(name, "\n");
        at += *at == '\n';
        line_count += clip(line);
    }
}

static uint64_t sum_lines(void)
{
    uint64_t sum = 1;

    for (size_t i = 0; i < line_count; i++) {
        const struct line *line = &lines[i];

        sum = sum * 31 + line->start;
        sum = sum * 31 + line->end;
        sum = sum * 31 + line->offset;
        sum = sum * 31 + *(const uint32_t *)line->protection;
        sum = sum * 31 + (unsigned char)line->kind;
    }
    return sum;
}

static void read_maps(void)
{
    read_whole("/proc/self/maps");
    parse_maps();
}

static void log_line(const struct line *line)
{
    char kind[] = {' ', line->kind, '\0'};

    log_text_add("    ");
    log_address((void *)line->start);
    log_text_add(" ");
    log_number((long)((line->end - line->start) / PAGE));
    log_text_add("p ");
    log_text_add(line->protection);
    log_text_add(kind);
    if (line->offset) {
        log_text_add(" @");
        log_hex(line->offset / PAGE);
    }
    log_text_add("\n");
}

void state_log_maps(bool always)
{
    uint64_t sum;

    if (!always && !chance(LOOK_PERCENT))
        return;
    read_maps();
    sum = sum_lines();
    if (sum == last_sum && !always)
        return;
    last_sum = sum;
    for (size_t i = 0; i < line_count; i++)
        log_line(&lines[i]);
}

void state_look(void)
{
    read_maps();
}

bool state_is_disk_file(const char *address)
{
    for (size_t i = 0; i < line_count; i++)
        if ((unsigned long)address >= lines[i].start && (unsigned long)address < lines[i].end)
            return lines[i].kind == 'D';
    return false;
}

void state_log_memory(void)
{
    read_maps();
    for (size_t i = 0; i < line_count; i++)
        for (char *page = (char *)lines[i].start; page < (char *)lines[i].end; page += PAGE) {
            uint64_t sum = 0;
            struct touched touched = touch_sum_page(page, &sum);

            log_text_add("  ");
            log_address(page);
            log_text_add(" ");
            if (touched.signal)
                log_touched(touched, page);
            else
                log_hex(sum);
            log_text_add("\n");
        }
}

void state_log_files(void)
{
    static uint64_t words[PAGE / sizeof(uint64_t)];

    for (enum file file = FILE_MEMFD; file <= FILE_TMPFS; file++) {
        struct stat status = {0};

        fstat(file_fd[file], &status);
        log_add("  %s has %ld bytes:", file_name(file), (long)status.st_size);
        for (off_t at = 0; at < status.st_size; at += (off_t)PAGE) {
            uint64_t sum = 0;

            memset(words, 0, sizeof words);
            if (pread(file_fd[file], words, sizeof words, at) < 0)
                log_add(" error");
            for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                sum = sum * 31 + words[i];
            log_text_add(" ");
            log_hex(sum);
        }
        log_add("\n");
    }
}

void state_log_locked(void)
{
    const char *line;

    if (everything_locked)
        return;
    read_whole("/proc/self/status");
    line = strstr(text, "VmLck:");
    log_add("    locked %ld KiB\n", line ? strtol(line + 6, NULL, 10) : -1);
}
