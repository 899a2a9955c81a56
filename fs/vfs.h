/*
 * Inodes, open files and paths: what every file system fills in and what system calls use.
 *
 * An inode is in memory once (per super block, by number) and counted; its pages are in its page
 * cache. Unused ones stay for a while, so that the pages of a closed file are found again. A struct
 * file is one open(); it embeds the mapped_file that mm maps and faults pin. Names are looked up
 * component by component through inode_ops->lookup.
 *
 * Lock order: file->pos_lock, then inode->rwlock, then mm's locks (DESIGN.md section 4).
 */
#ifndef FS_VFS_H
#define FS_VFS_H

#include "kernel/sched/mutex.h"
#include "mm/mapped_file.h"

struct block_device;
struct inode;
struct inode_new;
struct inode_rename;
struct file;
struct pipe;
struct poll_round;
struct super_block;

/* File type bits of mode, as in stat(2). */
#define S_IFMT   0170000u
#define S_IFSOCK 0140000u
#define S_IFLNK  0120000u
#define S_IFREG  0100000u
#define S_IFBLK  0060000u
#define S_IFDIR  0040000u
#define S_IFCHR  0020000u
#define S_IFIFO  0010000u

/* open flags, Linux x86-64 */
#define O_ACCMODE   03
#define O_RDONLY    00
#define O_WRONLY    01
#define O_RDWR      02
#define O_CREAT     0100
#define O_EXCL      0200
#define O_NOCTTY    0400
#define O_TRUNC     01000
#define O_APPEND    02000
#define O_NONBLOCK  04000
#define O_LARGEFILE 0100000
#define O_DIRECTORY 0200000
#define O_NOFOLLOW  0400000
#define O_CLOEXEC   02000000
#define O_TMPFILE   020000000 /* beside O_DIRECTORY */
#define O_PATH      010000000

/* lseek(2) */
#define SEEK_SET  0
#define SEEK_CUR  1
#define SEEK_END  2
#define SEEK_DATA 3
#define SEEK_HOLE 4

#define NAME_MAX_BYTES 255
#define PATH_MAX_BYTES 4096 /* with the NUL */

/* d_type of getdents64 for a mode. */
#define DT_OF_MODE(mode) (((mode)&S_IFMT) >> 12)

/* getdents: => 0 to go on, non-zero: the buffer is full, stop (the entry was not taken).
 * name: len bytes, not terminated. type: DT_* (mode >> 12), 0 unknown. next_pos: where the next
 * entry begins. */
typedef int (*dir_emit)(void *ctx, const char *name, size_t len, u64 ino, unsigned type,
                        u64 next_pos);

struct inode_ops {
    /* Directories. dir->rwlock is held shared. May sleep. ".." too, except in the root.
     * => 0 and *out with a reference; -ENOENT, -EIO, -EUCLEAN, -ENOMEM */
    int (*lookup)(struct inode *dir, const char *name, size_t len, struct inode **out);
    /* Calls emit from position *pos on and leaves *pos behind the last taken entry. rwlock held
     * shared. => 0 or error */
    int (*iterate)(struct inode *dir, u64 *pos, dir_emit emit, void *ctx);
    /* Symbolic links: target without NUL. => length or error */
    ssize_t (*readlink)(struct inode *inode, char *buf, size_t size);
    /* Optional: the next byte at or after pos that is data (or, with want_hole, in a hole; the end
     * of the file is one). pos is below the size. => position or error (-ENXIO: no more data) */
    s64 (*seek_data)(struct inode *inode, u64 pos, bool want_hole);
    /* Optional. The in-memory inode goes, its pages are gone: give back what fs_private holds. */
    void (*evict)(struct inode *inode);

    /*
     * Directories that can be changed. The name is neither "." nor "..", dir->rwlock is held
     * exclusive, and the file system need not look again for what fs/names.c has looked up under
     * that lock. A directory that has been removed meanwhile: -ENOENT. May sleep.
     */
    /* A new entry of a new inode; the name is free. => 0 and *out with a reference; -ENOSPC,
     * -ENOMEM */
    int (*create)(struct inode *dir, const char *name, size_t len, const struct inode_new *what,
                  struct inode **out);
    /* Optional, O_TMPFILE: a new inode without an entry. => as create */
    int (*create_unnamed)(struct inode *dir, const struct inode_new *what, struct inode **out);
    /* One more name for an inode, the name is free. => 0; -EMLINK, -ENOSPC, -ENOMEM */
    int (*link)(struct inode *dir, const char *name, size_t len, struct inode *inode);
    /* The entry, which is `inode`'s, goes; a directory's rwlock is held exclusive too. The caller
     * has a reference. => 0; -ENOTEMPTY */
    int (*unlink)(struct inode *dir, const char *name, size_t len, struct inode *inode);
    /* All locks that the request's directories need are held. => 0; -ENOTEMPTY, -ENOSPC, -ENOMEM */
    int (*rename)(const struct inode_rename *rename);
    /* Is dir `ancestor`, or below it? No directory is moved meanwhile. Never sleeps. */
    bool (*is_below)(struct inode *dir, const struct inode *ancestor);

    /* Regular files that can be written; rwlock held exclusive. May sleep. */
    int (*set_size)(struct inode *inode, u64 size_bytes); /* => 0; -EFBIG, -ENOSPC, -EIO */
    /* fallocate(2); range and mode have been checked: FALLOC_*. => 0; -EOPNOTSUPP, -ENOSPC, … */
    int (*allocate)(struct inode *inode, u32 mode, u64 offset, u64 len);
};

/* What a new inode is to be. */
struct inode_new {
    u32 mode;           /* with the type */
    u32 rdev;           /* of a device node */
    const char *target; /* of a symbolic link, NUL-terminated */
};

/* rename(2): both directories, the names, and what was found there (NULL: nothing). */
struct inode_rename {
    struct inode *from_dir, *to_dir;
    const char *from_name, *to_name;
    size_t from_len, to_len;
    struct inode *moved, *replaced;
    bool exchange; /* both stay, each in the place of the other */
};

#define FALLOC_KEEP_SIZE  0x01u
#define FALLOC_PUNCH_HOLE 0x02u

struct file_ops {
    int (*open)(struct inode *inode, struct file *file); /* optional */
    void (*close)(struct file *file);                    /* optional */
    /* User buffers. *pos is advanced by what was transferred. => bytes or negative errno */
    ssize_t (*read)(struct file *file, u64 user_buf, size_t len, u64 *pos);
    ssize_t (*write)(struct file *file, u64 user_buf, size_t len, u64 *pos);
    int (*ioctl)(struct file *file, u64 request, u64 argument); /* NULL: -ENOTTY */
    /* What the file is ready for, POLL*, after queueing at round; see fs/poll.h. NULL: always. */
    u32 (*poll)(struct file *file, struct poll_round *round);
    s64 (*seek_end)(struct file *file); /* where SEEK_END counts from; NULL: inode size */
    bool is_seekable;
    bool can_map;        /* mmap through mapped.cache */
    bool maps_anonymous; /* mmap gives zeroed memory of nobody's file (/dev/zero) */
};

enum inode_state {
    INODE_NEW, /* being filled in by whoever made it */
    INODE_READY,
    INODE_FAILED,   /* could not be read; out of the table */
    INODE_EVICTING, /* its pages are being dropped; who wants the number waits */
};

struct inode {
    struct page_cache cache; /* size_bytes is the file's size */
    struct rwsem rwlock;     /* outermost lock: write, truncate exclusive; directories shared */
    struct super_block *super;
    u64 ino;
    u32 mode, uid, gid, nlink;
    u32 rdev;
    u64 blocks_512;          /* st_blocks */
    s64 atime, mtime, ctime; /* seconds */
    u32 atime_ns, mtime_ns, ctime_ns;
    struct pipe *pipe; /* of an opened FIFO; fs/pipe.c */
    struct list locks; /* fcntl and flock locks; fs/file_lock.c */
    const struct inode_ops *ops;
    const struct file_ops *file_ops;
    s32 refs;  /* guarded by the inode table's lock */
    u32 state; /* enum inode_state; changed under the table's lock */
    bool is_in_table;
    struct list link;         /* inode table */
    struct list unused_link;  /* unused inodes, oldest first; empty while in use */
    struct deferred deferred; /* reclaim may look at the cache of an inode that has just gone */
    void *fs_private;
};

static inline bool inode_is(const struct inode *inode, u32 type)
{
    return (inode->mode & S_IFMT) == type;
}
static inline bool inode_is_dir(const struct inode *inode)
{
    return inode_is(inode, S_IFDIR);
}

struct file {
    struct mapped_file mapped; /* its refs count the file's references too */
    struct inode *inode;
    const struct file_ops *ops;
    struct mutex pos_lock;
    u64 pos;
    u32 flags; /* O_* */
    void *private_;
    char path[256]; /* absolute, cut at the front when longer */
};

struct super_block {
    const char *type; /* "ext2" */
    u64 dev;          /* st_dev */
    u32 block_bytes;
    bool is_read_only;
    bool is_no_exec;    /* its files are never code */
    struct inode *root; /* holds a reference */
    void (*statfs)(struct super_block *sb, u64 *blocks, u64 *free_blocks, u64 *files,
                   u64 *free_files);
    void *fs_private;
};

void vfs_init(void); /* after page_cache_rooms_init */

/*
 * Inode table. get: finds or makes the inode number `ino` of the super block. A new one (*is_new)
 * is the caller's alone to fill in: others who want the same number wait until inode_ready() or
 * inode_failed(). Sets super, ino and an empty cache with dev and ino. May sleep.
 * => with a reference; NULL when out of memory
 */
struct inode *inode_get(struct super_block *super, u64 ino, bool *is_new);
/* Not in the table and ready (proc, dev): destroyed with its last reference. is_meta: of a block
 * device. => NULL when out of memory. Never sleeps. */
struct inode *inode_new_anonymous(struct super_block *super, u32 mode);
struct inode *inode_new_meta(u32 mode);
void inode_ready(struct inode *inode);
void inode_failed(struct inode *inode); /* drops it; those who wait try for themselves */
void inode_hold(struct inode *inode);   /* the caller has a reference already */
void inode_put(struct inode *inode);    /* may sleep */
/* Drops every unused inode with its pages. => inodes dropped. May sleep. */
unsigned inode_cache_shrink(void);
/* Before a file system goes: drops its unused inodes. => inodes still in use. May sleep. */
unsigned inode_evict_super(struct super_block *super);
/* One inode of the table after the other, each with a reference; *cursor begins with 0. Where
 * inodes come and go meanwhile, some may be passed over. => NULL at the end */
struct inode *inode_next_in_table(u64 *cursor);
u64 super_anonymous_dev(void); /* the next device number of a file system without a device */

/* Mounts: a table of absolute path -> super block: "/" (ext2), "/proc", "/sys", "/dev". The path
 * need not exist below. => 0, -EBUSY (something is there), -ENOSPC, -ENAMETOOLONG */
int vfs_mount(const char *path, struct super_block *super);
int vfs_unmount(const char *path);  /* tests. => 0, -EINVAL: nothing there */
struct super_block *vfs_root(void); /* NULL: nothing is mounted at "/" */
/* What is mounted at exactly this normalised path; NULL: nothing. */
struct super_block *vfs_mount_at(const char *path);
/* "/" first. Under the table's lock: fn must not sleep. */
void vfs_for_each_mount(void (*fn)(const char *path, const struct super_block *super, void *ctx),
                        void *ctx);

/*
 * Path walk. base: directory to start from for relative paths (NULL: the root), base_path: its
 * absolute normalised path. Follows symbolic links (at most 40; -ELOOP), the last one only if
 * follow_last or if a slash follows it. May sleep.
 * full: receives the absolute normalised path (PATH_MAX_BYTES), may be NULL.
 * => 0 and *out with a reference; -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, -EIO, -EUCLEAN, -ENOMEM
 */
int vfs_lookup(struct inode *base, const char *base_path, const char *path, bool follow_last,
               struct inode **out, char *full);
/* The same; *missing_last: the error is -ENOENT, and all but the last name is there. Then *out is
 * the directory where it would be, with a reference, and full ends with the missing name. */
int vfs_lookup_missing(struct inode *base, const char *base_path, const char *path,
                       bool follow_last, struct inode **out, char *full, bool *missing_last);

/*
 * => open file with one reference, or NULL and a negative errno through *error. O_CREAT makes a
 * missing file with the permissions of `mode`. All is root, so only read-only file systems and
 * generated files without the operation refuse: -EROFS for O_CREAT of a missing file, for writing
 * and for O_TRUNC; -EACCES. -EISDIR: writing a directory; -ENOTDIR: O_DIRECTORY; -ELOOP:
 * O_NOFOLLOW; -EEXIST: O_CREAT | O_EXCL; -EOPNOTSUPP: O_TMPFILE, a file in the directory `path` that
 * has no name; -ENFILE: too many are open; -ENXIO: nobody behind a device node or socket, no reader
 * of a FIFO; -ERESTARTSYS: a signal while waiting for the other end of one. May sleep.
 */
struct file *file_open(struct inode *base, const char *base_path, const char *path, u32 flags,
                       u32 mode, int *error);
/* Takes its own inode reference. */
struct file *file_open_inode(struct inode *inode, u32 flags, const char *path, int *error);
static inline void file_hold(struct file *file)
{
    mapped_file_get(&file->mapped);
}
static inline void file_put(struct file *file) /* may sleep */
{
    mapped_file_put(&file->mapped);
}
static inline struct file *file_of_mapped(struct mapped_file *mapped)
{
    return container_of(mapped, struct file, mapped);
}

/*
 * User buffers. pos NULL: the file's own position, under pos_lock (pipes, terminals: no lock);
 * else *pos is advanced. => bytes; -EBADF (not open for it), -EISDIR, -EINVAL (no such operation),
 * -ESPIPE (pos given, not seekable), and what the operation returns. May sleep.
 */
ssize_t file_read(struct file *file, u64 user_buf, size_t len, u64 *pos);
ssize_t file_write(struct file *file, u64 user_buf, size_t len, u64 *pos);
int file_ioctl(struct file *file, u64 request, u64 argument);
/* Regular files and block devices: kernel buffer. => bytes (short at the end of the file) */
ssize_t file_read_all_kernel(struct file *file, u64 pos, void *buf, size_t len);
/* SEEK_SET/CUR/END/DATA/HOLE. => the new position; -EINVAL, -ESPIPE, -ENXIO */
s64 file_seek(struct file *file, s64 offset, int whence);
/* getdents: calls emit for entries from the file's position on, which it moves. emit must not touch
 * user memory. => 0; -ENOTDIR, -EIO, … (with entries already taken: 0, the error comes next time)
 */
int file_iterate(struct file *file, dir_emit emit, void *ctx);

extern const struct file_ops file_ops_regular;   /* page cache read, mmap; no write */
extern const struct file_ops file_ops_directory; /* read: -EISDIR */
extern const struct file_ops file_ops_block;     /* a block device through its cache */

/* The cache of a block device's blocks: file system metadata and /dev/NAME. One per device, made
 * on first use, no reference taken. => NULL when out of memory. May sleep. */
struct inode *bdev_inode(struct block_device *device);
/* Drops the pages and the inode: nobody uses the device any more (tests). May sleep. */
void bdev_forget(struct block_device *device);

/* File systems. */

/* => 0; -EINVAL not ext2, -EIO, -EUCLEAN damaged, -EOPNOTSUPP (feature named in the log), -ENOMEM.
 * May sleep. */
int ext2_mount(struct block_device *device, struct super_block **out);
/* => 0, or -EBUSY with inodes still in use. Takes the block device's cache with it. May sleep. */
int ext2_unmount(struct super_block *super);

/* Trees of generated files, empty but for /dev. Panic when out of memory (boot). */
struct super_block *proc_create(void);
struct super_block *sysfs_create(void);
struct super_block *devfs_create(void); /* null zero full random urandom console tty, disks */

/* What stands behind a character device node, by its number; NULL: nobody. */
const struct file_ops *device_file_ops(u32 rdev);

/* Bytes for AT_RANDOM, getrandom and /dev/urandom: unpredictable enough for programs, not for
 * secrets; the same in every run under icount. Any context. */
void random_bytes(void *buf, size_t len);

/*
 * Generated files (/proc, /sys): a table of these makes a tree.
 */
struct text_file {
    const char *path; /* relative to the mount, "sys/vm/readahead" */
    /* Produces the whole text. => bytes that it has (may exceed size: called again with a larger
     * buffer, up to 1 MiB). May sleep. */
    size_t (*show)(void *arg, char *buf, size_t size);
    /* NULL: read-only. Gets a whole write (at most 4 KiB; longer: -EINVAL): trailing newline
     * removed, NUL-terminated. => 0 or negative errno. May sleep. */
    int (*store)(void *arg, const char *text, size_t len);
    /* Optional: opened with O_TRUNC, or truncated. May sleep. */
    void (*truncate)(void *arg);
    void *arg;
    const struct file_ops *ops; /* instead of show/store: own operations */
    /* Instead: a symbolic link. => length of the target, or error */
    ssize_t (*link)(void *arg, char *buf, size_t size);
    u32 mode; /* 0: regular file (or link) with the bits that show and store suggest */
    u32 rdev;
};
/* Registers a file below the tree of `super`, making directories. The entry must outlive the
 * kernel. Of an opened one, file->inode->fs_private is a node: text_file_of(). May sleep.
 * => 0, -EEXIST, -ENOTDIR, -ENAMETOOLONG, -ENOMEM */
int textfs_add(struct super_block *super, const struct text_file *entry);
/* A directory, empty as long as nothing is added below it: for mounts. The same errors, but -EEXIST. */
int textfs_add_directory(struct super_block *super, const char *path);
const struct text_file *text_file_of(const struct inode *inode);
/*
 * A leaf that stands in no directory of the tree, for those whose names come and go: the lookup of
 * a directory with inode_ops of its own hands it out. Gone with its last reference.
 *   entry  copied; only show, store, arg and link count, or ops and mode
 *   ino    as stat shows it
 * => the inode with a reference, NULL when out of memory. Never sleeps.
 */
struct inode *textfs_leaf_create(struct super_block *super, const struct text_file *entry, u64 ino);

#endif
