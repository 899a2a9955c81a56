/*
 * Atomic helpers over the compiler's __atomic builtins, named for what they are used for here.
 */
#ifndef KERNEL_SYNC_ATOMIC_H
#define KERNEL_SYNC_ATOMIC_H

#include "lib/types.h"

#define atomic_load(p)        __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define atomic_store(p, v)    __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define atomic_add(p, v)      __atomic_add_fetch(p, v, __ATOMIC_ACQ_REL) /* => the new value */
#define atomic_sub(p, v)      __atomic_sub_fetch(p, v, __ATOMIC_ACQ_REL)
#define atomic_or(p, v)       __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL) /* => the old value */
#define atomic_and(p, v)      __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL)
#define atomic_exchange(p, v) __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL)
#define atomic_fence()        __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* If *p is `old`, it becomes `new_`. => whether it was */
#define atomic_change(p, old, new_)                                               \
    ({                                                                            \
        __typeof__(*(p)) expected_ = (old);                                       \
        __atomic_compare_exchange_n(p, &expected_, new_, false, __ATOMIC_ACQ_REL, \
                                    __ATOMIC_ACQUIRE);                            \
    })

#endif
