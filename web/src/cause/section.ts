// The cause: what the slowest wake-ups of each run were spent on, the worst of them, and one opened.

import type { Context } from '../context';
import { announce, h, runMark } from '../dom';
import type { PageRun } from '../model';
import { latency } from '../units';
import { blameBars } from './bars';
import { PeakDetail } from './detail';
import { PeakList, peakSeries, peaksOf, peakWords, rankedPeaks, type Ranked } from './list';
import { causeKeys, type CauseKeys } from './words';

/** The section; null where no run was traced nor was meant to be. */
export function causeSection(context: Context): HTMLElement | null {
  const { runs } = context.page;
  const ranked = rankedPeaks(runs);
  const silent = runs.every((run) => !run.blame && !run.peaks.damaged.length && !whyNot(run));
  if (ranked.length === 0 && silent) return null;
  const keys = causeKeys(context.page);
  return h('section', { class: 'shape cause', id: 'cause', 'aria-label': 'the cause' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'The cause')),
    h('div', { class: 'columns', 'data-runs': runs.length }, ...runs.map((run, index) => h('div', { class: 'run-column' },
      runs.length > 1 ? h('h3', { class: 'run-name' }, runMark(index), run.record.name) : null,
      blameBars(run, keys) ?? h('p', { class: 'muted' }, `What ${run.peaks.peaks.length ? 'all ' : ''}late ${run.samples.many}${run.peaks.peaks.length ? ' together' : ''} were spent on was not recorded${whyNot(run) ? `: ${whyNot(run)}` : ''}.`),
      ...run.cpu_use.own_time.map((what) => h('p', {}, what)),
      ...run.peaks.damaged.map((what) => h('p', { class: 'notice' }, `Damaged: ${what}`))))),
    ranked.length ? peaksPart(context, ranked, keys) : null);
}

/** Why a run that should have been traced was not. */
export function whyNot(run: PageRun): string {
  const { asked, found, why_not } = run.record.trace;
  // Messages are looked into only where that is asked for.
  if (run.record.messages) return '';
  return asked === 'off' || found === 'peaks' ? '' : (why_not ?? '').replace(/\.$/, '');
}

function peaksPart(context: Context, all: Ranked[], keys: CauseKeys): HTMLElement {
  let ranked = all;
  let chosen = ranked[0];
  const detail = new PeakDetail(context, keys);
  const open = (own: Ranked, start = true): void => {
    chosen = own;
    detail.show(own, steps());
    if (!start) return;
    list.redraw();
    list.reveal();
    detail.panel?.start();
    announce(`peak ${own.rank}, ${latency(own.peak.latency_ns)} late`);
  };
  const list: PeakList = new PeakList(context, ranked, keys, () => chosen, open);
  const step = (words: string, by: number): HTMLElement => {
    const to = ranked[ranked.indexOf(chosen) + by];
    const button = h('button', { type: 'button', class: 'quiet', 'data-by': by, disabled: !to }, words);
    button.addEventListener('click', () => {
      open(to);
      const again = detail.element.querySelector<HTMLButtonElement>(`[data-by="${by}"]`);
      if (again && !again.disabled) again.focus({ preventScroll: true });
    });
    return button;
  };
  const steps = (): HTMLElement => h('span', { class: 'tools' }, step('worse', -1), step('next worst', 1));
  open(chosen, false);
  const { many } = context.page.words.samples;
  const title = h('h3', {}, `The ${all.length} worst ${peakWords(all, many)}`);
  const select = seriesSelect(all, (series) => {
    ranked = peaksOf(all, series);
    title.textContent = series === '' ? `The ${all.length} worst ${peakWords(all, many)}` : `The ${ranked.length} worst ${peakWords(ranked, many)} of ${series}`;
    chosen = ranked[0];
    list.replace(ranked);
    open(chosen);
  });
  return h('div', { class: 'peaks' },
    h('div', { class: 'bar-line' }, title, select, h('span', { class: 'hint' }, 'A click or Enter opens one.'), h('span', { class: 'tools' }, list.table.copy)),
    list.table.element, detail.element);
}

/** Chooses whose peaks are shown; null where they are of one series. */
function seriesSelect(all: Ranked[], choose: (series: string) => void): HTMLElement | null {
  const names = peakSeries(all);
  if (names.length < 2) return null;
  const select = h('select', { class: 'select', 'aria-label': 'whose peaks' },
    h('option', { value: '' }, 'all series'), ...names.map((name) => h('option', { value: name }, name)));
  select.addEventListener('change', () => choose(select.value));
  return select;
}
