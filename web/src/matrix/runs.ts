// The runs of a matrix one by one, in the order of time: state, figures with intervals, gates, and a
// link to the page of each.

import { h } from '../dom';
import { displayed } from '../head';
import type { PageCellRun, PageGate, PageMatrix, PageRunFigure } from '../model';
import { Table, type Column } from '../table';
import { count, exactLatency, latency } from '../units';
import { besideThis, WORDS } from './words';

const STATES = { measured: '', pending: 'not measured yet', failed: 'failed' };

/** Null for the lab, whose runs are phase offsets of its cells. */
export function runsSection(matrix: PageMatrix): HTMLElement | null {
  const { runs } = matrix;
  if (runs.length === 0) return null;
  const table = new Table<PageCellRun>({ name: 'runs', rows: runs, columns: columns(matrix), printed: 60 });
  const gated = runs.some((run) => run.gates.length);
  return h('section', { class: 'single-runs matrix', 'aria-label': 'runs' },
    h('div', { class: 'bar-line' }, h('h2', {}, matrix.kind === 'ab' ? 'Blocks' : 'Runs'), h('span', { class: 'hint' }, 'in the order of time'), h('span', { class: 'tools' }, table.copy)),
    table.element,
    h('p', { class: 'note' }, 'In brackets: the 95% interval of a percentile by the samples of its run, of the series where it is largest. Underlined: too few samples beyond it for one.',
      gated ? ' Gates: those that the plan was begun with.' : ''));
}

function columns(matrix: PageMatrix): Column<PageCellRun>[] {
  const { runs } = matrix;
  const words = WORDS[matrix.kind];
  const text = (title: string, of: (run: PageCellRun) => string): Column<PageCellRun> => ({
    title, raw: title, left: true, value: of, cell: (run) => h('span', { class: 'wraps' }, of(run) || '–'),
  });
  const names = (of: (run: PageCellRun) => string): boolean => new Set(runs.map(of)).size > 1;
  return [
    { title: '', raw: 'number', value: (run) => runs.indexOf(run) + 1, cell: (run) => String(runs.indexOf(run) + 1), sortable: false },
    ...(names(({ row }) => row) || !names(({ column }) => column) ? [text(words.row, ({ row }) => row)] : []),
    ...(names(({ column }) => column) ? [text(matrix.kind === 'ab' ? words.column : 'column', ({ column }) => column)] : []),
    { title: words.repeat, raw: words.repeat, value: ({ repeat }) => repeat, cell: ({ repeat }) => String(repeat) },
    { title: 'state', raw: 'state', left: true, value: ({ validity, status }) => validity ?? STATES[status], cell: state },
    ...(runs.some(({ gates }) => gates.length)
      ? [{ title: 'gates', raw: 'gates', left: true, sortable: false, value: ({ gates }: PageCellRun) => gates.map(gateWords).join('; '), cell: gatesCell }] : []),
    ...['max', '99.9', '99', '50'].map(figure),
    { title: 'samples', raw: 'samples', value: ({ status, samples }) => (status === 'measured' ? samples : null), cell: ({ status, samples }) => (status === 'measured' ? count(samples) : '–') },
    ...(runs.some(({ missed }) => missed !== null)
      ? [{ title: 'missed', raw: 'missed', value: ({ missed }: PageCellRun) => missed, cell: ({ missed }: PageCellRun) => (missed === null ? '–' : count(missed)) }] : []),
    { title: 'page', raw: 'page', left: true, sortable: false, value: ({ page }) => page, cell: (run) => link(run) },
  ];
}

function state(run: PageCellRun): HTMLElement {
  if (run.error !== null && run.validity === null) return h('span', { class: 'mark', title: run.error }, run.status === 'measured' ? 'cannot be read' : STATES[run.status]);
  return run.validity ? h('span', { class: `verdict ${run.validity}` }, displayed(run.validity)) : h('span', { class: 'muted' }, STATES[run.status] || 'no run');
}

/** The page of a run, or where it lies. */
export function link(run: PageCellRun, name = run.path ?? 'page'): HTMLElement | string {
  const href = besideThis(run.page);
  if (href) return h('a', { href, title: 'the page of this run' }, name);
  return run.path ? h('span', { class: 'muted', title: 'the directory of this run; it has no page' }, run.path) : '–';
}

function figure(name: string): Column<PageCellRun> {
  const of = (run: PageCellRun): PageRunFigure | null => run.figures.find((own) => own.name === name) ?? null;
  const title = name === 'max' ? name : `p${name}`;
  return {
    title, raw: `${title} (ns)`, value: (run) => of(run)?.value_ns ?? null,
    cell: (run) => {
      const own = of(run);
      if (!own) return '–';
      const ends = interval(own);
      return h('span', {}, h('span', { title: exactLatency(own.value_ns) }, latency(own.value_ns)), ends ? h('span', { class: 'worst ends' }, ends) : null);
    },
    doubt: (run) => (of(run)?.uncertain ? `${title}: too few samples lie beyond it for an interval` : null),
  };
}

/** "(61 to 68 us)"; empty if it is missing. */
function interval({ low_ns, high_ns }: PageRunFigure): string {
  if (low_ns === null || high_ns === null) return '';
  const [low, high] = [latency(low_ns), latency(high_ns)];
  const [number, unit] = low.split(' ');
  return unit === high.split(' ')[1] ? `(${number} to ${high})` : `(${low} to ${high})`;
}

const gateWords = (gate: PageGate): string => `${gate.gate}${gate.series ? ` ${gate.series}` : ''}: ${gate.verdict}`;

function gatesCell({ gates }: PageCellRun): HTMLElement | string {
  return gates.length ? h('div', { class: 'verdicts gates' }, ...gates.map((gate) => h('div', { title: gate.reason },
    h('span', { class: `verdict ${gate.verdict}` }, gate.verdict), ` ${gate.gate}${gate.series ? ` (${gate.series})` : ''}`))) : '–';
}
