/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The little that a program for the kernel's virtual machine needs: how the loader wants sections
 * and maps written, and the helpers that are called here, by their numbers in the kernel's ABI.
 */
#ifndef TARDY_BPF_H
#define TARDY_BPF_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

#define SEC(name) __attribute__((section(name), used))
/* Not everybody who includes this calls every function. */
#define INLINE static inline __attribute__((always_inline, unused))
/* Fields are found by name in the running kernel's types. */
#define KERNEL_TYPE __attribute__((preserve_access_index))
#define OFFSET(field) __builtin_preserve_field_info(field, 0)
#define HAS_FIELD(field) __builtin_preserve_field_info(field, 2)

/* A map's type, number or size is an array's length, its key and value are pointers' types. */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, type) type *name
#define MAP_ARRAY 2
#define MAP_MAPPED 1024

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static long (*bpf_get_stack)(void *ctx, void *into, u32 bytes, u64 skip) = (void *)67;
static long (*bpf_probe_read_kernel)(void *into, u32 bytes, const void *from) = (void *)113;
static void *(*bpf_get_current_task_btf)(void) = (void *)158;

/*
 * The kernel follows what a pointer can be along the code, so the compiler must neither forget a
 * bound because it knows better, nor work a pointer out a second time.
 */
#define HOLD(variable) __asm__ volatile("" : "+r"(variable))

#endif
