/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Stands for libbpf's header of this name where the programs are compiled for the host: what the
 * kernel gives them comes from the machine of `replay.h`.
 */
#ifndef TARDY_HOST_HELPERS_H
#define TARDY_HOST_HELPERS_H

#include <string.h>

/* Constants of the programs are set before they run. */
#define const

#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(x) __asm__ volatile("" : "+r"(x))

#define bpf_map_lookup_elem(map, key) look_up((void *)(map), *(key))
#define bpf_map_update_elem(map, key, value, flags) insert((void *)(map), *(key))
#define bpf_ringbuf_output(ring, data, size, flags) output(data, size)
#define bpf_probe_read_kernel(to, size, from) (memcpy(to, (void *)(from), size), 0)
#define bpf_probe_read_kernel_str(to, size, from) strncpy((char *)(to), from, (size) - 1)
#define bpf_get_stack(ctx, to, size, flags) (-1)

/* Up to 1 << 23 times, unless the function says 1. */
#define bpf_loop(times, function, context, flags)                                                  \
    do {                                                                                           \
        for (u32 at = 0; at < (u32)(times); at++)                                                  \
            if (function(at, context))                                                             \
                break;                                                                             \
    } while (0)

static void *look_up(void *map, u64 key);
static void insert(void *map, u64 key);
static int output(void *data, u64 size);
static u32 bpf_get_smp_processor_id(void);
static u64 bpf_get_current_pid_tgid(void);
static struct task_struct *bpf_get_current_task_btf(void);
static u64 bpf_ktime_get_ns(void);
static void *bpf_task_pt_regs(struct task_struct *task);
static long bpf_probe_read_user(void *to, u32 size, void *from);

#endif
