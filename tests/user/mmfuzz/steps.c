#include "tests/user/mmfuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIXED_START    ((char *)0x1000000000UL)
#define TMPFS_NAME     "/tmp/mmfuzz.file"
#define MEMFD_BYTES    (12 * PAGE + 100)
#define TMPFS_BYTES    (9 * PAGE)
#define FEWEST_STEPS   8
#define FIRST_MAPS     4  /* steps that map something, so that the others find something */
#define SEQUENCE_LIMIT 30 /* seconds: a kernel that hangs gives a log that differs */

char *area_start[AREAS];
int file_fd[FILES];

static const struct step {
    void (*run)(void);
    unsigned weight;
    bool is_fork;
} steps[] = {
    {step_mmap, 22, false},      {step_munmap, 7, false},    {step_mprotect, 10, false},
    {step_mremap, 11, false},    {step_brk, 4, false},       {step_madvise, 13, false},
    {step_mincore, 4, false},    {step_msync, 2, false},     {step_mlock, 4, false},
    {step_munlock, 2, false},    {step_mlockall, 1, false},  {step_fadvise, 1, false},
    {step_truncate, 4, false},   {step_fallocate, 4, false}, {step_file_read, 3, false},
    {step_file_write, 3, false}, {step_vm_copy, 3, false},   {step_read, 12, false},
    {step_write, 16, false},     {step_fork_child, 3, true}, {step_fork_on, 1, true},
};

static void step_run(bool with_forks)
{
    unsigned total = 0;
    unsigned long n;
    size_t i;

    for (i = 0; i < sizeof steps / sizeof *steps; i++)
        total += steps[i].is_fork && !with_forks ? 0 : steps[i].weight;
    n = below(total);
    for (i = 0; n >= steps[i].weight; i++)
        n -= steps[i].weight;
    steps[i].run();
}

void step_run_simple(void)
{
    step_run(false);
}

unsigned sequence_steps(uint64_t seed)
{
    choose_start(seed, MAX_STEPS);
    return FEWEST_STEPS + (unsigned)below(MAX_STEPS - FEWEST_STEPS + 1);
}

static void fill_file(int fd, unsigned long bytes)
{
    static uint64_t words[PAGE / sizeof(uint64_t)];

    for (unsigned long at = 0; at < bytes; at += PAGE) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            words[i] = at + i + 1;
        if (write(fd, words, bytes - at < PAGE ? bytes - at : PAGE) < 0)
            log_add("cannot fill a file\n");
    }
}

static void open_files(const char *disk_file)
{
    int pipe_fds[2];

    file_fd[FILE_MEMFD] = (int)syscall(SYS_memfd_create, "mmfuzz", 0);
    file_fd[FILE_TMPFS] = open(TMPFS_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    file_fd[FILE_DISK] = open(disk_file, O_RDONLY);
    file_fd[FILE_WRITE_ONLY] = open(TMPFS_NAME, O_WRONLY);
    file_fd[FILE_READ_ONLY] = open(TMPFS_NAME, O_RDONLY);
    file_fd[FILE_PIPE] = pipe(pipe_fds) == 0 ? pipe_fds[0] : -1;
    file_fd[FILE_FOLDER] = open("/proc", O_RDONLY | O_DIRECTORY);
    file_fd[FILE_BAD] = -1;
    fill_file(file_fd[FILE_MEMFD], MEMFD_BYTES);
    fill_file(file_fd[FILE_TMPFS], TMPFS_BYTES);
    if (file_fd[FILE_DISK] < 0)
        log_add("cannot open %s\n", disk_file);
}

/* The page above the chosen area maps a file, so that nothing merges with it. */
static void place_areas(void)
{
    unsigned long brk = (unsigned long)syscall(SYS_brk, 0L);
    char *page = mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, file_fd[FILE_READ_ONLY], 0);

    area_start[AREA_FIXED] = FIXED_START;
    area_start[AREA_CHOSEN] = page - AREA_PAGES * PAGE;
    area_start[AREA_HEAP] = (char *)((brk + PAGE - 1) & ~(PAGE - 1));
    syscall(SYS_brk, area_start[AREA_HEAP]);
}

void sequence_run(uint64_t seed, uint64_t mask, const char *disk_file)
{
    unsigned count = sequence_steps(seed);

    alarm(SEQUENCE_LIMIT);
    open_files(disk_file);
    place_areas();
    touch_catch_signals();
    for (unsigned i = 0; i < count; i++) {
        if (!(mask >> i & 1))
            continue;
        log_number((long)i);
        log_text_add(" ");
        choose_start(seed, i);
        if (i < FIRST_MAPS)
            step_mmap_first();
        else
            step_run(true);
    }
    log_add("end\n");
    state_log_maps(true);
    state_log_memory();
    state_log_files();
    _exit(0);
}
