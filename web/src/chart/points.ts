// Latencies over time: single samples, or the largest of each interval where samples were not kept
// (the title says which). Draws every point it is given, and marks the largest by name.

import { samplesOf, seriesColour, type Context } from '../context';
import { csv, fileName } from '../dom';
import type { Option } from '../echarts';
import type { PageRun, PageSeries } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import { logTicks } from '../scale';
import type { Theme } from '../theme';
import { capital, count, counted, exactLatency, exactTime, latency, moment } from '../units';
import { seriesTitle } from '../vocabulary';
import { grid, timeAxis, yAxis } from './axes';

/** A point nearer to the cursor than this is the one that is meant. */
const NEAR_PX = 24;

interface Point {
  series: PageSeries;
  t_s: number;
  ns: number;
}

export function pointsPanel(context: Context, run: PageRun, index: number): Panel {
  const panel = new Panel({
    kind: 'points',
    run: index,
    title: titleOf(run),
    count: () => countText(context, run),
    summary: () => summaryText(context, run),
    height: (small) => (small ? 230 : 270),
    paper: 200,
    stretch: context.time,
    option: (frame) => option(context, run, frame),
    read: (x, y, frame, self) => reading(context, run, x, y, frame, self),
    empty: () => run.series.every((series) => series.points.t_s.length === 0),
    file: () => fileName(run.record.name, context.selection.series ?? '', 'latencies'),
    csv: () => csv(['series', 't_s', 'latency_ns', 'kind'], rows(context, run)),
  });
  context.selection.onChange(() => panel.redraw());
  return panel;
}

function shownSeries(context: Context, run: PageRun): PageSeries[] {
  return run.series.filter((series) => context.selection.includes(series.name));
}

function* rows(context: Context, run: PageRun): Iterable<(string | number)[]> {
  for (const { name, points } of shownSeries(context, run)) {
    for (let i = 0; i < points.t_s.length; i += 1) {
      yield [name, points.t_s[i], points.latency_ns[i], points.kind];
    }
  }
}

function titleOf(run: PageRun): string {
  const kinds = new Set(run.series.map((series) => series.points.kind));
  const { one, many, measure } = run.drawn;
  const title = `${capital(measure)} over time`;
  if (kinds.size > 1) return `${title}: ${many}, or the largest of each interval`;
  return `${title}: ${kinds.has('interval_max') ? 'largest of each interval' : `each ${one}`}`;
}

function countText(context: Context, run: PageRun): string {
  const series = shownSeries(context, run);
  const shown = series.reduce((sum, s) => sum + s.points.t_s.length, 0);
  const of = series.reduce((sum, s) => sum + s.points.of, 0);
  const maxima = series.length > 0 && series.every((s) => s.points.kind === 'interval_max');
  const noun = maxima ? 'interval maximum' : 'point';
  const parts = [shown < of ? `${count(shown)} of ${count(of)} ${noun.replace('mum', 'ma')}${maxima ? '' : 's'}`
    : maxima ? `${count(shown)} interval maxima` : counted(shown, noun)];
  if (maxima) parts.push(`of ${count(samplesOf(run, context.selection.series))} samples; single samples were not kept`);
  const thinned = [...new Set(series.map((s) => s.points.thinned).filter(Boolean))];
  const early = series.reduce((sum, s) => sum + s.points.latency_ns.filter((ns) => ns <= 0).length, 0);
  if (early > 0) parts.push(`; ${count(early)} at or before their time, in the strip "≤ 0"`);
  return `${parts.join(' ').replace(' ;', ';')}.${thinned.length ? ` Thinned: ${thinned.join('; ')}.` : ''}`;
}

function worstOf(series: PageSeries[]): Point | null {
  let worst: Point | null = null;
  for (const one of series) {
    one.points.latency_ns.forEach((ns, i) => {
      if (Number.isFinite(ns) && (worst === null || ns > worst.ns)) worst = { series: one, t_s: one.points.t_s[i], ns };
    });
  }
  return worst;
}

function summaryText(context: Context, run: PageRun): string {
  const worst = worstOf(shownSeries(context, run));
  if (!worst) return 'No points.';
  return `The largest is ${latency(worst.ns)} on ${seriesTitle(worst.series.name)}, ${exactTime(worst.t_s)} after the start, ${moment(run.record.started_at, worst.t_s)}.`;
}

function option(context: Context, run: PageRun, frame: Frame): Option {
  const y = logTicks(context.latency, 10, latency);
  const scale = context.latency;
  return {
    grid: grid(frame, 14, 42),
    xAxis: timeAxis(frame, context.time.most),
    yAxis: yAxis({ name: run.drawn.measure, min: scale.low, max: scale.high, ticks: y.at, label: y.label, frame }),
    series: [...clouds(context, run, frame.theme), worstMark(context, run, frame)],
  };
}

/** A cloud a coloured series; the crowd is one cloud below them. */
function clouds(context: Context, run: PageRun, theme: Theme): Option[] {
  const shown = shownSeries(context, run);
  const groups = new Map<string, PageSeries[]>();
  for (const series of shown) {
    const group = context.slots.has(series.name) || context.selection.series ? series.name : '';
    groups.set(group, [...(groups.get(group) ?? []), series]);
  }
  const names = [...groups.keys()].sort((a, b) => (context.slots.get(b) ?? 99) - (context.slots.get(a) ?? 99));
  return names.map((name) => {
    const data = placed(context, groups.get(name) ?? []);
    const alone = context.selection.series !== null && !context.slots.has(name);
    const colour = alone ? theme.text : name ? seriesColour(context, name, theme) : theme.crowd;
    return cloud(name, data, colour);
  });
}

interface Api { coord: (place: number[]) => number[] }

/**
 * All points of one colour as one path. (A large scatter of ECharts' own is drawn in slices on layers
 * of its own, which paper does not wait for.)
 */
function cloud(name: string, data: Float64Array, colour: string): Option {
  const points = data.length / 2;
  const size = points > 20000 ? 2 : points > 3000 ? 2.5 : 3.5;
  return {
    type: 'custom', id: `points/${name}`, name: name || 'other series', silent: true, clip: true,
    coordinateSystem: 'cartesian2d', encode: { x: [], y: [] }, z: name ? 3 : 2,
    // One item: how many points it draws.
    data: [[points]],
    renderItem: (_params: unknown, api: Api) => ({
      type: 'cells', silent: true, shape: { rects: squares(data, size, api) }, style: { fill: colour, opacity: 0.85 },
    }),
  };
}

function squares(data: Float64Array, size: number, api: Api): Float64Array {
  const [x0, y0] = api.coord([0, 0]);
  const [x1, y1] = api.coord([1, 1]);
  const rects = new Float64Array(data.length * 2);
  for (let at = 0; at < data.length; at += 2) {
    // A hole in the data stays an empty square.
    if (!Number.isFinite(data[at] + data[at + 1])) continue;
    rects[at * 2] = x0 + data[at] * (x1 - x0) - size / 2;
    rects[at * 2 + 1] = y0 + data[at + 1] * (y1 - y0) - size / 2;
    rects[at * 2 + 2] = size;
    rects[at * 2 + 3] = size;
  }
  return rects;
}

function placed(context: Context, group: PageSeries[]): Float64Array {
  const total = group.reduce((sum, series) => sum + series.points.t_s.length, 0);
  const data = new Float64Array(total * 2);
  let at = 0;
  for (const { points } of group) {
    for (let i = 0; i < points.t_s.length; i += 1) {
      data[at] = points.t_s[i];
      data[at + 1] = Number.isFinite(points.latency_ns[i]) ? context.latency.place(points.latency_ns[i]) : NaN;
      at += 2;
    }
  }
  return data;
}

/** A ring and a name for the largest: a single dot in a crowd would be overlooked. */
function worstMark(context: Context, run: PageRun, frame: Frame): Option {
  const worst = worstOf(shownSeries(context, run));
  const shown = worst !== null && worst.t_s >= frame.from && worst.t_s <= frame.to;
  const right = shown && worst.t_s > frame.from + (frame.to - frame.from) * 0.7;
  return {
    type: 'scatter', id: 'worst', name: 'largest', silent: true, clip: false, z: 6,
    symbol: 'circle', symbolSize: 11,
    itemStyle: { color: 'transparent', borderColor: frame.theme.text, borderWidth: 1.5 },
    data: shown ? [[worst.t_s, context.latency.place(worst.ns)]] : [],
    label: {
      show: true, position: right ? 'left' : 'right', distance: 7, color: frame.theme.text, fontSize: 11.5,
      formatter: () => (worst ? `${latency(worst.ns)} ${seriesTitle(worst.series.name).slice(0, 24)}` : ''),
      textBorderColor: frame.theme.paper, textBorderWidth: 3,
    },
  };
}

function reading(
  context: Context, run: PageRun, x: number, y: number | null, frame: Frame, panel: Panel,
): Reading | null {
  const found = y === null ? largestAround(context, run, x, (frame.to - frame.from) / 200)
    : nearest(context, run, x, y, frame, panel);
  const t_s = found?.t_s ?? x;
  const when = [{ name: 'at', value: moment(run.record.started_at, t_s) }];
  if (!found) return { title: exactTime(t_s), rows: when };
  return {
    title: `${found.series.points.kind === 'interval_max' ? 'interval at ' : ''}${exactTime(t_s)}`,
    at: t_s,
    rows: [{ colour: seriesColour(context, found.series.name, frame.theme), name: seriesTitle(found.series.name), value: exactLatency(found.ns) }, ...when],
  };
}

/** The largest point about as near as one key step: what the keys read. */
function largestAround(context: Context, run: PageRun, x: number, within: number): Point | null {
  let best: Point | null = null;
  for (const series of shownSeries(context, run)) {
    series.points.t_s.forEach((t_s, i) => {
      const ns = series.points.latency_ns[i];
      if (Math.abs(t_s - x) <= within && (best === null || ns > best.ns)) best = { series, t_s, ns };
    });
  }
  return best;
}

/** The point nearest to the cursor in pixels, if any is near. */
function nearest(context: Context, run: PageRun, x: number, y: number, frame: Frame, panel: Panel): Point | null {
  const [originX, originY] = panel.chart?.convertToPixel({ gridIndex: 0 }, [x, y]) as number[];
  const [unitX] = panel.chart?.convertToPixel({ gridIndex: 0 }, [x + (frame.to - frame.from), y]) as number[];
  const [, unitY] = panel.chart?.convertToPixel({ gridIndex: 0 }, [x, y + 1]) as number[];
  const perX = (unitX - originX) / (frame.to - frame.from);
  const perY = unitY - originY;
  let best: Point | null = null;
  let least = NEAR_PX * NEAR_PX;
  for (const series of shownSeries(context, run)) {
    const { t_s, latency_ns } = series.points;
    for (let i = 0; i < t_s.length; i += 1) {
      const dx = (t_s[i] - x) * perX;
      if (dx > NEAR_PX || dx < -NEAR_PX) continue;
      const dy = (context.latency.place(latency_ns[i]) - y) * perY;
      if (dx * dx + dy * dy < least) {
        least = dx * dx + dy * dy;
        best = { series, t_s: t_s[i], ns: latency_ns[i] };
      }
    }
  }
  return best;
}
