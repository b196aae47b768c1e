/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sampling program of profile.bpf.c as a program of the host. Its standard input tells what a
 * CPU does at each sample; it writes what the program hands over.
 *
 * A line is a number of samples, the CPU, the process, the thread, what is interrupted (`idle`,
 * `user`, `kernel`, `softirq` or `hardirq`), and the innermost addresses of the kernel's stack and
 * of the user's, 0 where there is none. Samples are 1 ms apart, which is the period of each.
 */
#define TARDY_BPF_H
#include "../vmlinux.h"

#include <stdio.h>
#include <string.h>

#undef SEC
#define SEC(name)
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define BPF_CORE_READ(from, field) ((from)->field)
#define bpf_core_field_exists(field...) 0
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
#define bpf_map_lookup_elem(map, key) look_up(map)
#define bpf_probe_read_kernel(to, size, from) memcpy(to, from, size)
#define bpf_get_smp_processor_id() cpu
#define bpf_get_current_pid_tgid() ((u64)pid << 32 | tid)
#define bpf_get_current_task() (&task)
#define bpf_get_current_comm(to, size) snprintf(to, size, "task%u", tid)
#define bpf_ktime_get_ns() now_at
#define bpf_ringbuf_output(ring, data, size, flags) (fwrite(data, size, 1, stdout) != 1)

static u64 now_at, kernel_address, user_address;
static u32 cpu, pid, tid;
/* The preempt count lies where the run queue begins: at offset 0. */
static union {
    struct rq queue;
    u32 preempt_count;
} run_queue;
static struct task_struct task = { .se.cfs_rq = &run_queue.queue.cfs };

static void *look_up(void *map);

static s64 bpf_get_stack(void *event, u64 *into, u32 size, u64 flags)
{
    u64 address = flags & BPF_F_USER_STACK ? user_address : kernel_address;

    into[0] = address;
    return address ? sizeof(*into) : 0;
}

#include "../profile.bpf.c"

static void *look_up(void *map)
{
    static struct tardy_sample sample;
    static struct tardy_sample_cost cost;

    return map == &scratch ? (void *)&sample : (void *)&cost;
}

int main(void)
{
    struct sample_event event = { .period = 1000000 };
    char line[128], context[16];
    unsigned long long kernel, user;
    unsigned count;

    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%u %u %u %u %15s %llx %llx", &count, &cpu, &pid, &tid, context, &kernel,
                   &user) != 7)
            return 2;
        kernel_address = kernel;
        user_address = user;
        /* The interrupt of the sample itself is one of the count. */
        run_queue.preempt_count = 1 << HARDIRQ_SHIFT;
        if (!strcmp(context, "softirq"))
            run_queue.preempt_count += SOFTIRQ_SERVED;
        else if (!strcmp(context, "hardirq"))
            run_queue.preempt_count += 1 << HARDIRQ_SHIFT;
        while (count--) {
            now_at += event.period;
            on_sample(&event);
        }
    }
    return 0;
}
