/*
 * Programs: what loading one refuses and how, what ends one, and that nothing of it stays behind.
 *
 * The files that are refused are made in memory: one good program, and one thing changed in it at a
 * time.
 */
#include "drivers/block/gate.h"
#include "kernel/cpu/trap.h"
#include "kernel/task/elf.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/programs.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define NO_ROOT             "no root file system with the test programs"
#define FAULTS_UNTIL_STEADY 300 /* more than starting takes: then hog does nothing but its loop */
#define IMAGE_BYTES         (3 * PAGE_SIZE)
#define TEXT_AT             0x400000ul
#define DATA_AT             0x402000ul
#define DATA_FILE_BYTES     0x800ul
#define DATA_MEMORY_BYTES   0x3000ul
#define ENTRY               (TEXT_AT + 0x100)

/* ---- A program in memory ---- */

static struct {
    u8 bytes[IMAGE_BYTES];
    u64 size;
    u64 bad_page; /* cannot be read */
    struct elf_header *header;
    struct elf_segment *segments;
    struct inode *inode;
    struct file *file;
    struct trap_frame frame;
} image;

static void read_image(struct page_cache *cache, struct page **pages, unsigned n, bool readahead)
{
    (void)cache, (void)readahead;
    for (unsigned i = 0; i < n; i++) {
        bool is_bad = pages[i]->index == image.bad_page;

        memcpy(page_virt(pages[i]), image.bytes + pages[i]->index * PAGE_SIZE, PAGE_SIZE);
        page_read_done(pages[i], is_bad ? -EIO : 0);
    }
}

static const struct page_cache_ops image_ops = {.read_pages = read_image};

static void fill_good_image(void)
{
    memset(image.bytes, 0x5a, sizeof(image.bytes));
    image.size = 2 * PAGE_SIZE + DATA_FILE_BYTES;
    image.bad_page = ~0ul;
    image.header = (struct elf_header *)image.bytes;
    image.segments = (struct elf_segment *)(image.header + 1);
    *image.header = (struct elf_header){
        .magic = {0x7f, 'E', 'L', 'F'},
        .class = ELF_CLASS_64,
        .data = ELF_DATA_LITTLE,
        .version = ELF_VERSION_CURRENT,
        .type = ELF_TYPE_EXEC,
        .machine = ELF_MACHINE_X86_64,
        .version2 = ELF_VERSION_CURRENT,
        .entry = ENTRY,
        .phoff = sizeof(struct elf_header),
        .ehsize = sizeof(struct elf_header),
        .phentsize = sizeof(struct elf_segment),
        .phnum = 2,
    };
    image.segments[0] = (struct elf_segment){.type = ELF_SEGMENT_LOAD,
                                             .flags = ELF_FLAG_READ | ELF_FLAG_EXEC,
                                             .vaddr = TEXT_AT,
                                             .filesz = 2 * PAGE_SIZE,
                                             .memsz = 2 * PAGE_SIZE,
                                             .align = PAGE_SIZE};
    image.segments[1] = (struct elf_segment){.type = ELF_SEGMENT_LOAD,
                                             .flags = ELF_FLAG_READ | ELF_FLAG_WRITE,
                                             .offset = 2 * PAGE_SIZE,
                                             .vaddr = DATA_AT,
                                             .filesz = DATA_FILE_BYTES,
                                             .memsz = DATA_MEMORY_BYTES,
                                             .align = PAGE_SIZE};
}

/* Opens the image as a file. => whether that went well */
static bool open_image(u32 type)
{
    int error;

    image.inode = inode_new_anonymous(NULL, type | 0755);
    if (!KEXPECT(image.inode != NULL))
        return false;
    image.inode->cache.ops = &image_ops;
    image.inode->cache.size_bytes = image.size;
    image.inode->file_ops = &file_ops_regular;
    image.file = file_open_inode(image.inode, O_RDONLY, "/image", &error);
    inode_put(image.inode);
    return KEXPECT(image.file != NULL);
}

static const char *const no_strings[] = {NULL};

/* Loads the image into the space of the test's thread. => as exec_load() */
static int load_with(const struct exec_arguments *arguments)
{
    int error;

    if (!open_image(S_IFREG))
        return 1;
    error = exec_load(image.file, arguments, &image.frame);
    file_put(image.file);
    return error;
}

static int load(void)
{
    return load_with(&(struct exec_arguments){.argv = no_strings, .envp = no_strings});
}

/* Loads into a space of its own, which is checked and ended afterwards. */
static int load_and_forget(void)
{
    int error;

    if (!test_mm_enter())
        return 1;
    error = load();
    test_mm_leave();
    return error;
}

KTEST(process, good_program_is_loaded_where_its_headers_say)
{
    char areas[160];

    fill_good_image();
    KASSERT(test_mm_enter() != NULL);
    KEXPECT_EQ(load(), 0);
    KEXPECT_EQ(image.frame.rip, ENTRY);
    KEXPECT_EQ(image.frame.rsp % 16, 0);
    test_mm_render(task_current()->mm, TEXT_AT, 16, areas, sizeof(areas));
    KEXPECT_STREQ(areas, "[0,2)r-xp+f0 [2,3)rw-p+f2 [3,5)rw-p0");
    KEXPECT_EQ(user_peek(TEXT_AT), 0x7f);
    KEXPECT_EQ(user_peek(DATA_AT + DATA_FILE_BYTES - 1), 0x5a);
    KEXPECT_EQ(user_peek(DATA_AT + DATA_FILE_BYTES),
               0); /* the file's last page, the program's own copy */
    KEXPECT_EQ(user_peek(DATA_AT + DATA_MEMORY_BYTES - 1), 0);
    KEXPECT_EQ(user_poke(TEXT_AT, 1), -EFAULT);
    KEXPECT_EQ(task_current()->mm->brk_start, DATA_AT + DATA_MEMORY_BYTES);
    test_mm_leave();
}

KTEST(process, position_independent_program_is_moved_as_a_whole)
{
    fill_good_image();
    image.header->type = ELF_TYPE_DYN;
    KASSERT(test_mm_enter() != NULL);
    KEXPECT_EQ(load(), 0);
    u64 bias = image.frame.rip - ENTRY;
    KEXPECT(bias != 0 && bias % PAGE_SIZE == 0);
    KEXPECT_EQ(user_peek(TEXT_AT + bias), 0x7f);
    KEXPECT_EQ(user_peek(DATA_AT + bias), 0x5a);
    KEXPECT_EQ(user_peek(TEXT_AT), -EFAULT);
    test_mm_leave();
}

/* One field of the good image, by its offset. */
struct change {
    const char *what;
    u32 offset, bytes;
    u64 value;
};

#define HEADER(field, value_) \
    offsetof(struct elf_header, field), sizeof(((struct elf_header *)0)->field), value_
#define SEGMENT(n, field, value_)                                  \
    sizeof(struct elf_header) + (n) * sizeof(struct elf_segment) + \
        offsetof(struct elf_segment, field),                       \
        sizeof(((struct elf_segment *)0)->field), value_

static const struct change hostile[] = {
    {"magic", HEADER(magic, 0x464c457e)},
    {"a 32-bit program", HEADER(class, 1)},
    {"big endian", HEADER(data, 2)},
    {"ELF version 0", HEADER(version, 0)},
    {"an object file", HEADER(type, 1)},
    {"a core dump", HEADER(type, 4)},
    {"i386", HEADER(machine, 3)},
    {"short program headers", HEADER(phentsize, 55)},
    {"program headers of size 0", HEADER(phentsize, 0)},
    {"no program headers", HEADER(phnum, 0)},
    {"more program headers than are looked at", HEADER(phnum, 65)},
    {"as many program headers as can be said", HEADER(phnum, 0xffff)},
    {"program headers behind the end", HEADER(phoff, 3 * PAGE_SIZE)},
    {"program headers over the end", HEADER(phoff, 2 * PAGE_SIZE + DATA_FILE_BYTES - 56)},
    {"program headers whose end wraps", HEADER(phoff, ~0ul - 20)},
    {"program headers at the sign bit", HEADER(phoff, 1ul << 63)},
    {"entry in the kernel", HEADER(entry, 0xffffffff80100000ul)},
    {"entry at the end of user memory", HEADER(entry, USER_ADDRESS_END)},
    {"larger in the file than in memory", SEGMENT(0, memsz, PAGE_SIZE)},
    {"as large as can be said", SEGMENT(1, memsz, ~0ul)},
    {"memory whose end wraps", SEGMENT(1, memsz, 0ul - DATA_AT)},
    {"memory over the end of user memory", SEGMENT(1, memsz, USER_ADDRESS_END - DATA_AT + 1)},
    {"address 0", SEGMENT(0, vaddr, 0)},
    {"address in the kernel", SEGMENT(0, vaddr, 0xffff800000000000ul)},
    {"address that is not canonical", SEGMENT(0, vaddr, 1ul << 63)},
    {"address at the end of user memory", SEGMENT(0, vaddr, USER_ADDRESS_END)},
    {"address not aligned as in the file", SEGMENT(0, vaddr, TEXT_AT + 1)},
    {"offset not aligned as in memory", SEGMENT(1, offset, 2 * PAGE_SIZE - 8)},
    {"offset behind the end", SEGMENT(1, offset, 3 * PAGE_SIZE)},
    {"offset whose end wraps", SEGMENT(1, offset, ~0ul - 0xffful)},
    {"overlapping segments", SEGMENT(1, vaddr, TEXT_AT + PAGE_SIZE)},
    {"memory over the stack", SEGMENT(1, vaddr, USER_ADDRESS_END - 4 * PAGE_SIZE)},
    {"an interpreter whose path has no end", SEGMENT(1, type, ELF_SEGMENT_INTERP)},
    {"read-only, and larger in memory", SEGMENT(1, flags, ELF_FLAG_READ)},
};

KTEST(process, damaged_programs_are_refused_with_enoexec)
{
    for (unsigned i = 0; i < ARRAY_SIZE(hostile); i++) {
        const struct change *change = &hostile[i];

        fill_good_image();
        memcpy(image.bytes + change->offset, &change->value, change->bytes);
        if (!KEXPECT_EQ(load_and_forget(), -ENOEXEC))
            ktest_note("%s", change->what);
    }
}

KTEST(process, files_that_end_too_early_are_refused)
{
    static const u64 sizes[] = {
        0, 1, 4, 63, 64, 64 + 56, 64 + 2 * 56 - 1, PAGE_SIZE, 2 * PAGE_SIZE};

    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        fill_good_image();
        image.size = sizes[i];
        if (!KEXPECT_EQ(load_and_forget(), -ENOEXEC))
            ktest_note("%lu bytes", sizes[i]);
    }
}

KTEST(process, program_with_nothing_to_load_is_refused)
{
    fill_good_image();
    image.segments[0].type = image.segments[1].type = 4; /* PT_NOTE */
    KEXPECT_EQ(load_and_forget(), -ENOEXEC);
    fill_good_image();
    image.segments[0].filesz = image.segments[0].memsz = 0;
    image.segments[1].filesz = image.segments[1].memsz = 0;
    KEXPECT_EQ(load_and_forget(), -ENOEXEC);
}

KTEST(process, unreadable_program_is_eio)
{
    fill_good_image();
    image.bad_page = 0;
    KEXPECT_EQ(load_and_forget(), -EIO);
    fill_good_image();
    image.bad_page = 2; /* the page whose end must be cleared */
    KEXPECT_EQ(load_and_forget(), -EIO);
}

KTEST(process, what_is_no_regular_file_is_eacces)
{
    fill_good_image();
    KASSERT(test_mm_enter() != NULL);
    if (open_image(S_IFIFO)) {
        KEXPECT_EQ(exec_load(image.file,
                             &(struct exec_arguments){.argv = no_strings, .envp = no_strings},
                             &image.frame),
                   -EACCES);
        file_put(image.file);
    }
    test_mm_leave();
}

/* ---- Arguments ---- */

#define STRINGS_LIMIT \
    (2ul              \
     << 20) /* argument and environment strings with their pointers: a quarter of the stack's limit */
#define LONG_STRING      (64ul * 1024) /* of one string with its NUL and its pointer */
#define LONG_STRINGS_MAX (STRINGS_LIMIT / LONG_STRING + 2)

static u64 user_word(u64 addr)
{
    u64 word = ~0ul;

    KEXPECT_EQ(copy_from_user(&word, addr, sizeof(word)), 0);
    return word;
}

static void expect_user_string(u64 addr, const char *expected)
{
    char text[64];

    KEXPECT(copy_string_from_user(text, addr, sizeof(text)) >= 0);
    KEXPECT_STREQ(text, expected);
}

KTEST(process, stack_holds_count_arguments_and_environment)
{
    const char *argv[] = {"first", "", "third one", NULL}, *envp[] = {"A=1", "B=2", NULL};
    u64 sp;

    fill_good_image();
    KASSERT(test_mm_enter() != NULL);
    KEXPECT_EQ(load_with(&(struct exec_arguments){3, 2, argv, envp, NULL}), 0);
    sp = image.frame.rsp;
    KEXPECT_EQ(user_word(sp), 3);
    for (unsigned i = 0; i < 3; i++)
        expect_user_string(user_word(sp + 8 + 8 * i), argv[i]);
    KEXPECT_EQ(user_word(sp + 32), 0);
    for (unsigned i = 0; i < 2; i++)
        expect_user_string(user_word(sp + 40 + 8 * i), envp[i]);
    KEXPECT_EQ(user_word(sp + 56), 0);
    test_mm_leave();
}

static char long_text[LONG_STRING - sizeof(u64)];

/* Strings that count so many bytes together, long ones first; a shorter one is the end of the long one. => how many */
static unsigned make_strings(const char **strings, u64 bytes)
{
    unsigned n = 0;
    memset(long_text, 'x', sizeof(long_text) - 1);
    for (; bytes >= 2 * LONG_STRING; bytes -= LONG_STRING)
        strings[n++] = long_text;
    u64 half = bytes / 2;
    strings[n++] = long_text + LONG_STRING - half;
    strings[n++] = long_text + LONG_STRING - (bytes - half);
    strings[n] = NULL;
    return n;
}

/* Loads with arguments, or with an environment, that count so many bytes. */
static int load_with_bytes(u64 bytes, bool as_environment)
{
    static const char *strings[LONG_STRINGS_MAX + 1];
    unsigned n = make_strings(strings, bytes);
    struct exec_arguments arguments = {as_environment ? 0 : n, as_environment ? n : 0,
                                       as_environment ? no_strings : strings,
                                       as_environment ? strings : no_strings, NULL};
    if (!KEXPECT(test_mm_enter() != NULL))
        return 1;
    int error = load_with(&arguments);
    if (!error)
        KEXPECT_EQ(user_word(image.frame.rsp), arguments.argc);
    test_mm_leave();
    return error;
}

KTEST(process, arguments_and_environment_beyond_the_limit_are_e2big)
{
    fill_good_image();
    KEXPECT_EQ(load_with_bytes(STRINGS_LIMIT + 1, false), -E2BIG);
    KEXPECT_EQ(load_with_bytes(STRINGS_LIMIT + 1, true), -E2BIG);
    KEXPECT_EQ(load_with_bytes(STRINGS_LIMIT, true), 0);
    KEXPECT_EQ(load_with_bytes(STRINGS_LIMIT / 2, false), 0);
}

KTEST(process, many_short_arguments_count_with_their_pointers)
{
    /* Long ones up to the last 128 KiB, then "x", NUL, pointer. */
    const u64 n_long = STRINGS_LIMIT / LONG_STRING - 2;
    const u64 n = n_long + 2 * LONG_STRING / (2 + sizeof(u64)) + 1;
    const char **argv = kmalloc((n + 1) * sizeof(*argv));

    KASSERT(argv != NULL);
    memset(long_text, 'x', sizeof(long_text) - 1);
    for (u64 i = 0; i < n; i++)
        argv[i] = i < n_long ? long_text : "x";
    argv[n] = NULL;
    fill_good_image();
    if (test_mm_enter()) {
        KEXPECT_EQ(load_with(&(struct exec_arguments){n, 0, argv, no_strings, NULL}), -E2BIG);
        test_mm_leave();
    }
    argv[n - 1] = NULL;
    if (test_mm_enter()) {
        KEXPECT_EQ(load_with(&(struct exec_arguments){n - 1, 0, argv, no_strings, NULL}), 0);
        KEXPECT_EQ(user_word(image.frame.rsp), n - 1);
        expect_user_string(user_word(image.frame.rsp + 8 * (n - 1)), "x");
        KEXPECT_EQ(user_word(image.frame.rsp + 8 * n), 0);
        test_mm_leave();
    }
    kfree(argv);
}

/* ---- Programs of the root file system ---- */

static int run(const char *path, const char *a, const char *b)
{
    int error;
    struct process *process = program_start(path, a, b, NULL, false, &error);

    if (!process)
        return error;
    int status = program_end(process);
    process_put(process);
    return status;
}

KTEST(process, program_leaves_no_frame_and_no_object_behind)
{
    u64 frames, objects;

    if (!program_exists("/tests/hog"))
        KTEST_SKIP(NO_ROOT);
    KEXPECT_EQ(run("/tests/hog", NULL, NULL),
               2); /* what is read once and stays: its file, the path to it */
    frames = program_frames();
    objects = program_objects();
    for (unsigned i = 0; i < 5; i++)
        KEXPECT_EQ(run("/tests/hog", NULL, NULL), 2);
    KEXPECT_EQ(program_frames(), frames);
    KEXPECT_EQ(program_objects(), objects);
}

KTEST(process, program_that_cannot_be_started_leaves_nothing_behind)
{
    u64 frames = 0, objects = 0;

    if (!program_exists("/tests/hog"))
        KTEST_SKIP(NO_ROOT);
    for (unsigned i = 0; i < 2; i++) { /* the first time fills caches */
        frames = program_frames();
        objects = program_objects();
        KEXPECT_EQ(run("/tests/no-such-program", NULL, NULL), -ENOENT);
        KEXPECT_EQ(run("/tests/hog/more", NULL, NULL), -ENOTDIR);
        KEXPECT_EQ(run("/tests", NULL, NULL), -EACCES);
        KEXPECT_EQ(run("/etc/hostname", NULL, NULL), -ENOEXEC);
    }
    KEXPECT_EQ(program_objects(), objects);
    KEXPECT_EQ(program_frames(), frames);
}

KTEST(process, status_is_the_low_eight_bits)
{
    if (!program_exists("/tests/hog"))
        KTEST_SKIP(NO_ROOT);
    KEXPECT_EQ(run("/tests/hog", "exit", "7"), 7);
    KEXPECT_EQ(run("/tests/hog", "exit", "300"), 300 - 256);
    KEXPECT_EQ(run("/tests/hog", "exit", "-1"), 255);
}

KTEST(process, kill_ends_a_program_that_waits_for_the_disk)
{
    struct block_device *disk = program_disk();
    struct process *process;
    int error;

    if (!program_exists("/tests/hog"))
        KTEST_SKIP(NO_ROOT);
    process = program_start("/tests/hog", "disk", "/data/small.txt", NULL, false, &error);
    KASSERT(process != NULL);
    while (READ_ONCE(process->task->faults.started) < FAULTS_UNTIL_STEADY)
        sched_yield(); /* its loading is over */
    gate_hold(disk, 0, ~0ul, 0);
    gate_wait_held(disk, 1);
    threads_wait_asleep(process->task);
    task_kill(process->task);
    KEXPECT_EQ(program_end(process), 128 + SIGKILL); /* before the disk has answered */
    KEXPECT(gate_held(disk) >= 1);
    gate_open(disk);
    process_put(process);
}

static void find_by_name(struct process *process, void *ctx)
{
    if (strcmp(process->name, "hog") == 0)
        *(struct process **)ctx = process;
}

static void spawn_in_thread(void *arg)
{
    *(int *)arg = run("/tests/hog", NULL, NULL);
}

KTEST(process, kill_ends_a_program_that_is_being_loaded)
{
    struct block_device *disk = program_disk();
    struct test_threads threads = {0};
    struct process *process = NULL;
    struct inode *inode;
    int result = 0;

    if (!program_exists("/tests/hog"))
        KTEST_SKIP(NO_ROOT);
    KASSERT_EQ(vfs_lookup(NULL, "/", "/tests/hog", true, &inode, NULL), 0);
    page_cache_drop_range(&inode->cache, 0, ~0ul - 1); /* so that its first page must be read */
    gate_hold(disk, 0, ~0ul, 0);
    threads_add(&threads, spawn_in_thread, &result);
    gate_wait_held(disk, 1);
    process_for_each(find_by_name, &process);
    if (KEXPECT(process != NULL)) {
        threads_wait_asleep(process->task);
        task_kill(process->task);
    } else {
        gate_open(disk);
    }
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(result, -EINTR);
    gate_open(disk);
    inode_put(inode);
}
