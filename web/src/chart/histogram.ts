// The histogram, log-log: how many samples had which latency. An outline a series and run; with many
// series the crowd is one outline, their sum, so that nothing is left out.

import { colourNote, countedOf, countedWords, lineOf, type Context } from '../context';
import { csv, fileName } from '../dom';
import type { Option } from '../echarts';
import type { PageRun, SeriesSummary } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import { logScale, logTicks, type LogScale } from '../scale';
import { chips } from '../selector';
import { count, exactLatency, latency, shortCount } from '../units';
import { Stretch } from '../view';
import { grid, xAxis, yAxis } from './axes';

/** Right of the plot: half of the last label, "100 ms". */
const WIDEST_LABEL = 26;
/** The foot of the outlines: below one sample, which must still be seen. */
const FOOT = Math.log10(0.6);

interface Outline {
  run: number;
  name: string;
  /** Empty for the sum of the crowd. */
  series: string;
  bins: Map<number, number>;
}

function outlinesOf(context: Context): Outline[] {
  return context.page.runs.flatMap((run, index) => {
    const chosen = context.selection.series;
    const crowd: Outline = { run: index, name: 'other series together', series: '', bins: new Map() };
    const own: Outline[] = [];
    for (const series of run.series) {
      const { name } = series;
      const { histogram } = countedOf(context, series);
      if (chosen !== null ? chosen === name : context.slots.has(name)) {
        own.push({ run: index, name, series: name, bins: new Map(histogram) });
      } else if (chosen === null) {
        for (const [bin, n] of histogram) crowd.bins.set(bin, (crowd.bins.get(bin) ?? 0) + n);
      }
    }
    return crowd.bins.size > 0 ? [crowd, ...own] : own;
  });
}

/** Latencies of all bins that hold anything, whatever is selected or counted: the axis does not jump about. */
function scaleOf(context: Context): LogScale {
  const edges = context.page.latency_edges_ns;
  let [least, most] = [Infinity, 0];
  for (const run of context.page.runs) {
    for (const { histogram, scheduled } of run.series) {
      for (const [bin] of [...histogram, ...(scheduled?.histogram ?? [])]) {
        least = Math.min(least, edges[bin] || (edges[bin + 1] ?? 1000) / 2);
        most = Math.max(most, edges[bin + 1] ?? edges[bin] ?? 0);
      }
    }
  }
  return logScale(least, most, false);
}

export function histogramPanel(context: Context): Panel {
  const scale = scaleOf(context);
  const panel = new Panel({
    kind: 'histogram',
    run: null,
    title: 'Histogram',
    count: () => countText(context),
    summary: () => summaryText(context),
    height: (small) => (small ? 260 : 320),
    paper: 230,
    stretch: new Stretch(scale.foot, scale.high),
    option: (frame) => option(context, scale, frame),
    read: (x, _y, frame) => reading(context, x, frame),
    empty: () => context.page.runs.every((run) => run.series.every((series) => series.histogram.length === 0)),
    file: () => fileName('histogram'),
    csv: () => csv(['run', 'series', 'latency_from_ns', 'latency_to_ns', 'count'], rows(context)),
    extra: chips(context),
  });
  context.selection.onChange(() => panel.redraw());
  context.counting.onChange(() => panel.redraw());
  return panel;
}

function* rows(context: Context): Iterable<(string | number | null)[]> {
  const edges = context.page.latency_edges_ns;
  for (const run of context.page.runs) {
    for (const series of run.series) {
      const { name } = series;
      for (const [bin, n] of countedOf(context, series).histogram) yield [run.record.name, name, edges[bin] ?? null, edges[bin + 1] ?? null, n];
    }
  }
}

/** Samples that have no bin. */
function outside(runs: PageRun[], series: string | null): string {
  const sum = (pick: (s: SeriesSummary) => number): number => runs.reduce((all, run) => run.record.series.reduce(
    (own, s) => own + (series === null || s.name === series ? pick(s) : 0), all), 0);
  const parts = [[sum((s) => s.early), 'early'], [sum((s) => s.above), 'over one hour']] as const;
  const told = parts.filter(([n]) => n > 0).map(([n, what]) => `${count(n)} ${what}`);
  return told.length ? `Of them in no bin: ${told.join(', ')}.` : '';
}

function countText(context: Context): string {
  return [countedWords(context), outside(context.page.runs, context.selection.series), colourNote(context)].filter(Boolean).join(' ');
}

function summaryText(context: Context): string {
  const edges = context.page.latency_edges_ns;
  return outlinesOf(context).slice(0, 20).map(({ run, name, bins }) => {
    const fullest = [...bins].reduce((a, b) => (b[1] > a[1] ? b : a), [-1, 0]);
    const several = context.page.runs.length > 1 ? `${context.page.runs[run].record.name} ` : '';
    return fullest[0] < 0 ? `${several}${name}: no samples`
      : `${several}${name}: fullest bin from ${latency(edges[fullest[0]])} to ${latency(edges[fullest[0] + 1])} with ${count(fullest[1])} samples`;
  }).join('. ');
}

function option(context: Context, scale: LogScale, frame: Frame): Option {
  const outlines = outlinesOf(context);
  const most = outlines.reduce((high, { bins }) => [...bins.values()].reduce((a, n) => Math.max(a, n), high), 1);
  const view = { ...scale, low: frame.from, foot: frame.from, high: frame.to };
  const x = logTicks(view, frame.width < 420 ? 6 : 14, latency);
  const counts: LogScale = { ...scale, low: 0, foot: 0, high: Math.log10(most * 1.5), strip: false };
  const y = logTicks(counts, 8, shortCount);
  return {
    grid: grid(frame, 10, 44, WIDEST_LABEL),
    xAxis: xAxis({ name: context.page.words.samples.measure, min: frame.from, max: frame.to, ticks: x.at, label: x.label, frame }),
    yAxis: yAxis({ name: context.counting.scheduled ? 'periods per bin' : 'samples per bin', min: FOOT, max: counts.high, ticks: y.at, label: y.label, frame }),
    series: outlines.map((outline) => outlineSeries(context, outline, scale, frame, outlines.length)),
  };
}

function outlineSeries(context: Context, outline: Outline, scale: LogScale, frame: Frame, of: number): Option {
  const known = outline.series !== '' && context.slots.has(outline.series);
  const line = lineOf(context, outline.run, outline.series, frame.theme);
  const colour = known || context.page.runs.length > 1 ? line.color
    : outline.series ? frame.theme.text : frame.theme.crowd;
  return {
    type: 'line', id: `${outline.run}/${outline.series}`, name: outline.name, silent: true,
    data: steps(context, outline, scale), symbol: 'none', showSymbol: false, clip: true, z: outline.series ? 3 : 2,
    lineStyle: { color: colour, width: 1.5, type: line.type },
    areaStyle: of <= 2 && outline.run === 0 ? { color: colour, opacity: 0.1, origin: FOOT } : undefined,
  };
}

/** The outline as a polyline: up at a bin's lower edge, along, and down where the next bin is empty. */
function steps(context: Context, { bins }: Outline, scale: LogScale): [number, number][] {
  const edges = context.page.latency_edges_ns;
  const place = (ns: number): number => (ns > 0 ? Math.log10(ns) : scale.foot);
  const line: [number, number][] = [];
  for (const [bin, n] of [...bins].sort((a, b) => a[0] - b[0])) {
    const from = place(edges[bin] ?? 0);
    const to = place(edges[bin + 1] ?? edges[bin] ?? 0);
    const height = Math.log10(Math.max(n, 0.6));
    if (!bins.has(bin - 1)) line.push([from, FOOT]);
    line.push([from, height], [to, height]);
    if (!bins.has(bin + 1)) line.push([to, FOOT]);
  }
  return line;
}

function reading(context: Context, x: number, frame: Frame): Reading | null {
  const edges = context.page.latency_edges_ns;
  const ns = Math.pow(10, x);
  const bin = edges.findIndex((edge, i) => ns >= edge && ns < (edges[i + 1] ?? -1));
  if (bin < 0) return null;
  const several = context.page.runs.length > 1;
  return {
    title: `${exactLatency(edges[bin])} to ${exactLatency(edges[bin + 1])}`,
    rows: outlinesOf(context).map(({ run, name, series, bins }) => ({
      colour: series || several ? lineOf(context, run, series, frame.theme).color : frame.theme.crowd,
      name: several ? `${name}, ${context.page.runs[run].record.name}` : name,
      value: `${count(bins.get(bin) ?? 0)}`,
    })),
  };
}
