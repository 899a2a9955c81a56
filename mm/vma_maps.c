/*
 * The line of /proc/PID/maps for an area (proc(5)):
 *
 *     7f0000001000-7f0000003000 r--s 00001000 fe:00 12                         /data/file
 *     start        end               offset   dev   inode                      path, from column 73
 */
#include "lib/format.h"
#include "lib/string.h"
#include "mm/vma.h"

#define PATH_COLUMN 73

/* Device numbers as stat(2) shows them: the minor's upper bits lie above the major. */
static unsigned dev_major(u64 dev)
{
    return (dev >> 8) & 0xfff;
}

static unsigned dev_minor(u64 dev)
{
    return (dev & 0xff) | ((dev >> 12) & 0xfff00);
}

static size_t format_columns(const struct vma *vma, char *buf, size_t size)
{
    const struct page_cache *cache = vma->file ? vma->file->cache : NULL;
    u64 dev = cache ? cache->dev : 0;
    size_t used = 0;

    format_append(buf, size, &used, "%08lx-%08lx %c%c%c%c %08lx %02x:%02x %lu ", vma->start,
                  vma->end, vma->prot & PROT_READ ? 'r' : '-', vma->prot & PROT_WRITE ? 'w' : '-',
                  vma->prot & PROT_EXEC ? 'x' : '-', vma->flags & VMA_SHARED ? 's' : 'p',
                  cache ? vma->pgoff << PAGE_SHIFT : 0, dev_major(dev), dev_minor(dev),
                  cache ? cache->ino : 0);
    return used;
}

/* A newline in a path would look like the end of the line: it is written as \012. */
static void escape_newlines(char *text, size_t size)
{
    static const char escape[] = "\\012";
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n')
            continue;
        if (len + sizeof(escape) - 2 >= size) {
            text[i] = '\0';
            return;
        }
        memmove(text + i + sizeof(escape) - 1, text + i + 1, len - i);
        memcpy(text + i, escape, sizeof(escape) - 1);
        len += sizeof(escape) - 2;
    }
}

static bool is_stack(const struct vma *vma)
{
    u64 last = vma->mm->stack_top - 1;

    return vma->flags & VMA_STACK ||
           (vma->flags & VMA_GROWSDOWN && vma->start <= last && last < vma->end);
}

/* The last column; empty for memory without a name. */
static void format_name(struct vma *vma, char *buf, size_t size)
{
    buf[0] = '\0';
    if (vma->file && vma->file->path)
        vma->file->path(vma->file, buf, size);
    else if (!vma->file && vma->start < vma->mm->brk_end && vma->end > vma->mm->brk_start)
        format_to(buf, size, "[heap]");
    else if (!vma->file && is_stack(vma))
        format_to(buf, size, "[stack]");
    buf[size - 1] = '\0';
    escape_newlines(buf, size);
}

int vma_format_maps_line(struct vma *vma, char *buf, size_t size)
{
    size_t used = format_columns(vma, buf, size - 1);
    size_t name_at = MAX(used, (size_t)PATH_COLUMN);

    if (name_at + 2 < size) {
        format_name(vma, buf + name_at, size - 1 - name_at);
        if (buf[name_at]) {
            memset(buf + used, ' ', name_at - used);
            used = name_at + strlen(buf + name_at);
        }
    }
    buf[used++] = '\n';
    buf[used] = '\0';
    return (int)used;
}
