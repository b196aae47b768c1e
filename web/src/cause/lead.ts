// The cause in one sentence a run, with its bar: for the first screen. All bands, their key and the
// peaks are in the section of the cause.

import type { Context } from '../context';
import { h, runMark } from '../dom';
import type { PageRun } from '../model';
import { onTheme } from '../theme';
import { stackBar } from './bars';
import type { Band, PageBlame } from './model';
import { whyNot } from './section';
import { sentence } from './sentence';
import { causeKeys, type CauseKeys } from './words';

/** With a deadline readers look at late cycles, else above p99.9, as `tardy why` does; short runs have less. */
const ORDER = ['late', 'p99.9', 'p99', 'worst'];

/** Null where nothing of any run is known, and nothing was meant to be. */
export function causeLead(context: Context): HTMLElement | null {
  const { runs } = context.page;
  const keys = causeKeys(context.page);
  const parts = runs.map((run, index) => ofRun(run, index, runs.length > 1, keys));
  if (parts.every((part) => part === null)) return null;
  const all = runs.some((run) => run.blame) ? h('p', { class: 'more' }, h('a', { href: '#cause' }, 'All bands and worst samples')) : null;
  return h('section', { class: 'lead', 'aria-label': 'the cause in short' }, ...parts, all);
}

function ofRun(run: PageRun, index: number, several: boolean, keys: CauseKeys): HTMLElement | null {
  const band = run.blame && leadBand(run.blame);
  const why = whyNot(run);
  if (!band && !why) return null;
  const name = several ? h('h3', { class: 'run-name' }, runMark(index), run.record.name) : null;
  if (!band) return h('div', {}, name, h('p', { class: 'muted' }, `Why ${run.samples.many} were late was not recorded: ${why}.`));
  const bar = h('div', {});
  const draw = (): void => bar.replaceChildren(stackBar(band, keys));
  draw();
  onTheme(draw);
  return h('div', {}, name, h('p', { class: 'cause-sentence' }, sentence(band, run.samples.many)), bar);
}

function leadBand({ bands }: PageBlame): Band | null {
  for (const wanted of ORDER) {
    const found = bands.find(({ name }) => name === wanted);
    if (found) return found;
  }
  return null;
}
