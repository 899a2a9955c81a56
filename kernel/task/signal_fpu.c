/*
 * The extended registers (x87, SSE, AVX, protection keys) in a signal frame: the XSAVE area as the CPU writes it, with
 * Linux's description of it in bytes that the hardware leaves to software, and a closing magic word behind it.
 * Without XSAVE it is the 512 bytes of FXSAVE alone.
 *
 * The area is built in, and read into, a buffer of its own: switching tasks writes to task->fpu_area.
 * XRSTOR faults in the kernel on what a program may have written there (Intel SDM vol. 1, 13.8), so each of those
 * conditions is looked at first: components that are not enabled, the compacted form, reserved bytes of the header,
 * reserved bits of MXCSR.
 */
#include "kernel/cpu/context.h"
#include "kernel/task/signal.h"
#include "lib/errno.h"
#include "lib/string.h"
#include "mm/core/slab.h"
#include "mm/user_memory.h"

#define FXSAVE_BYTES       512
#define AREA_ALIGN         64
#define MAGIC_BEGIN        0x46505853u
#define MAGIC_END          0x46505845u
#define XSTATE_X87_SSE     3ul
#define MXCSR_MASK_DEFAULT 0xffbfu /* where the CPU says 0 (Intel SDM vol. 1, 11.6.6) */

/* What Linux says about the area, at the end of its FXSAVE part. */
struct area_note {
    u32 magic, total_bytes;
    u64 components;
    u32 state_bytes;
    u32 reserved[7];
};

struct state_area {
    u8 x87[24];
    u32 mxcsr, mxcsr_mask;
    u8 registers[432];
    struct area_note note;
    u64 components; /* XSAVE header */
    u64 compaction;
    u64 reserved[6];
};
_Static_assert(offsetof(struct state_area, note) == 464 &&
                   offsetof(struct state_area, components) == FXSAVE_BYTES,
               "XSAVE area");

/* kmalloc aligns to 16 bytes, XSAVE wants 64. */
struct buffer {
    void *memory;
    struct state_area *area;
};

static bool buffer_create(struct buffer *buffer)
{
    buffer->memory = kzalloc(cpu_features.xsave_size + sizeof(u32) + AREA_ALIGN);
    buffer->area = (struct state_area *)ALIGN_UP((u64)buffer->memory, AREA_ALIGN);
    return buffer->memory != NULL;
}

size_t signal_fpu_bytes(void)
{
    return cpu_features.xsave ? cpu_features.xsave_size + sizeof(u32) : FXSAVE_BYTES;
}

static void describe(struct state_area *area)
{
    area->note = (struct area_note){.magic = MAGIC_BEGIN,
                                    .total_bytes = signal_fpu_bytes(),
                                    .components = cpu_features.xsave_mask,
                                    .state_bytes = cpu_features.xsave_size};
    u32 end = MAGIC_END;
    memcpy((char *)area + cpu_features.xsave_size, &end, sizeof(end));
}

int signal_fpu_save(u64 user_area)
{
    struct buffer buffer;
    if (!buffer_create(&buffer))
        return -ENOMEM;
    fpu_save(buffer.area);
    if (cpu_features.xsave)
        describe(buffer.area);
    int error = copy_to_user(user_area, buffer.area, signal_fpu_bytes());
    if (!error) {
        fpu_state_init(buffer.area);
        fpu_restore(buffer.area);
    }
    kfree(buffer.memory);
    return error;
}

/* Did the kernel, or a program that knows the format, write the whole area? */
static bool is_whole(const struct state_area *area, u64 user_area)
{
    u32 end;
    return area->note.magic == MAGIC_BEGIN && area->note.total_bytes == signal_fpu_bytes() &&
           area->note.state_bytes == cpu_features.xsave_size &&
           copy_from_user(&end, user_area + cpu_features.xsave_size, sizeof(end)) == 0 &&
           end == MAGIC_END;
}

/* The bits of MXCSR that this CPU has; it tells in every image it writes. */
static u32 mxcsr_mask(void)
{
    struct buffer buffer;
    u32 mask = 0;
    if (buffer_create(&buffer)) {
        fpu_save(buffer.area);
        mask = buffer.area->mxcsr_mask;
    }
    kfree(buffer.memory);
    return mask ? mask : MXCSR_MASK_DEFAULT;
}

static bool header_is_valid(const struct state_area *area)
{
    u64 reserved = area->compaction;
    for (unsigned i = 0; i < ARRAY_SIZE(area->reserved); i++)
        reserved |= area->reserved[i];
    return reserved == 0 && !(area->components & ~cpu_features.xsave_mask);
}

/* Fills the buffer with what may be loaded. */
static int read_area(struct state_area *area, u64 user_area)
{
    if (copy_from_user(area, user_area, FXSAVE_BYTES))
        return -EFAULT;
    if (area->mxcsr & ~mxcsr_mask())
        return -EINVAL;
    if (!cpu_features.xsave)
        return 0;
    if (!is_whole(
            area,
            user_area)) { /* the FXSAVE part alone counts; fpu_state_init() filled in the rest */
        area->components |= XSTATE_X87_SSE;
        return 0;
    }
    if (copy_from_user((char *)area + FXSAVE_BYTES, user_area + FXSAVE_BYTES,
                       cpu_features.xsave_size - FXSAVE_BYTES))
        return -EFAULT;
    return header_is_valid(area) ? 0 : -EINVAL;
}

int signal_fpu_restore(u64 user_area)
{
    struct buffer buffer;
    if (user_area % AREA_ALIGN && cpu_features.xsave)
        return -EINVAL;
    if (!buffer_create(&buffer))
        return -ENOMEM;
    fpu_state_init(buffer.area);
    int error = user_area ? read_area(buffer.area, user_area) : 0;
    if (!error)
        fpu_restore(buffer.area);
    kfree(buffer.memory);
    return error;
}
