// The page of a matrix: what the numbers mean, figures, a chart a load, kernels and what failed.

import { h } from '../dom';
import type { MatrixFailure, PageMatrix } from '../model';
import { onTheme } from '../theme';
import { overlayPanel, scalesOf } from './overlay';
import { configTable, figuresTable, kernelName, kernelsTable } from './table';

export function matrixSections(matrix: PageMatrix): HTMLElement[] {
  return [head(matrix), figuresTable(matrix), charts(matrix), details(matrix)];
}

function head(matrix: PageMatrix): HTMLElement {
  const notes = [...matrix.remarks, ...(matrix.undone ? [`Ended early: ${matrix.undone} of the plan's runs were not made.`] : [])];
  return h('header', { class: 'page-head' },
    h('h1', {}, matrix.headline || matrix.title),
    ...matrix.meanings.map((text) => h('p', { class: 'meaning' }, text)),
    notes.length ? h('ul', { class: 'caveat-list' }, ...notes.map((text) => h('li', { class: 'weakens' }, text))) : null);
}

function charts(matrix: PageMatrix): HTMLElement {
  const scales = scalesOf(matrix);
  const key = h('div', { class: 'kernel-key' });
  const draw = (): void => key.replaceChildren(...matrix.kernels.map(kernelName));
  draw();
  onTheme(draw);
  return h('section', { class: 'shape', 'aria-label': 'latency by percentile' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Latency by percentile, load by load'), key,
      h('span', { class: 'hint', id: 'chart-keys' }, 'Drag to zoom, double click to show all. Keys: arrows read, + and - zoom, Escape resets.')),
    h('p', { class: 'note' }, 'All start phases together; all charts have the same scales. Faint: fewer than 10 samples beyond.'),
    h('div', { class: 'multiples' }, ...matrix.loads.map((row) => h('div', { class: 'multiple' },
      overlayPanel(matrix, row, scales).element,
      row.load && row.load !== row.name ? h('p', { class: 'note' }, row.load) : null,
      ...row.verdicts.map((text) => h('p', { class: 'judged' }, text)),
      ...caveats(matrix, row.cells.map((cell) => cell?.caveats ?? []))))));
}

function caveats(matrix: PageMatrix, texts: string[][]): HTMLElement[] {
  return texts.flatMap((own, index) => own.map((text) => h('p', { class: 'note' }, `${matrix.kernels[index]?.name ?? '?'}: ${text}`)));
}

function details(matrix: PageMatrix): HTMLElement {
  return h('section', { class: 'record', 'aria-label': 'the record' },
    failures(matrix.failed), kernelsTable(matrix.kernels), configTable(matrix.config));
}

function failures(failed: MatrixFailure[]): HTMLElement | null {
  if (failed.length === 0) return null;
  return h('details', { open: true }, h('summary', {}, `Failed: ${failed.length}`),
    ...failed.map((cell) => h('div', { class: 'command failure' },
      h('b', {}, `${cell.load} under ${cell.kernel}, phase ${cell.seed}`), h('pre', {}, cell.why))));
}
