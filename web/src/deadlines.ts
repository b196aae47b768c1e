// What a deadline was to each series: the share of periods that met it, and of cycles of work that
// did not, what they were spent on.

import type { Context } from './context';
import type { AttachedOver, AttachedWaits, SeriesDeadline } from './data';
import { h } from './dom';
import type { PageRun } from './model';
import { runColumn } from './run-column';
import { Table, type Column } from './table';
import { columnUnit, count, latency, percent } from './units';

/** The number that is shown at first, and printed. */
const SHOWN = 20;

interface Row {
  run: number;
  own: SeriesDeadline;
  /** Of attached threads: the cycles over it. */
  over: AttachedOver | null;
}

/** What threads slept for, as a column each. */
const WAITS: [string, keyof AttachedWaits][] = [['futex', 'futex_ns'], ['PI mutex', 'pi_mutex_ns'], ['I/O', 'io_ns'], ['other', 'other_ns']];

type Part = 'late_ns' | 'run_ns' | 'ready_ns' | 'wait_ns' | 'unseen_ns';

/** The section; null where no run has a deadline. */
export function deadlineSection({ page: { runs } }: Context): HTMLElement | null {
  const rows = runs.flatMap((run, index) => run.deadlines.map((own): Row => ({ run: index, own, over: overOf(run, own.series) })));
  if (rows.length === 0) return null;
  const [first, ...others] = columns(rows);
  const table = new Table<Row>({
    name: 'deadlines', rows, shown: SHOWN, printed: SHOWN,
    columns: [first, ...(runs.length > 1 ? [runColumn<Row>(runs, (row) => row.run)] : []), ...others],
  });
  const isAnyOver = rows.some(({ over }) => over);
  return h('section', { class: 'messages', 'aria-label': 'the deadlines' },
    h('div', {}, h('div', { class: 'bar-line' }, h('h2', {}, 'Deadlines'), h('span', { class: 'tools' }, table.copy)), table.element, table.more),
    h('p', { class: 'note' }, 'Scheduled periods are counted, including periods that passed during a late wake-up. No interval: fewer than 10 independent misses.'
      + (isAnyOver ? ' Of cycles over it, the mean time: late at the beginning, on a CPU, ready without one, asleep in between (and of that for what), not seen.' : '')));
}

/** What the cycles of the threads of this series were spent on; of a name, all of its threads. */
function overOf({ record }: PageRun, series: string): AttachedOver | null {
  const rows = record.attached?.rows ?? [];
  const own = rows.find((row) => `${row.series}/response` === series);
  return own?.over && own.over.cycles > 0 ? own.over : null;
}

function columns(rows: Row[]): Column<Row>[] {
  const found: Column<Row>[] = [
    { title: 'series', raw: 'series', left: true, value: ({ own }) => own.series, cell: ({ own }) => own.series },
    { title: 'deadline', raw: 'deadline_ns', value: ({ own }) => own.deadline_ns, cell: ({ own }) => latency(own.deadline_ns) },
    whole('periods', 'periods', ({ own }) => own.periods),
    whole('missed', 'missed', ({ own }) => own.missed),
    share('met', 'share_met', ({ own }) => own.share_met),
    share('95% from', 'share_met_low', ({ own }) => own.share_met_low),
    share('to', 'share_met_high', ({ own }) => own.share_met_high),
  ];
  if (rows.some(({ own }) => own.longest_burst !== null)) found.push(whole('in a row', 'longest_burst', ({ own }) => own.longest_burst));
  if (rows.some(({ over }) => over)) {
    found.push(whole('cycles over', 'cycles', ({ over }) => over?.cycles ?? null),
      part(rows, 'late', 'late_ns'), part(rows, 'run', 'run_ns'), part(rows, 'ready', 'ready_ns'), part(rows, 'waits', 'wait_ns'), ...waits(rows), part(rows, 'not seen', 'unseen_ns'));
  }
  return found;
}

function whole(title: string, raw: string, value: (row: Row) => number | null): Column<Row> {
  return { title, raw, value, cell: (row) => { const own = value(row); return own === null ? '–' : count(own); } };
}

function share(title: string, raw: string, value: (row: Row) => number | null): Column<Row> {
  return { title, raw, value, cell: (row) => { const own = value(row); return own === null ? '–' : shareMet(own); } };
}

/** What is not all is never rounded to it. */
function shareMet(own: number): string {
  const digits = [3, 4, 5, 6, 7, 8].find((some) => own >= 1 || Number((own * 100).toFixed(some)) < 100);
  return percent(own, digits ?? 8);
}

function part(rows: Row[], title: string, which: Part): Column<Row> {
  const value = ({ over }: Row): number | null => (over ? over[which] / over.cycles : null);
  const { unit, write } = columnUnit(rows.flatMap((row) => value(row) ?? []));
  return { title, unit, raw: `${title.replace(' ', '_')}_ns`, value, cell: (row) => { const own = value(row); return own === null ? '–' : write(own); } };
}

/** The waits by what for: a column for each kind that there is, or that is not known. */
function waits(rows: Row[]): Column<Row>[] {
  const overs = rows.flatMap(({ over }) => (over && over.wait_ns > 0 ? [over] : []));
  const is = (over: AttachedOver, key: keyof AttachedWaits): boolean => (over.waits ? over.waits[key] !== 0 : key === 'futex_ns');
  return WAITS.filter(([, key]) => overs.some((over) => is(over, key))).map(([title, key]) => {
    const value = ({ over }: Row): number | null => {
      const ns = over?.waits?.[key] ?? null;
      return over && ns !== null ? ns / over.cycles : null;
    };
    const { unit, write } = columnUnit(rows.flatMap((row) => value(row) ?? []));
    return {
      title, unit, raw: `waits_${key}`, value, hint: 'Of the waits: asleep for that, as far as the kernel says it',
      cell: (row) => { const own = value(row); return own !== null ? write(own) : row.over && row.over.wait_ns > 0 ? 'not known' : '\u2013'; },
    };
  });
}
