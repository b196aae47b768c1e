// Figures that are not latencies: of one run with their intervals, of several side by side, a
// column a run under its kernel and its loads.

import type { Context } from './context';
import { h } from './dom';
import type { FigureRecord, PageRun } from './model';
import { Table, type Column } from './table';
import { capital, count, threeDigits } from './units';

/** The number that is shown at first; of an attached program each name has some, and there are many. */
const SHOWN = 60;
const SHOWN_OF_NAMES = 12;

/** Said below every table of figures. */
export const WHAT_IS_BETTER = 'More is better in MB/s and of the cpu and deadlines of tasks, less in us and of lost time; of other figures neither.';

interface Row {
  name: string;
  unit: string;
  /** One a run; null where it has none of this name. */
  of: (FigureRecord | null)[];
}

/** The section; null where no run has figures. */
export function figureSection(context: Context): HTMLElement | null {
  const { runs } = context.page;
  const rows = rowsOf(runs);
  if (rows.length === 0) return null;
  const [first, ...others] = [nameColumn, unitColumn];
  const columns = runs.length === 1 ? oneRun() : runs.map(runColumn);
  const shown = runs.every((run) => run.record.attached) ? SHOWN_OF_NAMES : SHOWN;
  const table = new Table<Row>({ name: 'figures', rows, columns: [first, ...others, ...columns], shown, printed: shown });
  return h('section', { class: 'messages', 'aria-label': 'the figures' },
    h('div', {}, h('div', { class: 'bar-line' }, h('h2', {}, 'Metrics'), h('span', { class: 'tools' }, table.copy)), table.element, table.more),
    h('p', { class: 'note' }, 'Means of the repeats; \u00b1 is half of the 95% interval of the mean. ', WHAT_IS_BETTER));
}

/** A row a name and unit, in the order of the first run that has it. */
function rowsOf(runs: PageRun[]): Row[] {
  const rows: Row[] = [];
  runs.forEach((run, index) => {
    for (const figure of run.record.figures) {
      let row = rows.find(({ name, unit }) => name === figure.name && unit === figure.unit);
      if (!row) {
        row = { name: figure.name, unit: figure.unit, of: runs.map(() => null) };
        rows.push(row);
      }
      row.of[index] = figure;
    }
  });
  return rows;
}

const nameColumn: Column<Row> = { title: 'metric', raw: 'figure', left: true, value: (row) => row.name, cell: (row) => row.name };
const unitColumn: Column<Row> = { title: 'unit', raw: 'unit', left: true, value: (row) => row.unit, cell: (row) => row.unit };

function oneRun(): Column<Row>[] {
  const column = (title: string, raw: string, hint: string, pick: (figure: FigureRecord) => number | null): Column<Row> => {
    const value = (row: Row): number | null => { const [figure] = row.of; return figure ? pick(figure) : null; };
    return { title, raw, hint, value, cell: (row) => threeDigits(value(row)) };
  };
  return [
    column('mean', 'mean', 'Of all repeats', (figure) => figure.mean),
    column('from', 'low', 'Lower end of the 95% interval of the mean', (figure) => figure.low),
    column('to', 'high', 'Upper end of the 95% interval of the mean', (figure) => figure.high),
    column('least', 'least', 'Of all repeats', (figure) => (figure.values.length > 0 ? Math.min(...figure.values) : null)),
    column('most', 'most', 'Of all repeats', (figure) => (figure.values.length > 0 ? Math.max(...figure.values) : null)),
    { ...column('repeats', 'repeats', 'How often it was measured', (figure) => figure.values.length), cell: (row) => count(row.of[0]?.values.length ?? 0) },
  ];
}

/** A run: its name, and below that its kernel and its loads. */
function runColumn(run: PageRun, index: number): Column<Row> {
  const { name, facts, loads, validity } = run.record;
  const under = loads.filter((load) => load.name !== 'idle').map((load) => load.name).join(' + ') || 'idle';
  const mean = (row: Row): number | null => row.of[index]?.mean ?? null;
  return {
    title: name, raw: name, under: [facts.kernel, under], value: mean,
    hint: capital(`${facts.kernel}, ${under}; the run is ${validity}`),
    cell: (row) => withHalf(row.of[index]),
  };
}

function withHalf(figure: FigureRecord | null): string {
  if (!figure || figure.mean === null) return '\u2013';
  const half = figure.high === null ? '' : ` \u00b1 ${threeDigits(figure.high - figure.mean)}`;
  return `${threeDigits(figure.mean)}${half}`;
}
