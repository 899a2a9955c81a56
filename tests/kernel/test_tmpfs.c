/*
 * Files in memory: names, pages, mappings, and the limit.
 */
#include "fs/names.h"
#include "fs/tmpfs.h"
#include "kernel/sched/sync_point.h"
#include "lib/string.h"
#include "mm/core/frames.h"
#include "mm/reclaim.h"
#include "mm/user_memory.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/test_mm.h"
#include "tests/kernel/threads.h"

#define FILE_BASE    0x10000000ul
#define BUFFER_BASE  0x20000000ul
#define BUFFER_PAGES 16

/* A file system of the test's own; paths are relative to its root. */
static struct super_block *place;

static bool enter(void)
{
    place = tmpfs_create();
    return KEXPECT(place != NULL);
}

static void leave(void)
{
    tmpfs_destroy(place);
    place = NULL;
}

static int make(const char *path, u32 mode)
{
    return vfs_create(place->root, "/tmpfs-test", path, &(struct inode_new){.mode = mode}, NULL);
}

static int move(const char *from, const char *to, u32 flags)
{
    return vfs_rename(&(struct rename_path){place->root, "/tmpfs-test", from},
                      &(struct rename_path){place->root, "/tmpfs-test", to}, flags);
}

static int drop(const char *path, bool is_dir)
{
    return vfs_unlink(place->root, "/tmpfs-test", path, is_dir);
}

static u32 links_of(const char *path)
{
    struct inode *inode;
    u32 links;

    if (vfs_lookup(place->root, "/tmpfs-test", path, false, &inode, NULL))
        return 0;
    links = inode->nlink;
    inode_put(inode);
    return links;
}

static struct file *open_file(const char *path, u32 flags)
{
    int error;

    return file_open(place->root, "/tmpfs-test", path, flags, 0600, &error);
}

KTEST(tmpfs, links_are_counted_for_files_and_directories)
{
    KASSERT(enter());
    KEXPECT_EQ(links_of("."), 2);
    KEXPECT_EQ(make("a", S_IFDIR | 0755), 0);
    KEXPECT_EQ(make("a/b", S_IFDIR | 0755), 0);
    KEXPECT_EQ(make("f", S_IFREG | 0644), 0);
    KEXPECT_EQ(links_of("."), 3);
    KEXPECT_EQ(links_of("a"), 3);
    KEXPECT_EQ(links_of("f"), 1);
    KEXPECT_EQ(move("a/b", "c", 0), 0);
    KEXPECT_EQ(links_of("."), 4);
    KEXPECT_EQ(links_of("a"), 2);
    KEXPECT_EQ(move("a", "c", RENAME_EXCHANGE), 0);
    KEXPECT_EQ(move("f", "a/f", 0), 0);
    KEXPECT_EQ(drop("a", true), -ENOTEMPTY);
    KEXPECT_EQ(drop("c", true), 0);
    KEXPECT_EQ(links_of("."), 3);
    leave();
}

KTEST(tmpfs, a_directory_does_not_move_into_itself)
{
    KASSERT(enter());
    make("a", S_IFDIR | 0755);
    make("a/b", S_IFDIR | 0755);
    make("a/b/c", S_IFDIR | 0755);
    KEXPECT_EQ(move("a", "a/b/c/d", 0), -EINVAL);
    KEXPECT_EQ(move("a", "a/b", 0), -EINVAL);
    KEXPECT_EQ(move("a/b/c", "a", 0), -ENOTEMPTY);
    KEXPECT_EQ(move("a/b", "a/b/c", RENAME_EXCHANGE), -EINVAL);
    KEXPECT_EQ(move("a/b/c", "a", RENAME_EXCHANGE), -EINVAL);
    KEXPECT_EQ(move("a/b/c", "c", 0), 0);
    leave();
}

struct listing {
    unsigned n;
    char last;
    u64 stop_after;
};

static int count_name(void *ctx, const char *name, size_t len, u64 ino, unsigned type, u64 next_pos)
{
    struct listing *listing = ctx;

    (void)ino, (void)type, (void)next_pos;
    if (listing->n == listing->stop_after)
        return 1;
    listing->n++;
    listing->last = name[len - 1];
    return 0;
}

KTEST(tmpfs, a_listing_goes_on_where_it_was_whatever_is_removed)
{
    char name[2] = "a";
    struct listing listing = {.stop_after = 5};
    u64 pos = 0;

    KASSERT(enter());
    for (name[0] = 'a'; name[0] <= 'z'; name[0]++)
        KEXPECT_EQ(make(name, S_IFREG | 0644), 0);
    KEXPECT_EQ(place->root->ops->iterate(place->root, &pos, count_name, &listing), 0);
    KEXPECT_EQ(listing.last, 'c'); /* behind . and .. */
    KEXPECT_EQ(drop("a", false), 0);
    KEXPECT_EQ(drop("c", false), 0);
    KEXPECT_EQ(drop("d", false), 0);
    KEXPECT_EQ(make("new", S_IFREG | 0644), 0);
    listing = (struct listing){.stop_after = 1};
    KEXPECT_EQ(place->root->ops->iterate(place->root, &pos, count_name, &listing), 0);
    KEXPECT_EQ(listing.last, 'e');
    listing = (struct listing){.stop_after = 1000};
    KEXPECT_EQ(place->root->ops->iterate(place->root, &pos, count_name, &listing), 0);
    KEXPECT_EQ(listing.n, 22); /* f to z, new */
    leave();
}

KTEST(tmpfs, an_unlinked_file_lives_until_it_is_closed)
{
    u64 used;
    struct file *file;

    KASSERT(enter());
    used = tmpfs_pages_used();
    file = open_file("f", O_CREAT | O_RDWR);
    KASSERT(file != NULL);
    KEXPECT_EQ(vfs_allocate(file->inode, 0, 0, 3 * PAGE_SIZE), 0);
    KEXPECT_EQ(drop("f", false), 0);
    KEXPECT_EQ(file->inode->nlink, 0);
    KEXPECT_EQ(tmpfs_pages_used(), used + 3);
    KEXPECT_EQ(file->inode->blocks_512, 3 * SECTORS_PER_PAGE);
    file_put(file);
    KEXPECT_EQ(tmpfs_pages_used(), used);
    leave();
}

/* ---- Pages ---- */

struct stage {
    struct mm *mm;
    struct file *file;
};

/* A file in an address space of the test's, mapped shared, and a buffer beside it. */
static bool stage_enter(struct stage *stage, u64 pages)
{
    if (!enter())
        return false;
    stage->file = open_file("f", O_CREAT | O_RDWR);
    stage->mm = test_mm_enter();
    if (!KEXPECT(stage->file && stage->mm))
        return false;
    KEXPECT_EQ(vfs_set_size(stage->file->inode, pages * PAGE_SIZE), 0);
    KEXPECT_EQ(mm_mmap(stage->mm, FILE_BASE, pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, &stage->file->mapped, 0),
               FILE_BASE);
    return KEXPECT_EQ(mm_mmap(stage->mm, BUFFER_BASE, BUFFER_PAGES * PAGE_SIZE,
                              PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, NULL,
                              0),
                      BUFFER_BASE);
}

static void stage_leave(struct stage *stage)
{
    test_mm_leave();
    file_put(stage->file);
    leave();
}

static ssize_t write_at(struct stage *stage, u64 user, size_t len, u64 pos)
{
    return file_write(stage->file, user, len, &pos);
}

static ssize_t read_at(struct stage *stage, u64 user, size_t len, u64 pos)
{
    return file_read(stage->file, user, len, &pos);
}

KTEST(tmpfs, stores_writes_and_reads_see_one_page)
{
    struct stage stage;

    KASSERT(stage_enter(&stage, 4));
    KEXPECT_EQ(user_poke(FILE_BASE + PAGE_SIZE + 7, 0x5a), 0);
    KEXPECT_EQ(read_at(&stage, BUFFER_BASE, 1, PAGE_SIZE + 7), 1);
    KEXPECT_EQ(user_peek(BUFFER_BASE), 0x5a);
    user_poke(BUFFER_BASE, 0x33);
    KEXPECT_EQ(write_at(&stage, BUFFER_BASE, 1, PAGE_SIZE + 8), 1);
    KEXPECT_EQ(user_peek(FILE_BASE + PAGE_SIZE + 8), 0x33);
    KEXPECT_EQ(read_at(&stage, BUFFER_BASE, 1, 3 * PAGE_SIZE), 1); /* a hole */
    KEXPECT_EQ(user_peek(BUFFER_BASE), 0);
    KEXPECT_EQ(stage.file->inode->blocks_512, SECTORS_PER_PAGE); /* reading filled none */
    stage_leave(&stage);
}

KTEST(tmpfs, a_write_from_a_mapping_of_the_very_page_works)
{
    struct stage stage;

    KASSERT(stage_enter(&stage, 2));
    for (unsigned i = 0; i < 16; i++)
        user_poke(FILE_BASE + i, i + 1);
    KEXPECT_EQ(write_at(&stage, FILE_BASE, 16, 100), 16);
    KEXPECT_EQ(user_peek(FILE_BASE + 115), 16);
    KEXPECT_EQ(write_at(&stage, FILE_BASE, PAGE_SIZE, PAGE_SIZE), PAGE_SIZE);
    KEXPECT_EQ(user_peek(FILE_BASE + PAGE_SIZE + 115), 16);
    /* A page that is not there, from a mapping of that page: the touch makes it. */
    KEXPECT_EQ(vfs_set_size(stage.file->inode, 0), 0);
    KEXPECT_EQ(vfs_set_size(stage.file->inode, 2 * PAGE_SIZE), 0);
    KEXPECT_EQ(write_at(&stage, FILE_BASE + PAGE_SIZE, 10, PAGE_SIZE + 5), 10);
    KEXPECT_EQ(user_peek(FILE_BASE + PAGE_SIZE + 5), 0);
    stage_leave(&stage);
}

/* Between the touch and the copy the page is no longer mapped. The copy, which has the page locked, must not fault. */
static void unmap_touched_source(void *arg)
{
    struct stage *stage = arg;

    sync_point_wait_parked("tmpfs_source_touched");
    KEXPECT_EQ(mm_madvise(stage->mm, FILE_BASE, PAGE_SIZE, MADV_DONTNEED), 0);
    sync_point_release("tmpfs_source_touched");
}

KTEST(tmpfs, a_write_whose_source_is_unmapped_after_the_touch_touches_it_again)
{
    struct stage stage;
    struct test_threads threads = {0};

    KASSERT(stage_enter(&stage, 2));
    KEXPECT_EQ(user_poke(FILE_BASE, 0x5a), 0);
    sync_point_arm("tmpfs_source_touched", task_current());
    threads_add(&threads, unmap_touched_source, &stage);
    KEXPECT_EQ(write_at(&stage, FILE_BASE, 1, 8), 1);
    KEXPECT_EQ(threads_join(&threads), 0);
    KEXPECT_EQ(user_peek(FILE_BASE + 8), 0x5a);
    stage_leave(&stage);
}

KTEST(tmpfs, a_write_is_short_where_its_source_ends)
{
    struct stage stage;
    u64 end = BUFFER_BASE + BUFFER_PAGES * PAGE_SIZE;

    KASSERT(stage_enter(&stage, 1));
    KEXPECT_EQ(write_at(&stage, end - 10, 100, 5), 10);
    KEXPECT_EQ(write_at(&stage, end, 100, 5), -EFAULT);
    KEXPECT_EQ(write_at(&stage, end, 100, 50 * PAGE_SIZE), -EFAULT);
    KEXPECT_EQ(stage.file->inode->cache.size_bytes, PAGE_SIZE);
    KEXPECT_EQ(stage.file->inode->blocks_512, SECTORS_PER_PAGE);
    stage_leave(&stage);
}

KTEST(tmpfs, truncation_takes_mapped_pages_away_and_clears_the_tail)
{
    struct stage stage;

    KASSERT(stage_enter(&stage, 4));
    for (unsigned page = 0; page < 4; page++)
        KEXPECT_EQ(user_poke(FILE_BASE + page * PAGE_SIZE + 200, page + 1), 0);
    KEXPECT_EQ(vfs_set_size(stage.file->inode, PAGE_SIZE + 100), 0);
    KEXPECT_EQ(user_peek(FILE_BASE + 200), 1);
    KEXPECT_EQ(user_peek(FILE_BASE + PAGE_SIZE + 200), 0);
    KEXPECT_EQ(user_peek(FILE_BASE + 2 * PAGE_SIZE), -EFAULT);
    KEXPECT_EQ(user_poke(FILE_BASE + PAGE_SIZE + 300, 9), 0); /* behind the end */
    KEXPECT_EQ(vfs_set_size(stage.file->inode, 4 * PAGE_SIZE), 0);
    KEXPECT_EQ(user_peek(FILE_BASE + PAGE_SIZE + 300), 0);
    KEXPECT_EQ(user_peek(FILE_BASE + 3 * PAGE_SIZE + 200), 0);
    stage_leave(&stage);
}

KTEST(tmpfs, holes_are_found_and_punched)
{
    struct stage stage;
    struct inode *inode;

    KASSERT(stage_enter(&stage, 8));
    inode = stage.file->inode;
    for (unsigned page = 2; page < 6; page++)
        user_poke(FILE_BASE + page * PAGE_SIZE, 1),
            user_poke(FILE_BASE + page * PAGE_SIZE + 4095, 2);
    KEXPECT_EQ(file_seek(stage.file, 0, SEEK_DATA), 2 * PAGE_SIZE);
    KEXPECT_EQ(file_seek(stage.file, 2 * PAGE_SIZE + 1, SEEK_HOLE), 6 * PAGE_SIZE);
    KEXPECT_EQ(file_seek(stage.file, 6 * PAGE_SIZE, SEEK_DATA), -ENXIO);
    KEXPECT_EQ(
        vfs_allocate(inode, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 2 * PAGE_SIZE + 1, 2 * PAGE_SIZE),
        0);
    KEXPECT_EQ(user_peek(FILE_BASE + 2 * PAGE_SIZE), 1);
    KEXPECT_EQ(user_peek(FILE_BASE + 2 * PAGE_SIZE + 4095), 0);
    KEXPECT_EQ(inode->blocks_512, 3 * SECTORS_PER_PAGE);
    KEXPECT_EQ(user_peek(FILE_BASE + 4 * PAGE_SIZE), 0);
    KEXPECT_EQ(user_peek(FILE_BASE + 4 * PAGE_SIZE + 4095), 2);
    stage_leave(&stage);
}

KTEST(tmpfs, room_made_by_fallocate_is_in_memory_when_it_is_touched)
{
    static const u8 none[6] = {0}, touched[6] = {0, 1, 0, 1, 1, 0};
    struct stage stage;
    u8 vec[6];

    KASSERT(stage_enter(&stage, 6));
    KEXPECT_EQ(vfs_allocate(stage.file->inode, 0, 0, 6 * PAGE_SIZE), 0);
    KEXPECT_EQ(stage.file->inode->blocks_512, 6 * SECTORS_PER_PAGE);
    KEXPECT_EQ(mm_mincore(stage.mm, FILE_BASE, 6 * PAGE_SIZE, BUFFER_BASE), 0);
    KEXPECT_EQ(copy_from_user(vec, BUFFER_BASE, sizeof(vec)), 0);
    KEXPECT(memcmp(vec, none, sizeof(vec)) == 0);
    KEXPECT_EQ(user_poke(FILE_BASE + PAGE_SIZE, 1), 0);
    KEXPECT_EQ(write_at(&stage, BUFFER_BASE, 1, 3 * PAGE_SIZE), 1);
    KEXPECT_EQ(user_peek(FILE_BASE + 4 * PAGE_SIZE), 0); /* its neighbours are not mapped around */
    KEXPECT_EQ(mm_madvise(stage.mm, FILE_BASE, 6 * PAGE_SIZE, MADV_DONTNEED), 0);
    KEXPECT_EQ(mm_mincore(stage.mm, FILE_BASE, 6 * PAGE_SIZE, BUFFER_BASE), 0);
    KEXPECT_EQ(copy_from_user(vec, BUFFER_BASE, sizeof(vec)), 0);
    KEXPECT(memcmp(vec, touched, sizeof(vec)) == 0);
    stage_leave(&stage);
}

KTEST(tmpfs, reclaim_takes_nothing_and_a_store_is_a_minor_fault)
{
    struct stage stage;
    struct task_fault_counters before, after;

    KASSERT(stage_enter(&stage, 8));
    before = task_current()->faults;
    for (unsigned page = 0; page < 8; page++)
        user_poke(FILE_BASE + page * PAGE_SIZE, page + 1);
    after = task_current()->faults;
    KEXPECT_EQ(after.major, before.major);
    KEXPECT_EQ(after.minor, before.minor + 8);
    reclaim_pages(1000000);
    page_cache_drop_range(&stage.file->inode->cache, 0, 100);
    KEXPECT_EQ(stage.file->inode->blocks_512, 8 * SECTORS_PER_PAGE);
    for (unsigned page = 0; page < 8; page++)
        KEXPECT_EQ(user_peek(FILE_BASE + page * PAGE_SIZE), page + 1);
    stage_leave(&stage);
}

static u8 in_memory(struct stage *stage, unsigned page)
{
    u8 there = 0xff;
    KEXPECT_EQ(mm_mincore(stage->mm, FILE_BASE + page * PAGE_SIZE, PAGE_SIZE, BUFFER_BASE), 0);
    KEXPECT_EQ(copy_from_user(&there, BUFFER_BASE, 1), 0);
    return there;
}

/* Pages: 0 only read; 1 stored to; 2 written; 3 read, then part of a fallocate. */
KTEST(tmpfs, pageout_takes_the_pages_that_are_nothing_but_zeros)
{
    struct stage stage;

    KASSERT(stage_enter(&stage, 4));
    u64 used = tmpfs_pages_used();
    KEXPECT_EQ(write_at(&stage, BUFFER_BASE, 1, 2 * PAGE_SIZE), 1);
    KEXPECT_EQ(user_poke(FILE_BASE + PAGE_SIZE, 7), 0);
    for (unsigned page = 0; page < 4; page++)
        user_peek(FILE_BASE + page * PAGE_SIZE);
    KEXPECT_EQ(vfs_allocate(stage.file->inode, 0, 3 * PAGE_SIZE, PAGE_SIZE), 0);
    KEXPECT_EQ(tmpfs_pages_used(), used + 4);
    KEXPECT_EQ(mm_madvise(stage.mm, FILE_BASE, 4 * PAGE_SIZE, MADV_PAGEOUT), 0);
    for (unsigned page = 0; page < 4; page++)
        KEXPECT_EQ(in_memory(&stage, page), page != 0);
    KEXPECT_EQ(tmpfs_pages_used(), used + 3);
    KEXPECT_EQ(stage.file->inode->blocks_512, 3 * SECTORS_PER_PAGE);
    KEXPECT_EQ(user_peek(FILE_BASE), 0);
    KEXPECT_EQ(user_peek(FILE_BASE + PAGE_SIZE), 7);
    stage_leave(&stage);
    KEXPECT_EQ(tmpfs_pages_used(), used);
}

KTEST(tmpfs, willneed_makes_no_pages)
{
    struct stage stage;

    KASSERT(stage_enter(&stage, 4));
    KEXPECT_EQ(mm_madvise(stage.mm, FILE_BASE, 4 * PAGE_SIZE, MADV_WILLNEED), 0);
    KEXPECT_EQ(stage.file->inode->blocks_512, 0);
    for (unsigned page = 0; page < 4; page++)
        KEXPECT_EQ(in_memory(&stage, page), 0);
    stage_leave(&stage);
}

KTEST(tmpfs, a_full_tmpfs_is_enospc_and_a_store_fails)
{
    struct stage stage;

    KASSERT(stage_enter(&stage, 16));
    KEXPECT_EQ(write_at(&stage, BUFFER_BASE, 2 * PAGE_SIZE, 0), 2 * PAGE_SIZE);
    tmpfs_set_pages_limit(tmpfs_pages_used() + 3);
    KEXPECT_EQ(write_at(&stage, BUFFER_BASE, 8 * PAGE_SIZE, 2 * PAGE_SIZE), 3 * PAGE_SIZE);
    KEXPECT_EQ(write_at(&stage, BUFFER_BASE, PAGE_SIZE, 8 * PAGE_SIZE), -ENOSPC);
    KEXPECT_EQ(user_poke(FILE_BASE + 9 * PAGE_SIZE, 1), -EFAULT);
    KEXPECT_EQ(user_poke(FILE_BASE + 1 * PAGE_SIZE, 1), 0);
    KEXPECT_EQ(vfs_allocate(stage.file->inode, 0, 0, 16 * PAGE_SIZE), -ENOSPC);
    KEXPECT_EQ(vfs_set_size(stage.file->inode, PAGE_SIZE), 0);
    KEXPECT_EQ(vfs_set_size(stage.file->inode, 16 * PAGE_SIZE), 0);
    KEXPECT_EQ(user_poke(FILE_BASE + 9 * PAGE_SIZE, 1), 0); /* there is room again */
    KEXPECT_EQ(write_at(&stage, BUFFER_BASE, PAGE_SIZE, 8 * PAGE_SIZE), PAGE_SIZE);
    tmpfs_set_pages_limit(0);
    stage_leave(&stage);
}

KTEST(tmpfs, frames_come_back)
{
    struct stage stage;
    u64 used = tmpfs_pages_used(), before;

    KASSERT(stage_enter(&stage, 64));
    stage_leave(&stage);
    before = test_frames_settled();
    KASSERT(stage_enter(&stage, 64));
    for (unsigned page = 0; page < 64; page++)
        user_poke(FILE_BASE + page * PAGE_SIZE, 1);
    make("d", S_IFDIR | 0755);
    make("d/e", S_IFREG | 0644);
    stage_leave(&stage);
    KEXPECT_EQ(tmpfs_pages_used(), used);
    KEXPECT_EQ(test_frames_settled(), before);
}

/* ---- Many at once ---- */

#define SHUFFLERS 4
#define SHUFFLES  200

static void shuffle(void *arg)
{
    static const char *const dirs[] = {"a", "a/b", "c", "c/d"};
    u64 seed = (u64)arg;

    for (unsigned i = 0; i < SHUFFLES; i++) {
        char from[16], to[16];

        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        string_copy(from, dirs[seed >> 33 & 3], sizeof(from));
        string_copy(to, dirs[seed >> 40 & 3], sizeof(to));
        strlcpy(from + strlen(from), seed >> 50 & 1 ? "/x" : "/y", 4);
        strlcpy(to + strlen(to), seed >> 51 & 1 ? "/x" : "/y", 4);
        switch (seed >> 60 & 3) {
        case 0: make(from, S_IFDIR | 0755); break;
        case 1: drop(from, true); break;
        case 2: move(from, to, 0); break;
        case 3: move(from, to, RENAME_EXCHANGE); break;
        }
        sched_yield();
    }
}

KTEST(tmpfs, renames_in_all_directions_at_once_end)
{
    struct test_threads threads = {.n = 0};

    KASSERT(enter());
    make("a", S_IFDIR | 0755);
    make("a/b", S_IFDIR | 0755);
    make("c", S_IFDIR | 0755);
    make("c/d", S_IFDIR | 0755);
    for (u64 i = 0; i < SHUFFLERS; i++)
        threads_add(&threads, shuffle, (void *)(i + 1));
    KEXPECT_EQ(threads_join(&threads), 0);
    leave();
}
