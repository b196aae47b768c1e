// The page of a comparison in blocks: its answer, its looks, how both sides are measured, what differs,
// and the doubts about its blocks.

import { caveatList } from '../caveats';
import { comparisonSection } from '../comparison/section';
import { sides } from '../comparison/answer';
import { h, withCode } from '../dom';
import type { AbCaveat, AbLook, Caveat, Page, PageAb, PageComparison, PageMatrix } from '../model';
import { Table } from '../table';
import { unbroken } from '../units';

const STATUS: { [status in PageAb['status']]: string } = {
  running: 'not at its end when this page was made, or killed',
  complete: '',
  interrupted: 'interrupted: ended early',
  invalid: 'ended by a block that is invalid',
  failed: 'ended by an error',
};

export function abSections(page: Page, ab: PageAb, matrix: PageMatrix): (HTMLElement | null)[] {
  const cells = matrix.loads[0]?.cells ?? [];
  return [
    head(page.comparisons[0], ab, matrix),
    comparisonSection(page.comparisons, page.words.samples.many, (_, side) => cells[side === 'a' ? 0 : 1]?.samples ?? 0),
    caveats(ab),
  ];
}

function head(one: PageComparison, ab: PageAb, matrix: PageMatrix): HTMLElement {
  const word = ab.status === 'invalid' ? 'invalid' : one.verdict;
  const status = STATUS[ab.status];
  return h('header', { class: 'page-head several' },
    h('p', { class: 'line' }, matrix.title),
    h('section', { class: 'answer', 'aria-label': 'the answer' },
      h('div', { class: 'title-line' }, sides(one), h('span', { class: `verdict ${word}`, title: 'Of B, compared with A' }, word), status ? h('span', { class: 'status' }, status) : null),
      h('p', { class: 'headline' }, unbroken(one.sentence)),
      one.cause ? h('p', { class: 'line' }, unbroken(one.cause)) : null,
      ...ab.how.map((text) => h('p', { class: 'line' }, ...withCode(text)))),
    [ab.error, ...matrix.remarks].some(Boolean) ? h('ul', { class: 'caveat-list' }, ...[ab.error, ...matrix.remarks].filter((text): text is string => Boolean(text)).map((text) => h('li', { class: 'weakens' }, ...withCode(text)))) : null,
    looks(ab.looks));
}

/** When it was looked whether it is decided, and what was said then. */
function looks(all: AbLook[]): HTMLElement | null {
  if (all.length === 0) return null;
  const table = new Table<AbLook & { number: number }>({
    name: 'looks', rows: all.map((look, index) => ({ ...look, number: index + 1 })),
    columns: [
      { title: 'look', raw: 'look', value: ({ number }) => number, cell: ({ number }) => String(number) },
      { title: 'after pairs', raw: 'pairs', value: ({ pairs }) => pairs, cell: ({ pairs }) => String(pairs) },
      { title: 'verdict', raw: 'verdict', left: true, value: ({ verdict }) => verdict, cell: ({ verdict }) => (verdict ? h('span', { class: `verdict ${verdict}` }, verdict) : h('span', { class: 'muted' }, 'did not come')) },
    ],
  });
  return h('div', { class: 'looks' }, h('h3', {}, 'Looks, fixed beforehand'), table.element);
}

function caveats({ caveats: all }: PageAb): HTMLElement | null {
  if (all.length === 0) return null;
  const counted = (own: AbCaveat): Caveat => ({ code: own.code, effect: own.effect, text: `${own.text} Blocks with it: ${own.blocks_a} of A, ${own.blocks_b} of B; the values are those of the first.`, remedy: own.remedy, values: {} });
  return h('section', { class: 'caveats', 'aria-label': 'caveats' }, h('h2', {}, 'Caveats of the blocks'), caveatList(all.map(counted)));
}
