/*
 * From the disks to the first program: the root file system, the program named on the command line, and words for
 * everything that can stand in the way.
 */
#include "kernel/first_program.h"

#include "drivers/block/block.h"
#include "drivers/devices.h"
#include "kernel/cmdline.h"
#include "kernel/log/log.h"
#include "kernel/task/process.h"
#include "lib/errno.h"
#include "lib/error_text.h"
#include "lib/format.h"
#include "lib/string.h"

#define STATUS_CANNOT_RUN 127

/* No program can run: say why where a person will see it, and end with the shell's status for that. */
NORETURN static PRINTF_LIKE(1, 2) void give_up(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int len = format_v(text, sizeof(text) - 1, fmt, args);
    va_end(args);
    log_error("%s", text);
    len = MIN(len, (int)sizeof(text) - 2);
    text[len] = '\n';
    console_write(text, len + 1);
    machine_end(MACHINE_EXIT, STATUS_CANNOT_RUN);
}

static struct block_device *root_device(void)
{
    static const char *const candidates[] = {"ram0", "vda"};
    if (cmdline.root) {
        struct block_device *device = block_device_find(cmdline.root);
        if (!device)
            give_up("There is no disk \"%s\" (root=%s). Disks are called vda, vdb, ram0.",
                    cmdline.root, cmdline.root);
        return device;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(candidates); i++) {
        struct block_device *device = block_device_find(candidates[i]);
        if (device)
            return device;
    }
    give_up("There is no disk to take programs from: no usable virtio-blk disk (the log says what "
            "was found) and no RAM "
            "disk. Give one to tools/qemu by --disk IMG or --ramdisk IMG.");
}

int first_program_mount_root(struct block_device *device)
{
    struct super_block *root;
    int error = ext2_mount(device, &root);
    if (!error)
        error = vfs_mount("/", root);
    return error;
}

/* What runs where the command line names no program: init or a shell if the image has one, else the demonstration. */
static const char *default_program(void)
{
    static const char *const candidates[] = {"/sbin/init", "/bin/sh", "/bin/demo"};
    for (unsigned i = 0; i < ARRAY_SIZE(candidates); i++) {
        struct inode *inode;
        if (vfs_lookup(NULL, "/", candidates[i], true, &inode, NULL) == 0) {
            inode_put(inode);
            return candidates[i];
        }
    }
    give_up("The disk has none of /sbin/init, /bin/sh and /bin/demo, and the command line names no "
            "program (init=/path).");
}

/* What the number alone does not say. */
static const char *hint(const char *program, int error)
{
    struct inode *inode;
    if (program[0] != '/')
        return " It is named by its whole path, as in /bin/demo.";
    if (error != -ENOENT || vfs_lookup(NULL, "/", program, true, &inode, NULL))
        return "";
    inode_put(inode);
    return " The program is there, but not the interpreter that it names (the log says which).";
}

NORETURN static void run_program(void)
{
    static const char *const environment[] = {"PATH=/bin:/sbin:/usr/bin:/tests", "HOME=/",
                                              "TERM=vt100", NULL};
    const char *argv[CMDLINE_MAX_ARGS + 2] = {cmdline.init ? cmdline.init : default_program()};
    int error;
    memcpy(argv + 1, cmdline.args, cmdline.n_args * sizeof(*argv));
    struct process *init = process_spawn(argv[0], argv, environment, true, &error);
    if (!init)
        give_up("The program %s cannot be started: %s.%s", argv[0], error_text(error),
                hint(argv[0], error));
    int status = process_wait(init);
    log_info("%s ended with status %d", argv[0], status);
    machine_end(MACHINE_EXIT, status);
}

void first_program_run(void)
{
    struct block_device *device = root_device();
    int error = first_program_mount_root(device);
    if (error)
        give_up("The disk %s cannot be used: %s. It must hold an ext2 file system (tools/mkimage "
                "makes one).",
                device->name, error_text(error));
    run_program();
}
