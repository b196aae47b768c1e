// What all parts of the page share: the data, the selection, the common scales, and which series has
// which colour. Computed once from the data.

import type { Page, PageRun, PageScheduled, PageSeries, SeriesSummary } from './model';
import { logScale, type LogScale } from './scale';
import { dashOf, type Theme } from './theme';
import { count } from './units';
import { Counting, Selection, Stretch } from './view';

/** Up to this number of series, each has its own colour; of more, only the worst. */
const COLOURS = 7;

export interface Context {
  page: Page;
  selection: Selection;
  /** Per wake-up, or per scheduled period: where many periods were missed, that comes first. */
  counting: Counting;
  /** The time axis of all time charts, seconds since each run's start. */
  time: Stretch;
  /** The latency axis that heat maps and latencies over time of all runs share. */
  latency: LogScale;
  /** The same with room for stages, which are shorter. */
  stages: LogScale;
  /** Names of all series, in order of first appearance. */
  names: string[];
  /** Colour slot by name; series without one are the crowd. */
  slots: Map<string, number>;
}

export function makeContext(page: Page): Context {
  const names = [...new Set(page.runs.flatMap((run) => seriesOf(run).map((item) => item.name)))];
  return {
    page,
    selection: new Selection(),
    counting: new Counting(page.runs.some((run) => run.scheduled_first)),
    time: new Stretch(0, longest(page)),
    latency: latencyScale(page),
    stages: stageScale(page),
    names,
    slots: colourSlots(page, names),
  };
}

/** One series of a run: its figures and its pictures; either may be absent in a damaged run. */
export interface SeriesPair {
  name: string;
  summary: SeriesSummary | null;
  drawn: PageSeries | null;
}

export function seriesOf(run: PageRun): SeriesPair[] {
  const length = Math.max(run.record.series.length, run.series.length);
  return Array.from({ length }, (_, index) => {
    const summary = run.record.series[index] ?? null;
    const drawn = run.series[index] ?? null;
    return { name: summary?.name ?? drawn?.name ?? '?', summary, drawn };
  });
}

/** All samples of a run, or of one series. */
export function samplesOf(run: PageRun, series: string | null): number {
  return run.record.series.reduce((sum, s) => sum + (series === null || s.name === series ? s.count : 0), 0);
}

/** Curve and histogram of a series as things are counted now; where no period was missed, both ways are one. */
export function countedOf({ counting }: Context, series: PageSeries): PageScheduled {
  return counting.scheduled ? series.scheduled ?? series : series;
}

/** The number of a series that is counted now. */
export function countOf({ counting }: Context, summary: SeriesSummary): number {
  return counting.scheduled ? summary.scheduled?.count ?? summary.count : summary.count;
}

/** What percentiles and bins are of: "19,862 and 19,832 samples." */
export function countedWords(context: Context): string {
  const chosen = context.selection.series;
  const sums = context.page.runs.map((run) => count(run.record.series.reduce(
    (sum, s) => sum + (chosen === null || s.name === chosen ? countOf(context, s) : 0), 0)));
  return context.counting.scheduled
    ? `${sums.join(' and ')} scheduled periods: late by L at interval T counts as L, L-T, \u2026, L-kT.`
    : `${sums.join(' and ')} samples.`;
}

export function seriesColour(context: Context, name: string, colours: Theme): string {
  const slot = context.slots.get(name);
  return slot === undefined ? colours.crowd : colours.series[slot];
}

/** How the line of a series is drawn: of one run by its colour, of several by the colour of its run and a separate dash. */
export function lineOf(context: Context, run: number, name: string, colours: Theme): { color: string; type: 'solid' | number[] } {
  if (context.page.runs.length < 2) return { color: seriesColour(context, name, colours), type: 'solid' };
  return { color: colours.runs[run % colours.runs.length], type: dashOf(context.slots.get(name) ?? 0) };
}

/** Largest number of a long column; spreading one into Math.max would overflow the stack. */
export function largest(values: number[], otherwise: number): number {
  return values.reduce((most, value) => (value > most ? value : most), otherwise);
}

function longest(page: Page): number {
  const ends = page.runs.flatMap((run) => [
    run.record.duration_ns / 1e9,
    run.time_edges_s[run.time_edges_s.length - 1] ?? 0,
    run.machine.t_s[run.machine.t_s.length - 1] ?? 0,
    ...run.loads.map((load) => load.t_s[load.t_s.length - 1] ?? 0),
    ...run.series.map((series) => largest(series.points.t_s, 0)),
  ]);
  return largest(ends, 0) || 1;
}

function latencyScale(page: Page): LogScale {
  let least = Infinity;
  let most = 0;
  let early = false;
  const take = (ns: number): void => {
    if (ns > 0) least = Math.min(least, ns);
    else early = true;
    most = Math.max(most, ns);
  };
  for (const run of page.runs) {
    for (const bin of new Set(run.heat.latency)) {
      take(page.latency_edges_ns[bin] || (page.latency_edges_ns[bin + 1] ?? 1000) / 2);
      // The last bin has no edge above it.
      take((page.latency_edges_ns[bin + 1] ?? page.latency_edges_ns[bin] ?? 0) * 0.95 || 1);
    }
    for (const { summary, drawn } of seriesOf(run)) {
      if (summary?.max !== null && summary?.max !== undefined) take(summary.max);
      for (const ns of drawn?.points.latency_ns ?? []) if (Number.isFinite(ns)) take(ns);
    }
  }
  return logScale(least, most, early);
}

function stageScale(page: Page): LogScale {
  const { foot, high } = latencyScale(page);
  const summaries = page.runs.flatMap((run) => run.stages.map((stage) => stage.summary));
  const values = summaries.flatMap((summary) => [summary.min, summary.max]).filter((ns): ns is number => ns !== null && ns > 0);
  const least = values.reduce((a, b) => Math.min(a, b), Math.pow(10, foot));
  return logScale(Math.max(10, least), Math.max(Math.pow(10, high) / 1.06, largest(values, 0)), false);
}

function colourSlots(page: Page, names: string[]): Map<string, number> {
  if (names.length <= COLOURS) return new Map(names.map((name, index) => [name, index]));
  const worst = new Map<string, number>();
  for (const run of page.runs) {
    for (const { name, max } of run.record.series) {
      worst.set(name, Math.max(worst.get(name) ?? -Infinity, max ?? -Infinity));
    }
  }
  const ranked = [...names].sort((a, b) => (worst.get(b) ?? -Infinity) - (worst.get(a) ?? -Infinity));
  return new Map(ranked.slice(0, COLOURS).map((name, index) => [name, index]));
}

/** What the colours mean where not every series has one; empty where each has. */
export function colourNote(context: Context): string {
  if (context.names.length <= COLOURS) return '';
  return `Colored: the ${COLOURS} series with the largest maxima; gray: the other ${context.names.length - COLOURS}.`;
}
