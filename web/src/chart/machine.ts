// What the machine did meanwhile, on the time axis of the latencies above it: interrupts and context
// switches per second, how busy the CPUs were, what the loads did. One panel a run, a lane a figure.

import type { Context } from '../context';
import { csv, fileName } from '../dom';
import type { Option } from '../echarts';
import type { PageRun } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import { ceil125, linearTicks } from '../scale';
import { heatColour, type Theme } from '../theme';
import { counted, exactTime, moment, rate, shortCount } from '../units';
import { LEFT, LEFT_SMALL, RIGHT, timeAxis, yAxis } from './axes';

/** More CPUs than this are shown as a strip of colours, a row a CPU, instead of lines. */
const CPU_LINES = 8;
const TITLE_PX = 20;

interface Line {
  name: string;
  t_s: number[];
  values: number[];
}

interface Lane {
  title: string;
  lines: Line[];
  high: number;
  /** A row a CPU, colour for how busy. */
  strip: boolean;
  height: number;
  write: (value: number) => string;
}

const percent = (share: number): string => `${Number((share * 100).toFixed(1))}%`;

function lanesOf(run: PageRun): Lane[] {
  const { machine } = run;
  const lane = (title: string, lines: Line[]): Lane => ({
    title, lines, strip: false, height: 62, write: rate,
    high: ceil125(lines.reduce((most, line) => line.values.reduce((a, v) => (v > a ? v : a), most), 0) || 1),
  });
  const line = (name: string, values: number[]): Line => ({ name, t_s: machine.t_s, values });
  const lanes = [
    lane('interrupts per second', [line('hard', machine.interrupts_per_s), line('soft', machine.softirqs_per_s)]),
    lane('context switches per second', [line('context switches', machine.context_switches_per_s)]),
    cpuLane(run),
    ...run.loads.map((load) => lane(`${load.name}: ${load.unit} per second`, [{ name: load.name, t_s: load.t_s, values: load.operations_per_s }])),
  ];
  return lanes.filter(({ lines }) => lines.some(({ values }) => values.length > 0));
}

function cpuLane(run: PageRun): Lane {
  const cpus = run.machine.cpu_busy;
  const strip = cpus.length > CPU_LINES;
  return {
    title: strip ? 'CPU busy, a row a CPU' : 'CPU busy',
    lines: cpus.map(({ cpu, busy }) => ({ name: `CPU ${cpu}`, t_s: run.machine.t_s, values: busy })),
    strip,
    high: strip ? cpus.length : 1,
    height: strip ? Math.min(200, Math.max(70, cpus.length * 3)) : 62,
    write: percent,
  };
}

/** The panel, or null for a run that recorded nothing of the machine. */
export function machinePanel(context: Context, run: PageRun, index: number): Panel | null {
  const lanes = lanesOf(run);
  if (lanes.length === 0) return null;
  return new Panel({
    kind: 'machine',
    run: index,
    title: 'What the machine did',
    count: () => `${counted(run.machine.t_s.length || lanes[0].lines[0].t_s.length, 'interval')}; all CPUs together, unless said.${lanes.some((lane) => lane.strip) ? ' CPU busy: the colors of the heat map, idle to busy.' : ''}`,
    summary: () => lanes.map(laneSummary).join('. '),
    height: () => lanes.reduce((sum, lane) => sum + TITLE_PX + lane.height, 46),
    stretch: context.time,
    option: (frame) => option(context, lanes, frame),
    read: (x, _y, frame) => reading(run, lanes, x, frame),
    empty: () => false,
    file: () => fileName(run.record.name, 'machine'),
    csv: () => csv(['what', 'series', 'interval_end_s', 'value'], rows(lanes)),
  });
}

function* rows(lanes: Lane[]): Iterable<(string | number)[]> {
  for (const lane of lanes) {
    for (const line of lane.lines) {
      for (let i = 0; i < line.values.length; i += 1) yield [lane.title, line.name, line.t_s[i], line.values[i]];
    }
  }
}

function laneSummary(lane: Lane): string {
  const values = lane.lines.flatMap((line) => line.values.filter(Number.isFinite));
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  return values.length ? `${lane.title}: ${lane.write(low)} to ${lane.write(high)}` : `${lane.title}: nothing recorded`;
}

function option(context: Context, lanes: Lane[], frame: Frame): Option {
  let top = 0;
  const places = lanes.map((lane) => {
    const at = top + TITLE_PX;
    top = at + lane.height;
    return at;
  });
  const lastLane = lanes.length - 1;
  return {
    grid: lanes.map((lane, i) => ({ left: frame.small ? LEFT_SMALL : LEFT, right: RIGHT, top: places[i], height: lane.height, outerBoundsMode: 'none' })),
    xAxis: lanes.map((_, i) => timeAxis(frame, context.time.most, { gridIndex: i, bare: i < lastLane })),
    yAxis: lanes.map((lane, i) => laneAxis(lane, i, frame)),
    series: lanes.flatMap((lane, i) => (lane.strip ? [stripSeries(lane, i, frame.theme)] : lineSeries(lane, i, frame))),
  };
}

/** The lane's y axis; its title stands above the lane, where there is room for words. */
function laneAxis(lane: Lane, index: number, frame: Frame): Option {
  const axis = yAxis({
    name: '', min: 0, max: lane.high, frame, gridIndex: index,
    ticks: lane.strip ? [0, lane.high] : linearTicks(lane.high, 3),
    label: lane.strip ? (v) => (v === 0 ? lane.lines[0].name : lane.lines[lane.lines.length - 1].name)
      : lane.write === percent ? percent : shortCount,
  });
  const title = lane.lines.length > 1 && !lane.strip
    ? `${lane.title}   ${lane.lines.map((line, i) => `{c${i}|■} ${line.name}`).join('   ')}` : lane.title;
  const rich = Object.fromEntries(lane.lines.slice(0, CPU_LINES).map((_, i) => [`c${i}`, { color: lineColour(i, frame.theme), fontSize: 10 }]));
  return {
    ...axis, name: title, nameLocation: 'end', nameGap: 6,
    nameTextStyle: { color: frame.theme.muted, fontSize: frame.small ? 11 : 11.5, align: 'left', rich },
  };
}

function lineColour(index: number, theme: Theme): string {
  return theme.series[index % theme.series.length];
}

/** Steps: a value holds for the interval that ends at its time. */
function lineSeries(lane: Lane, index: number, frame: Frame): Option[] {
  return lane.lines.map((line, i) => {
    const data = line.values.map((value, at) => [line.t_s[at], Number.isFinite(value) ? value : null]);
    if (data.length > 0) data.unshift([startOf(line, 0), data[0][1]]);
    return {
      type: 'line', id: `${index}/${line.name}/${i}`, name: line.name, xAxisIndex: index, yAxisIndex: index,
      data, step: 'start', symbol: 'none', showSymbol: false, silent: true, clip: true,
      lineStyle: { color: lineColour(i, frame.theme), width: 1.3, type: i % 2 && lane.lines.length === 2 ? [5, 3] : 'solid' },
      areaStyle: lane.lines.length === 1 ? { color: lineColour(i, frame.theme), opacity: 0.12 } : undefined,
    };
  });
}

/** Where the interval begins that ends at entry `at`; the first is taken to be as long as the second. */
function startOf(line: Line, at: number): number {
  if (at > 0) return line.t_s[at - 1];
  return Math.max(0, line.t_s[0] - ((line.t_s[1] ?? line.t_s[0] * 2) - line.t_s[0]));
}

interface Api { coord: (place: number[]) => number[] }

function stripSeries(lane: Lane, index: number, theme: Theme): Option {
  const levels = 12;
  return {
    type: 'custom', id: `${index}/strip`, name: lane.title, xAxisIndex: index, yAxisIndex: index,
    silent: true, clip: true, z: 3, encode: { x: [], y: [] },
    data: Array.from({ length: levels }, (_, level) => [level]),
    renderItem: (params: { dataIndex: number; dataIndexInside: number }, _api: unknown) => {
      const api = _api as Api & { getWidth: () => number };
      const rects: number[] = [];
      lane.lines.forEach((line, row) => line.values.forEach((share, at) => {
        if (!Number.isFinite(share) || Math.min(levels - 1, Math.floor(share * levels)) !== params.dataIndex) return;
        const [x0, y0] = api.coord([startOf(line, at), row]);
        const [x1, y1] = api.coord([line.t_s[at], row + 1]);
        rects.push(Math.round(x0), y1, Math.max(1, Math.round(x1) - Math.round(x0)), y0 - y1);
      }));
      return { type: 'cells', silent: true, shape: { rects: Float64Array.from(rects) }, style: { fill: heatColour(params.dataIndex / (levels - 1), theme.dark) } };
    },
  };
}

function reading(run: PageRun, lanes: Lane[], x: number, frame: Frame): Reading | null {
  const rowsShown = lanes.flatMap((lane) => laneRows(lane, x, frame.theme));
  if (rowsShown.length === 0) return null;
  return { title: exactTime(x), rows: [{ name: 'at', value: moment(run.record.started_at, x) }, ...rowsShown] };
}

function laneRows(lane: Lane, x: number, theme: Theme): Reading['rows'] {
  const now = lane.lines.flatMap((line, i) => {
    const at = line.t_s.findIndex((end) => end >= x);
    const value = at < 0 ? NaN : line.values[at];
    return Number.isFinite(value) ? [{ name: line.name, value, colour: lineColour(i, theme) }] : [];
  });
  if (now.length === 0) return [];
  if (!lane.strip) {
    const label = (name: string): string => (lane.lines.length === 1 ? lane.title : `${name}${lane.write === percent ? ' busy' : ' interrupts per second'}`);
    return now.map(({ name, value, colour }) => ({ colour, name: label(name), value: lane.write(value) }));
  }
  const busiest = now.reduce((a, b) => (b.value > a.value ? b : a));
  const mean = now.reduce((sum, { value }) => sum + value, 0) / now.length;
  return [{ name: 'CPUs busy, mean', value: percent(mean) }, { name: `busiest, ${busiest.name}`, value: percent(busiest.value) }];
}
