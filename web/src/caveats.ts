// Caveats: reasons to doubt a run. On the first screen the weightiest, in the record all of them.

import { h, runMark, withCode } from './dom';
import type { Caveat, PageRun } from './model';

/** The number on the first screen; paper has all that weigh. */
const SHOWN = 4;

/** The words of the effects for people. */
const EFFECT: { [effect: string]: string } = { invalidates: 'error', weakens: 'warning', informs: 'info' };
const RANK: { [effect: string]: number } = { invalidates: 0, weakens: 1, informs: 2 };

/** The first fact of its run, before any doubt about figures: as `run/caveat.rs` sorts. */
const COMMAND_FAILED = 'attach_command_failed';

export function caveatList(caveats: Caveat[]): HTMLElement {
  return h('ul', { class: 'caveat-list' }, ...caveats.map((caveat) => item(caveat, true, '')));
}

/** The weightiest of each run, those that only inform in one line; null where no run has any. */
export function caveatSection(runs: PageRun[]): HTMLElement | null {
  if (runs.every((run) => run.record.caveats.length === 0)) return null;
  return h('section', { class: 'caveats', 'aria-label': 'the caveats' }, ...runs.map((run, index) => ofRun(run, index, runs.length > 1)));
}

function ofRun({ record }: PageRun, index: number, several: boolean): HTMLElement {
  const rank = ({ code, effect }: Caveat) => code === COMMAND_FAILED ? -1 : RANK[effect] ?? 0;
  const sorted = [...record.caveats].sort((a, b) => rank(a) - rank(b));
  const weigh = sorted.filter(({ code, effect }) => code === COMMAND_FAILED || effect !== 'informs').length;
  const hidden = Math.max(0, sorted.length - SHOWN);
  const name = several
    ? h('h3', { class: 'run-name' }, runMark(index), record.name) : null;
  const items = sorted.slice(0, Math.max(SHOWN, weigh)).map((caveat, place) =>
    item(caveat, caveat.effect !== 'informs', place < SHOWN ? '' : ' on-paper'));
  const what = weigh > SHOWN ? 'more caveat' : 'more caveat for information';
  const more = hidden === 0 ? null : h('p', { class: 'more' }, toAll(`${hidden} ${hidden === 1 ? what : what.replace('caveat', 'caveats')}`));
  return h('div', {}, name, items.length ? h('ul', { class: 'caveat-list' }, ...items) : h('p', { class: 'muted' }, 'No caveats.'), more);
}

/** Leads to the record, and opens its caveats. */
function toAll(words: string): HTMLElement {
  const link = h('a', { href: '#record-caveats' }, words);
  link.addEventListener('click', () => {
    const group = document.getElementById('record-caveats');
    if (group instanceof HTMLDetailsElement) group.open = true;
  });
  return link;
}

function item(caveat: Caveat, remedy: boolean, more: string): HTMLElement {
  return h('li', { class: caveat.effect + more },
    h('span', { class: 'effect' }, EFFECT[caveat.effect] ?? caveat.effect), ' ', h('span', { class: 'what' }, ...withCode(caveat.text || caveat.code)),
    caveat.code ? h('code', { class: 'code' }, caveat.code) : null,
    remedy && caveat.remedy ? h('div', { class: 'remedy' }, h('b', {}, 'Fix: '), ...withCode(caveat.remedy)) : null);
}
