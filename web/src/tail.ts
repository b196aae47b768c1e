// Long enough? Per series what was not seen, and levels of longer times by a model of its tail, or
// why they are missing.

import type { Context } from './context';
import { h } from './dom';
import type { SeriesTail } from './model';
import { runColumn } from './run-column';
import { Table, type Column } from './table';
import { columnUnit, count, duration, latency } from './units';
import { seriesTitle } from './vocabulary';

interface Row {
  run: number;
  tail: SeriesTail;
}

/** The number of printed rows: a run of 256 series is not to fill ten pages. */
const PRINTED = 40;

/** The number of series that are named that have no levels for the same reason. */
const NAMED = 8;

const TIMES: [string, number][] = [['an hour', 3600], ['a day', 86400], ['a year', 31557600]];

/** The section; null where no run has a series with samples. */
export function tailSection({ page }: Context): HTMLElement | null {
  const rows = page.runs.flatMap((run, index) => run.tail.series.map((tail): Row => ({ run: index, tail })));
  if (rows.length === 0) return null;
  const several = page.runs.length > 1;
  const reasons = new Map<string, string[]>();
  for (const row of rows) {
    const { refusal } = row.tail;
    if (refusal) reasons.set(refusal, [...(reasons.get(refusal) ?? []), nameOf(several ? page.runs[row.run].record.name : '', row)]);
  }
  const table = new Table<Row>({ name: 'tails', rows, printed: PRINTED, columns: columns(rows, several ? [runColumn(page.runs, (row: Row) => row.run)] : []) });
  const far = rows.some(({ tail }) => tail.model?.levels.some((level) => level.is_extrapolation));
  return h('section', { class: 'shape tail', 'aria-label': 'long enough?' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Long enough?'), h('span', { class: 'tools' }, table.copy)),
    table.element,
    h('p', { class: 'note' }, 'No sample was above the maximum. With 95% confidence, later ones, or clusters of them, come less than once in the time beside it, under the same load. A model of the tail gives the levels that are exceeded once in a longer time, on average, '
      + 'with 95% intervals. The levels do not include events that are rarer than the run is long.'),
    far ? h('p', { class: 'note' }, h('span', { class: 'doubt' }, 'Gray'), ': more than ten times the observed time: an extrapolation of a model.') : null,
    ...[...reasons].map(([reason, names]) => h('p', { class: 'note' }, `No levels of ${names.slice(0, NAMED).join(', ')}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ''}: ${reason}.`)));
}

function nameOf(run: string, { tail }: Row): string {
  return run ? `${run} ${seriesTitle(tail.name)}` : seriesTitle(tail.name);
}

function columns(rows: Row[], run: Column<Row>[]): Column<Row>[] {
  const max = columnUnit(rows.map(({ tail }) => tail.max_ns));
  return [
    { title: 'series', raw: 'series', left: true, value: ({ tail }) => tail.name, cell: ({ tail }) => seriesTitle(tail.name) },
    ...run,
    { title: 'maximum', unit: max.unit, raw: 'max_ns', value: ({ tail }) => tail.max_ns, cell: ({ tail }) => max.write(tail.max_ns) },
    { title: 'later ones less than once in', raw: 'rarer_than_s', value: ({ tail }) => tail.rarer_than_s, cell: ({ tail }) => duration(tail.rarer_than_s) },
    ...TIMES.map(([name, time]) => levelColumn(name, time)),
    { title: 'clusters', raw: 'clusters', hint: 'Separate groups of high latencies that the model is made of', value: ({ tail }) => tail.model?.clusters ?? null, cell: ({ tail }) => (tail.model ? count(tail.model.clusters) : '–') },
  ];
}

function levelColumn(name: string, time: number): Column<Row> {
  const level = ({ tail }: Row) => tail.model?.levels.find(({ period_s }) => period_s === time) ?? null;
  return {
    title: `once in ${name}`, raw: `level_${time}_s_ns`, value: (row) => level(row)?.level_ns ?? null,
    cell: (row) => {
      const own = level(row);
      return own ? `${latency(own.level_ns)} (${latency(own.low_ns)} to ${own.high_ns === null ? '–' : latency(own.high_ns)})` : '–';
    },
    doubt: (row) => (level(row)?.is_extrapolation ? 'an extrapolation of a model: more than ten times the observed time' : null),
  };
}
