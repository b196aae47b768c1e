// What the threads of one program did to each other: who waited for whom, on what, how long, and who
// kept the one that was waited for from the CPU.

import type { Context } from './context';
import { h } from './dom';
import type { BetweenThreads } from './model';
import { runColumn } from './run-column';
import { Table, type Column } from './table';
import { count, latency } from './units';

/** The number that is shown at first, and printed. */
const SHOWN = 12;

interface Row {
  run: number;
  own: BetweenThreads;
}

/** The section; null where no thread waited for another. */
export function betweenSection({ page: { runs } }: Context): HTMLElement | null {
  const rows = runs.flatMap((run, index) => run.between.map((own): Row => ({ run: index, own })));
  if (rows.length === 0) return null;
  const [first, ...others] = columns();
  const table = new Table<Row>({
    name: 'between the threads', rows, shown: SHOWN, printed: SHOWN,
    columns: [first, ...(runs.length > 1 ? [runColumn<Row>(runs, (row) => row.run)] : []), ...others],
  });
  return h('section', { class: 'messages', 'aria-label': 'between the threads' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Between the threads'), h('span', { class: 'tools' }, table.copy)),
    table.element, table.more,
    h('p', { class: 'note' }, 'In the late cycles that were analyzed; of threads without a deadline in late wake-ups. Preempted by: who kept the holder of the lock from the CPU meanwhile; (inversion) where it ranks below the thread that waits, which is a priority inversion.'));
}

function columns(): Column<Row>[] {
  const text = (title: string, of: (own: BetweenThreads) => string): Column<Row> => ({
    title, raw: title, left: true, value: ({ own }) => of(own), cell: ({ own }) => h('span', { class: 'short' }, of(own)),
  });
  return [
    text('who', (own) => own.who),
    text('waited for', (own) => own.whom),
    text('on', (own) => own.on),
    { title: 'times', raw: 'times', value: ({ own }) => own.times, cell: ({ own }) => count(own.times) },
    { title: 'together', raw: 'ns', value: ({ own }) => own.ns, cell: ({ own }) => latency(own.ns) },
    text('which was preempted by', preemptedBy),
  ];
}

/** `vision (fifo 50) 2.30 ms (inversion), log (nice 0) 90.0 us`. */
function preemptedBy(own: BetweenThreads): string {
  return own.preempted_by.map(({ task, ns, is_inversion }) => `${task} ${latency(ns)}${is_inversion ? ' (inversion)' : ''}`).join(', ');
}
