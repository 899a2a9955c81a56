/*
 * mmfuzz: what its files share. A sequence runs in a process of its own, and writes what each step
 * did into a log in shared memory, with no address and no number in it that may differ between two
 * kernels that do the same.
 *
 *     main.c     arguments, one process for each sequence, hash of its log
 *     choose.c   random numbers; which range, file, protection a step takes
 *     log.c      the log: text, addresses in relation to the areas, errors
 *     touch.c    memory touched with the signals caught
 *     state.c    what is looked at: /proc/self/maps, contents of memory and files
 *     steps.c    the table of steps, and how a sequence runs
 *     steps_map.c, steps_advice.c, steps_file.c, steps_fork.c    the steps
 */
#ifndef TESTS_USER_MMFUZZ_FUZZ_H
#define TESTS_USER_MMFUZZ_FUZZ_H

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE        4096UL
#define AREA_PAGES  64UL
#define MAX_STEPS   36U
#define HUGE_LENGTH (~0UL)

/* The areas in which everything happens. */
enum area {
    AREA_FIXED,  /* at 64 GiB, nothing else near */
    AREA_CHOSEN, /* right below a page that stays: here the kernel puts what it may place */
    AREA_HEAP,   /* from the first program break up */
    AREAS
};

enum file {
    FILE_MEMFD,      /* memory, no name */
    FILE_TMPFS,      /* memory, in /tmp */
    FILE_DISK,       /* open for reading alone */
    FILE_WRITE_ONLY, /* the file in /tmp again */
    FILE_READ_ONLY,  /* and again */
    FILE_PIPE,
    FILE_FOLDER,
    FILE_BAD,
    FILES
};

struct range {
    char *start;
    unsigned long length;
};

/* Set once, before the first step of a sequence. */
extern char *area_start[AREAS];
extern int file_fd[FILES];

/* Memory locks of everything, now or to come: from then on amounts of locked memory are not told,
 * since the program's own size is in them. */
extern bool everything_locked;

/* ---- choose.c ---- */

/* Starts the numbers of step `step` of sequence `seed`: they depend on nothing else, so a step that
 * is left out changes no other. */
void choose_start(uint64_t seed, unsigned step);
uint64_t choose_number(void);
/* 0 to n - 1 */
unsigned long below(unsigned long n);
/* True in `percent` of 100 cases. */
bool chance(unsigned percent);
/* A range in one of the areas: mostly a few whole pages, sometimes bad. */
struct range choose_range(void);
/* Several pages of the fixed area. */
struct range choose_first(void);
/* The same as choose_range(), whole pages only, never bad. */
struct range choose_pages(void);
/* An address in one of the areas, at a page's start save for some. */
char *choose_address(void);
int choose_protection(void);
/* A file that can be mapped, most of the time. */
enum file choose_file(void);
/* A file whose contents may be changed. */
enum file choose_memory_file(void);

/* ---- log.c ---- */

void log_use(char *buffer, size_t bytes);
/* Text written so far, ended by a zero. */
const char *log_text(void);
void log_clear(void);
__attribute__((format(printf, 1, 2))) void log_add(const char *format, ...);
/* From now on mincore's answers are not told, in children and parents neither: see steps_file.c. */
void log_hide_presence(void);
bool log_hides_presence(void);
/* The same without printf. */
void log_text_add(const char *text);
void log_number(long number);
void log_hex(unsigned long number);
/* An address as an area's letter, page and offset: `F12`, `C-3+8`; others `?`. */
void log_address(const void *address);
void log_range(struct range range);
/* A result: a number, or the error's name; `is_address`: where in the areas it lies. */
void log_result(long result, bool is_address);
const char *file_name(enum file file);

/* ---- touch.c ---- */

struct touched {
    int signal; /* 0: the access went well */
    int code;
    void *address;
};

void touch_catch_signals(void);
struct touched touch_read(const char *address, uint64_t *value);
struct touched touch_write(char *address, uint64_t value);
/* Sum over a whole page. */
struct touched touch_sum_page(const char *page, uint64_t *sum);
void log_touched(struct touched touched, const char *address);

/* ---- state.c ---- */

/* Lines of /proc/self/maps that lie in the areas; unless `always` only if they changed since the last
 * time, and only sometimes: reading them costs more than most steps. */
void state_log_maps(bool always);
/* Each mapped page of the areas, with the sum of its bytes or the signal. */
void state_log_memory(void);
/* Sizes and contents of the files in memory. */
void state_log_files(void);
/* Reads the maps for state_is_disk_file(): whether a page of the file on disk is mapped there. */
void state_look(void);
bool state_is_disk_file(const char *address);
/* VmLck of /proc/self/status */
void state_log_locked(void);

/* ---- steps.c ---- */

/* Runs the steps of `seed` whose bit is set in `mask`, and logs the state at the end. Does not
 * return: the process ends. `disk_file` is a file with known contents. */
__attribute__((noreturn)) void sequence_run(uint64_t seed, uint64_t mask, const char *disk_file);
unsigned sequence_steps(uint64_t seed);
/* One step that is no fork, for the children of steps_fork.c. */
void step_run_simple(void);

/* ---- The steps: each makes its choices, one call or a few accesses, and logs both ---- */

/* A map of several pages at a fixed place, for the start. */
void step_mmap_first(void);
void step_mmap(void);
void step_munmap(void);
void step_mprotect(void);
void step_mremap(void);
void step_brk(void);
void step_madvise(void);
void step_mincore(void);
void step_msync(void);
void step_mlock(void);
void step_munlock(void);
void step_mlockall(void);
void step_fadvise(void);
void step_truncate(void);
void step_fallocate(void);
void step_file_read(void);
void step_file_write(void);
void step_vm_copy(void);
void step_read(void);
void step_write(void);
void step_fork_child(void);
void step_fork_on(void);

#endif
