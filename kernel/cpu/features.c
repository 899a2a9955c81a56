/*
 * What the CPU can do, and switching it on: paging protections, system calls, protection keys.
 *
 * FSGSBASE stays off: with it a program could load a kernel address into its GS base, and the entry
 * of an NMI tells the kernel's GS base from a program's by its sign (trap.S).
 *
 * Source: Intel SDM vol. 2, CPUID; vol. 3, 2.5 (control registers), 5.8.8 (SYSCALL).
 */
#include "kernel/cpu/cpu.h"
#include "kernel/cpu/setup.h"
#include "kernel/cpu/trap.h"
#include "lib/string.h"

#define MSR_STAR       0xc0000081u
#define MSR_LSTAR      0xc0000082u
#define MSR_FMASK      0xc0000084u
#define STAR_USER_BASE 0x1bul /* SYSRET: stack segment base + 8, code segment base + 16 */

#define RFLAGS_TF   (1ul << 8)
#define RFLAGS_DF   (1ul << 10)
#define RFLAGS_IOPL (3ul << 12)
#define RFLAGS_NT   (1ul << 14)
#define RFLAGS_RF   (1ul << 16)
#define RFLAGS_AC   (1ul << 18)

#define PKRU_INDEX 0

#define SMAP_SITE_BYTES 3

struct cpu_features cpu_features;

struct cpuid {
    u32 a, b, c, d;
};

static struct cpuid cpuid(u32 leaf, u32 subleaf)
{
    struct cpuid r;

    __asm__ volatile("cpuid"
                     : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d)
                     : "a"(leaf), "c"(subleaf));
    return r;
}

static void detect_brand(u32 max_extended)
{
    if (max_extended < 0x80000004)
        return;
    for (u32 i = 0; i < 3; i++) {
        struct cpuid r = cpuid(0x80000002 + i, 0);
        memcpy(cpu_features.brand + 16 * i, &r, 16);
    }
}

void cpu_detect_features(void)
{
    struct cpu_features *f = &cpu_features;
    u32 max_basic = cpuid(0, 0).a, max_extended = cpuid(0x80000000, 0).a;
    struct cpuid one = cpuid(1, 0), ext = cpuid(0x80000001, 0);

    f->machine_check = one.d & 1u << 7;
    f->pge = one.d & 1u << 13;
    f->xsave = one.c & 1u << 26;
    f->avx = one.c & 1u << 28;
    f->nx = ext.d & 1u << 20;
    f->gib_pages = ext.d & 1u << 26;
    f->rdtscp = ext.d & 1u << 27;
    if (max_basic >= 7) {
        struct cpuid seven = cpuid(7, 0);
        f->fsgsbase = seven.b & 1u << 0;
        f->smep = seven.b & 1u << 7;
        f->erms = seven.b & 1u << 9;
        f->smap = seven.b & 1u << 20;
        f->umip = seven.c & 1u << 2;
        f->pku = seven.c & 1u << 3;
    }
    f->invariant_tsc = max_extended >= 0x80000007 && (cpuid(0x80000007, 0).d & 1u << 8);
    f->phys_bits = max_extended >= 0x80000008 ? cpuid(0x80000008, 0).a & 0xff : 36;
    detect_brand(max_extended);
    fpu_detect();
}

void cpu_enable_features(void)
{
    const struct cpu_features *f = &cpu_features;
    u64 cr0 = CPU_READ_CR(0), cr4 = CPU_READ_CR(4);

    cr0 |= CR0_MP | CR0_NE | CR0_WP | CR0_AM;
    cr0 &= ~(CR0_EM | CR0_TS | CR0_NW | CR0_CD);
    cr4 |= CR4_OSFXSR | CR4_OSXMMEXCPT;
    cr4 |= f->machine_check ? CR4_MCE : 0;
    cr4 |= f->pge ? CR4_PGE : 0;
    cr4 |= f->umip ? CR4_UMIP : 0;
    cr4 |= f->xsave ? CR4_OSXSAVE : 0;
    cr4 |= f->smep ? CR4_SMEP : 0;
    cr4 |= f->smap ? CR4_SMAP : 0;
    cr4 |= f->pku ? CR4_PKE : 0;
    cr4 &= ~CR4_FSGSBASE;
    CPU_WRITE_CR(0, cr0);
    msr_write(MSR_EFER, msr_read(MSR_EFER) | EFER_SCE | (f->nx ? EFER_NXE : 0));
    CPU_WRITE_CR(4, cr4);
    if (f->pku)
        __asm__ volatile("wrpkru" ::"a"(PKRU_DEFAULT), "c"(PKRU_INDEX), "d"(0));
    fpu_enable();
}

void syscall_entry_enable(void)
{
    extern char trap_syscall_entry[];

    msr_write(MSR_STAR, STAR_USER_BASE << 48 | (u64)KERNEL_CS << 32);
    msr_write(MSR_LSTAR, (u64)trap_syscall_entry);
    msr_write(MSR_FMASK,
              RFLAGS_TF | RFLAGS_IF | RFLAGS_DF | RFLAGS_IOPL | RFLAGS_NT | RFLAGS_RF | RFLAGS_AC);
}

/* A place in the text where STAC or CLAC belongs: three bytes that do nothing until patched. */
struct smap_site {
    s32 place; /* relative to this field */
    u32 is_stac;
};
extern struct smap_site trap_smap_sites[], trap_smap_sites_end[];
extern struct smap_site uaccess_smap_sites[], uaccess_smap_sites_end[];

static void patch_sites(struct smap_site *from, struct smap_site *to)
{
    static const u8 stac[SMAP_SITE_BYTES] = {0x0f, 0x01, 0xcb},
                    clac[SMAP_SITE_BYTES] = {0x0f, 0x01, 0xca};

    for (struct smap_site *site = from; site < to; site++)
        memcpy((char *)&site->place + site->place, site->is_stac ? stac : clac, SMAP_SITE_BYTES);
}

void cpu_patch_smap(void)
{
    if (!cpu_features.smap)
        return;
    patch_sites(trap_smap_sites, trap_smap_sites_end);
    patch_sites(uaccess_smap_sites, uaccess_smap_sites_end);
}
