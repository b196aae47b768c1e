// The page of a matrix: what the numbers mean, figures, a chart a row, single runs, kernels and what
// failed.

import { h, withCode } from '../dom';
import type { MatrixFailure, Page, PageMatrix } from '../model';
import { onTheme } from '../theme';
import { abSections } from './ab';
import { overlayPanel, scalesOf } from './overlay';
import { runsSection } from './runs';
import { suiteSections } from './suite';
import { configTable, figuresTable, kernelName, kernelsTable } from './table';
import { unbroken } from '../units';
import { WORDS } from './words';

export function matrixSections(page: Page, matrix: PageMatrix): HTMLElement[] {
  const tables = matrix.suite ? suiteSections(matrix, matrix.suite) : [figuresTable(matrix)];
  const first = page.ab ? abSections(page, page.ab, matrix) : [head(matrix), ...tables];
  return [...first, charts(matrix), runsSection(matrix), page.ab ? null : details(matrix)].filter((own): own is HTMLElement => own !== null);
}

function head(matrix: PageMatrix): HTMLElement {
  const undone = matrix.kind === 'lab' ? `Ended early: ${matrix.undone} of the plan's runs were not made.` : `${matrix.undone} of ${matrix.runs.length} runs are not measured yet.`;
  const notes = [...matrix.remarks, ...(matrix.undone ? [undone] : [])];
  return h('header', { class: 'page-head' },
    h('h1', {}, unbroken(matrix.headline || matrix.title)),
    matrix.finding ? h('p', { class: 'headline' }, unbroken(matrix.finding)) : null,
    matrix.state ? h('p', { class: 'line' }, unbroken(matrix.state)) : null,
    ...matrix.meanings.map((text) => h('p', { class: 'meaning note' }, ...withCode(text))),
    notes.length ? h('ul', { class: 'caveat-list' }, ...notes.map((text) => h('li', { class: 'weakens' }, ...withCode(text)))) : null);
}

function charts(matrix: PageMatrix): HTMLElement {
  const scales = scalesOf(matrix);
  const key = h('div', { class: 'kernel-key' });
  const draw = (): void => key.replaceChildren(...matrix.kernels.map(kernelName));
  draw();
  onTheme(draw);
  return h('section', { class: 'shape', 'aria-label': 'latency by percentile' },
    h('div', { class: 'bar-line' }, h('h2', {}, WORDS[matrix.kind].charts), key,
      h('span', { class: 'hint', id: 'chart-keys' }, 'Drag to zoom, double click to show all. Keys: arrows read, + and - zoom, Escape resets.')),
    h('p', { class: 'note' }, `All ${WORDS[matrix.kind].repeats} together; all charts have the same scales. Faint: fewer than 10 samples beyond.`),
    h('div', { class: 'multiples' }, ...matrix.loads.filter((row) => !matrix.suite || row.cells.some((cell) => cell?.curve.length)).map((row) => h('div', { class: 'multiple' },
      overlayPanel(matrix, row, scales).element,
      row.load && row.load !== row.name ? h('p', { class: 'note' }, row.load) : null,
      ...row.verdicts.map((text) => h('p', { class: 'judged' }, text)),
      ...caveats(matrix, row.cells.map((cell) => cell?.caveats ?? []))))));
}

function caveats(matrix: PageMatrix, texts: string[][]): HTMLElement[] {
  return texts.flatMap((own, index) => own.map((text) => h('p', { class: 'note' }, `${[matrix.kernels[index]?.name, text].filter(Boolean).join(': ')}`)));
}

function details(matrix: PageMatrix): HTMLElement {
  return h('section', { class: 'record', 'aria-label': 'the record' },
    failures(matrix), ...(matrix.kind === 'lab' ? [kernelsTable(matrix.kernels), configTable(matrix.config)] : []));
}

function failures({ failed, kind }: PageMatrix): HTMLElement | null {
  if (failed.length === 0) return null;
  const place = (cell: MatrixFailure): string => (kind === 'lab' ? `${cell.load} under ${cell.kernel}` : [cell.load, cell.kernel].filter(Boolean).join(', '));
  return h('details', { open: true }, h('summary', {}, `Failed: ${failed.length}`),
    ...failed.map((cell) => h('div', { class: 'command failure' },
      h('b', {}, `${place(cell)}, ${WORDS[kind].repeat} ${cell.seed}`), h('pre', {}, cell.why))));
}
