// What differs: the figures of both sides with ratio, interval and verdict, the shift function, the
// causes of the slowest samples, the facts, and what cannot be told.

import { label } from '../cause/words';
import { h } from '../dom';
import type { BandDifference, ComparedFigureRow, FactDifference, PageComparison, ShiftPoint } from '../model';
import { Table, type Column } from '../table';
import { columnUnit, latency } from '../units';
import { seriesTitle } from '../vocabulary';
import { sides } from './answer';
import { shiftPanel } from './shift';
import { percentText, ratioText } from './words';

const FIGURES = ['p50', 'p90', 'p99', 'p99.9', 'p99.99', 'max', 'missed'];

/** Null where nothing is compared. `samplesOf`: how many samples a side has; `many`: what they are called. */
export function comparisonSection(comparisons: PageComparison[], many: string, samplesOf: (runs: number[], side: 'a' | 'b') => number): HTMLElement | null {
  if (comparisons.length === 0) return null;
  return h('section', { class: 'shape comparison', id: 'difference', 'aria-label': 'what differs' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'What differs')),
    ...comparisons.map((one) => against(one, many, [samplesOf(one.a, 'a'), samplesOf(one.b, 'b')], comparisons.length > 1)));
}

function against(one: PageComparison, many: string, samples: number[], named: boolean): HTMLElement {
  return h('div', { class: 'against' },
    h('div', {}, named ? sides(one) : null, ...block('Metrics', figureTable(one))),
    one.shift.length ? shiftPanel(one, samples).element : null,
    one.causes.length ? h('div', {}, ...block(`What the slowest ${many} were spent on, on average`, causeTable(one.causes))) : null,
    one.facts.length ? h('div', {}, ...block('Facts that differ', factTable(one.facts))) : null,
    one.remarks.length ? h('div', {}, h('h3', {}, 'Limits of this comparison'), h('ul', { class: 'remarks' }, ...one.remarks.map((words) => h('li', {}, words)))) : null);
}

function block<Row>(title: string, table: Table<Row>): HTMLElement[] {
  return [h('div', { class: 'bar-line' }, h('h3', {}, title), h('span', { class: 'tools' }, table.copy)), table.element];
}

interface Row {
  row: ComparedFigureRow;
  judged: boolean;
  shift: ShiftPoint | null;
}

function figureTable(one: PageComparison): Table<Row> {
  const shiftOf = (row: ComparedFigureRow): ShiftPoint | null => one.shift.find((point) => point.series === row.series && `p${point.percentile}` === row.figure) ?? null;
  const all = [...one.figures.map((row): Row => ({ row, judged: one.judged, shift: null })),
    ...one.described.map((row): Row => ({ row, judged: false, shift: null }))];
  for (const own of all) own.shift = own.judged ? null : shiftOf(own.row);
  const names = [...new Set(all.map(({ row }) => row.series))];
  const rank = ({ row }: Row): number => names.indexOf(row.series) * 10 + FIGURES.indexOf(row.figure);
  all.sort((a, b) => rank(a) - rank(b));
  return new Table({ name: 'figures', rows: all, columns: figureColumns(all, names.length > 1), printed: 8 });
}

function figureColumns(rows: Row[], several: boolean): Column<Row>[] {
  const times = rows.filter(({ row }) => row.unit === 'ns').flatMap(({ row }) => [row.a, row.b]);
  const { unit, write } = columnUnit(times);
  const isJudged = rows.some((own) => own.judged);
  const value = (row: ComparedFigureRow, own: number): string => (row.unit === 'ns' ? write(own) : percentText(own));
  const ends = ({ row, shift }: Row): [number | null, number | null] => [row.low ?? shift?.low ?? null, row.high ?? shift?.high ?? null];
  const interval = (own: Row): string => {
    const [low, high] = ends(own);
    if (low === null && high === null) return '–';
    if (low === null || high === null) return low === null ? `at most ${ratioText(high as number)}` : `at least ${ratioText(low)}`;
    return `${ratioText(low)} to ${ratioText(high)}`;
  };
  const side = (letter: 'A' | 'B', of: (row: ComparedFigureRow) => number): Column<Row> => ({
    title: letter, unit, raw: `${letter.toLowerCase()} (ns or share)`, value: ({ row }) => of(row), cell: ({ row }) => value(row, of(row)),
  });
  return [
    {
      title: 'metric', raw: 'figure', left: true, value: ({ row }) => FIGURES.indexOf(row.figure),
      cell: ({ row }) => (row.above_ns === null ? row.figure : `${row.figure}: share above ${latency(row.above_ns)}`),
    },
    // Before the values, since a narrow window shows the first columns alone.
    ...(isJudged ? [{ title: 'verdict', raw: 'verdict', left: true, value: ({ row, judged }: Row) => (judged ? row.verdict : null), cell: ({ row, judged }: Row) => (judged ? h('span', { class: `verdict ${row.verdict}` }, row.verdict) : '') }] : []),
    ...(several ? [{ title: 'series', raw: 'series', left: true, value: ({ row }: Row) => row.series ?? '', cell: ({ row }: Row) => (row.series === null ? 'all' : seriesTitle(row.series)) }] : []),
    side('A', (row) => row.a),
    side('B', (row) => row.b),
    { title: 'B / A', raw: 'ratio', value: ({ row }) => row.ratio, cell: ({ row }) => ratioText(row.ratio) },
    { title: '95% interval', raw: 'interval', value: (own) => ends(own)[0], cell: interval },
    ...(isJudged ? [{ title: 'margin', raw: 'margin', value: ({ row, judged }: Row) => (judged ? row.margin : null), cell: ({ row, judged }: Row) => (judged ? percentText(row.margin) : '') }] : []),
  ];
}

interface CauseRow {
  band: string;
  name: string;
  a: number;
  b: number;
}

/** Which samples a band has. */
const bandPlace = (name: string): string => (name === 'late' ? 'cycles over the deadline' : `above ${name}`);

function causeTable(bands: BandDifference[]): Table<CauseRow> {
  const rows = bands.flatMap((band): CauseRow[] => [
    { band: bandPlace(band.band), name: 'all of it', a: band.a_ns, b: band.b_ns },
    ...band.causes.slice(0, 6).map((own) => ({ band: bandPlace(band.band), name: label(own), a: own.a_ns, b: own.b_ns })),
  ]);
  const { unit, write } = columnUnit(rows.flatMap(({ a, b }) => [a, b]));
  const plus = (ns: number): string => (ns > 0 ? `+${write(ns)}` : write(ns));
  return new Table({
    name: 'causes that differ', rows, printed: 8, rowClass: ({ name }) => (name === 'all of it' ? 'chosen' : ''),
    columns: [
      { title: 'band', raw: 'band', left: true, value: ({ band }) => band, cell: ({ band }) => band },
      { title: 'cause', raw: 'cause', left: true, value: ({ name }) => name, cell: ({ name }) => name },
      { title: 'A', unit, raw: 'a_ns', value: ({ a }) => a, cell: ({ a }) => write(a) },
      { title: 'B', unit, raw: 'b_ns', value: ({ b }) => b, cell: ({ b }) => write(b) },
      { title: 'B - A', unit, raw: 'difference_ns', value: ({ a, b }) => b - a, cell: ({ a, b }) => plus(b - a) },
    ],
  });
}

function factTable(facts: FactDifference[]): Table<FactDifference> {
  const column = (title: string, of: (fact: FactDifference) => string): Column<FactDifference> => ({
    title, raw: title.toLowerCase(), left: true, value: of, cell: of,
  });
  return new Table({
    name: 'facts that differ', rows: facts, printed: 12,
    columns: [column('fact', ({ fact }) => fact), column('A', ({ a }) => a.join('; ')), column('B', ({ b }) => b.join('; '))],
  });
}
