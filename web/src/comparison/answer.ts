// The answer of a comparison, for the first five seconds: the verdict as a coloured word, what the
// figures came to with their intervals, and which cause differs.

import { h, runMark } from '../dom';
import type { PageComparison } from '../model';
import { unbroken } from '../units';

export function answers(comparisons: PageComparison[]): HTMLElement[] {
  return comparisons.map((one) => h('section', { class: 'answer', 'aria-label': `${one.b_name} against ${one.a_name}` },
    h('div', { class: 'title-line' }, sides(one), verdict(one)),
    h('p', { class: 'headline' }, unbroken(one.sentence)),
    one.cause ? h('p', { class: 'line' }, unbroken(one.cause)) : null));
}

/** "B fifo against A other", each with its colour, where its runs are on the page. */
export function sides(one: PageComparison): HTMLElement {
  return h('h1', { class: 'sides' }, ...side('B', one.b, one.b_name), h('span', { class: 'muted' }, one.judged ? 'against' : 'beside'), ...side('A', one.a, one.a_name));
}

function side(letter: string, [first]: number[], name: string): (HTMLElement | string)[] {
  return [...(first === undefined ? [] : [runMark(first)]), `${letter}: ${name}`];
}

function verdict(one: PageComparison): HTMLElement {
  const word = one.judged ? one.verdict : 'described';
  const words = one.judged ? one.verdict : 'described, not judged';
  return h('span', { class: `verdict ${word}`, title: one.judged ? 'Of B, compared with A' : 'How much runs differ from each other is not in one run a side' }, words);
}
