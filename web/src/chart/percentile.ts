// The percentile graph: nines against log latency, a line a series, a colour a run, gates as lines.
// The maximum has its own place at the right end, where every line arrives.

import { capital, exactLatency, latency } from '../units';
import { seriesTitle } from '../vocabulary';
import { fileName, csv } from '../dom';
import { colourNote, largest, countOf, countedOf, countedWords, lineOf, seriesOf, type Context, type SeriesPair } from '../context';
import type { Option } from '../echarts';
import { limitsOf, type Limit } from '../limits';
import { Panel, type Frame, type Reading } from '../panel';
import { logScale, logTicks, nines, percentileAt, percentileText, type LogScale } from '../scale';
import { chips } from '../selector';
import { Stretch } from '../view';
import { grid, xAxis, yAxis } from './axes';

/** With fewer samples beyond it a percentile is little more than the maximum (as in `run.json`). */
const ENOUGH_BEYOND = 10;
const FIRST = nines(50);

interface Curve {
  run: number;
  name: string;
  count: number;
  /** Position on the axis of nines and latency, the maximum left out. */
  points: [number, number][];
  max: number;
}

function curvesOf(context: Context): Curve[] {
  return context.page.runs.flatMap((run, index) => seriesOf(run).flatMap((pair) => curveOf(context, pair, index)));
}

function curveOf(context: Context, { name, summary, drawn }: SeriesPair, run: number): Curve[] {
  const curve = drawn ? countedOf(context, drawn).curve : [];
  if (curve.length === 0) return [];
  const points = curve.filter(([p]) => p < 100).map(([p, ns]): [number, number] => [nines(p), ns]);
  const max = summary?.max ?? curve[curve.length - 1][1];
  return [{ run, name, count: summary ? countOf(context, summary) : 0, points, max }];
}

interface Drawing {
  context: Context;
  curves: Curve[];
  limits: Limit[];
  scale: LogScale;
  /** Last percentile of the axis. */
  last: number;
  /** Where the maxima are. */
  end: number;
}

function drawingOf(context: Context): Drawing {
  const curves = curvesOf(context);
  const limits = context.page.runs.flatMap((run) => limitsOf(run.record));
  const seen = curves.flatMap((c) => [c.max, ...c.points.filter(([x]) => x >= FIRST - 0.01).map(([, ns]) => ns)]);
  const values = [...seen, ...limits.map((limit) => limit.ns)];
  const least = values.reduce((low, ns) => (ns > 0 && ns < low ? ns : low), Infinity);
  const most = values.reduce((high, ns) => Math.max(high, ns), 0);
  // As far as any way of counting reaches, so that the axis stays when another one is chosen.
  const counts = context.page.runs.flatMap((run) => run.record.series.map((s) => Math.max(s.count, s.scheduled?.count ?? 0)));
  const reach = Math.log10(Math.max(1, largest(counts, 1)));
  const last = Math.max(6, Math.ceil(reach - 0.05));
  return {
    context, curves, limits, last, end: last + 0.8,
    scale: logScale(least, most, values.some((ns) => ns <= 0)),
  };
}

export function percentilePanel(context: Context): Panel {
  let drawing = drawingOf(context);
  const noun = context.page.words.samples;
  const panel = new Panel({
    kind: 'percentile',
    run: null,
    title: `${capital(noun.measure)} by percentile`,
    count: () => countText(context),
    summary: () => summaryText(drawing),
    height: (small) => (small ? 300 : 340),
    paper: 270,
    stretch: new Stretch(FIRST, drawing.end),
    option: (frame) => option(drawing, frame),
    read: (x, _y, frame) => reading(drawing, x, frame),
    empty: () => drawing.curves.length === 0,
    file: () => fileName('percentiles'),
    csv: () => csv(['run', 'series', 'percentile', 'latency_ns'], rows(context)),
    extra: chips(context),
  });
  context.selection.onChange(() => panel.redraw());
  context.counting.onChange(() => { drawing = drawingOf(context); panel.redraw(); });
  return panel;
}

function* rows(context: Context): Iterable<(string | number)[]> {
  for (const run of context.page.runs) {
    for (const { name, drawn } of seriesOf(run)) {
      for (const [p, ns] of drawn ? countedOf(context, drawn).curve : []) yield [run.record.name, name, p, ns];
    }
  }
}

function countText(context: Context): string {
  const faint = `Faint: fewer than 10 samples beyond.${hasEarly(context) ? ` Early ${context.page.words.samples.many} are not in percentiles.` : ''}`;
  return [countedWords(context), faint, colourNote(context)].join(' ');
}

/** Round trips cannot be early, and of others few runs have any. */
function hasEarly(context: Context): boolean {
  return context.page.runs.some((run) => run.record.series.some((series) => series.early > 0));
}

function summaryText({ context, curves }: Drawing): string {
  const several = context.page.runs.length > 1;
  return curves.slice(0, 20).map((c) => {
    const run = several ? `${context.page.runs[c.run].record.name} ` : '';
    return `${run}${seriesTitle(c.name)}: ${['50', '99', '99.9'].map((p) => `${p}% within ${latency(at(c, nines(Number(p)))?.[1])}`).join(', ')}, maximum ${latency(c.max)}`;
  }).join('. ') + (curves.length > 20 ? `. And ${curves.length - 20} more series.` : '');
}

function option(drawing: Drawing, frame: Frame): Option {
  const { scale, end, last } = drawing;
  const every = Math.ceil((frame.small ? 48 : 54) / ((frame.width - 130) / (end - FIRST)));
  const ticks = [FIRST, ...Array.from({ length: last }, (_, i) => i + 1).filter((n) => every === 1 || (last - n) % every === every - 1), end];
  const y = logTicks(scale, 12, latency);
  return {
    grid: grid(frame, 12, 44, 64),
    xAxis: xAxis({
      name: 'percentile (%)', min: frame.from, max: frame.to,
      ticks: frame.from > FIRST || frame.to < end ? zoomedTicks(frame, end, last) : ticks,
      label: (x) => (x > last + 0.2 ? 'max' : percentileText(percentileAt(x))), frame,
    }),
    yAxis: yAxis({ name: drawing.context.page.words.samples.measure, min: scale.low, max: scale.high, ticks: y.at, label: y.label, frame }),
    series: [...lines(drawing, frame), ...maxima(drawing, frame), limitLines(drawing, frame)],
  };
}

/** Between two nines there is 1, 2 and 5 beyond: 90, 95, 98, 99%. */
function zoomedTicks(frame: Frame, end: number, last: number): number[] {
  const found = [end];
  for (let n = 0; n <= last; n += 1) {
    for (const beyond of [10, 5, 2]) found.push(n + 1 - Math.log10(beyond));
  }
  return found.filter((x) => x >= frame.from - 1e-9 && x <= frame.to + 1e-9 && (x <= last || x === end));
}

/** The crowd first, the coloured and the selected on top. */
function inOrder({ context, curves }: Drawing): Curve[] {
  const rank = (c: Curve): number => (context.slots.has(c.name) ? 1 : 0)
    + (context.selection.series === c.name ? 2 : 0);
  return [...curves].sort((a, b) => rank(a) - rank(b));
}

function lines(drawing: Drawing, frame: Frame): Option[] {
  const { context, scale, end } = drawing;
  return inOrder(drawing).flatMap((curve) => {
    const shown = context.selection.includes(curve.name);
    const own = context.slots.has(curve.name);
    const style = lineOf(context, curve.run, curve.name, frame.theme);
    const alone = shown && !own && context.selection.series && context.page.runs.length < 2;
    const colour = alone ? frame.theme.text : style.color;
    const place = ([x, ns]: [number, number]): [number, number] => [x, scale.place(ns)];
    const enough = curve.points.filter(([x]) => curve.count * Math.pow(10, -x) >= ENOUGH_BEYOND);
    const few = [...curve.points.slice(Math.max(0, enough.length - 1)).map(place), ...ending(curve, end).map(place)];
    const line = (data: [number, number][], opacity: number, part: string): Option => ({
      type: 'line', name: curve.name, id: `${curve.run}/${curve.name}/${part}`, data, silent: true,
      symbol: 'none', showSymbol: false, clip: true, z: own ? 3 : 2,
      lineStyle: { color: colour, width: own || shown && context.selection.series ? 1.8 : 1, type: style.type, opacity: shown ? opacity : 0.12 },
    });
    return [
      line(enough.map(place), 1, 'enough'),
      line(few, 0.5, 'few'),
    ];
  });
}

/** Where less than one sample is beyond, the percentile is the maximum: a step, then level. */
function ending(curve: Curve, end: number): [number, number][] {
  const alone = Math.log10(Math.max(1, curve.count));
  const last = curve.points[curve.points.length - 1];
  const rise: [number, number][] = last && alone > last[0] && alone < end ? [[alone, last[1]], [alone, curve.max]] : [];
  return [...rise, [end, curve.max]];
}

/** The maxima as points at the right end; the largest of each run says its value. */
function maxima({ context, curves, scale, end }: Drawing, frame: Frame): Option[] {
  const shown = curves.filter((curve) => context.selection.includes(curve.name));
  return context.page.runs.map((_, run) => {
    const own = shown.filter((curve) => curve.run === run).sort((a, b) => b.max - a.max);
    return {
      type: 'scatter', name: 'maximum', id: `max/${run}`, silent: true, clip: false, z: 5, symbolSize: 6,
      symbol: run % 2 ? 'emptyCircle' : 'circle',
      labelLayout: { moveOverlap: 'shiftY' },
      data: frame.to < end - 1e-9 ? [] : own.map((curve, rank) => ({
        value: [end, scale.place(curve.max)],
        itemStyle: { color: lineOf(context, run, curve.name, frame.theme).color },
        label: { show: rank === 0, position: 'right', formatter: () => latency(curve.max), color: frame.theme.text, fontSize: 11 },
      })),
    };
  });
}

function limitLines({ limits, scale }: Drawing, frame: Frame): Option {
  return {
    type: 'line', name: 'limits', id: 'limits', data: [], silent: true,
    markLine: {
      silent: true, symbol: 'none', animation: false,
      data: limits.map((limit) => ({ yAxis: scale.place(limit.ns), name: limit.name })),
      lineStyle: { color: frame.theme.alarm, type: 'solid', width: 1 },
      label: { position: 'insideStartTop', color: frame.theme.alarm, fontSize: 11, formatter: (item: { name: string }) => item.name },
    },
  };
}

/** The first pair at or beyond a position: what the percentile there is at most. */
function at(curve: Curve, x: number): [number, number] | undefined {
  return curve.points.find(([place]) => place >= x - 1e-9);
}

function reading({ context, curves, last }: Drawing, x: number, frame: Frame): Reading | null {
  const shown = curves.filter((curve) => context.selection.includes(curve.name));
  if (shown.length === 0) return null;
  const several = context.page.runs.length > 1;
  const found = shown.map((curve) => ({ curve, ns: x > last ? curve.max : at(curve, x)?.[1] ?? curve.max }));
  found.sort((a, b) => b.ns - a.ns);
  const rowsShown = found.slice(0, 12).map(({ curve, ns }) => ({
    colour: lineOf(context, curve.run, curve.name, frame.theme).color,
    name: several ? `${seriesTitle(curve.name)}, ${context.page.runs[curve.run].record.name}` : seriesTitle(curve.name),
    value: exactLatency(ns) + (x <= last && !at(curve, x) ? ' (max)' : ''),
  }));
  if (found.length > 12) rowsShown.push({ colour: 'transparent', name: `and ${found.length - 12} more`, value: `down to ${latency(found[found.length - 1].ns)}` });
  return { title: x > last ? 'maximum' : `${percentileText(percentileAt(x))}% at most`, rows: rowsShown };
}
