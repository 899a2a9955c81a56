/*
 * The first program of a Linux that tools/linux boots: mounts what programs expect, runs one, tells
 * its status, and ends the machine.
 *
 * tools/linux puts into the initial file system:
 *     /.run/words           "disk" or "", then the program and its arguments, each ended by a zero
 *     /.run/virtio_blk.ko   with "disk": the driver, which Debian's kernel has as a module
 *     /.run/files/...       with "disk": what is laid over the disk's root before the program runs
 *
 * The program has the second serial port as standard input, output and error, in raw mode. Its status
 * goes to QEMU's debug port as the line `exit N`, as Faultline tells it, so that no output can be
 * taken for it. What fails here is written to the kernel's log, and ends the machine without a status.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define WORDS              "/.run/words"
#define MODULE             "/.run/virtio_blk.ko"
#define FILES              "/.run/files"
#define DISK               "/.disk"
#define CONSOLE            "/dev/ttyS1"
#define MAX_WORDS          1024
#define DEBUG_PORT         0xe9
#define STATUS_CANNOT_RUN  127
#define SIGNAL_STATUS_BASE 128
#define COPY_FOLDERS_OPEN  16

static char *const environment[] = {"PATH=/bin:/sbin:/usr/bin:/tests",
                                    "HOME=/root",
                                    "USER=root",
                                    "LOGNAME=root",
                                    "SHELL=/bin/sh",
                                    "TERM=vt100",
                                    NULL};

static struct {
    const char *type, *where, *options;
    mode_t mode;
} const mounts[] = {
    {"proc", "/proc", NULL, 0555},
    {"sysfs", "/sys", NULL, 0555},
    {"tmpfs", "/tmp", NULL, 01777},
    {"tmpfs", "/dev/shm", NULL, 01777},
};

static char words[1 << 20];

__attribute__((format(printf, 1, 2))) static void log_line(const char *format, ...)
{
    int fd = open("/dev/kmsg", O_WRONLY);
    va_list args;

    if (fd < 0)
        return;
    va_start(args, format);
    vdprintf(fd, format, args);
    va_end(args);
    close(fd);
}

static void end_machine(void)
{
    sync();
    reboot(RB_POWER_OFF);
    _exit(0);
}

static void fail(const char *what, const char *name)
{
    log_line("<2>init: %s %s: %s\n", what, name, strerror(errno));
    end_machine();
}

static void tell_status(int status)
{
    char line[32];
    int length = snprintf(line, sizeof line, "exit %d\n", status);

    if (ioperm(DEBUG_PORT, 1, 1) != 0)
        fail("no access to port", "0xe9");
    for (int i = 0; i < length; i++)
        outb((unsigned char)line[i], DEBUG_PORT);
}

/* A folder that may be there already. */
static void make_folder(const char *path, mode_t mode)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        fail("cannot make", path);
}

static void copy_contents(const char *from, const char *to, mode_t mode)
{
    static char buffer[1 << 16];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, mode);
    ssize_t got;

    if (in < 0 || out < 0)
        fail("cannot copy", from);
    while ((got = read(in, buffer, sizeof buffer)) > 0)
        if (write(out, buffer, (size_t)got) != got)
            fail("cannot write", to);
    close(in);
    close(out);
}

static int copy_to_disk(const char *path, const struct stat *st, int type, struct FTW *at)
{
    char to[4096];
    char target[4096];

    (void)at;
    snprintf(to, sizeof to, DISK "%s", path + strlen(FILES));
    if (type == FTW_D) {
        make_folder(to, 0755);
    } else if (type == FTW_SL) {
        ssize_t length = readlink(path, target, sizeof target - 1);

        target[length < 0 ? 0 : length] = '\0';
        if (symlink(target, to) != 0 && errno != EEXIST)
            fail("cannot link", to);
    } else {
        copy_contents(path, to, st->st_mode & 07777);
    }
    return 0;
}

/* The disk becomes the root, with the files laid over it. QEMU throws away what is written. */
static void enter_disk(void)
{
    int module = open(MODULE, O_RDONLY | O_CLOEXEC);

    if (module < 0 || syscall(SYS_finit_module, module, "", 0) != 0)
        fail("cannot load", MODULE);
    make_folder(DISK, 0755);
    if (mount("/dev/vda", DISK, "ext2", 0, NULL) != 0)
        fail("cannot mount", "/dev/vda");
    if (nftw(FILES, copy_to_disk, COPY_FOLDERS_OPEN, FTW_PHYS) != 0)
        fail("cannot walk", FILES);
    make_folder(DISK "/dev", 0755);
    if (mount("/dev", DISK "/dev", NULL, MS_MOVE, NULL) != 0 || chdir(DISK) != 0 ||
        mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0)
        fail("cannot enter", DISK);
}

static void mount_all(void)
{
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        make_folder(mounts[i].where, mounts[i].mode);
        if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, mounts[i].options) != 0)
            fail("cannot mount", mounts[i].where);
    }
}

static void open_console(void)
{
    struct termios raw;
    int fd = open(CONSOLE, O_RDWR | O_NOCTTY);

    if (fd < 0 || tcgetattr(fd, &raw) != 0)
        fail("cannot open", CONSOLE);
    cfmakeraw(&raw);
    tcsetattr(fd, TCSANOW, &raw);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    if (fd > 2)
        close(fd);
}

/* Reads WORDS; the program's start in `argv`. Returns whether there is a disk. */
static bool read_words(char **argv)
{
    int fd = open(WORDS, O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, words, sizeof words - 1);
    char *word = words;
    int count = 0;

    if (length <= 0)
        fail("cannot read", WORDS);
    close(fd);
    for (word += strlen(word) + 1; word < words + length && count < MAX_WORDS;
         word += strlen(word) + 1)
        argv[count++] = word;
    argv[count] = NULL;
    return words[0] != '\0';
}

static int run(char **argv)
{
    int status;
    pid_t pid;
    pid_t child = fork();

    if (child == 0) {
        setsid();
        execvpe(argv[0], argv, environment);
        dprintf(2, "init: cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(STATUS_CANNOT_RUN);
    }
    while ((pid = wait(&status)) != child)
        if (pid < 0)
            fail("cannot wait for", argv[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_STATUS_BASE + WTERMSIG(status);
}

int main(void)
{
    static char *argv[MAX_WORDS + 1];
    int status;

    make_folder("/dev", 0755);
    if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) != 0)
        fail("cannot mount", "/dev");
    if (read_words(argv))
        enter_disk();
    mount_all();
    open_console();
    log_line("<2>init: runs %s\n", argv[0]);
    status = run(argv);
    tcdrain(1);
    tell_status(status);
    end_machine();
}
