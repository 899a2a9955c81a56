/*
 * The path walk: from a path to an inode, one component at a time.
 *
 *     at     the inode we have come to (referenced)
 *     full   its absolute path, links resolved, without a slash at its end; "" is the root
 *     rest   what is still to be walked
 *
 * A symbolic link puts its target in front of the rest. Since `full` has no links in it, ".." is
 * the path without its last name; at the root of a mounted file system that is looked up again from
 * the top, else the directory's own ".." is asked.
 */
#include "fs/vfs.h"

#include "fs/names.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"

#define LINKS_MAX 40

struct walk {
    struct inode *at;
    char *full; /* PATH_MAX_BYTES */
    size_t full_len;
    char *rest;       /* PATH_MAX_BYTES */
    const char *next; /* within rest */
    unsigned links;
    bool follow_last;
    bool missing_last; /* the last lookup that failed was of the last name */
};

static size_t count_slashes(const char *s)
{
    size_t n = 0;

    while (s[n] == '/')
        n++;
    return n;
}

static void walk_move(struct walk *w, struct inode *to)
{
    inode_put(w->at);
    w->at = to;
}

static int walk_to_root(struct walk *w)
{
    struct super_block *root = vfs_root();

    if (!root)
        return -ENOENT;
    inode_hold(root->root);
    if (w->at)
        inode_put(w->at);
    w->at = root->root;
    w->full_len = 0;
    w->full[0] = '\0';
    return 0;
}

static int walk_start(struct walk *w, struct inode *base, const char *base_path, const char *path)
{
    if (path[0] == '\0')
        return -ENOENT;
    if (string_copy(w->rest, path, PATH_MAX_BYTES) >= PATH_MAX_BYTES)
        return -ENAMETOOLONG;
    w->next = w->rest;
    if (path[0] == '/' || !base)
        return walk_to_root(w);
    w->full_len = string_copy(w->full, base_path ? base_path : "", PATH_MAX_BYTES);
    if (w->full_len >= PATH_MAX_BYTES)
        return -ENAMETOOLONG;
    while (w->full_len > 0 && w->full[w->full_len - 1] == '/')
        w->full[--w->full_len] = '\0';
    inode_hold(base);
    w->at = base;
    return 0;
}

/* Appends "/name" to full. */
static int push_name(struct walk *w, const char *name, size_t len)
{
    if (w->full_len + 1 + len >= PATH_MAX_BYTES)
        return -ENAMETOOLONG;
    w->full[w->full_len] = '/';
    memcpy(w->full + w->full_len + 1, name, len);
    w->full_len += 1 + len;
    w->full[w->full_len] = '\0';
    return 0;
}

static void pop_name(struct walk *w)
{
    while (w->full_len > 0 && w->full[--w->full_len] != '/')
        ;
    w->full[w->full_len] = '\0';
}

/* Looks a name up in w->at. => 0 and *out with a reference */
static int lookup_name(struct walk *w, const char *name, size_t len, struct inode **out)
{
    struct inode *dir = w->at;
    int error;

    if (!inode_is_dir(dir) || !dir->ops || !dir->ops->lookup)
        return -ENOTDIR;
    rwsem_read_lock(&dir->rwlock);
    error = dir->ops->lookup(dir, name, len, out);
    rwsem_read_unlock(&dir->rwlock);
    return error;
}

/* What stands at w->full, whose last name is this: a mounted file system, or an entry of w->at. */
static int enter_name(struct walk *w, const char *name, size_t len, struct inode **out)
{
    struct super_block *mounted = vfs_mount_at(w->full);

    if (!mounted)
        return lookup_name(w, name, len, out);
    if (!inode_is_dir(w->at))
        return -ENOTDIR;
    inode_hold(mounted->root);
    *out = mounted->root;
    return 0;
}

/* Walks the names of `full` once more, from the root; none of them is a link. */
static int walk_full_again(struct walk *w)
{
    size_t whole_len = w->full_len, at = 0;
    char first = w->full[0];
    int error = walk_to_root(w);

    w->full[0] = first;
    while (!error && at < whole_len) {
        size_t end = at + 1;
        struct inode *child;
        char after;

        while (end < whole_len && w->full[end] != '/')
            end++;
        after = w->full[end];
        w->full[end] = '\0'; /* mounts are looked up by the path so far */
        error = enter_name(w, w->full + at + 1, end - at - 1, &child);
        w->full[end] = after;
        if (!error)
            walk_move(w, child);
        at = end;
    }
    w->full_len = whole_len;
    return error;
}

static int step_up(struct walk *w)
{
    struct inode *parent;
    int error;

    if (w->full_len == 0)
        return 0;
    if (!inode_is_dir(w->at))
        return -ENOTDIR;
    if (vfs_mount_at(w->full)) {
        pop_name(w);
        return walk_full_again(w);
    }
    error = lookup_name(w, "..", 2, &parent);
    if (error)
        return error;
    pop_name(w);
    walk_move(w, parent);
    return 0;
}

/* Puts the target of `link` in front of the rest. w->full is the directory that holds the link. */
static int follow_link(struct walk *w, struct inode *link)
{
    char *target;
    ssize_t len;
    int error = -ENAMETOOLONG;

    if (w->links++ >= LINKS_MAX)
        return -ELOOP;
    if (!link->ops || !link->ops->readlink)
        return -EINVAL;
    target = kmalloc(PATH_MAX_BYTES);
    if (!target)
        return -ENOMEM;
    len = link->ops->readlink(link, target, PATH_MAX_BYTES - 1);
    if (len <= 0) {
        error = len < 0 ? (int)len : -ENOENT;
        goto fail;
    }
    target[len] = '\0';
    if (string_copy(target + len, w->next, PATH_MAX_BYTES - len) >= (size_t)(PATH_MAX_BYTES - len))
        goto fail;
    kfree(w->rest);
    w->rest = target;
    w->next = target;
    return target[0] == '/' ? walk_to_root(w) : 0;
fail:
    kfree(target);
    return error;
}

/* One name that is neither "." nor "..". */
static int step_down(struct walk *w, const char *name, size_t len)
{
    bool is_last = w->next[count_slashes(w->next)] == '\0';
    bool has_slash = *w->next == '/';
    struct inode *child;
    int error;

    if (!inode_is_dir(w->at))
        return -ENOTDIR;
    if (len > NAME_MAX_BYTES)
        return -ENAMETOOLONG;
    error = push_name(w, name, len);
    if (!error)
        error = enter_name(w, name, len, &child);
    if (error) {
        w->missing_last = error == -ENOENT && is_last;
        return error;
    }
    if (inode_is(child, S_IFLNK) && (!is_last || has_slash || w->follow_last)) {
        pop_name(w);
        error = follow_link(w, child);
        inode_put(child);
        return error;
    }
    walk_move(w, child);
    return has_slash && !inode_is_dir(child) ? -ENOTDIR : 0;
}

static int walk_all(struct walk *w)
{
    int error = 0;

    while (!error) {
        const char *name;
        size_t len;

        w->next += count_slashes(w->next);
        if (*w->next == '\0')
            return 0;
        name = w->next;
        while (*w->next && *w->next != '/')
            w->next++;
        len = w->next - name;
        if (len == 1 && name[0] == '.')
            error = inode_is_dir(w->at) ? 0 : -ENOTDIR;
        else if (len == 2 && name[0] == '.' && name[1] == '.')
            error = step_up(w);
        else
            error = step_down(w, name, len);
    }
    return error;
}

int vfs_lookup_missing(struct inode *base, const char *base_path, const char *path,
                       bool follow_last, struct inode **out, char *full, bool *missing_last)
{
    struct walk w = {.follow_last = follow_last,
                     .full = full ? full : kmalloc(PATH_MAX_BYTES),
                     .rest = kmalloc(PATH_MAX_BYTES)};
    int error = -ENOMEM;

    if (w.full && w.rest)
        error = walk_start(&w, base, base_path, path);
    if (!error)
        error = walk_all(&w);
    *missing_last = error == -ENOENT && w.missing_last;
    if (!error || *missing_last) {
        *out = w.at;
        if (w.full_len == 0)
            string_copy(w.full, "/", PATH_MAX_BYTES);
    } else if (w.at) {
        inode_put(w.at);
    }
    kfree(w.rest);
    if (w.full != full)
        kfree(w.full);
    return error;
}

int vfs_lookup(struct inode *base, const char *base_path, const char *path, bool follow_last,
               struct inode **out, char *full)
{
    bool missing_last;
    int error = vfs_lookup_missing(base, base_path, path, follow_last, out, full, &missing_last);

    if (missing_last)
        inode_put(*out);
    return error;
}

/* The last name of a path: where it begins, and its length without the slashes behind it. */
static size_t last_name(const char *path, size_t *len)
{
    size_t end = strlen(path), begin;

    while (end > 0 && path[end - 1] == '/')
        end--;
    begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *len = end - begin;
    return begin;
}

static enum name_kind kind_of_name(const char *name, size_t len)
{
    if (len == 0)
        return NAME_ROOT;
    if (len == 1 && name[0] == '.')
        return NAME_DOT;
    return len == 2 && name[0] == '.' && name[1] == '.' ? NAME_DOT_DOT : NAME_PLAIN;
}

int vfs_lookup_parent(struct inode *base, const char *base_path, const char *path,
                      struct name_place *place)
{
    size_t path_len = strlen(path), begin = last_name(path, &place->len), full_len;
    char *parent;
    int error;

    if (path_len == 0)
        return -ENOENT;
    if (place->len > NAME_MAX_BYTES || path_len >= PATH_MAX_BYTES)
        return -ENAMETOOLONG;
    place->kind = kind_of_name(path + begin, place->len);
    place->has_slash = path[begin + place->len] == '/';
    memcpy(place->name, path + begin, place->len);
    place->name[place->len] = '\0';
    place->full = kmalloc(PATH_MAX_BYTES);
    parent = kmalloc(PATH_MAX_BYTES);
    error = -ENOMEM;
    if (parent && place->full) {
        string_copy(parent, begin ? path : ".", PATH_MAX_BYTES);
        if (begin)
            parent[begin] = '\0';
        error = vfs_lookup(base, base_path, parent, true, &place->dir, place->full);
    }
    kfree(parent);
    if (!error && !inode_is_dir(place->dir)) {
        inode_put(place->dir);
        error = -ENOTDIR;
    }
    if (error) {
        kfree(place->full);
        return error;
    }
    full_len = strlen(place->full);
    if (full_len > 1)
        place->full[full_len++] = '/'; /* the root's path ends with one already */
    string_copy(place->full + full_len, place->name, PATH_MAX_BYTES - full_len);
    return 0;
}

void name_place_put(struct name_place *place)
{
    inode_put(place->dir);
    kfree(place->full);
}
