// The first five seconds: what each run says in one sentence, whether it may be believed, and on what
// machine it ran.

import { h, runMark } from './dom';
import { answers } from './comparison/answer';
import type { Page, PageRun, Status, Validity } from './model';
import { count, instant, unbroken } from './units';

const STATUS: { [status in Status]: string } = {
  complete: '',
  running: 'still running when this page was made',
  interrupted: 'interrupted: ended early; recorded data is complete',
  stopped_over: 'stopped: a latency passed the limit to stop at',
  crashed: 'crashed: the record ends where it was last written',
  imported: 'imported: another program measured it',
};

export function head({ runs, comparisons }: Page): HTMLElement {
  const several = runs.length > 1;
  return h('header', { class: several ? 'page-head several' : 'page-head' },
    several && comparisons.length !== 1 ? h('h1', {}, runs.length === 2 ? `${runs[0].record.name} and ${runs[1].record.name}` : `${runs.length} runs`) : null,
    ...answers(comparisons),
    h('div', { class: 'runs', 'data-runs': runs.length }, ...runs.map((run, index) => card(run, index, several))));
}

function card(run: PageRun, index: number, several: boolean): HTMLElement {
  const { record } = run;
  const name = several
    ? h('h2', { class: 'run-name' }, runMark(index), record.name)
    : h('h1', {}, record.name);
  return h('article', { class: 'card' },
    h('div', { class: 'title-line' }, name, verdict(record.validity), status(record.status)),
    h('p', { class: 'headline' }, unbroken(run.headline) || emptyHeadline(run)),
    h('p', { class: 'line' }, unbroken(run.line), run.line && record.started_at ? ' · ' : '', record.started_at ? h('span', { class: 'moment' }, instant(record.started_at)) : ''),
    ...run.without_host.map((sentence) => h('p', { class: 'line without-host' }, unbroken(sentence))));
}

function emptyHeadline(run: PageRun): string {
  const samples = run.record.series.reduce((sum, series) => sum + series.count, 0);
  return samples === 0 ? 'No samples were recorded.' : `${count(samples)} samples.`;
}

/** The word for people. */
export function displayed(validity: string): string {
  return validity === 'weakened' ? 'questionable' : validity;
}

function verdict(validity: Validity): HTMLElement {
  const known = ['valid', 'weakened', 'invalid'].includes(validity);
  return h('span', { class: `verdict ${known ? validity : 'invalid'}`, title: 'Validity: set by the most severe caveat' }, displayed(validity));
}

function status(value: Status): HTMLElement | null {
  const words = value in STATUS ? STATUS[value] : value;
  return words ? h('span', { class: 'status' }, words) : null;
}
