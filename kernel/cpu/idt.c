/*
 * The interrupt descriptor table: one for all CPUs, every gate an interrupt gate (interrupts off).
 * Source: Intel SDM vol. 3, 6.14.1.
 */
#include "kernel/cpu/setup.h"
#include "kernel/cpu/trap.h"

#define N_VECTORS  256
#define STUB_BYTES 16 /* distance of the stubs in trap.S */

#define GATE_INTERRUPT     0x8e
#define GATE_USER_MAY_CALL 0x60 /* privilege 3: INT3 and INTO */

struct gate {
    u16 offset_low;
    u16 selector;
    u8 ist;
    u8 type;
    u16 offset_middle;
    u32 offset_high;
    u32 reserved;
};
_Static_assert(sizeof(struct gate) == 16, "Intel SDM vol. 3, figure 6-8");

/* Written once at boot, before other CPUs run. */
static struct gate idt[N_VECTORS] __attribute__((aligned(16)));

static u8 ist_of(unsigned vector)
{
    switch (vector) {
    case TRAP_NMI: return IST_NMI;
    case TRAP_DOUBLE_FAULT: return IST_DOUBLE_FAULT;
    case TRAP_MACHINE_CHECK: return IST_MACHINE_CHECK;
    default: return IST_NONE;
    }
}

void idt_build(void)
{
    extern char trap_stubs[];

    for (unsigned vector = 0; vector < N_VECTORS; vector++) {
        u64 stub = (u64)trap_stubs + vector * STUB_BYTES;
        bool user_may_call = vector == TRAP_BREAKPOINT || vector == TRAP_OVERFLOW;

        idt[vector] = (struct gate){
            .offset_low = stub & 0xffff,
            .offset_middle = stub >> 16 & 0xffff,
            .offset_high = stub >> 32,
            .selector = KERNEL_CS,
            .ist = ist_of(vector),
            .type = GATE_INTERRUPT | (user_may_call ? GATE_USER_MAY_CALL : 0),
        };
    }
}

void idt_load(void)
{
    struct {
        u16 limit;
        u64 base;
    } PACKED idtr = {sizeof idt - 1, (u64)idt};

    __asm__ volatile("lidt %0" ::"m"(idtr));
}
