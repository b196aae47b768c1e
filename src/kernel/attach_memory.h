/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is kept of attached threads, and how one is found and counted. */
#ifndef TARDY_ATTACH_MEMORY_H
#define TARDY_ATTACH_MEMORY_H

#include "bpf.h"
#include "attach.h"

const volatile struct tardy_attach_config attach_config SEC(".rodata.config") = {};
struct tardy_attach_memory attach_memory;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, TARDY_ATTACH_PLACES);
    __type(key, u32);
    __type(value, struct tardy_attach_thread);
} attach_threads SEC(".maps");

struct attach_block {
    u16 place[TARDY_ATTACH_BLOCK];
};

/* By the number of a thread: its place. Sized by the greatest number that there is. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct attach_block);
} attach_places SEC(".maps");

/* Timers that attached threads have armed, by address; the thread. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, u64);
    __type(value, u32);
} attach_timers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 18);
} attach_late SEC(".maps");

static __always_inline u16 *place_of(u32 pid)
{
    u32 key = pid / TARDY_ATTACH_BLOCK;
    struct attach_block *block = bpf_map_lookup_elem(&attach_places, &key);

    return block ? &block->place[pid & (TARDY_ATTACH_BLOCK - 1)] : NULL;
}

static __always_inline struct tardy_attach_thread *thread_at(u32 place)
{
    return place ? bpf_map_lookup_elem(&attach_threads, &place) : NULL;
}

/*
 * The record of an attached thread; NULL for others. Its number says which it is: the place is taken
 * away when a thread ends.
 */
static __always_inline struct tardy_attach_thread *find_attached(u32 pid)
{
    u16 *entry = place_of(pid);

    if (!entry)
        return NULL;
    u32 place = *entry;
    if (!place)
        return NULL;
    struct tardy_attach_thread *thread = bpf_map_lookup_elem(&attach_threads, &place);
    return thread && thread->tid == pid ? thread : NULL;
}

/* The same where nobody waits: its start says that it still is the one that was meant. */
static __always_inline struct tardy_attach_thread *get_attached(struct task_struct *task)
{
    u32 pid = task->pid;

    /* That of the idle tasks. */
    if (!pid)
        return NULL;
    struct tardy_attach_thread *thread = find_attached(pid);
    if (!thread || thread->state != TARDY_ATTACH_LIVE)
        return NULL;
    u64 start_ns = task->start_time;
    if (!thread->start_ns)
        thread->start_ns = start_ns;
    return thread->start_ns == start_ns ? thread : NULL;
}

static __always_inline struct tardy_attach_cpu *cpu_at(u32 number)
{
    if (number >= TARDY_ATTACH_CPUS)
        return NULL;
    barrier_var(number);
    return &attach_memory.cpus[number & (TARDY_ATTACH_CPUS - 1)];
}

static __always_inline struct tardy_attach_cpu *this_cpu(void)
{
    return cpu_at(bpf_get_smp_processor_id());
}

/* The number of the highest bit that is set, of a value that is not 0. */
static __always_inline u32 highest_bit(u64 value)
{
    u32 bit = 0;

    if (value >> 32) {
        bit += 32;
        value >>= 32;
    }
    if (value >> 16) {
        bit += 16;
        value >>= 16;
    }
    if (value >> 8) {
        bit += 8;
        value >>= 8;
    }
    if (value >> 4) {
        bit += 4;
        value >>= 4;
    }
    if (value >> 2) {
        bit += 2;
        value >>= 2;
    }
    return bit + (value >> 1 ? 1 : 0);
}

/* More is counted in no bucket: an hour. */
#define HIGHEST_NS 3600000000000ull

static __always_inline u32 bucket_of(u64 ns)
{
    u32 bits = highest_bit(ns | ((1 << TARDY_ATTACH_SUB_BITS) - 1)) + 1;
    u32 row = bits > TARDY_ATTACH_SUB_BITS + 1 ? bits - TARDY_ATTACH_SUB_BITS - 1 : 0;

    return (row << TARDY_ATTACH_SUB_BITS) + (u32)(ns >> row);
}

static __noinline int count_in(struct tardy_attach_hist_data *hist, u64 ns)
{
    if (!hist)
        return 0;
    hist->sum_ns += ns;
    if (ns < hist->min_ns || !hist->count)
        hist->min_ns = ns;
    if (ns > hist->max_ns)
        hist->max_ns = ns;
    if (ns > HIGHEST_NS) {
        hist->above++;
    } else {
        u32 at = bucket_of(ns);
        barrier_var(at);
        if (at < TARDY_ATTACH_BUCKETS) {
            if (at < hist->lowest || !hist->count)
                hist->lowest = at;
            if (at > hist->highest)
                hist->highest = at;
            hist->buckets[at]++;
        }
    }
    hist->count++;
    return 0;
}

#endif
