#include "tests/user/mmfuzz/fuzz.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How far from an area addresses are still told by it, in pages: calls that place things may go
 * below the chosen area, and stacks grow. */
#define NEAR_PAGES 1024L

/* The end of the text lies in the shared memory too: children go on where parents stopped. */
struct log {
    size_t used;
    bool hides_presence;
    char text[];
};

static struct log *log_memory;
static size_t log_bytes;

void log_use(char *buffer, size_t bytes)
{
    log_memory = (struct log *)buffer;
    log_bytes = bytes - sizeof *log_memory;
    log_clear();
}

const char *log_text(void)
{
    return log_memory->text;
}

void log_clear(void)
{
    log_memory->used = 0;
    log_memory->hides_presence = false;
    log_memory->text[0] = '\0';
}

void log_hide_presence(void)
{
    log_memory->hides_presence = true;
}

bool log_hides_presence(void)
{
    return log_memory->hides_presence;
}

void log_add(const char *format, ...)
{
    size_t room = log_bytes - log_memory->used;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(log_memory->text + log_memory->used, room, format, args);
    va_end(args);
    if (length > 0)
        log_memory->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* Text without a format: printf is most of what a sequence costs. */
void log_text_add(const char *text)
{
    size_t length = strlen(text);

    if (length >= log_bytes - log_memory->used)
        return;
    memcpy(log_memory->text + log_memory->used, text, length + 1);
    log_memory->used += length;
}

static void add_number(unsigned long number, unsigned long base)
{
    char digits[24];
    size_t at = sizeof digits - 1;

    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    log_text_add(digits + at);
}

void log_number(long number)
{
    if (number < 0)
        log_text_add("-");
    add_number(number < 0 ? -(unsigned long)number : (unsigned long)number, 10);
}

void log_hex(unsigned long number)
{
    add_number(number, 16);
}

void log_address(const void *address)
{
    static const char *const letters[AREAS] = {"F", "C", "H"};

    for (int i = 0; i < AREAS; i++) {
        long bytes = (const char *)address - area_start[i];
        long page = bytes >> 12;

        if (page < -NEAR_PAGES || page > NEAR_PAGES)
            continue;
        log_text_add(letters[i]);
        log_number(page);
        if ((unsigned long)bytes % PAGE) {
            log_text_add("+");
            log_number((long)((unsigned long)bytes % PAGE));
        }
        return;
    }
    log_text_add(address ? "?" : "0");
}

void log_range(struct range range)
{
    log_address(range.start);
    if (range.length % PAGE) {
        log_text_add(", 0x");
        log_hex(range.length);
    } else {
        log_text_add(", ");
        log_number((long)range.length / (long)PAGE);
        log_text_add("p");
    }
}

static const char *error_name(int error)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {EPERM, "EPERM"},   {EBADF, "EBADF"},         {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"},
        {EACCES, "EACCES"}, {EFAULT, "EFAULT"},       {EBUSY, "EBUSY"},   {EEXIST, "EEXIST"},
        {ENODEV, "ENODEV"}, {EINVAL, "EINVAL"},       {EFBIG, "EFBIG"},   {ENOSPC, "ENOSPC"},
        {ESPIPE, "ESPIPE"}, {EOPNOTSUPP, "ENOTSUP"},  {ENOSYS, "ENOSYS"}, {EISDIR, "EISDIR"},
        {EIO, "EIO"},       {EOVERFLOW, "EOVERFLOW"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == error)
            return names[i].name;
    return NULL;
}

void log_result(long result, bool is_address)
{
    const char *name = result == -1 ? error_name(errno) : NULL;

    log_text_add(" = ");
    if (result == -1 && name)
        log_text_add(name);
    else if (result == -1)
        log_add("error %d", errno);
    else if (is_address)
        log_address((void *)result);
    else
        log_number(result);
    log_text_add("\n");
}

const char *file_name(enum file file)
{
    static const char *const names[FILES] = {"memfd",    "tmpfs", "disk",   "wronly",
                                             "readonly", "pipe",  "folder", "bad"};

    return names[file];
}
