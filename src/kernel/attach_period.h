/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A wake-up of an attached thread is counted, and with it the period of its timers: which periods
 * had an expiry that woke it, which had none, and of which that is not known.
 */
#ifndef TARDY_ATTACH_PERIOD_H
#define TARDY_ATTACH_PERIOD_H

#include "attach_memory.h"

/* Periods differ by less than this part, or a microsecond: programs round. */
#define SAME_PERIOD_SHIFT 10
#define SAME_PERIOD_NS 1000
/* A thread that sleeps for longer pauses, and has no missed periods. */
#define MOST_MISSED 1000
#define MOST_VOTES 64
/* What an expiry a period after the one before weighs; or one that fits no period. */
#define FULL_VOTE 8
/* Who has had a period for so many expiries had it, whatever comes next. */
#define LONG_HITS 64
/* A candidate may be so many periods. */
#define MOST_PARTS 16
/*
 * Of a thread that has a period so many sleeps for a time before the next expiry are part of its
 * cycle. More are what it is there for.
 */
#define MOST_ASIDES 8

static __always_inline u64 slip_of(u64 period_ns)
{
    return (period_ns >> SAME_PERIOD_SHIFT) + SAME_PERIOD_NS;
}

/* Whether `times` of one are the other, and a time that is no multiple would have been told. */
static __always_inline int is_multiple(u64 whole_ns, u64 part_ns, u64 times)
{
    s64 off_ns = whole_ns - times * part_ns;
    u64 slip_ns = times * slip_of(part_ns);

    return (u64)(off_ns < 0 ? -off_ns : off_ns) <= slip_ns && slip_ns < part_ns / 8;
}

/*
 * How long after the last expiry the timer of this one was armed. Where that was not seen it is taken
 * for as late as can be.
 */
static __always_inline u64 armed_after(const struct tardy_attach_thread *thread, u64 last_ns)
{
    u64 armed_ns = thread->due_armed_ns;

    if (!armed_ns || thread->sight_lost)
        return thread->due_soft_ns - last_ns;
    return armed_ns > last_ns ? armed_ns - last_ns : 0;
}

/* From now on this is its period. What was counted of one that it had for long stays. */
static __noinline int change_period(struct tardy_attach_thread *thread, u64 period_ns,
                                    u64 first_ns)
{
    if (!thread)
        return 0;
    thread->period_ns = period_ns;
    thread->first_ns = first_ns;
    thread->votes = FULL_VOTE;
    thread->era_hits = 0;
    thread->era_armed_ns = 0;
    thread->era_ahead_ns = 0;
    thread->era_times = 0;
    if (thread->hits >= LONG_HITS) {
        thread->relative |= TARDY_ATTACH_CHANGED;
        return 0;
    }
    thread->relative &= ~TARDY_ATTACH_CHANGED;
    thread->hits = 0;
    thread->misses = 0;
    thread->missed = 0;
    thread->unsure = 0;
    thread->unsure_hits = 0;
    return 0;
}

static __always_inline int is_made_of(u64 whole_ns, u64 part_ns)
{
    u64 parts = (whole_ns + part_ns / 2) / part_ns;

    return parts && parts <= MOST_PARTS && is_multiple(whole_ns, part_ns, parts);
}

/*
 * The gap of which the candidate is a few times, so that it is no period; or, of a thread that passes
 * expiries over all the time, what is left where neither is: both are made of that. 0 for none.
 */
static __noinline u64 find_part(struct tardy_attach_thread *thread, u64 gap_ns, u64 armed_ns)
{
    if (!thread || !gap_ns || !thread->period_ns)
        return 0;
    u64 period_ns = thread->period_ns;
    if (gap_ns < period_ns && is_made_of(period_ns, gap_ns))
        return gap_ns;
    u64 rest_ns = gap_ns % period_ns;
    if (rest_ns > period_ns / 2)
        rest_ns = period_ns - rest_ns;
    if (!rest_ns || armed_ns < rest_ns || thread->era_armed_ns < thread->era_hits * rest_ns)
        return 0;
    return is_made_of(period_ns, rest_ns) && is_made_of(gap_ns, rest_ns) ? rest_ns : 0;
}

/*
 * The candidate is divided. Where the thread used to arm its timer only after such a part, expiries
 * before were missed, as those of a thread are that is often late; else it had that period on
 * purpose. If it armed a timer for more than such a part ahead, it may have wanted none of them.
 */
static __noinline int divide_period(struct tardy_attach_thread *thread, u64 part_ns, u64 last_ns)
{
    if (!thread || !part_ns)
        return 0;
    if (thread->relative & TARDY_ATTACH_CHANGED
        || thread->era_armed_ns < thread->era_hits * part_ns) {
        change_period(thread, part_ns, last_ns);
        return 0;
    }
    if (thread->era_ahead_ns > part_ns + slip_of(part_ns))
        thread->unsure_hits = thread->hits;
    u64 parts = (thread->period_ns + part_ns / 2) / part_ns;
    u64 periods = parts * (thread->hits + thread->missed + thread->unsure);
    thread->unsure = parts * (thread->unsure + thread->unsure_hits) - thread->unsure_hits;
    thread->missed = periods - thread->hits - thread->unsure;
    thread->period_ns = part_ns;
    thread->votes = FULL_VOTE;
    thread->era_times = 0;
    return 0;
}

/*
 * The time from one expiry to the next. Of the periods in between the ones that were over when it
 * armed its timer are missed. They are unsure, neither met nor missed, where something that the
 * thread did meanwhile was not seen, or where it left out the next expiry too: a thread that keeps
 * two periods in turn wanted none of them. The others it did not want.
 */
static __always_inline void count_gap(struct tardy_attach_thread *thread, u64 gap_ns, u64 armed_ns,
                                      u32 is_unsure, u64 read_with)
{
    u64 period_ns = thread->period_ns, times = (gap_ns + period_ns / 2) / period_ns;
    u64 between = times - 1, passed = armed_ns / period_ns;
    u64 ahead_ns = gap_ns > armed_ns ? gap_ns - armed_ns : 0;

    thread->hits++;
    thread->era_hits++;
    thread->era_armed_ns += armed_ns;
    thread->era_times = times;
    if (ahead_ns > thread->era_ahead_ns)
        thread->era_ahead_ns = ahead_ns;
    if (is_unsure) {
        thread->unsure += between;
        thread->unsure_hits++;
        return;
    }
    if (passed > between)
        passed = between;
    /* The mean period is over the time in which it wanted to wake up. */
    thread->first_ns += (between - passed) * period_ns;
    /* Those that it read together with the one before are judged as it is. */
    u64 read = read_with < passed ? read_with : passed;
    thread->hits += read;
    if (ahead_ns > period_ns + slip_of(period_ns))
        thread->unsure += passed - read;
    else
        thread->missed += passed - read;
}

/*
 * The majority among the times from one programmed expiry to the next, as they come. A multiple of
 * the candidate speaks little against it: a thread that is late passes expiries over.
 */
static __always_inline void follow_period(struct tardy_attach_thread *thread)
{
    u64 gap_ns = thread->due_soft_ns - thread->last_ns, period_ns = thread->period_ns;
    u64 last_ns = thread->last_ns;
    u32 weight = FULL_VOTE, is_unsure = thread->sight_lost;

    if (thread->due_soft_ns <= last_ns)
        return;
    u64 armed_ns = armed_after(thread, last_ns);
    thread->last_ns = thread->due_soft_ns;
    u64 read_with = thread->read_with_now;
    thread->sight_lost = 0;
    thread->asides_now = 0;
    thread->read_with_now = 0;
    if (!last_ns)
        return;
    if (period_ns) {
        u64 times = (gap_ns + period_ns / 2) / period_ns;
        s64 off_ns = gap_ns - times * period_ns;
        if (off_ns < 0)
            off_ns = -off_ns;
        int paused = times > MOST_MISSED && armed_ns > period_ns
                     && thread->blocked_ns > gap_ns / 2;
        if (times && !paused && off_ns <= times * slip_of(period_ns)) {
            /* Two numbers of periods that follow each other have no common part but one period. */
            u64 before = thread->era_times;
            int is_told = before && (times == before + 1 || times + 1 == before);
            count_gap(thread, gap_ns, armed_ns, is_unsure, read_with);
            if (times == 1 || is_told) {
                thread->votes += FULL_VOTE;
                if (thread->votes > MOST_VOTES)
                    thread->votes = MOST_VOTES;
                return;
            }
            if (is_multiple(gap_ns, period_ns, times))
                weight = 1;
        } else {
            u64 part_ns = find_part(thread, gap_ns, armed_ns);
            if (part_ns) {
                divide_period(thread, part_ns, last_ns);
                count_gap(thread, gap_ns, armed_ns, is_unsure, read_with);
                return;
            }
            thread->misses++;
        }
        if (thread->votes >= weight) {
            thread->votes -= weight;
            return;
        }
    }
    change_period(thread, gap_ns, last_ns);
    count_gap(thread, gap_ns, armed_ns, is_unsure, read_with);
}

/*
 * Whether a sleep for a time, whose timer wakes it, is one in the middle of a cycle: it begins none,
 * and its lateness is not that of the period.
 */
static __always_inline int is_aside(const struct tardy_attach_thread *thread)
{
    return thread->votes > FULL_VOTE && thread->asides_now < MOST_ASIDES;
}

/* Counts the last wake-up. */
__noinline int settle(struct tardy_attach_thread *thread)
{
    if (!thread || !thread->woken_ns)
        return 0;
    u64 switched_ns = thread->switched_ns, due_ns = thread->due_ns;
    thread->woken[thread->woken_by & (TARDY_ATTACH_WAKERS - 1)]++;
    count_in(&thread->hists[TARDY_ATTACH_DISPATCH], switched_ns - thread->woken_ns);
    if (thread->blocked_ns)
        count_in(&thread->hists[TARDY_ATTACH_BLOCKED], thread->blocked_ns);
    if (due_ns) {
        u64 late_ns = switched_ns > due_ns ? switched_ns - due_ns : 0;
        if (!late_ns)
            thread->in_slack++;
        if (due_ns > thread->due_soft_ns)
            thread->slack_ns += due_ns - thread->due_soft_ns;
        count_in(&thread->hists[TARDY_ATTACH_LATENESS], late_ns);
        /* Who sleeps for a time drifts by what it does in between, however little that is. */
        if (!(thread->relative & TARDY_ATTACH_DUE_FOR))
            follow_period(thread);
    }
    thread->woken_ns = 0;
    thread->blocked_ns = 0;
    return 0;
}

/*
 * Something that the thread did was not seen, and so perhaps an expiry of its timer: what comes
 * next may be no part of its cycle, and a period without an expiry may have had one. What was seen
 * before is counted first, as that is known.
 */
__noinline int lose_sight(struct tardy_attach_thread *thread)
{
    if (!thread)
        return 0;
    settle(thread);
    thread->unmatched++;
    thread->sight_lost = 1;
    thread->whole = 0;
    thread->cycle_ns = 0;
    return 0;
}

/* How often the kernel has switched the task out. */
static __always_inline u64 switches_of(struct task_struct *task)
{
    return task->nvcsw + task->nivcsw;
}

/*
 * Whether the kernel has switched a task out that was seen to go to sleep, and sleeps: whatever it did
 * meanwhile ended by a sleep.
 */
static __always_inline int slept_elsewhere(const struct tardy_attach_thread *thread,
                                           struct task_struct *task)
{
    return thread->sleeps != task->nvcsw;
}

static __always_inline void note_switches(struct tardy_attach_thread *thread,
                                          struct task_struct *task)
{
    thread->sleeps = task->nvcsw;
    thread->switches = thread->sleeps + task->nivcsw;
}

#endif
