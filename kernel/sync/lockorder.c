/*
 * The lock-order checker: a graph of lock classes.
 *
 * Row A, bit B of `taken_under` says "a lock of class B was taken while one of class A was held",
 * and `edge_places[A][B]` remembers the two places in the code that said so first. Taking X with H
 * held adds the edge H -> X; if there is already a way X -> ... -> H, two tasks can wait for each
 * other, and the message names both orders. The search runs only when an edge is new, so a warm
 * checker costs a few bit tests.
 *
 * Interrupts: a class that a handler takes must have interrupts off wherever else it is taken, or
 * the handler may spin for the very CPU it interrupted. A handler's locks also come after the
 * spinlocks of the task it interrupted, so those count as held too.
 *
 * `graph_lock` is a bare flag, taken with interrupts off and held for no call out of this file but
 * text formatting.
 */
#include "kernel/sync/lockorder.h"

#ifdef CONFIG_DEBUG

#include "kernel/cpu/cpu.h"
#include "kernel/log/log.h"
#include "kernel/log/report.h"
#include "kernel/sync/atomic.h"
#include "lib/bitmap.h"
#include "lib/format.h"
#include "lib/string.h"

#define MAX_CLASSES          128
#define VIOLATION_TEXT_BYTES 1024

#define MAX_WAYS   1024
#define WAY_PLACES 12

/* Text addresses lie in the upper 2 GiB, so 32 bits name them (see place_address). */
struct edge_place {
    u32 outer; /* where the outer lock had been taken */
    u32 inner; /* where the inner one was taken */
    u32 way;   /* index into ways: how the second one came there; 0: not kept */
};

struct way {
    u32 places[WAY_PLACES]; /* innermost first; zeros behind the last */
};

struct class_use {
    u32 in_interrupt; /* place of the first lock in a handler; 0 = never */
    u32 irqs_on;      /* place of the first lock outside handlers with interrupts on; 0 = never */
};

static u32 graph_lock; /* guards all of the following, but for reads of single bits */
static struct lock_class *classes[MAX_CLASSES]; /* by id; 0 is unused */
static u32 n_classes = 1;
static u64 taken_under[MAX_CLASSES][BITMAP_WORDS(MAX_CLASSES)];
static struct edge_place edge_places[MAX_CLASSES][MAX_CLASSES];
static struct way ways[MAX_WAYS]; /* 0 is unused */
static u32 n_ways = 1;
static struct class_use uses[MAX_CLASSES];

/* The circle that an inversion closes, for the report: inverted[0] taken with inverted[1] held, though before, each was
 * taken with the next one held, and the last with the first. */
static u8 inverted[MAX_CLASSES];
static u32 n_inverted;

static const struct lock_held_list *expected_by; /* whose violation is recorded and not a panic */
static bool violation_seen;
static char violation_text[VIOLATION_TEXT_BYTES];

static struct lock_held_list *(*task_list)(void);
static PERCPU(struct lock_held_list, cpu_list);

static bool graph_enter(void)
{
    bool irqs_were_on = irq_save_disable();

    while (atomic_exchange(&graph_lock, 1))
        cpu_pause();
    return irqs_were_on;
}

static void graph_leave(bool irqs_were_on)
{
    atomic_store(&graph_lock, 0);
    irq_restore(irqs_were_on);
}

static u64 place_address(u32 place)
{
    return (u64)(s64)(s32)place;
}

static struct lock_held_list *interrupted_list(void)
{
    return task_list ? task_list() : NULL;
}

static struct lock_held_list *current_list(void)
{
    struct lock_held_list *list = this_cpu()->irq_depth ? NULL : interrupted_list();

    return list ? list : percpu_this(cpu_list);
}

/* ---- Telling ------------------------------------------------------------------------------- */

static void say_place(size_t *used, u32 place)
{
    u64 offset = 0;
    const char *name = symbol_find(place_address(place), &offset);

    if (name)
        format_append(violation_text, sizeof(violation_text), used, "%s+0x%lx", name, offset);
    else
        format_append(violation_text, sizeof(violation_text), used, "0x%lx", place_address(place));
}

#define SAY(...) format_append(violation_text, sizeof(violation_text), &used, __VA_ARGS__)

/* The text is complete (place: return address of who did it): record it where a test waits for it, else the end. Leaves the graph. */
static void violation_end(enum report_kind kind, u64 place, bool irqs_were_on)
{
    bool expected = expected_by == current_list();

    if (expected) {
        violation_seen = true;
        expected_by = NULL;
    }
    graph_leave(irqs_were_on);
    if (!expected)
        panic_at(kind, place, "lock checker: %s", violation_text);
}

/* "WHAT NAME at PLACE" with one more lock and its place, for all rules that need no path. */
static void violation(const char *what, const struct lock_class *class, u64 caller,
                      const char *and_what, const struct lock_class *other, u64 other_caller)
{
    u64 place =
        backtrace_has(caller, NULL) ? caller : other_caller; /* the other one may be long ago */
    bool irqs_were_on = graph_enter();
    size_t used = 0;

    SAY("%s", what);
    if (class)
        SAY(" %s", class->name);
    if (caller) {
        SAY(" at ");
        say_place(&used, (u32)caller);
    }
    if (and_what)
        SAY("; %s", and_what);
    if (other)
        SAY(" %s", other->name);
    if (other_caller) {
        SAY(" at ");
        say_place(&used, (u32)other_caller);
    }
    violation_end(REPORT_LOCK_RULE, place, irqs_were_on);
}

void lockorder_expect_violation(void)
{
    bool irqs_were_on = graph_enter();

    violation_seen = false;
    expected_by = current_list();
    graph_leave(irqs_were_on);
}

const char *lockorder_take_violation(void)
{
    bool irqs_were_on = graph_enter();
    bool seen = violation_seen;

    violation_seen = false;
    expected_by = NULL;
    graph_leave(irqs_were_on);
    return seen ? violation_text : NULL;
}

/* ---- The graph ----------------------------------------------------------------------------- */

static unsigned class_id(struct lock_class *class)
{
    unsigned id = atomic_load(&class->id);

    if (likely(id))
        return id;
    bool irqs_were_on = graph_enter();

    if (!class->id) {
        if (n_classes == MAX_CLASSES) {
            graph_leave(irqs_were_on);
            panic("lock checker: more than %d lock classes", MAX_CLASSES - 1);
        }
        classes[n_classes] = class;
        atomic_store(&class->id, (u16)n_classes);
        n_classes++;
    }
    id = class->id;
    graph_leave(irqs_were_on);
    return id;
}

/* Breadth first from `from`; previous[x] is the step before x on the shortest way. => reached `to`
 */
static bool find_way(unsigned from, unsigned to, u8 *previous)
{
    static u8 queue[MAX_CLASSES]; /* under graph_lock */
    u64 seen[BITMAP_WORDS(MAX_CLASSES)] = {0};
    unsigned head = 0, tail = 0;

    queue[tail++] = (u8)from;
    bitmap_set(seen, from);
    while (head < tail) {
        unsigned at = queue[head++];

        if (at == to)
            return true;
        for (size_t next = bitmap_find_first_set(taken_under[at], MAX_CLASSES); next < MAX_CLASSES;
             next = bitmap_next_set(taken_under[at], MAX_CLASSES, next + 1)) {
            if (bitmap_test(seen, next))
                continue;
            bitmap_set(seen, next);
            previous[next] = (u8)at;
            queue[tail++] = (u8)next;
        }
    }
    return false;
}

/* `inner` is being taken at `caller` with `outer` held, but there is a way inner -> ... -> outer.
 */
static void say_inversion(unsigned inner, u64 caller, const struct held_lock *outer,
                          const u8 *previous)
{
    size_t used = 0;

    SAY("order inverted: %s taken at ", classes[inner]->name);
    say_place(&used, (u32)caller);
    SAY(" with %s held (taken at ", outer->class->name);
    say_place(&used, (u32)outer->caller);
    SAY(")");
    inverted[0] = (u8)inner;
    n_inverted = 1;
    for (unsigned at = outer->class->id; at != inner; at = previous[at]) {
        inverted[n_inverted++] = (u8)at;
        const struct edge_place *place = &edge_places[previous[at]][at];

        SAY("; before, %s was taken at ", classes[at]->name);
        say_place(&used, place->inner);
        SAY(" with %s held (taken at ", classes[previous[at]]->name);
        say_place(&used, place->outer);
        SAY(")");
    }
}

/* => the way to `caller`, which takes a lock just now; 0 where there is no room. graph_lock held */
static u32 keep_way(u64 caller)
{
    if (n_ways == MAX_WAYS)
        return 0;
    backtrace_take(caller, ways[n_ways].places, WAY_PLACES);
    return n_ways++;
}

static void learn_edge(const struct held_lock *outer, unsigned inner, u64 caller)
{
    unsigned outer_id = class_id(outer->class);
    u8 previous[MAX_CLASSES];

    if (likely(bitmap_test(taken_under[outer_id], inner)))
        return;
    bool irqs_were_on = graph_enter();

    if (find_way(inner, outer_id, previous)) {
        say_inversion(inner, caller, outer, previous);
        violation_end(REPORT_LOCK_ORDER, caller, irqs_were_on);
        return;
    }
    bitmap_set(taken_under[outer_id], inner);
    edge_places[outer_id][inner] =
        (struct edge_place){(u32)outer->caller, (u32)caller, keep_way(caller)};
    graph_leave(irqs_were_on);
}

static void check_against(const struct held_lock *held, struct lock_class *class, const void *lock,
                          u64 caller)
{
    /* A mutex begins with the spinlock that guards it: only class and address together name a lock.
     */
    if (held->lock == lock && held->class == class)
        violation("taken twice:", class, caller, "already held:", held->class, held->caller);
    else if (held->class != class)
        learn_edge(held, class_id(class), caller);
    else if (!class->nests)
        violation("two of one class:", class, caller, "already held:", held->class, held->caller);
}

/* ---- Reports of the locks ------------------------------------------------------------------ */

static void note_in_interrupt(struct lock_class *class, u64 caller)
{
    struct class_use *use = &uses[class_id(class)];

    if (!use->in_interrupt)
        use->in_interrupt = (u32)caller;
    if (unlikely(use->irqs_on))
        violation("taken in an interrupt:", class, caller,
                  "elsewhere it is taken with interrupts on:", class, place_address(use->irqs_on));
}

static void note_irqs_on(struct lock_class *class, u64 caller)
{
    struct class_use *use = &uses[class_id(class)];

    if (unlikely(use->in_interrupt))
        violation("taken with interrupts on:", class, caller, "an interrupt handler takes", class,
                  place_address(use->in_interrupt));
    else if (!use->irqs_on)
        use->irqs_on = (u32)caller;
}

void lockorder_before(struct lock_class *class, const void *lock, u64 caller)
{
    const struct lock_held_list *list = current_list();

    if (panic_in_progress())
        return;
    for (u32 i = 0; i < list->n; i++)
        check_against(&list->held[i], class, lock, caller);
    if (!this_cpu()->irq_depth)
        return;
    note_in_interrupt(class, caller);
    const struct lock_held_list *below = interrupted_list();

    for (u32 i = 0; below && i < below->n; i++) {
        if (below->held[i].class->spins)
            check_against(&below->held[i], class, lock, caller);
    }
}

void lockorder_after(struct lock_class *class, const void *lock, bool shared, u64 caller)
{
    if (panic_in_progress())
        return;
    if (class->spins && irqs_are_on())
        note_irqs_on(class, caller);
    /* An interrupt that comes now finds the list whole: it only reads it, and the count goes up
     * last. */
    struct lock_held_list *list = current_list();

    if (list->n == LOCKORDER_MAX_HELD)
        panic("lock checker: more than %d locks held, at %s", LOCKORDER_MAX_HELD, class->name);
    list->held[list->n] = (struct held_lock){class, lock, caller, shared};
    atomic_store(&list->n, list->n + 1);
}

bool lockorder_release(struct lock_class *class, const void *lock)
{
    struct lock_held_list *list = current_list();

    if (panic_in_progress())
        return true;
    for (u32 i = list->n; i-- > 0;) {
        if (list->held[i].lock != lock || list->held[i].class != class)
            continue;
        for (; i + 1 < list->n; i++)
            list->held[i] = list->held[i + 1];
        list->n--;
        return true;
    }
    violation("released though not held:", class, (u64)__builtin_return_address(0), NULL, NULL, 0);
    return false;
}

void lockorder_might_sleep(const char *what)
{
    const struct lock_held_list *list = current_list();
    u64 caller = (u64)__builtin_return_address(0);

    if (panic_in_progress())
        return;
    if (this_cpu()->irq_depth) {
        violation("sleeps in an interrupt:", NULL, caller, what, NULL, 0);
        return;
    }
    for (u32 i = 0; i < list->n; i++) {
        const struct held_lock *held = &list->held[i];

        if (!held->class->spins)
            continue;
        violation("sleeps with a spinlock held:", held->class, held->caller, what, NULL, caller);
        return;
    }
}

void lockorder_user_return(void)
{
    const struct lock_held_list *list = current_list();

    if (likely(list->n == 0) || panic_in_progress())
        return;
    violation("held at return to user mode:", list->held[0].class, list->held[0].caller, NULL, NULL,
              0);
}

bool lockorder_list_has(const struct lock_held_list *list, const void *lock)
{
    u32 n = MIN(READ_ONCE(list->n), (u32)LOCKORDER_MAX_HELD);

    for (u32 i = 0; i < n; i++) {
        if (READ_ONCE(list->held[i].lock) == lock)
            return true;
    }
    return false;
}

bool lockorder_is_held(const void *lock)
{
    return lockorder_list_has(current_list(), lock);
}

/* ---- The report of an inversion: the ways, and who is right ----------------------------------- */

static void print_ways(const struct report *r, report_line line)
{
    (void)r;
    for (u32 i = 1; i < n_inverted; i++) {
        unsigned inner = inverted[i], outer = inverted[(i + 1) % n_inverted];
        u32 way = edge_places[outer][inner].way;

        line("before, %s was taken with %s held, on this way:", classes[inner]->name,
             classes[outer]->name);
        if (way)
            backtrace_print_taken(ways[way].places, WAY_PLACES, line);
        else
            line("(not kept)");
    }
}

static void print_documented(const struct report *r, report_line line)
{
    (void)r;
    lockorder_print_documented(classes[inverted[1]], classes[inverted[0]], line);
}

static struct report_section sections[] = {
    {REPORT_WAY, REPORT_KIND_BIT(REPORT_LOCK_ORDER), print_ways, NULL},
    {REPORT_TRY, REPORT_KIND_BIT(REPORT_LOCK_ORDER), print_documented, NULL},
};

void lockorder_set_task_list(struct lock_held_list *(*list)(void))
{
    if (!task_list)
        for (unsigned i = 0; i < ARRAY_SIZE(sections); i++)
            report_add_section(&sections[i]);
    task_list = list;
}

void lockorder_print(const struct lock_held_list *list, void (*line)(const char *fmt, ...))
{
    for (u32 i = 0; i < list->n && i < LOCKORDER_MAX_HELD; i++) {
        const struct held_lock *held = &list->held[i];
        u64 offset = 0;
        const char *name = symbol_find(held->caller, &offset);

        line("%s%s %p, taken at %s+0x%lx", held->class->name, held->shared ? " (shared)" : "",
             held->lock, name ? name : "?", offset);
    }
}

#endif
