/*
 * Basic types and helpers that every room uses. Pure: also compiled for the host.
 */
#ifndef LIB_TYPES_H
#define LIB_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

typedef u64 phys_t;  /* physical address in bytes */
typedef u64 pfn_t;   /* page frame number: phys_t / PAGE_SIZE */
typedef u64 pgoff_t; /* page index within a file */

#if __STDC_HOSTED__
#include <sys/types.h>
#else
typedef s64 ssize_t;
typedef s64 off_t;
#endif

#define PAGE_SHIFT       12
#define PAGE_SIZE        4096ul
#define PAGE_MASK        (~(PAGE_SIZE - 1))
#define SECTOR_SHIFT     9
#define SECTOR_SIZE      512ul
#define SECTORS_PER_PAGE (PAGE_SIZE / SECTOR_SIZE)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* MIN and MAX evaluate an argument twice: never a call or a load that may change in between. */
#define MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define MAX(a, b)                       ((a) > (b) ? (a) : (b))
#define ALIGN_DOWN(x, a)                ((x) & ~((__typeof__(x))(a)-1))
#define ALIGN_UP(x, a)                  ALIGN_DOWN((x) + ((__typeof__(x))(a)-1), a)
#define IS_ALIGNED(x, a)                (((x) & ((__typeof__(x))(a)-1)) == 0)
#define DIV_ROUND_UP(x, d)              (((x) + (d)-1) / (d))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define likely(x)              __builtin_expect(!!(x), 1)
#define unlikely(x)            __builtin_expect(!!(x), 0)
#define PACKED                 __attribute__((packed))
#define NORETURN               __attribute__((noreturn))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define MUST_CHECK             __attribute__((warn_unused_result))

#define READ_ONCE(x)     (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#endif
