/*
 * The I/O gate.
 *
 * One lock for each gate; nothing is called with it held but the timer and nothing is waited for.
 * A request is in one of three places: `held` (before the driver), with the driver, `delayed`
 * (after it, in order of delivery).
 */
#include "drivers/block/gate.h"
#include "drivers/block/queue.h"
#include "kernel/cpu/clock.h"
#include "kernel/log/log.h"
#include "lib/errno.h"
#include "mm/core/slab.h"

struct gate {
    struct block_device *device;
    struct spinlock lock;                   /* everything below, but for the wait queue */
    struct gate_rule rules[GATE_MAX_RULES]; /* oldest first */
    u32 n_rules;
    struct list held; /* oldest first */
    u32 n_held;
    struct wait_queue held_queue; /* woken when n_held rises */

    struct gate_delay delay;
    u64 disk_free_ns;
    struct list delayed; /* finished by the driver, by deliver_ns */
    struct timer timer;  /* armed for the first of them */

    bool is_logging;
    u32 n_seen;
    struct gate_log_entry log[GATE_LOG_ENTRIES];
};

LOCK_CLASS(gate_class, "gate->lock");

static void gate_timer_expired(struct timer *timer);

/* ---- Set-up ---- */

/* The device's gate, made where there is none. NULL when out of memory. */
static struct gate *gate_get(struct block_device *device)
{
    struct gate *gate = atomic_load(&device->gate);

    if (gate)
        return gate;
    gate = kzalloc(sizeof(*gate));
    if (!gate)
        return NULL;
    gate->device = device;
    spin_init(&gate->lock, &gate_class);
    list_init(&gate->held);
    list_init(&gate->delayed);
    wait_queue_init(&gate->held_queue);
    timer_init(&gate->timer, gate_timer_expired);
    if (!atomic_change(&device->gate, (struct gate *)NULL, gate)) {
        kfree(gate);
        gate = atomic_load(&device->gate);
    }
    return gate;
}

void gate_free(struct gate *gate)
{
    ASSERT(list_is_empty(&gate->held) && list_is_empty(&gate->delayed));
    timer_cancel_sync(&gate->timer);
    kfree(gate);
}

/* ---- The delay model ---- */

u64 gate_delay_deliver_ns(const struct gate_delay *delay, u64 submit_ns, u32 bytes,
                          u64 *disk_free_ns)
{
    u64 finish = MAX(submit_ns, *disk_free_ns) + delay->per_request_ns;

    if (delay->bandwidth)
        finish += (u64)bytes * 1000000000ul / delay->bandwidth;
    *disk_free_ns = finish;
    return finish + delay->latency_ns;
}

static bool gate_delay_is_on(const struct gate_delay *delay)
{
    return delay->latency_ns || delay->per_request_ns || delay->bandwidth;
}

int gate_set_delay(struct block_device *device, const struct gate_delay *delay)
{
    struct gate *gate;
    bool irqs_on;

    if (delay->latency_ns > GATE_MAX_DELAY_NS || delay->per_request_ns > GATE_MAX_DELAY_NS)
        return -EINVAL;
    if (!gate_delay_is_on(delay) && !atomic_load(&device->gate))
        return 0;
    gate = gate_get(device);
    if (!gate)
        return -ENOMEM;
    irqs_on = spin_lock_irq(&gate->lock);
    gate->delay = *delay;
    gate->disk_free_ns = 0;
    spin_unlock_irq(&gate->lock, irqs_on);
    return 0;
}

void gate_get_delay(struct block_device *device, struct gate_delay *delay)
{
    struct gate *gate = atomic_load(&device->gate);
    bool irqs_on;

    *delay = (struct gate_delay){0};
    if (!gate)
        return;
    irqs_on = spin_lock_irq(&gate->lock);
    *delay = gate->delay;
    spin_unlock_irq(&gate->lock, irqs_on);
}

static void gate_charge_locked(struct gate *gate, struct block_request *request)
{
    if (gate_delay_is_on(&gate->delay))
        request->deliver_ns =
            gate_delay_deliver_ns(&gate->delay, clock_ns(), request->bytes, &gate->disk_free_ns);
}

/* Puts the request where its time of delivery says, behind those of the same time. */
static void gate_delay_request_locked(struct gate *gate, struct block_request *request)
{
    struct list *behind = gate->delayed.prev;

    while (behind != &gate->delayed &&
           list_entry(behind, struct block_request, link)->deliver_ns > request->deliver_ns)
        behind = behind->prev;
    list_add_head(behind, &request->link);
    if (gate->delayed.next == &request->link)
        timer_arm(&gate->timer, request->deliver_ns);
}

/* A real device that took longer than the model is passed on from its own interrupt; what did not
 * come by an interrupt is never passed on but by the timer's. */
bool gate_filter_done(struct gate *gate, struct block_request *request)
{
    bool irqs_on;

    if (!request->deliver_ns)
        return false;
    if (this_cpu()->irq_depth && clock_ns() >= request->deliver_ns)
        return false;
    irqs_on = spin_lock_irq(&gate->lock);
    gate_delay_request_locked(gate, request);
    spin_unlock_irq(&gate->lock, irqs_on);
    return true;
}

static void gate_timer_expired(struct timer *timer)
{
    struct gate *gate = container_of(timer, struct gate, timer);
    struct list due = LIST_INIT(due);
    bool irqs_on = spin_lock_irq(&gate->lock);
    u64 now = clock_ns();

    while (!list_is_empty(&gate->delayed)) {
        struct block_request *request = list_first(&gate->delayed, struct block_request, link);

        if (request->deliver_ns > now) {
            timer_arm(&gate->timer, request->deliver_ns);
            break;
        }
        list_del(&request->link);
        list_add_tail(&due, &request->link);
    }
    spin_unlock_irq(&gate->lock, irqs_on);

    while (!list_is_empty(&due)) {
        struct block_request *request = list_first(&due, struct block_request, link);

        list_del(&request->link);
        block_request_finish(request);
    }
}

/* ---- Rules ---- */

static bool rule_fits(const struct gate_rule *rule, const struct block_request *request)
{
    u64 n_sectors = request->bytes / SECTOR_SIZE;

    return n_sectors && request->sector <= rule->last &&
           request->sector + n_sectors - 1 >= rule->first;
}

static void rule_drop_locked(struct gate *gate, u32 at)
{
    gate->n_rules--;
    for (u32 i = at; i < gate->n_rules; i++)
        gate->rules[i] = gate->rules[i + 1];
}

/* The rule that decides about the request, one of its uses taken. => false: none */
static bool rule_take_locked(struct gate *gate, const struct block_request *request, int *error)
{
    for (u32 i = 0; i < gate->n_rules; i++) {
        struct gate_rule *rule = &gate->rules[i];

        if (!rule_fits(rule, request))
            continue;
        *error = rule->error;
        if (rule->left && --rule->left == 0)
            rule_drop_locked(gate, i);
        return true;
    }
    return false;
}

static int rule_add(struct block_device *device, u64 first, u64 last, int error, u32 count)
{
    struct gate *gate = gate_get(device);
    int result = -ENOSPC;
    bool irqs_on;

    if (!gate)
        return -ENOMEM;
    irqs_on = spin_lock_irq(&gate->lock);
    if (gate->n_rules < GATE_MAX_RULES) {
        gate->rules[gate->n_rules++] = (struct gate_rule){first, last, count, error};
        result = 0;
    }
    spin_unlock_irq(&gate->lock, irqs_on);
    return result;
}

int gate_hold(struct block_device *device, u64 first_sector, u64 last_sector, u32 count)
{
    return rule_add(device, first_sector, last_sector, 0, count);
}

int gate_fail(struct block_device *device, u64 first_sector, u64 last_sector, int error, u32 count)
{
    return rule_add(device, first_sector, last_sector, error, count);
}

bool gate_rule_get(struct block_device *device, unsigned index, struct gate_rule *out)
{
    struct gate *gate = atomic_load(&device->gate);
    bool is_found, irqs_on;

    if (!gate)
        return false;
    irqs_on = spin_lock_irq(&gate->lock);
    is_found = index < gate->n_rules;
    if (is_found)
        *out = gate->rules[index];
    spin_unlock_irq(&gate->lock, irqs_on);
    return is_found;
}

/* ---- Passing, holding, releasing ---- */

static void gate_log_locked(struct gate *gate, const struct block_request *request)
{
    if (!gate->is_logging)
        return;
    if (gate->n_seen < GATE_LOG_ENTRIES)
        gate->log[gate->n_seen] =
            (struct gate_log_entry){request->sector, request->bytes, request->flags};
    gate->n_seen++;
}

bool gate_filter(struct gate *gate, struct block_request *request)
{
    bool irqs_on = spin_lock_irq(&gate->lock);
    int error = 0;
    bool is_caught;

    gate_log_locked(gate, request);
    is_caught = rule_take_locked(gate, request, &error);
    if (is_caught && !error) {
        list_add_tail(&gate->held, &request->link);
        gate->n_held++;
    } else {
        gate_charge_locked(gate, request);
    }
    spin_unlock_irq(&gate->lock, irqs_on);

    if (!is_caught)
        return false;
    if (!error) {
        wait_wake_all(&gate->held_queue);
        return true;
    }
    request->error = error;
    if (!gate_filter_done(gate, request))
        block_request_finish(request);
    return true;
}

static struct block_request *held_find_locked(struct gate *gate, unsigned index)
{
    struct block_request *request;

    list_for_each (request, &gate->held, link) {
        if (index-- == 0)
            return request;
    }
    return NULL;
}

static struct block_request *held_take(struct gate *gate, unsigned index)
{
    bool irqs_on = spin_lock_irq(&gate->lock);
    struct block_request *found = held_find_locked(gate, index);

    if (found) {
        list_del(&found->link);
        gate->n_held--;
        gate_charge_locked(gate, found);
    }
    spin_unlock_irq(&gate->lock, irqs_on);
    return found;
}

bool gate_held_get(struct block_device *device, unsigned index, struct gate_log_entry *out)
{
    struct gate *gate = atomic_load(&device->gate);
    struct block_request *request;
    bool irqs_on;

    if (!gate)
        return false;
    irqs_on = spin_lock_irq(&gate->lock);
    request = held_find_locked(gate, index);
    if (request)
        *out = (struct gate_log_entry){request->sector, request->bytes, request->flags};
    spin_unlock_irq(&gate->lock, irqs_on);
    return request != NULL;
}

int gate_release(struct block_device *device, unsigned index)
{
    struct gate *gate = atomic_load(&device->gate);
    struct block_request *request = gate ? held_take(gate, index) : NULL;

    if (!request)
        return -ENOENT;
    block_dispatch(request);
    return 0;
}

void gate_release_all(struct block_device *device)
{
    unsigned n = gate_held(device); /* those that arrive meanwhile stay */

    while (n-- > 0 && gate_release(device, 0) == 0) {
    }
}

void gate_open(struct block_device *device)
{
    struct gate *gate = atomic_load(&device->gate);
    bool irqs_on;

    if (!gate)
        return;
    irqs_on = spin_lock_irq(&gate->lock);
    while (gate->n_rules)
        rule_drop_locked(gate, 0);
    spin_unlock_irq(&gate->lock, irqs_on);
    gate_release_all(device);
}

unsigned gate_held_now(const struct block_device *device)
{
    const struct gate *gate = READ_ONCE(device->gate);

    return gate ? READ_ONCE(gate->n_held) : 0;
}

unsigned gate_held(struct block_device *device)
{
    struct gate *gate = atomic_load(&device->gate);

    return gate ? READ_ONCE(gate->n_held) : 0;
}

void gate_wait_held(struct block_device *device, unsigned at_least)
{
    struct gate *gate = gate_get(device);

    ASSERT(gate);
    WAIT_HOWEVER_LONG_FOR(&gate->held_queue, gate_held(device) >= at_least,
                          "%lu requests held in the gate of device %lx", at_least, device->dev);
}

int gate_wait_held_killable(struct block_device *device, unsigned at_least)
{
    struct gate *gate = gate_get(device);
    struct waiter w;
    int error = 0;

    if (!gate)
        return -ENOMEM;
    wait_begin(&gate->held_queue, &w, "%lu requests held in the gate of device %lx", at_least,
               device->dev);
    while (gate_held(device) < at_least && !error)
        error = wait_sleep_killable(&w, 0);
    wait_end(&gate->held_queue, &w);
    return error;
}

/* ---- The log ---- */

void gate_log_reset(struct block_device *device)
{
    struct gate *gate = gate_get(device);
    bool irqs_on;

    ASSERT(gate);
    irqs_on = spin_lock_irq(&gate->lock);
    gate->is_logging = true;
    gate->n_seen = 0;
    spin_unlock_irq(&gate->lock, irqs_on);
}

unsigned gate_log(struct block_device *device, struct gate_log_entry *out, unsigned max)
{
    struct gate *gate = gate_get(device);
    unsigned n_seen, n_copied;
    bool irqs_on;

    ASSERT(gate);
    irqs_on = spin_lock_irq(&gate->lock);
    gate->is_logging = true;
    n_seen = gate->n_seen;
    n_copied = MIN(MIN(n_seen, GATE_LOG_ENTRIES), max);
    for (unsigned i = 0; i < n_copied; i++)
        out[i] = gate->log[i];
    spin_unlock_irq(&gate->lock, irqs_on);
    return n_seen;
}
