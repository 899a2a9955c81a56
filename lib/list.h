/*
 * Doubly linked circular list, intrusive. A head that points at itself is empty.
 * The caller's lock guards the list.
 */
#ifndef LIB_LIST_H
#define LIB_LIST_H

#include "lib/types.h"

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name)  \
    {                    \
        &(name), &(name) \
    }

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_insert_between(struct list *node, struct list *prev, struct list *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void list_add_head(struct list *head, struct list *node)
{
    list_insert_between(node, head, head->next);
}

static inline void list_add_tail(struct list *head, struct list *node)
{
    list_insert_between(node, head->prev, head);
}

/* Unlinks the node and leaves it an empty list: list_is_empty(node) tells "not queued". */
static inline void list_del(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Moves every node of `from` to the tail of `to`; `from` is empty afterwards. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_first(head, type, member) list_entry((head)->next, type, member)

#define list_for_each(pos, head, member)                                           \
    for (pos = list_first(head, __typeof__(*pos), member); &pos->member != (head); \
         pos = list_entry(pos->member.next, __typeof__(*pos), member))

/* As list_for_each, but the body may unlink or free `pos`. */
#define list_for_each_safe(pos, tmp, head, member)                    \
    for (pos = list_first(head, __typeof__(*pos), member),            \
        tmp = list_entry(pos->member.next, __typeof__(*pos), member); \
         &pos->member != (head);                                      \
         pos = tmp, tmp = list_entry(pos->member.next, __typeof__(*pos), member))

#endif
