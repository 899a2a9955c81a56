/*
 * Errors in words.
 */
#include "lib/error_text.h"

#include "lib/errno.h"
#include "lib/types.h"

static const struct {
    int error;
    const char *text;
} texts[] = {
    {ENOENT, "there is no such file"},
    {EIO, "the disk could not be read"},
    {E2BIG, "its arguments are too long"},
    {ENOEXEC, "it is not a program that runs here (the log says why)"},
    {ENOMEM, "memory has run out"},
    {EACCES, "it is not a plain file"},
    {EEXIST, "that is there already"},
    {ENOTDIR, "a part of its path is not a directory"},
    {EISDIR, "it is a directory"},
    {EINVAL, "no file system was found there"},
    {EROFS, "the file system is read-only"},
    {ENAMETOOLONG, "its name is too long"},
    {ELOOP, "its symbolic links go in circles"},
    {EOPNOTSUPP, "it needs a feature that is not supported (the log names it)"},
    {EUCLEAN, "the file system is damaged"},
};

const char *error_text(int error)
{
    if (error < 0)
        error = -error;
    for (unsigned i = 0; i < ARRAY_SIZE(texts); i++)
        if (texts[i].error == error)
            return texts[i].text;
    return "an unexpected error";
}
