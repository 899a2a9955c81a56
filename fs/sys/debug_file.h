/*
 * Files below /sys/kernel/debug/faultline: a program writes commands, one a line, and reads how things stand.
 *
 * One program at a time has such a file open for writing. What it has set up is undone when the file is closed by the last who
 * has it open, or when the process that opened it ends, whichever comes first: nothing stays held for ever.
 */
#ifndef FS_SYS_DEBUG_FILE_H
#define FS_SYS_DEBUG_FILE_H

#include "fs/text_out.h"
#include "fs/vfs.h"

#define DEBUG_WORDS_MAX  5
#define DEBUG_WORD_BYTES 48

struct debug_words {
    char word[DEBUG_WORDS_MAX][DEBUG_WORD_BYTES]; /* the command, then its arguments */
    unsigned n;
};

struct debug_command {
    const char *
        usage; /* "hold DISK SECTOR ...": begins with the command; for the log where a line is none */
    unsigned min, max; /* words, with the command itself */
    /* => 0; -EINVAL: arguments that make no sense (the log then tells the usage); other negative errno. May sleep, killable. */
    int (*run)(const struct debug_words *words);
};

struct debug_file {
    const char *name; /* "gate" */
    const struct debug_command *commands;
    unsigned n_commands;
    void (*show)(struct text_out *out);
    void (*undo)(void); /* all that was set up. May be called with nothing set up. */
    const struct file
        *writer; /* who has it open for writing; NULL: nobody. Guarded by a lock of debug_file.c */
    const void *process; /* that opened it; only compared */
};

/* The argument is a number. => whether it is */
bool debug_number(const char *word, u64 *out);

extern struct debug_file debug_gate_file, debug_sync_file;

#endif
