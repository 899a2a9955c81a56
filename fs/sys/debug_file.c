/*
 * Files of commands: who may write, how a line is taken apart, and when what was set up is undone.
 */
#include "fs/sys/debug_file.h"

#include "fs/sys/sys.h"
#include "fs/textfs.h"
#include "kernel/log/log.h"
#include "kernel/sched/task.h"
#include "kernel/sync/build.h"
#include "lib/errno.h"
#include "lib/parse.h"
#include "lib/string.h"

#define LINE_BYTES 160

static LOCK_CLASS(writer_lock_class, "debug files");
static struct spinlock writer_lock =
    SPINLOCK_INIT(&writer_lock_class); /* all files' writer and process */

bool debug_number(const char *word, u64 *out)
{
    return parse_u64(word, PARSE_WHOLE_STRING, 0, out) == 0;
}

/* ---- A line ---- */

static int split(const char *line, struct debug_words *words)
{
    int result;

    words->n = 0;
    while (words->n < DEBUG_WORDS_MAX &&
           (result = cmdline_next_word(&line, words->word[words->n], DEBUG_WORD_BYTES)) != 0) {
        if (result < 0)
            return -EINVAL;
        words->n++;
    }
    return *line ? -EINVAL : 0;
}

static bool is_command(const struct debug_command *command, const char *word)
{
    size_t len = strlen(word);

    return len && memcmp(command->usage, word, len) == 0 &&
           (command->usage[len] == ' ' || command->usage[len] == '\0');
}

static void complain(const struct debug_file *file, const char *line,
                     const struct debug_command *command)
{
    if (command) {
        log_warn("%s: \"%s\": expected %s", file->name, line, command->usage);
        return;
    }
    log_warn("%s: \"%s\" is no command; expected one of", file->name, line);
    for (unsigned i = 0; i < file->n_commands; i++)
        log_warn("    %s", file->commands[i].usage);
}

static int run_line(const struct debug_file *file, const char *line)
{
    const struct debug_command *command = NULL;
    struct debug_words words;
    int error = split(line, &words);

    if (!error && words.n == 0)
        return 0;
    for (unsigned i = 0; i < file->n_commands && words.n; i++)
        if (is_command(&file->commands[i], words.word[0]))
            command = &file->commands[i];
    if (!command || words.n < command->min || words.n > command->max)
        error = -EINVAL;
    if (!error)
        error = command->run(&words);
    if (error == -EINVAL)
        complain(file, line, command);
    return error;
}

/* Lines up to the first that fails. */
static int store(void *arg, const char *text, size_t len)
{
    const char *end = text + len;
    char line[LINE_BYTES];
    int error = 0;

    for (const char *next; text < end && !error; text = next + 1) {
        next = text;
        while (next < end && *next != '\n')
            next++;
        if ((size_t)(next - text) >= sizeof(line))
            return -EINVAL;
        memcpy(line, text, next - text);
        line[next - text] = '\0';
        error = run_line(arg, line);
    }
    return error;
}

static size_t show(void *arg, char *buf, size_t size)
{
    const struct debug_file *file = arg;
    struct text_out out = {buf, size, 0};

    file->show(&out);
    return out.len;
}

/* ---- Who has it open ---- */

static struct debug_file *file_of(const struct file *file)
{
    return text_file_of(file->inode)->arg;
}

static int claim(struct debug_file *debug, const struct file *file)
{
    int error = 0;

    spin_lock(&writer_lock);
    if (debug->writer) {
        error = -EBUSY;
    } else {
        debug->writer = file;
        debug->process = task_current()->process;
    }
    spin_unlock(&writer_lock);
    return error;
}

static int debug_open(struct inode *inode, struct file *file)
{
    int error = file_ops_text.open(inode, file);

    if (error || !file->mapped.can_write)
        return error;
    error = claim(text_file_of(inode)->arg, file);
    if (error)
        file_ops_text.close(file);
    return error;
}

static void debug_close(struct file *file)
{
    struct debug_file *debug = file_of(file);
    bool is_writer;

    spin_lock(&writer_lock);
    is_writer = debug->writer == file;
    if (is_writer)
        debug->process = NULL;
    spin_unlock(&writer_lock);
    if (is_writer) {
        debug->undo();
        WRITE_ONCE(debug->writer, NULL); /* the next one begins with nothing set up */
    }
    file_ops_text.close(file);
}

static ssize_t debug_read(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    return file_ops_text.read(file, user_buf, len, pos);
}

static ssize_t debug_write(struct file *file, u64 user_buf, size_t len, u64 *pos)
{
    return file_ops_text.write(file, user_buf, len, pos);
}

static s64 debug_end(struct file *file)
{
    return file_ops_text.seek_end(file);
}

static const struct file_ops debug_ops = {
    .open = debug_open,
    .close = debug_close,
    .read = debug_read,
    .write = debug_write,
    .seek_end = debug_end,
    .is_seekable = true,
};

/* ---- The files ---- */

#define COMMANDS .show = show, .store = store, .ops = &debug_ops

static const struct text_file files[] = {
    {.path = "kernel/debug/faultline/gate", .arg = &debug_gate_file, COMMANDS},
    {.path = "kernel/debug/faultline/sync", .arg = &debug_sync_file, COMMANDS},
};

void sysfs_add_debug_files(struct super_block *sys)
{
    unsigned n = IS_DEBUG_BUILD ? ARRAY_SIZE(files) : 1; /* parking programs is for debug kernels */

    for (unsigned i = 0; i < n; i++)
        if (textfs_add(sys, &files[i]))
            panic("/sys/%s cannot be made", files[i].path);
}

void sysfs_process_ended(const void *process)
{
    for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
        struct debug_file *debug = files[i].arg;
        bool is_his;

        spin_lock(&writer_lock);
        is_his = debug->process == process;
        if (is_his)
            debug->process = NULL;
        spin_unlock(&writer_lock);
        if (is_his)
            debug->undo();
    }
}
