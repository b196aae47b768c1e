/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The programs of attach.bpf.c as a program of the host, which is told by its standard input what a
 * thread does, and whether that is seen; it writes the record of the thread.
 *
 * A line is a time in ns and one of: `arm EXPIRY`, of the timer of its sleep; `armfor EXPIRY`, of
 * one of a sleep for a time; `wake`, by that; `kick`, by another CPU; `in`; `out`, to sleep. With `!` before the word no
 * program sees it.
 */
#define TARDY_BPF_H
#include "../vmlinux.h"

#include <stdio.h>
#include <string.h>

#undef SEC
#define SEC(name)
#define BPF_PROG(name, args...) name(unsigned long long *ctx, ##args)
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(x) __asm__ volatile("" : "+r"(x))
#define BPF_CORE_READ(from, field) ((from)->field)
#define bpf_core_field_exists(field...) 0
#define BPF_CORE_READ_BITFIELD(from, field) ((from)->field)
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
#define bpf_map_lookup_elem(map, key) look_up((void *)(map), *(key))
#define bpf_map_update_elem(map, key, value, flags) ((void)(value))
#define bpf_ringbuf_output(ring, data, size, flags) 0
#define bpf_probe_read_kernel(to, size, from) memcpy(to, from, size)
#define bpf_probe_read_kernel_str(to, size, from) strncpy((char *)(to), from, (size) - 1)
#define bpf_get_smp_processor_id() 0
#define bpf_get_current_pid_tgid() 0

static struct task_struct task = { .pid = 7, .tgid = 7, .prio = 120, .start_time = 1 };
static struct task_struct idle;
static struct task_struct *current_task = &idle;
static u64 now_at;

static void *look_up(void *map, u64 key);

static struct task_struct *bpf_get_current_task_btf(void)
{
    return current_task;
}

static u64 bpf_ktime_get_ns(void)
{
    return now_at;
}

/* The state is an argument of the switch. */
static u64 left_state(unsigned long long *ctx, struct task_struct *prev, u32 has_state)
{
    return ctx[3];
}

static int can_tell_futex(void)
{
    return 0;
}

static int is_in_futex(struct task_struct *task)
{
    return 0;
}

#include "../attach.bpf.c"

static struct tardy_attach_thread thread;
static struct attach_block places;

static void *look_up(void *map, u64 key)
{
    if (map == &attach_threads)
        return key == 1 ? &thread : NULL;
    if (map == &attach_places)
        return &places;
    return NULL;
}

int main(void)
{
    unsigned long long ctx[4] = { 0, 0, 0, 1 }, at, expiry;
    struct hrtimer_clock_base base = {};
    struct hrtimer_sleeper sleep = { .timer = { .base = &base }, .task = &task };
    char line[128], word[16];

    thread.tid = 7;
    thread.state = TARDY_ATTACH_LIVE;
    places.place[7] = 1;
    while (fgets(line, sizeof(line), stdin)) {
        expiry = 0;
        if (sscanf(line, "%llu %15s %llu", &at, word, &expiry) < 2)
            return 2;
        now_at = at;
        int is_seen = word[0] != '!';
        const char *what = word + !is_seen;
        if (!strcmp(what, "out"))
            task.nvcsw++;
        if (!strncmp(what, "arm", 3))
            sleep.timer.node.expires = sleep.timer._softexpires = expiry;
        if (!is_seen)
            continue;
        current_task = &task;
        if (!strcmp(what, "arm")) {
            on_hrtimer_start(ctx, &sleep.timer, 0);
        } else if (!strcmp(what, "armfor")) {
            on_hrtimer_start(ctx, &sleep.timer, HRTIMER_MODE_REL);
        } else if (!strcmp(what, "wake")) {
            s64 now = at;
            current_task = &idle;
            base.running = &sleep.timer;
            on_hrtimer_expire_entry(ctx, &sleep.timer, &now);
            on_sched_waking(ctx, &task);
            base.running = NULL;
        } else if (!strcmp(what, "kick")) {
            current_task = &idle;
            attach_memory.cpus[0].in_call = 1;
            on_sched_waking(ctx, &task);
            attach_memory.cpus[0].in_call = 0;
        } else if (!strcmp(what, "in")) {
            on_sched_switch(ctx, 0, &idle, &task);
        } else if (!strcmp(what, "out")) {
            on_sched_switch(ctx, 0, &task, &idle);
        } else {
            return 2;
        }
    }
    return fwrite(&thread, sizeof(thread), 1, stdout) == 1 ? 0 : 1;
}
