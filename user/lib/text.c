/*
 * Text: see text.h.
 */
#include "user/lib/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

ssize_t text_read_file(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 0;

    if (fd < 0)
        return -errno;
    while (used + 1 < size) {
        got = read(fd, buffer + used, size - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    if (got < 0)
        got = -errno;
    buffer[used] = '\0';
    close(fd);
    return got < 0 ? got : (ssize_t)used;
}

int text_write_file(const char *path, const char *text)
{
    size_t length = strlen(text);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written;
    int error = 0;

    if (fd < 0)
        return -errno;
    written = write(fd, text, length);
    if (written < 0)
        error = -errno;
    else if ((size_t)written != length)
        error = -EIO;
    if (close(fd) < 0 && !error)
        error = -errno;
    return error;
}

int text_write_all(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, data, bytes);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        data += written;
        bytes -= (size_t)written;
    }
    return 0;
}

bool text_take_number(const char **at, uint64_t *value)
{
    const char *c = *at;
    uint64_t number = 0;

    while (*c == ' ' || *c == '\t')
        c++;
    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++) {
        uint64_t digit = (uint64_t)(*c - '0');

        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *at = c;
    *value = number;
    return true;
}

bool text_parse_number(const char *word, uint64_t limit, uint64_t *value)
{
    if (*word < '0' || *word > '9')
        return false;
    return text_take_number(&word, value) && *word == '\0' && *value <= limit;
}

char *text_put_number(char *at, uint64_t value)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}
