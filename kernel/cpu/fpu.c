/*
 * The extended state of user threads: x87, SSE, AVX and the protection-key register. The kernel
 * itself uses none of it (-mgeneral-regs-only), so it is saved and restored only when the CPU goes
 * to another thread.
 *
 * With XSAVE the area has the standard format; without, it is an FXSAVE image.
 * Source: Intel SDM vol. 1, 10.5 (FXSAVE) and 13 (XSAVE).
 */
#include "kernel/cpu/context.h"
#include "kernel/cpu/setup.h"
#include "lib/string.h"

#define XSTATE_X87        (1ul << 0)
#define XSTATE_SSE        (1ul << 1)
#define XSTATE_AVX        (1ul << 2)
#define XSTATE_PKRU       (1ul << 9)
#define XSTATE_PKRU_INDEX 9

#define FXSAVE_BYTES  512
#define FCW_DEFAULT   0x37f  /* all exceptions masked, extended precision */
#define MXCSR_DEFAULT 0x1f80 /* all exceptions masked, round to nearest */

#define CPUID_XSTATE 0xd

struct xsave_area {
    u16 fcw, fsw;
    u8 ftw, reserved0;
    u16 fop;
    u64 fip, fdp;
    u32 mxcsr, mxcsr_mask;
    u8 registers[480];
    u64 xstate_bv; /* here the XSAVE header begins */
    u64 xcomp_bv;
    u64 reserved1[6];
};
_Static_assert(offsetof(struct xsave_area, xstate_bv) == FXSAVE_BYTES, "Intel SDM vol. 1, 13.4.1");

static void xcr0_write(u64 v)
{
    __asm__ volatile("xsetbv" ::"c"(0), "a"((u32)v), "d"((u32)(v >> 32)));
}

static void cpuid_xstate(u32 subleaf, u32 *a, u32 *b)
{
    u32 c, d;

    __asm__ volatile("cpuid"
                     : "=a"(*a), "=b"(*b), "=c"(c), "=d"(d)
                     : "a"(CPUID_XSTATE), "c"(subleaf));
}

/* Boot CPU, once, before fpu_enable(). The size is known only after XCR0 has been set. */
void fpu_detect(void)
{
    struct cpu_features *f = &cpu_features;

    f->xsave_size = FXSAVE_BYTES;
    if (!f->xsave)
        return;
    u32 supported, b;
    cpuid_xstate(0, &supported, &b);
    f->xsave_mask = XSTATE_X87 | XSTATE_SSE;
    if (f->avx && (supported & XSTATE_AVX))
        f->xsave_mask |= XSTATE_AVX;
    if (f->pku && (supported & XSTATE_PKRU)) {
        f->xsave_mask |= XSTATE_PKRU;
        u32 bytes;
        cpuid_xstate(XSTATE_PKRU_INDEX, &bytes, &f->pkru_offset);
    }
}

void fpu_enable(void)
{
    struct cpu_features *f = &cpu_features;
    u32 mxcsr = MXCSR_DEFAULT;

    if (f->xsave) {
        u32 a;
        xcr0_write(f->xsave_mask);
        cpuid_xstate(0, &a, &f->xsave_size); /* the same on every CPU */
    }
    __asm__ volatile("fninit\n\tldmxcsr %0" ::"m"(mxcsr));
}

void fpu_state_init(void *area)
{
    struct xsave_area *x = area;

    memset(x, 0, cpu_features.xsave_size);
    x->fcw = FCW_DEFAULT;
    x->mxcsr = MXCSR_DEFAULT;
    if (!cpu_features.xsave)
        return;
    x->xstate_bv = XSTATE_X87 | XSTATE_SSE;
    if (cpu_features.pkru_offset) {
        x->xstate_bv |= XSTATE_PKRU;
        *(u32 *)((char *)area + cpu_features.pkru_offset) = PKRU_DEFAULT;
    }
}

void fpu_save(void *area)
{
    u64 mask = cpu_features.xsave_mask;

    if (cpu_features.xsave)
        __asm__ volatile("xsave64 (%0)" ::"r"(area), "a"((u32)mask), "d"((u32)(mask >> 32))
                         : "memory");
    else
        __asm__ volatile("fxsave64 (%0)" ::"r"(area) : "memory");
}

void fpu_restore(const void *area)
{
    u64 mask = cpu_features.xsave_mask;

    if (cpu_features.xsave)
        __asm__ volatile("xrstor64 (%0)" ::"r"(area), "a"((u32)mask), "d"((u32)(mask >> 32))
                         : "memory");
    else
        __asm__ volatile("fxrstor64 (%0)" ::"r"(area) : "memory");
    if (cpu_features.pku && !cpu_features.pkru_offset) /* not part of the area: the same for all */
        __asm__ volatile("wrpkru" ::"a"(PKRU_DEFAULT), "c"(0), "d"(0));
}
