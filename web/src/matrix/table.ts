// The matrix in figures: a row a load, a column a kernel and figure, ranges over phase offsets. And
// what the kernels are, and how their configurations differ.

import { displayed } from '../head';
import { label as causeLabel, share } from '../cause/words';
import { h } from '../dom';
import type { ConfigTable, MatrixCell, MatrixFigure, MatrixKernel, MatrixRow, PageCellRun, PageMatrix } from '../model';
import { Table, type Column, type TableSpec } from '../table';
import { DASHES, onTheme, theme } from '../theme';
import { count, exactLatency, latency } from '../units';
import { kernelColour } from './overlay';
import { link } from './runs';
import { besideThis, progress, WORDS } from './words';

const SHOWN = ['50', '99', '99.9', 'max'];
/** What decides comes first: a phone shows few columns. */
const WORST_FIRST = [...SHOWN].reverse();
const NARROW = '(max-width: 640px)';
const FIRST_SHOWN = '99';
const label = (figure: string): string => (figure === 'max' ? figure : `p${figure}`);

/** A kernel's name with how its lines are drawn. */
export function kernelName(kernel: MatrixKernel, index: number): HTMLElement {
  const key = h('span', { class: `dash dash${index % DASHES.length}` });
  key.style.color = kernelColour(index, theme());
  return h('span', { class: 'run-name', title: kernel.name }, key, h('span', { class: 'short' }, kernel.name));
}

export function figuresTable(matrix: PageMatrix): HTMLElement {
  const rows = matrix.loads;
  const spec = (figure: string): TableSpec<MatrixRow> => ({ name: `figures, ${label(figure)}`, columns: columns(matrix, rows, figure), rows });
  return withChoice('Metrics', spec, rangesNote(matrix, rows));
}

/** Of the rows of one part of a plan: all figures side by side where the part has one column. */
export function partTable(matrix: PageMatrix, name: string, rows: MatrixRow[], isFirst: boolean): HTMLElement {
  const used = matrix.kernels.flatMap((kernel, index) => (isUsed(matrix, rows, kernel.name, index) ? [index] : []));
  const note = isFirst ? h('p', { class: 'note' }, WORDS[matrix.kind].ranges) : null;
  if (used.length > 1) {
    const spec = (figure: string): TableSpec<MatrixRow> => ({ name: `${name}, ${label(figure)}`, columns: columns(matrix, rows, figure, name), rows });
    return withChoice(name, spec, note);
  }
  const [index = 0] = used;
  const each = WORST_FIRST.map((figure): Column<MatrixRow> => ({
    title: label(figure), raw: `${label(figure)} (largest, ns)`, ...ofFigure(index, figure),
    cell: (row) => {
      const own = figureOf(row, index, figure);
      return own ? h('span', { title: exact(matrix, own, row.cells[index]) }, range(own)) : '\u2013';
    },
  }));
  const own = (row: MatrixRow): PageCellRun[] => runsOf(matrix, row, matrix.kernels[index]);
  const verdict: Column<MatrixRow> = {
    title: 'verdict', raw: 'verdict', left: true, sortable: false, value: (row) => marks(own(row)).map(({ text }) => text).join(', '),
    cell: (row) => h('span', { class: 'marks stacked' }, ...marks(own(row)).map(({ kind, text }) => h('span', { class: `verdict ${kind}` }, text))),
  };
  const runs: Column<MatrixRow> = {
    title: 'runs', raw: 'runs', left: true, sortable: false, value: () => null,
    cell: (row) => h('div', { class: 'roomy' }, ...ofRuns(matrix, own(row))),
  };
  const spent: Column<MatrixRow> = {
    title: 'the worst: spent on', raw: 'the worst: spent on', left: true, value: (row) => row.cells[index]?.causes.map(({ name }) => name).join(', ') || null,
    cell: (row) => h('div', { class: 'roomy' }, worst(row.cells[index])),
  };
  const traced = rows.some((row) => row.cells[index]?.causes.length);
  const table = new Table<MatrixRow>({ name, columns: [nameColumn(matrix, name), verdict, ...each, ...(traced ? [spent] : []), runs], rows });
  return h('section', { class: 'figures matrix', 'aria-label': `${name}: latencies` },
    h('div', { class: 'bar-line' }, h('h2', {}, name), h('span', { class: 'tools' }, table.copy)), table.element, note);
}

/** A table of one figure at a time, with the choice of it. */
function withChoice(title: string, spec: (figure: string) => TableSpec<MatrixRow>, note: HTMLElement | null): HTMLElement {
  const table = new Table<MatrixRow>(spec(FIRST_SHOWN));
  const choice = (figure: string): HTMLElement => {
    const input = h('input', { type: 'radio', name: `figure of ${title}`, value: figure, checked: figure === FIRST_SHOWN });
    input.addEventListener('change', () => table.show(spec(figure)));
    return h('label', {}, input, label(figure));
  };
  onTheme(() => table.draw());
  return h('section', { class: 'figures matrix', 'aria-label': title.toLowerCase() },
    h('div', { class: 'bar-line' }, h('h2', {}, title), h('fieldset', { class: 'toggle' }, h('legend', { class: 'vh' }, 'which figure'), ...SHOWN.map(choice)), h('span', { class: 'tools' }, table.copy)),
    table.element, note);
}

function rangesNote(matrix: PageMatrix, rows: MatrixRow[]): HTMLElement {
  return h('p', { class: 'note' }, WORDS[matrix.kind].ranges,
    rows.some((row) => row.cells.some((cell) => cell?.causes.length)) ? ' Under a range: what the worst wake-ups were spent on.' : '');
}

/** A part has only some of the columns of its plan. */
function isUsed(matrix: PageMatrix, rows: MatrixRow[], name: string, index: number): boolean {
  return rows.length === matrix.loads.length || rows.some((row) => row.cells[index] || matrix.runs.some((run) => run.row === row.name && run.column === name));
}

function nameColumn(matrix: PageMatrix, part = ''): Column<MatrixRow> {
  const { row: title } = WORDS[matrix.kind];
  return {
    title, raw: title, left: true, value: (row) => row.name,
    cell: (row) => h('span', { class: 'load-name', title: row.load || null }, withoutPart(row.name, part)),
  };
}

/** The name of a row below the name of its part. */
export function withoutPart(row: string, part: string): string {
  return part && row.startsWith(`${part}: `) ? row.slice(part.length + 2) : row;
}

function columns(matrix: PageMatrix, rows: MatrixRow[], figure: string, part = ''): Column<MatrixRow>[] {
  const found = [nameColumn(matrix, part)];
  matrix.kernels.forEach((kernel, index) => { if (isUsed(matrix, rows, kernel.name, index)) found.push(column(matrix, kernel, index, figure)); });
  // Of one plan nothing is judged.
  if (matrix.kind !== 'lab' && !rows.some((row) => row.verdicts.length)) return found;
  // On a phone it would lie behind all columns.
  found.splice(window.matchMedia(NARROW).matches ? 1 : found.length, 0, {
    title: 'verdict', raw: 'verdict', left: true, sortable: false, value: (row) => row.verdicts.join('; '),
    cell: (row) => h('div', { class: 'verdicts' }, ...row.verdicts.map((text) => h('div', {}, text))),
    hint: matrix.kind === 'lab' ? 'All figures of the matrix share an error probability of 5%; a difference is at least as large as stated' : 'Each row by itself, as tardy compare judges its runs',
  });
  return found;
}

function column(matrix: PageMatrix, kernel: MatrixKernel, index: number, figure: string): Column<MatrixRow> {
  return {
    title: kernel.name || label(figure), unit: kernel.name ? label(figure) : '', raw: `${label(figure)} ${kernel.name} (largest, ns)`, ...ofFigure(index, figure),
    cell: (row) => {
      const own = figureOf(row, index, figure);
      const runs = runsOf(matrix, row, kernel);
      if (!own) return runs.length ? h('span', { class: 'mark' }, progress(runs) || 'no samples') : failed(matrix, row, kernel) ? h('span', { class: 'mark' }, 'failed') : '\u2013';
      return h('span', {}, h('span', { title: exact(matrix, own, row.cells[index]) }, range(own)), marked(runs), worst(row.cells[index]), ...ofRuns(matrix, runs));
    },
  };
}

const figureOf = (row: MatrixRow, index: number, figure: string): MatrixFigure | null => row.cells[index]?.figures.find((own) => own.name === figure) ?? null;
const runsOf = (matrix: PageMatrix, row: MatrixRow, kernel: MatrixKernel): PageCellRun[] => matrix.runs.filter((run) => run.row === row.name && run.column === kernel.name);

/** What sorts a column of a figure, and what is in doubt. */
function ofFigure(index: number, figure: string): Pick<Column<MatrixRow>, 'value' | 'doubt'> {
  return {
    value: (row) => figureOf(row, index, figure)?.high ?? null,
    doubt: (row) => (figureOf(row, index, figure)?.uncertain ? `${label(figure)}: fewer than 10 samples of each run lie beyond it` : null),
  };
}

interface Mark {
  /** Its colours. */
  kind: string;
  text: string;
}

/** What gates say of the runs of a cell, and whether these may be believed. */
function marks(runs: PageCellRun[]): Mark[] {
  const gates = runs.flatMap((run) => run.gates);
  const ofGates = ['fail', 'inconclusive'].map((kind) => ({ kind, number: gates.filter((gate) => gate.verdict === kind).length }))
    .filter(({ number }) => number > 0).map(({ kind, number }) => ({ kind, text: `${number} gate${number === 1 ? '' : 's'} ${kind}` }));
  const ofRuns = ['invalid', 'weakened'].map((kind) => ({ kind, number: runs.filter((run) => run.validity === kind).length }))
    .filter(({ number }) => number > 0).map(({ kind, number }) => ({ kind, text: `${number} ${displayed(kind)}` }));
  const passed = gates.length > 0 && ofGates.length === 0 ? [{ kind: 'pass', text: `${gates.length} gate${gates.length === 1 ? '' : 's'} passed` }] : [];
  const found = [...ofGates, ...ofRuns, ...passed];
  const isMeasured = runs.some((run) => run.validity !== null);
  return found.length || !isMeasured ? found : [{ kind: 'valid', text: 'valid' }];
}

/** The same below a range; nothing of what is valid and has no gates. */
function marked(runs: PageCellRun[]): HTMLElement | null {
  const found = marks(runs).filter(({ kind }) => kind !== 'valid');
  return found.length ? h('span', { class: 'marks' }, ...found.map(({ kind, text }) => h('span', { class: `verdict ${kind}` }, text))) : null;
}

/** Of the runs of a cell: what they missed, and the page of each. */
function ofRuns(matrix: PageMatrix, runs: PageCellRun[]): HTMLElement[] {
  const missed = runs.reduce((sum, run) => sum + (run.missed ?? 0), 0);
  const lines = [
    missed ? h('span', { class: 'worst' }, `${count(missed)} missed`) : null,
    progress(runs) ? h('span', { class: 'worst' }, progress(runs)) : null,
    h('span', { class: 'links' }, ...(matrix.kind === 'plan' ? runs.filter((run) => besideThis(run.page)).map((run) => link(run, runs.length > 1 ? `${WORDS.plan.repeat} ${run.repeat}` : 'its page')) : [])),
  ];
  return lines.filter((line): line is HTMLSpanElement => line !== null && line.childNodes.length > 0);
}

/** Who held the CPU in the worst wake-ups of a cell. */
function worst(cell: MatrixCell | null | undefined): HTMLElement | null {
  const [first] = cell?.causes ?? [];
  if (!cell || !first) return null;
  const words = (own: typeof first): string => `${causeLabel(own)} ${share(own.share, 1)}`;
  return h('span', { class: 'worst', title: `The worst wake-ups: ${cell.causes.map(words).join(', ')}` }, words(first));
}

function failed(matrix: PageMatrix, row: MatrixRow, kernel: MatrixKernel): boolean {
  return matrix.failed.some((own) => own.load === row.name && own.kernel === kernel.name);
}

function range(own: MatrixFigure): string {
  const low = own.median_low ?? (own.name === 'max' ? own.high : own.low);
  const [from, to] = [latency(low), latency(own.median_high ?? own.high)];
  if (from === to) return to;
  const [number, unit] = from.split(' ');
  return unit === to.split(' ')[1] ? `${number}–${to}` : `${from} – ${to}`;
}

function exact({ kind }: PageMatrix, figure: MatrixFigure, cell: MatrixCell | null | undefined): string {
  const { repeats } = WORDS[kind];
  const phases = cell ? `${cell.phases} ${cell.phases === 1 ? repeats.slice(0, -1) : repeats}: ` : '';
  return `${phases}${exactLatency(figure.low)} to ${exactLatency(figure.high)}`;
}

/** What the columns are. */
export function kernelsTable(kernels: MatrixKernel[]): HTMLElement {
  const plain = (title: string, value: (kernel: MatrixKernel) => string): Column<MatrixKernel> => ({
    title, raw: title, left: true, value, cell: (kernel) => value(kernel) || '–',
  });
  const table = new Table<MatrixKernel>({
    name: 'kernels', rows: kernels,
    columns: [
      { ...plain('kernel', (kernel) => kernel.name), cell: (kernel) => kernelName(kernel, kernels.indexOf(kernel)) },
      plain('release', (kernel) => kernel.release), plain('preemption', (kernel) => kernel.preemption),
      plain('time', (kernel) => kernel.mode),
      { ...plain('SHA-256', (kernel) => kernel.hash), cell: (kernel) => h('code', { title: kernel.hash || null }, kernel.hash.slice(0, 12) || '–') },
    ],
  });
  return h('details', { open: true }, h('summary', {}, 'Kernels'), h('div', {}, table.element));
}

/** How the kernels were built, as far as it matters to latency. */
export function configTable(config: ConfigTable | null): HTMLElement {
  const head = h('summary', {}, 'Kernel configurations: what differs');
  if (!config) return h('details', {}, head, h('p', { class: 'muted' }, 'The configurations are not known: they lie beside the runs of one tardy lab run, where a kernel brings one along.'));
  type Line = ConfigTable['rows'][number];
  const table = new Table<Line>({
    name: 'configuration', rows: config.rows,
    columns: [
      { title: 'option', raw: 'option', left: true, value: (row) => row.option, cell: (row) => h('code', {}, row.option) },
      ...config.kernels.map((name, index): Column<Line> => ({
        title: name, raw: name, left: true, value: (row) => row.values[index] ?? null,
        cell: (row) => row.values[index] ?? h('span', { class: 'muted' }, 'not set'),
      })),
    ],
  });
  const others = config.others ? `${config.others} other options differ: drivers, file systems, protocols.` : '';
  return h('details', { open: true }, head, h('div', {}, config.rows.length ? table.element : h('p', {}, 'Nothing that matters to latency.'), others ? h('p', { class: 'note' }, others) : null));
}
