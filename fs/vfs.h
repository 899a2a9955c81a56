/*
 * Inodes, open files and paths: what every file system fills in and what system calls use.
 *
 * An inode is in memory once (per super block, by number) and counted; its pages are in its page cache. A struct file is one open();
 * it embeds the mapped_file that mm maps and faults pin. Names are looked up component by component through inode_ops->lookup.
 */
#ifndef FS_VFS_H
#define FS_VFS_H

#include "kernel/sched/mutex.h"
#include "mm/mapped_file.h"

struct inode;
struct file;
struct super_block;

/* File type bits of mode, as in stat(2). */
#define S_IFMT 0170000u
#define S_IFSOCK 0140000u
#define S_IFLNK 0120000u
#define S_IFREG 0100000u
#define S_IFBLK 0060000u
#define S_IFDIR 0040000u
#define S_IFCHR 0020000u
#define S_IFIFO 0010000u

/* open flags, Linux x86-64 */
#define O_ACCMODE 03
#define O_RDONLY 00
#define O_WRONLY 01
#define O_RDWR 02
#define O_CREAT 0100
#define O_EXCL 0200
#define O_NOCTTY 0400
#define O_TRUNC 01000
#define O_APPEND 02000
#define O_NONBLOCK 04000
#define O_LARGEFILE 0100000
#define O_DIRECTORY 0200000
#define O_NOFOLLOW 0400000
#define O_CLOEXEC 02000000
#define O_PATH 010000000

#define NAME_MAX_BYTES 255
#define PATH_MAX_BYTES 4096

/* getdents: => 0 to go on, non-zero: the buffer is full, stop (the entry was not taken). type: DT_* (mode >> 12). */
typedef int (*dir_emit)(void *ctx, const char *name, size_t len, u64 ino, unsigned type, u64 next_pos);

struct inode_ops {
    /* Directories. => 0 and *out with a reference; -ENOENT, -EIO, -EUCLEAN. dir->rwlock is held shared. */
    int (*lookup)(struct inode *dir, const char *name, size_t len, struct inode **out);
    /* Calls emit from position *pos on and leaves *pos behind the last taken entry. => 0 or error */
    int (*iterate)(struct inode *dir, u64 *pos, dir_emit emit, void *ctx);
    /* Symbolic links: target without NUL. => length or error */
    ssize_t (*readlink)(struct inode *inode, char *buf, size_t size);
    /* Last reference of the in-memory inode: give back what fs_private holds. */
    void (*evict)(struct inode *inode);
};

struct file_ops {
    int (*open)(struct inode *inode, struct file *file); /* optional */
    void (*close)(struct file *file);                    /* optional */
    /* User buffers. *pos is advanced by what was transferred. => bytes or negative errno */
    ssize_t (*read)(struct file *file, u64 user_buf, size_t len, u64 *pos);
    ssize_t (*write)(struct file *file, u64 user_buf, size_t len, u64 *pos);
    int (*ioctl)(struct file *file, u64 request, u64 argument);
    s64 (*seek_end)(struct file *file); /* where SEEK_END counts from; NULL: inode size */
    bool is_seekable;
    bool can_map;                       /* mmap through inode->cache */
};

struct inode {
    struct page_cache cache;  /* size_bytes is the file's size */
    struct rwsem rwlock;      /* outermost lock: write, truncate exclusive; directory lookup shared */
    struct super_block *super;
    u64 ino;
    u32 mode, uid, gid, nlink;
    u32 rdev;
    u64 blocks_512;           /* st_blocks */
    s64 atime, mtime, ctime;  /* seconds */
    const struct inode_ops *ops;
    const struct file_ops *file_ops;
    s32 refs;
    struct list link;         /* inode table */
    void *fs_private;
};

struct file {
    struct mapped_file mapped; /* its refs count the file's references too */
    struct inode *inode;
    const struct file_ops *ops;
    struct mutex pos_lock;
    u64 pos;
    u32 flags;                 /* O_* */
    void *private_;
    char path[256];            /* absolute, cut at the front when longer */
};

struct super_block {
    const char *type;          /* "ext2" */
    u64 dev;                   /* st_dev */
    u32 block_bytes;
    bool is_read_only;
    struct inode *root;
    void (*statfs)(struct super_block *sb, u64 *blocks, u64 *free_blocks, u64 *files, u64 *free_files);
    void *fs_private;
};

void vfs_init(void);

/* Inode table. get: finds or makes the inode number `ino` of the super block; a new one (is_new) is returned exclusively locked (rwlock) for the file system to fill,
 * then inode_ready() or inode_failed(). => NULL when out of memory */
struct inode *inode_get(struct super_block *super, u64 ino, bool *is_new);
struct inode *inode_new_anonymous(struct super_block *super, u32 mode); /* not in the table (proc, dev) */
void inode_ready(struct inode *inode);
void inode_failed(struct inode *inode); /* drops it */
void inode_hold(struct inode *inode);
void inode_put(struct inode *inode);

/* Mounts: a table of path prefix -> super block, longest prefix wins: "/" (ext2), "/proc", "/sys", "/dev". */
int vfs_mount(const char *path, struct super_block *super);
struct super_block *vfs_root(void);

/*
 * Path walk. base: directory to start from for relative paths (NULL: the root). Follows symbolic links (at most 40; -ELOOP), the last one only if follow_last.
 * => 0 and *out with a reference; -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, -EIO. `full`: receives the absolute normalised path (PATH_MAX_BYTES), may be NULL.
 */
int vfs_lookup(struct inode *base, const char *base_path, const char *path, bool follow_last, struct inode **out, char *full);

/* => open file with one reference, or a negative errno through *error. No permissions beyond the mode's (all is root): O_CREAT of a missing file, and writing on a read-only file system: -EROFS. */
struct file *file_open(struct inode *base, const char *base_path, const char *path, u32 flags, u32 mode, int *error);
struct file *file_open_inode(struct inode *inode, u32 flags, const char *path, int *error); /* takes its own inode reference */
static inline void file_hold(struct file *file) { mapped_file_get(&file->mapped); }
static inline void file_put(struct file *file) { mapped_file_put(&file->mapped); } /* may sleep */
static inline struct file *file_of_mapped(struct mapped_file *mapped) { return container_of(mapped, struct file, mapped); }

ssize_t file_read(struct file *file, u64 user_buf, size_t len, u64 *pos);
ssize_t file_write(struct file *file, u64 user_buf, size_t len, u64 *pos);
ssize_t file_read_all_kernel(struct file *file, u64 pos, void *buf, size_t len); /* regular files */
s64 file_seek(struct file *file, s64 offset, int whence); /* SEEK_SET/CUR/END/DATA/HOLE */

extern const struct file_ops file_ops_regular; /* page cache read, mmap; no write */

/* The cache of a block device's blocks: file system metadata and /dev/NAME. One per device, made on first use. */
struct block_device;
struct inode *bdev_inode(struct block_device *device);

/* File systems. */
int ext2_mount(struct block_device *device, struct super_block **out); /* => 0; -EINVAL not ext2, -EIO, -EUCLEAN, -EOPNOTSUPP (feature named in the log) */
struct super_block *proc_create(void);
struct super_block *sysfs_create(void);
struct super_block *devfs_create(void);

/*
 * Generated text files (/proc, /sys): a table of these makes a tree.
 */
struct text_file {
    const char *path; /* relative to the mount, "sys/vm/readahead" */
    /* Produces the whole text. => bytes that it has (may exceed size: called again with a larger buffer). */
    size_t (*show)(void *arg, char *buf, size_t size);
    int (*store)(void *arg, const char *text, size_t len); /* NULL: read-only. trailing newline removed, NUL-terminated */
    void *arg;
    const struct file_ops *ops; /* instead of show/store: own operations */
};
/* Registers a file below the tree of `super` ("proc" or "sys"), making directories. kernel/task registers the files about processes this way. The entry must outlive the kernel. */
int textfs_add(struct super_block *super, const struct text_file *entry);

#endif
