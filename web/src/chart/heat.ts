// The heat map: time against log latency, colour for the log of the count. One panel a run, all on
// the same scales; one series alone where the page holds its counts.

import { largest, samplesOf, type Context } from '../context';
import { csv, fileName, h } from '../dom';
import type { Option } from '../echarts';
import type { Heat, PageRun } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import { logTicks } from '../scale';
import { heatColour, theme } from '../theme';
import { capital, count, counted, duration, exactLatency, exactTime, latency, moment, shortCount } from '../units';
import { seriesTitle } from '../vocabulary';
import { grid, timeAxis, yAxis } from './axes';

/** The number of colors: more cannot be told apart. */
const LEVELS = 40;

/** What is drawn now: all series, or the selected one where its counts are here. */
function heatOf(context: Context, run: PageRun): { heat: Heat; alone: boolean; missing: boolean } {
  const chosen = context.selection.series;
  if (chosen === null) return { heat: run.heat, alone: false, missing: false };
  const own = run.series.find((series) => series.name === chosen)?.heat ?? null;
  return own ? { heat: own, alone: true, missing: false } : { heat: run.heat, alone: false, missing: true };
}

/** The fullest cell of all runs: the colours' common end. */
function fullest(context: Context): number {
  return context.page.runs.reduce((most, run) => largest(heatOf(context, run).heat.count, most), 1);
}

export function heatPanel(context: Context, run: PageRun, index: number): Panel {
  const key = colourKey(context);
  const panel = new Panel({
    kind: 'heat',
    run: index,
    title: `${capital(run.drawn.measure)} over time: how many`,
    count: () => countText(context, run),
    summary: () => summaryText(context, run),
    height: (small) => (small ? 240 : 300),
    paper: 230,
    stretch: context.time,
    option: (frame) => option(context, run, frame),
    read: (x, y) => reading(context, run, x, y),
    file: () => fileName(run.record.name, context.selection.series ?? '', 'heat'),
    csv: () => csv(['time_from_s', 'time_to_s', 'latency_from_ns', 'latency_to_ns', 'count'], rows(context, run)),
    extra: key.element,
    empty: () => run.heat.count.length === 0,
    redrawn: key.draw,
  });
  context.selection.onChange(() => panel.redraw());
  return panel;
}

function* rows(context: Context, run: PageRun): Iterable<(number | null)[]> {
  const { heat } = heatOf(context, run);
  const edges = context.page.latency_edges_ns;
  for (let i = 0; i < heat.count.length; i += 1) {
    const [t, l] = [heat.time[i], heat.latency[i]];
    yield [run.time_edges_s[t] ?? null, timeEnd(run, t), edges[l] ?? null, edges[l + 1] ?? null, heat.count[i]];
  }
}

/** The end of a time bin; the last one has no edge after it where edges are only beginnings. */
function timeEnd(run: PageRun, bin: number): number {
  const edges = run.time_edges_s;
  if (bin + 1 < edges.length) return edges[bin + 1];
  const width = edges.length > 1 ? edges[edges.length - 1] - edges[edges.length - 2] : 1;
  return (edges[bin] ?? 0) + width;
}

function countText(context: Context, run: PageRun): string {
  const { heat, alone, missing } = heatOf(context, run);
  const inCells = heat.count.reduce((sum, n) => sum + n, 0);
  const width = run.time_edges_s.length > 1 ? run.time_edges_s[1] - run.time_edges_s[0] : 0;
  const of = alone ? ` of ${seriesTitle(context.selection.series ?? '')}` : run.series.length > 1 ? ' of all series' : '';
  const parts = [`${counted(inCells, 'sample')}${of}`];
  if (width > 0) parts.push(`a column is ${duration(width)}`);
  const outside = samplesOf(run, alone ? context.selection.series : null) - inCells;
  if (outside > 0) parts.push(`${count(outside)} more, early or over one hour, are in no cell`);
  if (missing) parts.push(`the counts of ${context.selection.series} alone are not in this page`);
  return `${parts.join('; ')}.`;
}

function summaryText(context: Context, run: PageRun): string {
  const { heat } = heatOf(context, run);
  if (heat.count.length === 0) return 'No samples.';
  const edges = context.page.latency_edges_ns;
  const top = largest(heat.latency, 0);
  const at = heat.latency.indexOf(top);
  return `Cells from ${latency(edges[heat.latency.reduce((a, b) => Math.min(a, b), top)] ?? 0)} to ${latency(edges[top + 1] ?? edges[top])}; the highest at ${exactTime(run.time_edges_s[heat.time[at]] ?? 0)} after the start; the fullest cell holds ${count(largest(heat.count, 0))} samples.`;
}

function option(context: Context, run: PageRun, frame: Frame): Option {
  const y = logTicks(context.latency, 11, latency);
  const most = fullest(context);
  const levels = byLevel(heatOf(context, run).heat, most);
  const edges = edgePlaces(context);
  const used = levels.map((cells, level) => ({ cells, level })).filter(({ cells }) => cells.index.length > 0);
  return {
    grid: grid(frame, 8, 42),
    xAxis: timeAxis(frame, context.time.most),
    yAxis: yAxis({ name: run.drawn.measure, min: context.latency.low, max: context.latency.high, ticks: y.at, label: y.label, frame }),
    series: [{
      type: 'custom', id: 'cells', silent: true, clip: true, z: 3, coordinateSystem: 'cartesian2d',
      // One item a colour: level, cells, samples.
      data: used.map(({ cells, level }) => [level, cells.index.length, cells.samples]),
      encode: { x: [], y: [] },
      renderItem: (params: { dataIndex: number; coordSys: Rect }, api: Api) => {
        const { cells, level } = used[params.dataIndex];
        const rects = rectangles(heatOf(context, run).heat, cells.index, run, edges, api);
        return { type: 'cells', silent: true, shape: { rects }, style: { fill: heatColour(level / (LEVELS - 1), frame.theme.dark) } };
      },
    }],
  };
}

interface Rect { x: number; y: number; width: number; height: number }
interface Api { coord: (place: number[]) => number[] }
interface Cells { index: number[]; samples: number }

/** Cells sorted by colour, rare ones first, so that none is hidden by an emptier neighbour. */
function byLevel(heat: Heat, most: number): Cells[] {
  const levels: Cells[] = Array.from({ length: LEVELS }, () => ({ index: [], samples: 0 }));
  const scale = most > 1 ? (LEVELS - 1) / Math.log(most) : 0;
  for (let i = 0; i < heat.count.length; i += 1) {
    if (!(heat.count[i] > 0)) continue;
    const cells = levels[Math.min(LEVELS - 1, Math.round(Math.log(heat.count[i]) * scale))];
    cells.index.push(i);
    cells.samples += heat.count[i];
  }
  return levels;
}

/** The latency edges as positions; an edge at 0 lies at the foot of the axis. */
function edgePlaces(context: Context): number[] {
  const { foot } = context.latency;
  return context.page.latency_edges_ns.map((ns) => Math.max(foot, ns > 0 ? Math.log10(ns) : foot));
}

/** Edges fall on whole pixels: no seams between neighbours; a lone cell is never thinner than two. */
function rectangles(heat: Heat, index: number[], run: PageRun, edges: number[], api: Api): Float64Array {
  const rects = new Float64Array(index.length * 4);
  index.forEach((cell, n) => {
    const t = heat.time[cell];
    const l = heat.latency[cell];
    const [x0, y0] = api.coord([run.time_edges_s[t] ?? 0, edges[l] ?? 0]);
    const [x1, y1] = api.coord([timeEnd(run, t), edges[l + 1] ?? edges[l] ?? 0]);
    const [left, top] = [Math.round(x0), Math.round(y1)];
    rects.set([left, top, Math.max(2, Math.round(x1) - left), Math.max(2, Math.round(y0) - top)], n * 4);
  });
  return rects;
}

function reading(context: Context, run: PageRun, x: number, y: number | null): Reading | null {
  const { heat } = heatOf(context, run);
  const column = run.time_edges_s.findIndex((from, bin) => x >= from && x < timeEnd(run, bin));
  if (column < 0 || heat.count.length === 0) return null;
  const from = run.time_edges_s[column];
  const cells = heat.time.flatMap((t, i) => (t === column ? [i] : []));
  const edges = context.page.latency_edges_ns;
  const range = (bin: number): string => `${exactLatency(edges[bin] ?? 0)} to ${exactLatency(edges[bin + 1] ?? edges[bin])}`;
  const found = [{ name: 'from', value: moment(run.record.started_at, from) }];
  const bin = y === null ? -1 : edges.findIndex((edge, i) => context.latency.value(y) >= edge && context.latency.value(y) < (edges[i + 1] ?? Infinity));
  if (bin >= 0 && bin + 1 < edges.length) {
    const cell = cells.find((i) => heat.latency[i] === bin);
    found.push({ name: range(bin), value: counted(cell === undefined ? 0 : heat.count[cell], 'sample') });
  }
  const top = cells.reduce((high, i) => Math.max(high, heat.latency[i]), -1);
  if (top >= 0) found.push({ name: 'highest cell', value: range(top) });
  found.push({ name: 'whole column', value: counted(cells.reduce((sum, i) => sum + heat.count[i], 0), 'sample') });
  return { title: `${exactTime(from)} to ${exactTime(timeEnd(run, column))}`, rows: found };
}

/** What the colours mean, as a bar with ends that say so. */
function colourKey(context: Context): { element: HTMLElement; draw: () => void } {
  const bar = h('span', { class: 'bar' });
  const most = h('span', {});
  const element = h('div', { class: 'heat-key' }, 'samples per cell', h('span', {}, '1'), bar, most, h('span', { class: 'muted' }, '(log)'));
  const draw = (): void => {
    most.textContent = shortCount(fullest(context));
    const stops = Array.from({ length: 12 }, (_, i) => heatColour(i / 11, theme().dark));
    bar.style.background = `linear-gradient(to right, ${stops.join(', ')})`;
  };
  return { element, draw };
}
