/*
 * Files that change under their maps, and memory that is read, written and copied.
 */
#include "tests/user/mmfuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_PAGES     20UL
#define MAX_VECTORS    3UL
#define BUFFER_PAGES   8UL
#define MAX_FAULTS     3 /* a long hole is as good as a short one */
#define KEEP_SIZE      1
#define PUNCH_HOLE     2
#define COLLAPSE_RANGE 8
#define ZERO_RANGE     16

static char buffer[BUFFER_PAGES * PAGE] __attribute__((aligned(4096)));

/* Bytes within a file of FILE_PAGES, in pages two times out of three. */
static unsigned long choose_bytes(unsigned long pages)
{
    unsigned long bytes = below(pages + 1) * PAGE;

    return chance(66) ? bytes : bytes + below(PAGE);
}

/*
 * What was stored behind the end of a file in its last page: Linux 6.12 lets it show when a file in
 * memory grows, where POSIX asks for zeros. So it is cleared before a file may grow.
 */
static void clear_tails(void)
{
    for (enum file file = FILE_MEMFD; file <= FILE_TMPFS; file++) {
        struct stat status;
        char *page;

        if (fstat(file_fd[file], &status) != 0 || status.st_size % (long)PAGE == 0)
            continue;
        page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd[file],
                    status.st_size & ~(long)(PAGE - 1));
        if (page == MAP_FAILED)
            continue;
        memset(page + status.st_size % (long)PAGE, 0, PAGE - (size_t)status.st_size % PAGE);
        munmap(page, PAGE);
    }
}

void step_truncate(void)
{
    enum file file = choose_memory_file();
    unsigned long size = choose_bytes(FILE_PAGES);

    log_add("ftruncate(%s, %#lx)", file_name(file), size);
    clear_tails();
    log_result(syscall(SYS_ftruncate, (long)file_fd[file], size), false);
}

/* Pages that fallocate makes are no pages for mincore of Linux until they are touched. */
void step_fallocate(void)
{
    static const long modes[] = {0,
                                 KEEP_SIZE,
                                 PUNCH_HOLE | KEEP_SIZE,
                                 PUNCH_HOLE | KEEP_SIZE,
                                 PUNCH_HOLE | KEEP_SIZE,
                                 PUNCH_HOLE,
                                 ZERO_RANGE,
                                 COLLAPSE_RANGE};
    enum file file = choose_memory_file();
    long mode = modes[below(sizeof modes / sizeof *modes)];
    unsigned long offset = choose_bytes(FILE_PAGES), length = choose_bytes(6);

    log_add("fallocate(%s, %ld, %#lx, %#lx)", file_name(file), mode, offset, length);
    clear_tails();
    if (mode == 0 || mode == KEEP_SIZE)
        log_hide_presence();
    log_result(syscall(SYS_fallocate, (long)file_fd[file], mode, offset, length), false);
}

/* Into or out of memory in the areas, which may be bad anywhere in between. */
static void transfer(const char *name, long number)
{
    enum file file = chance(92) ? choose_file() : choose_memory_file();
    struct range range = choose_pages();
    unsigned long offset = choose_bytes(FILE_PAGES);

    if (file == FILE_PIPE)
        file = FILE_MEMFD;
    if (chance(40)) {
        range.start += below(PAGE);
        range.length -= below(range.length);
    }
    if (number == SYS_pwrite64 && range.length > 6 * PAGE)
        range.length = 6 * PAGE;
    log_add("%s(%s, ", name, file_name(file));
    log_range(range);
    log_add(", %#lx)", offset);
    if (number == SYS_pwrite64)
        clear_tails();
    log_result(syscall(number, (long)file_fd[file], range.start, range.length, offset), false);
}

void step_file_read(void)
{
    transfer("pread", SYS_pread64);
}

void step_file_write(void)
{
    transfer("pwrite", SYS_pwrite64);
}

static unsigned long fill_vectors(struct iovec *vectors)
{
    unsigned long count = 1 + below(MAX_VECTORS);

    for (unsigned long i = 0; i < count; i++) {
        struct range range = choose_pages();

        if (chance(40)) {
            range.start += below(PAGE);
            range.length -= below(range.length);
        }
        vectors[i] = (struct iovec){range.start, range.length};
        log_add(i ? "; " : "[");
        log_range(range);
    }
    log_add("]");
    return count;
}

/* Between our own memory and our own memory, seen from outside. */
void step_vm_copy(void)
{
    struct iovec remote[MAX_VECTORS], local[MAX_VECTORS];
    bool is_write = chance(50), by_buffer = chance(60);
    unsigned long remotes, locals = 1, filler = choose_number();
    long result;

    log_add(is_write ? "vm_writev(" : "vm_readv(");
    remotes = fill_vectors(remote);
    if (by_buffer) {
        local[0] = (struct iovec){buffer, below(sizeof buffer)};
        log_add(", buffer %#zx", local[0].iov_len);
    } else {
        log_add(", ");
        locals = fill_vectors(local);
    }
    for (size_t i = 0; i < sizeof buffer / sizeof filler; i++)
        memcpy(buffer + i * sizeof filler, &filler, sizeof filler);
    log_add(")");
    result = syscall(is_write ? SYS_process_vm_writev : SYS_process_vm_readv, (long)getpid(), local,
                     locals, remote, remotes, chance(98) ? 0L : 1L);
    if (by_buffer && !is_write) {
        uint64_t sum = 0;

        for (size_t i = 0; i < sizeof buffer / sizeof sum; i++)
            sum = sum * 31 + ((uint64_t *)buffer)[i];
        log_add(" %lx", sum);
    }
    log_result(result, false);
    state_log_maps(false);
}

/* ---- Accesses ---- */

static void touch_pages(bool is_write)
{
    struct range range = choose_pages();
    unsigned long pages = range.length / PAGE;
    unsigned long offset = below(PAGE / 64) * 64;
    bool backwards = chance(25);

    int faults = 0;

    log_add(is_write ? "write(" : "read(");
    log_range(range);
    log_add("%s, +%lu)", backwards ? " down" : "", offset);
    for (unsigned long i = 0; i < pages && faults < MAX_FAULTS; i++) {
        char *at = range.start + (backwards ? pages - 1 - i : i) * PAGE + offset;
        uint64_t value = choose_number();
        struct touched touched = is_write ? touch_write(at, value) : touch_read(at, &value);

        faults += touched.signal != 0;
        log_text_add(" ");
        if (touched.signal)
            log_touched(touched, at);
        else
            log_hex(is_write ? 0 : value & 0xffff);
    }
    log_add("\n");
    state_log_maps(false);
}

void step_read(void)
{
    touch_pages(false);
}

void step_write(void)
{
    touch_pages(true);
}
