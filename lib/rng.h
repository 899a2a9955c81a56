/*
 * A seeded pseudo-random generator (splitmix64: a counter in golden-ratio steps, mixed). The same
 * seed gives the same sequence everywhere: tests and sync.seed=N rely on it. Not for secrets.
 */
#ifndef LIB_RNG_H
#define LIB_RNG_H

#include "lib/hash.h"
#include "lib/types.h"

#define RNG_STEP 0x9e3779b97f4a7c15ul

struct rng {
    u64 state; /* the owner's: one generator per CPU, thread or test */
};

static inline void rng_seed(struct rng *rng, u64 seed)
{
    rng->state = seed;
}

static inline u64 rng_next(struct rng *rng)
{
    rng->state += RNG_STEP;
    return mix64(rng->state);
}

/* A number in [0, n); n > 0. The bias is n / 2^64. */
static inline u64 rng_below(struct rng *rng, u64 n)
{
    return (u64)(((unsigned __int128)rng_next(rng) * n) >> 64);
}

/* True once in n times. */
static inline bool rng_one_in(struct rng *rng, u64 n)
{
    return rng_below(rng, n) == 0;
}

#endif
