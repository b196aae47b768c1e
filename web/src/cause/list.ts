// The worst wake-ups of all runs, worst first: a table whose rows open a timeline.

import type { Context } from '../context';
import { h } from '../dom';
import type { PageRun } from '../model';
import { runColumn } from '../run-column';
import { Table, type Column, type TableSpec } from '../table';
import { onTheme, theme } from '../theme';
import { columnUnit, exactTime, moment } from '../units';
import type { PagePart, PagePeak } from './model';
import { causeKey, isInferred, label, share, type CauseKeys } from './words';

/** The number of printed rows: a screen has the rest. */
const PRINTED = 5;

/** A peak and where it is from. */
export interface Ranked {
  rank: number;
  run: number;
  runOf: PageRun;
  peak: PagePeak;
}

export function rankedPeaks(runs: PageRun[]): Ranked[] {
  const all = runs.flatMap((runOf, run) => runOf.peaks.peaks.map((peak) => ({ rank: 0, run, runOf, peak })));
  all.sort((a, b) => b.peak.latency_ns - a.peak.latency_ns);
  all.forEach((ranked, index) => { ranked.rank = index + 1; });
  return all;
}

/** What they are: of attached threads with a deadline both. */
export function peakWords(ranked: Ranked[], many: string): string {
  const responses = ranked.filter(({ peak }) => peak.series.endsWith('/response')).length;
  if (responses === 0) return many;
  return responses === ranked.length ? 'responses' : 'wake-ups and responses';
}

/** Whose peaks there are: series, those of responses with the wake-ups of the same threads. */
export function peakSeries(ranked: Ranked[]): string[] {
  return [...new Set(ranked.map(({ peak }) => wholeOf(peak.series)))].sort();
}

const wholeOf = (series: string): string => series.replace(/\/response$/, '');

/** Those of one series; of all for an empty name. */
export function peaksOf(ranked: Ranked[], series: string): Ranked[] {
  return series === '' ? ranked : ranked.filter(({ peak }) => wholeOf(peak.series) === series);
}

const main = (peak: PagePeak): PagePart | null => peak.blame[0] ?? null;

export class PeakList {
  readonly table: Table<Ranked>;

  constructor(private readonly context: Context, private ranked: Ranked[], private readonly keys: CauseKeys,
    private readonly chosen: () => Ranked, private readonly open: (ranked: Ranked) => void) {
    this.table = new Table(this.spec());
    onTheme(() => this.table.draw());
  }

  /** Shows others. */
  replace(ranked: Ranked[]): void {
    this.ranked = ranked;
    this.table.show(this.spec());
  }

  /** Draws anew after another one was opened; the focus stays on the open one where it was in the list. */
  redraw(): void {
    const inside = this.table.element.contains(document.activeElement);
    const top = this.table.element.scrollTop;
    this.table.draw();
    this.table.element.scrollTop = top;
    if (inside) this.table.element.querySelector<HTMLElement>('tr.chosen button')?.focus({ preventScroll: true });
  }

  /** Brings the open one into sight of the list's own box, without moving the page. */
  reveal(): void {
    const box = this.table.element;
    const row = box.querySelector<HTMLElement>('tr.chosen');
    if (!row) return;
    const head = box.querySelector<HTMLElement>('thead')?.offsetHeight ?? 0;
    if (row.offsetTop - head < box.scrollTop) box.scrollTop = row.offsetTop - head;
    else if (row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = row.offsetTop + row.offsetHeight - box.clientHeight;
  }

  private spec(): TableSpec<Ranked> {
    return {
      name: `worst ${peakWords(this.ranked, this.context.page.words.samples.many)}`, rows: this.ranked, columns: this.columns(), press: this.open, printed: PRINTED,
      rowClass: (ranked) => (ranked === this.chosen() ? 'chosen' : ''),
    };
  }

  private columns(): Column<Ranked>[] {
    const { write, unit } = columnUnit(this.ranked.map(({ peak }) => peak.latency_ns));
    const { runs } = this.context.page;
    return [
      { title: 'peak', raw: 'peak', left: true, value: ({ rank }) => rank, cell: (own) => this.opener(own) },
      ...(runs.length > 1 ? [runColumn<Ranked>(runs, (own) => own.run)] : []),
      { title: 'late by', unit, raw: 'latency_ns', value: ({ peak }) => peak.latency_ns, cell: ({ peak }) => write(peak.latency_ns) },
      { title: 'series', raw: 'series', left: true, value: ({ peak }) => peak.series, cell: ({ peak }) => h('span', { class: 'short' }, peak.series) },
      {
        title: 'main cause', raw: 'main cause', left: true, value: ({ peak }) => { const own = main(peak); return own && label(own); },
        cell: ({ peak }) => this.cause(main(peak)),
      },
      { title: 'its share', raw: 'share', value: ({ peak }) => (main(peak)?.ns ?? 0) / Math.max(1, peak.latency_ns), cell: ({ peak }) => share(main(peak)?.ns ?? 0, peak.latency_ns) },
      {
        title: 'when', raw: 't_s', hint: 'Programmed expiry, sending, stamp or begin of the gap, since the start of the run', value: ({ peak }) => peak.t_s,
        cell: ({ peak, runOf }) => (peak.t_s === null ? '\u2013' : h('span', { title: moment(runOf.record.started_at, peak.t_s) }, exactTime(peak.t_s))),
      },
    ];
  }

  private cause(part: PagePart | null): HTMLElement {
    if (!part) return h('span', { class: 'muted' }, 'not analyzed');
    const named = isInferred(part) ? `probably ${label(part)}` : label(part);
    const words = part.task && part.task !== part.name ? `${named} (${part.task})` : named;
    return h('span', { class: 'cause-name', title: words }, causeKey(part, this.keys, theme()), h('span', { class: 'short' }, words));
  }

  private opener(own: Ranked): HTMLElement {
    // The row takes the click; keys come here.
    return h('button', { type: 'button', class: 'name', 'aria-pressed': String(own === this.chosen()), title: `Show the timeline of peak ${own.rank}` }, `${own.rank}`);
  }
}
