// A row over time: p99 in one lane, the usual and the largest maximum in another, on one axis of days
// that all rows share. Kernels are bands, changes and alarms lines across.

import { LEFT, LEFT_SMALL, RIGHT, xAxis, yAxis } from '../chart/axes';
import { csv, fileName, h } from '../dom';
import type { Option } from '../echarts';
import type { PageTrendRow } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import type { Theme } from '../theme';
import { counted, exactLatency, latency } from '../units';
import type { Stretch } from '../view';
import { dayText, dayTicks } from './days';
import { bandsOf, lanesOf, levelsOf, ticksOf, type Band, type Lane } from './lanes';

const TITLE_PX = 19;
const LANE_PX = 118;
const BOTTOM_PX = 44;
/** The width of a letter at most, at 10 px. */
const LETTER_PX = 6;

export function trendPanel(row: PageTrendRow, stretch: Stretch): Panel {
  const lanes = lanesOf(row);
  const bands = bandsOf(row);
  const name = `${row.title}, ${row.series}`;
  return new Panel({
    kind: 'trend',
    run: null,
    title: name,
    count: () => `${counted(row.runs, 'run')} on ${counted(new Set(row.days.day).size, 'day')}. Thick: medians between changes.`,
    summary: () => summary(row),
    height: () => lanes.length * (TITLE_PX + LANE_PX) + BOTTOM_PX,
    stretch,
    option: (frame) => option(row, lanes, bands, frame),
    read: (x, _y, frame) => reading(row, x, frame.theme),
    empty: () => row.days.day.length === 0,
    file: () => fileName(name, 'trend'),
    csv: () => csv(['day', 'kernel', 'runs', 'p99_ns', 'usual_max_ns', 'max_ns'], rows(row)),
  });
}

/** Since when which kernel ran, for paper and for names that have no room. */
export function kernelNote(row: PageTrendRow): HTMLElement | null {
  const { day, kernel } = row.days;
  const since = row.kernels.map((name, at) => `${name} since ${dayText(day[kernel.indexOf(at)])}`);
  const turns = row.kernels.length > 1 && bandsOf(row).length === 0 ? ' They take turns.' : '';
  return h('p', { class: 'note' }, `Kernel${since.length === 1 ? '' : 's'}: ${since.join(', ')}.${turns}`);
}

/** What is known of each change of the row, as lines below its chart. */
export function changeNotes(row: PageTrendRow): HTMLElement[] {
  const of = (name: string, figure: PageTrendRow['p99']): HTMLElement[] => figure.changes.map((one) => h('p', { class: 'judged' },
    `${dayText(one.day)}: ${name} ${latency(one.before_ns)} \u2192 ${latency(one.after_ns)} (x ${one.ratio.toFixed(2)}); ${one.kernel}; ${one.cause}`));
  return [...of('p99', row.p99), ...of('usual max', row.usual_max)];
}

function* rows(row: PageTrendRow): Iterable<(string | number | null)[]> {
  const { day, kernel, runs, p99_ns: p99, usual_max_ns: usual, max_ns: largest } = row.days;
  for (let at = 0; at < day.length; at += 1) yield [dayText(day[at]), row.kernels[kernel[at]], runs[at], p99[at], usual[at], largest[at]];
}

function summary(row: PageTrendRow): string {
  const of = (name: string, figure: PageTrendRow['p99']): string => {
    const changes = figure.changes.map((one) => `${dayText(one.day)}: ${latency(one.before_ns)} to ${latency(one.after_ns)}`);
    return `${name}: median ${latency(figure.median_ns)}; ${changes.length ? `changes ${changes.join(', ')}` : figure.median_ns === null ? 'not known' : figure.is_too_short ? 'too few days to say' : 'no change found'}`;
  };
  return `${of('p99', row.p99)}. ${of('usual maximum', row.usual_max)}.`;
}

function option(row: PageTrendRow, lanes: Lane[], bands: Band[], frame: Frame): Option {
  const { at, label } = dayTicks(frame.from, frame.to, Math.max(2, Math.floor(frame.width / 110)));
  const top = (lane: number): number => lane * (TITLE_PX + LANE_PX) + TITLE_PX;
  const last = lanes.length - 1;
  return {
    grid: lanes.map((_, lane) => ({ left: frame.small ? LEFT_SMALL : LEFT, right: RIGHT, top: top(lane), height: LANE_PX, outerBoundsMode: 'none' })),
    xAxis: lanes.map((_, lane) => xAxis({ name: 'day (UTC)', min: frame.from, max: frame.to, ticks: at, label, frame, gridIndex: lane, bare: lane < last })),
    yAxis: lanes.map((lane, index) => laneAxis(lane, index, frame)),
    series: lanes.flatMap((lane, index) => [
      bandSeries(bands, index, frame),
      ...(index === 0 ? [bandNames(row, bands, frame)] : []),
      ...(lane.largest.length ? [dots(row, lane.largest, index, frame.theme.crowd, 4, 'largest')] : []),
      ...lines(row, lane, index, frame),
      ...levels(row, lane, index, frame),
      crossings(lane, index, frame),
      ...crossingNames(lane, index, frame),
    ]),
  };
}

/** The title of a lane stands above it, with the keys of what is in it. */
function laneAxis(lane: Lane, index: number, frame: Frame): Option {
  const { theme } = frame;
  const ticks = ticksOf(lane.scale);
  const own = lane.largest.length ? '{a|●} usual max   {b|●} largest of the day' : '{a|●} p99';
  const known = lane.values.some((ns) => ns !== null);
  const short = !known ? `   ${lane.largest.length ? 'usual max' : 'p99'} not known` : lane.figure.is_too_short ? '   too few days to say whether it changed' : '';
  return {
    ...yAxis({ name: '', min: lane.scale.low, max: lane.scale.high, ticks: ticks.at, label: ticks.label, frame, gridIndex: index }),
    name: own + short, nameLocation: 'end', nameGap: 6,
    nameTextStyle: {
      color: theme.muted, fontSize: frame.small ? 11 : 11.5, align: 'left',
      rich: { a: { color: colourOf(index, theme), fontSize: 11 }, b: { color: theme.crowd, fontSize: 11 } },
    },
  };
}

const colourOf = (lane: number, theme: Theme): string => theme.series[lane === 0 ? 0 : 1];

interface Api { coord: (place: number[]) => number[] }
interface Place { dataIndex: number; coordSys: { x: number; y: number; width: number; height: number } }

/** Every second kernel is shaded. */
function bandSeries(bands: Band[], index: number, frame: Frame): Option {
  return bandsAs('shades', bands, index, 0, ({ from, to, y, height, at }) => (
    { type: 'rect', silent: true, shape: { x: from, y, width: Math.max(0, to - from), height }, style: { fill: frame.theme.grid, opacity: at % 2 ? 0.75 : 0 } }));
}

/** The name of a kernel where all of it has room, above the lines across. The note below has every name. */
function bandNames(row: PageTrendRow, bands: Band[], frame: Frame): Option {
  return bandsAs('names', bands, 0, 7, ({ from, to, y, at }) => {
    const text = row.kernels[bands[at].kernel];
    return to - from < text.length * LETTER_PX + 6 ? undefined : {
      type: 'text', silent: true, x: from + 3, y: y + 2,
      style: { text, fill: frame.theme.muted, fontSize: 10, stroke: frame.theme.paper, lineWidth: 3 },
    };
  });
}

/** A band within its lane, px. */
interface Spread { from: number; to: number; y: number; height: number; at: number }

function bandsAs(name: string, bands: Band[], index: number, z: number, draw: (spread: Spread) => object | undefined): Option {
  return {
    type: 'custom', id: `${index}/${name}`, xAxisIndex: index, yAxisIndex: index, silent: true, clip: true, z, encode: { x: [], y: [] },
    data: bands.map((_, at) => [at]),
    renderItem: (place: Place, api: Api) => {
      const at = place.dataIndex;
      const { x, y, width, height } = place.coordSys;
      const [from, to] = [bands[at].from, bands[at].to].map((day) => Math.max(x, Math.min(x + width, api.coord([day, 0])[0])));
      return draw({ from, to, y, height, at });
    },
  };
}

function dots(row: PageTrendRow, values: (number | null)[], index: number, colour: string, size: number, id: string): Option {
  const data = values.flatMap((ns, at) => (ns !== null && ns > 0 ? [[row.days.day[at], Math.log10(ns)]] : []));
  return { type: 'scatter', id: `${index}/${id}`, xAxisIndex: index, yAxisIndex: index, data, silent: true, clip: true, symbolSize: size, itemStyle: { color: colour }, z: 2 };
}

/** The days of one kernel are joined, each kernel by itself. */
function lines(row: PageTrendRow, lane: Lane, index: number, frame: Frame): Option[] {
  const colour = colourOf(index, frame.theme);
  const joined = row.kernels.map((_, kernel) => ({
    type: 'line', id: `${index}/line/${kernel}`, xAxisIndex: index, yAxisIndex: index, silent: true, clip: true, symbol: 'none', showSymbol: false, z: 3,
    data: lane.values.flatMap((ns, at) => (row.days.kernel[at] === kernel && ns !== null && ns > 0 ? [[row.days.day[at], Math.log10(ns)]] : [])),
    lineStyle: { color: colour, width: 0.8, opacity: 0.55 },
  }));
  return [...joined, dots(row, lane.values, index, colour, 3.5, 'values')];
}

/** Medians between changes, with what they are. */
function levels(row: PageTrendRow, lane: Lane, index: number, frame: Frame): Option[] {
  return levelsOf(row, lane.figure).filter(({ ns }) => ns > 0).flatMap(({ from, to, ns }, at) => {
    const y = Math.log10(ns);
    const [left, right] = [Math.max(from, frame.from), Math.min(to, frame.to)];
    if (left > right) return [];
    return [{
      type: 'line', id: `${index}/level/${at}`, xAxisIndex: index, yAxisIndex: index, silent: true, clip: true, symbol: 'none', showSymbol: false, z: 5,
      data: [[left - 0.4, y], [right + 0.4, y]], lineStyle: { color: frame.theme.text, width: 2 },
    }, {
      type: 'scatter', id: `${index}/level-name/${at}`, xAxisIndex: index, yAxisIndex: index, silent: true, clip: true, symbolSize: 0.01, z: 7, itemStyle: { opacity: 1 },
      data: [[clearPlace(left, right, lane.figure), y]], labelLayout: { hideOverlap: true },
      label: { show: true, position: 'top', distance: 4, formatter: latency(ns), color: frame.theme.text, fontSize: 11, fontWeight: 600, textBorderColor: frame.theme.paper, textBorderWidth: 3 },
    }];
  });
}

/** Where in a stretch of days a name is farthest from lines across: its middle, if none is near. */
function clearPlace(left: number, right: number, figure: PageTrendRow['p99']): number {
  const lines = [...figure.alarms.map(({ day }) => day), ...figure.changes.map(({ day }) => day - 0.5)];
  const room = (at: number): number => Math.min((right - left) / 4, ...lines.map((day) => Math.abs(day - at)));
  const places = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].map((share) => left + share * (right - left));
  return places.reduce((best, at) => (room(at) > room(best) ? at : best));
}

/** Changes, by their first day, and alarms, by the day after which they were seen. */
function crossings(lane: Lane, index: number, frame: Frame): Option {
  const { theme } = frame;
  const isShown = ({ day }: { day: number }): boolean => day >= frame.from && day <= frame.to;
  const colour = (worse: boolean): string => (worse ? theme.alarm : theme.series[2]);
  const changes = lane.figure.changes.filter(isShown).map(({ day, ratio }) => ({
    xAxis: day - 0.5, lineStyle: { color: colour(ratio > 1), width: 1.5, type: 'solid' }, label: { show: false },
  }));
  const alarms = lane.figure.alarms.filter(isShown).map(({ day, is_worse: worse }) => ({
    xAxis: day, lineStyle: { color: colour(worse), width: 1.2, type: [2, 3] }, label: { show: false },
  }));
  return {
    type: 'line', id: `${index}/crossings`, xAxisIndex: index, yAxisIndex: index, silent: true, data: [], symbol: 'none', z: 6,
    markLine: { silent: true, symbol: 'none', animation: false, data: [...changes, ...alarms] },
  };
}

/** The first day of each change and its factor, beside its line, at the foot of the lane. */
function crossingNames(lane: Lane, index: number, frame: Frame): Option[] {
  const { theme, from, to } = frame;
  const foot = lane.scale.low + 0.09 * (lane.scale.high - lane.scale.low);
  return lane.figure.changes.filter(({ day }) => day >= from && day <= to).map(({ day, ratio }, at) => ({
    type: 'scatter', id: `${index}/crossing-name/${at}`, xAxisIndex: index, yAxisIndex: index, silent: true, clip: true, symbolSize: 0.01, z: 7, itemStyle: { opacity: 1 },
    data: [[day - 0.5, foot]], labelLayout: { hideOverlap: true },
    label: {
      show: true, position: day - from > 0.7 * (to - from) ? 'left' : 'right', distance: 5, formatter: `${dayText(day)}  x ${ratio.toFixed(2)}`,
      color: ratio > 1 ? theme.alarm : theme.series[2], fontSize: 11,
      // Lines of alarms end at the name and do not strike it through.
      backgroundColor: theme.paper, padding: [1, 3], borderRadius: 2,
    },
  }));
}

function reading(row: PageTrendRow, x: number, theme: Theme): Reading | null {
  const { day, kernel, runs, p99_ns: p99, usual_max_ns: usual, max_ns: largest } = row.days;
  if (day.length === 0) return null;
  const near = day.reduce((best, own) => (Math.abs(own - x) < Math.abs(best - x) ? own : best));
  const shown = (ns: number | null): string => (ns === null ? 'not known' : exactLatency(ns));
  const found = day.flatMap((own, at) => (own === near ? [
    { name: 'kernel', value: `${row.kernels[kernel[at]]}, ${counted(runs[at], 'run')}` },
    { name: 'p99', value: shown(p99[at]), colour: colourOf(0, theme) },
    { name: 'usual max', value: shown(usual[at]), colour: colourOf(1, theme) },
    { name: 'largest', value: shown(largest[at]), colour: theme.crowd },
  ] : []));
  const changes = [{ name: 'p99', of: row.p99 }, { name: 'usual max', of: row.usual_max }].flatMap(({ name, of }) => [
    ...of.changes.filter((one) => one.day === near).map((one) => ({ name: `${name} changed`, value: `${latency(one.before_ns)} \u2192 ${latency(one.after_ns)}` })),
    ...of.alarms.filter((one) => one.day === near).map((one) => ({ name: `${name}: alarm`, value: `since ${dayText(one.since)}` })),
  ]);
  return { title: dayText(near), at: near, rows: [...found, ...changes] };
}
