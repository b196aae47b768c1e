// The single threads of programs that were looked at: what woke each, how late it was by its own
// timer or after it was woken, and what it did then. Threads of one name have series together;
// here each stands for itself, the worst first.

import type { Context } from './context';
import { h } from './dom';
import type { AttachedRow, AttachedTimes, PageRun } from './model';
import { runColumn } from './run-column';
import { Table, type Column } from './table';
import { columnUnit, count, latency } from './units';

/** The number that is shown at first, and printed. */
const SHOWN = 20;

interface Row {
  run: number;
  thread: AttachedRow;
}

type Times = 'lateness' | 'dispatch' | 'run' | 'blocked' | 'ready';
type Which = 'p50' | 'p99' | 'max' | 'mean';

const WAKERS = [['timer', 'by_timer'], ['interrupt', 'by_interrupt'], ['IPI', 'by_ipi'], ['task', 'by_task']] as const;

/** The section; null where no run looked at threads of others. */
export function threadSection({ page: { runs } }: Context): HTMLElement | null {
  const rows = runs.flatMap((run, index) => rowsOf(run, index));
  if (rows.length === 0) return null;
  rows.sort((a, b) => worst(b.thread) - worst(a.thread) || (a.thread.tid ?? 0) - (b.thread.tid ?? 0));
  const [first, ...others] = columns(rows);
  const table = new Table<Row>({
    name: 'threads', rows, shown: SHOWN, printed: SHOWN,
    columns: [first, ...(runs.length > 1 ? [runColumn<Row>(runs, (row) => row.run)] : []), ...others],
  });
  return h('section', { class: 'shape threads', 'aria-label': 'the threads' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Threads'), h('span', { class: 'tools' }, table.wider, table.copy)),
    table.element, table.more,
    h('p', { class: 'note' }, 'The latest first: by its own timer where half of its wake-ups or more are by that, else from the wake-up to the CPU; threads of one name alike, unless less than a third or more than two thirds say otherwise. '
      + 'No period: the times for which the thread sleeps, or until which, follow none.'),
    ...runs.map((run) => leftOut(run, runs.length > 1)));
}

function rowsOf(run: PageRun, index: number): Row[] {
  const threads = run.record.attached?.rows.filter((row) => row.tid !== null) ?? [];
  return threads.map((thread) => ({ run: index, thread }));
}

/** Threads without a row. */
function leftOut({ record }: PageRun, several: boolean): HTMLElement | null {
  const few = record.attached?.pooled_only ?? 0;
  if (few === 0) return null;
  const text = `${count(few)} more lived too shortly for a row; their wake-ups are in the series of their names.`;
  return h('p', { class: 'note' }, several ? `${record.name}: ${text}` : text);
}

const isByTimer = (thread: AttachedRow): boolean => thread.latency === 'lateness';

/** The largest of what its latency is. */
function worst(thread: AttachedRow): number {
  return (isByTimer(thread) ? thread.lateness : thread.dispatch)?.max ?? -1;
}

function columns(rows: Row[]): Column<Row>[] {
  const has = (pick: (thread: AttachedRow) => number): boolean => rows.some(({ thread }) => pick(thread) > 0);
  const late = times(rows, 'late', 'lateness', ['p50', 'p99', 'max'], 'From the hard expiry of its timer to the CPU, of the wake-ups by such timers');
  const dispatch = times(rows, 'dispatch', 'dispatch', ['p50', 'p99', 'max'], 'From each wake-up to the CPU');
  const run = times(rows, 'run', 'run', ['p50', 'p99'], 'On a CPU, of each wake-up');
  const blocked = times(rows, 'blocked', 'blocked', ['p50', 'p99'], 'Asleep, up to each wake-up');
  const found: (Column<Row> | null)[] = [
    { title: 'thread', raw: 'thread', left: true, value: ({ thread }) => thread.series, cell: ({ thread }) => thread.series },
    policy,
    whole('wake-ups', 'wakeups', 'After which it was seen to have the CPU', (thread) => thread.wakeups),
    ownTimer,
    extra(wokenBy),
    ...late,
    period,
    whole('missed', 'missed', 'Periods that are known to have had no expiry', (thread) => thread.missed ?? null),
    has((thread) => thread.unsure_periods ?? 0) ? whole('unsure', 'unsure_periods', 'Unsure periods, neither met nor missed: an event of the thread was not seen, or it armed its timer for more than one period ahead', (thread) => thread.unsure_periods ?? null) : null,
    extra(dispatch[0]), dispatch[1], dispatch[2],
    whole('preempted', 'preempted', 'How often it lost its CPU while it wanted it: involuntary switches', (thread) => thread.preempted),
    run[0], extra(run[1]), blocked[0], extra(blocked[1]),
    has((thread) => thread.ready.count) ? extra(times(rows, 'ready', 'ready', ['p99'], 'Ready but without a CPU, of each wake-up in which it was preempted')[0]) : null,
    has((thread) => thread.unmatched) ? extra(whole('not seen', 'unmatched', 'How often something that it did was not seen: a wake-up, or that it had the CPU or left it', (thread) => thread.unmatched)) : null,
  ];
  return found.filter((column): column is Column<Row> => column !== null);
}

/** One that is seen only with all columns. */
function extra(column: Column<Row>): Column<Row> {
  return { ...column, extra: true };
}

function whole(title: string, raw: string, hint: string, pick: (thread: AttachedRow) => number | null): Column<Row> {
  return {
    title, raw, hint, value: ({ thread }) => pick(thread),
    cell: ({ thread }) => { const n = pick(thread); return n === null ? '\u2013' : count(n); },
  };
}

/** Columns of one time, which share a unit. */
function times(rows: Row[], title: string, time: Times, which: Which[], hint: string): Column<Row>[] {
  const of = ({ thread }: Row): AttachedTimes | null => thread[time] ?? null;
  const all = rows.flatMap((row) => which.flatMap((one) => of(row)?.[one] ?? []));
  const { unit, write } = columnUnit(all);
  return which.map((one): Column<Row> => ({
    title: `${title} ${one}`, unit, raw: `${time}_${one}_ns`, hint, value: (row) => of(row)?.[one] ?? null,
    cell: (row) => { const ns = of(row)?.[one] ?? null; return ns === null ? '\u2013' : write(ns); },
  }));
}

/** Its own timers made neither most of the wake-ups, three of four, nor few, one of four, as its latency has it. */
function isMixed({ latency: own, by_own_timer, wakeups }: AttachedRow): boolean {
  return own === 'lateness' ? by_own_timer * 4 < wakeups * 3 : own === 'dispatch' && by_own_timer * 4 > wakeups;
}

/** Which part of its wake-ups was by its own timers; where that could mean either, what its latency is. */
const ownTimer: Column<Row> = {
  title: 'own timer', raw: 'own_timer', hint: 'Which part of its wake-ups was by its timers; where that could mean either, what its latency is: settled by its first 8 to 64 wake-ups, and as that of its name from a third to two thirds',
  value: ({ thread }) => (thread.wakeups > 0 ? thread.by_own_timer / thread.wakeups : null),
  cell: ({ thread }) => {
    if (thread.wakeups === 0) return '\u2013';
    const part = `${Math.floor(thread.by_own_timer * 100 / thread.wakeups)}%`;
    return isMixed(thread) ? `${part}, ${thread.latency}` : part;
  },
};

/** Who woke it most often. */
const wokenBy: Column<Row> = {
  title: 'woken by', raw: 'woken_by', left: true, hint: 'Who woke it most often, and in which part of its wake-ups',
  value: ({ thread }) => waker(thread)?.[0] ?? null,
  cell: ({ thread }) => { const found = waker(thread); return found ? `${found[0]} ${Math.floor(found[1] * 100)}%` : '\u2013'; },
};

function waker(thread: AttachedRow): [string, number] | null {
  const all = WAKERS.reduce((sum, [, key]) => sum + thread[key], 0);
  if (all === 0) return null;
  const [name, key] = [...WAKERS].sort(([, a], [, b]) => thread[b] - thread[a])[0];
  return [name, thread[key] / all];
}

const policy: Column<Row> = {
  title: 'policy', raw: 'policy', left: true, hint: 'How it is scheduled', value: ({ thread }) => thread.policy ?? null, cell: ({ thread }) => thread.policy ?? '\u2013',
};

function periodText(thread: AttachedRow): string {
  if (thread.period_ns !== null) return latency(thread.period_ns) + (thread.period_changed ? ', changed' : '');
  if (thread.missed !== undefined && thread.missed !== null) return 'several';
  return thread.by_own_timer > 0 ? 'no period' : '\u2013';
}

const period: Column<Row> = {
  title: 'period', raw: 'period_ns', hint: 'From one programmed expiry of its timers to the next', value: ({ thread }) => thread.period_ns,
  cell: ({ thread }) => periodText(thread),
};
