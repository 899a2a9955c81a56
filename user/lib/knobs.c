/*
 * Knobs: see knobs.h.
 */
#include "user/lib/knobs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "user/lib/text.h"

#define BLOCK_DEVICES       "/sys/block"
#define FAULTLINE_ONLY_FILE "/proc/readahead_log"

int knob_read(const char *path, char *value, size_t size)
{
    ssize_t got = text_read_file(path, value, size);

    value[got < 0 ? 0 : strcspn(value, "\n")] = '\0';
    return got < 0 ? (int)got : 0;
}

/* Remembers the knob's value, unless an earlier call did: the oldest one is put back. */
static int save(struct knobs *knobs, const char *path)
{
    size_t i = knobs->saved_count;
    int error;

    for (size_t k = 0; k < knobs->saved_count; k++)
        if (strcmp(knobs->saved[k].path, path) == 0)
            return 0;
    if (i == KNOBS_MAX)
        return -ENOMEM;
    error = knob_read(path, knobs->saved[i].value, sizeof(knobs->saved[i].value));
    if (error)
        return error;
    snprintf(knobs->saved[i].path, sizeof(knobs->saved[i].path), "%s", path);
    knobs->saved_count++;
    return 0;
}

int knobs_set(struct knobs *knobs, const char *path, const char *value)
{
    int error = save(knobs, path);

    if (!error)
        error = text_write_file(path, value);
    if (error)
        snprintf(knobs->failed_path, sizeof(knobs->failed_path), "%s", path);
    return error;
}

int knobs_set_readahead_kb(struct knobs *knobs, const char *value)
{
    DIR *devices = opendir(BLOCK_DEVICES);
    struct dirent *device;
    int error = devices ? -ENODEV : -errno;

    snprintf(knobs->failed_path, sizeof(knobs->failed_path), "%s", BLOCK_DEVICES);
    while (devices && (device = readdir(devices)) != NULL) {
        char path[KNOB_PATH_BYTES];
        int length =
            snprintf(path, sizeof(path), BLOCK_DEVICES "/%s/queue/read_ahead_kb", device->d_name);

        if (device->d_name[0] == '.' || length >= (int)sizeof(path) || access(path, F_OK) < 0)
            continue;
        error = knobs_set(knobs, path, value);
        if (error)
            break;
    }
    if (devices)
        closedir(devices);
    return error;
}

/* Faultline has one window for all devices that this program sets: the first one found tells it. */
static int read_first_device(char *value, size_t size)
{
    DIR *devices = opendir(BLOCK_DEVICES);
    struct dirent *device;
    int error = -ENOENT;

    while (devices && error && (device = readdir(devices)) != NULL) {
        char path[KNOB_PATH_BYTES];
        int length =
            snprintf(path, sizeof(path), BLOCK_DEVICES "/%s/queue/read_ahead_kb", device->d_name);

        if (device->d_name[0] != '.' && length < (int)sizeof(path))
            error = knob_read(path, value, size);
    }
    if (devices)
        closedir(devices);
    return error;
}

int knob_read_readahead_kb(unsigned long dev, char *value, size_t size)
{
    char path[KNOB_PATH_BYTES];

    snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(dev), minor(dev));
    if (knob_read(path, value, size) == 0)
        return 0;
    if (access(FAULTLINE_ONLY_FILE, F_OK) < 0)
        return -ENOENT;
    return read_first_device(value, size);
}

void knobs_restore(struct knobs *knobs)
{
    while (knobs->saved_count > 0) {
        size_t i = --knobs->saved_count;

        text_write_file(knobs->saved[i].path, knobs->saved[i].value);
    }
}
