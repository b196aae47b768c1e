// One late wake-up as swimlanes: what the CPU did around it, a lane a context, on a time axis that
// begins at the programmed expiry. The late interval is shaded.

import { grid, xAxis, yAxis } from '../chart/axes';
import { csv, fileName } from '../dom';
import type { Option } from '../echarts';
import type { PageRun } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import { ceil125 } from '../scale';
import type { Theme } from '../theme';
import { counted, exactLatency, latency } from '../units';
import { Stretch } from '../view';
import type { Moment, PagePeak } from './model';
import { COURSE, LANES, LANES_SHORT } from './words';

const LANE_PX = 36;
const TOP = 24;
const BOTTOM = 44;
/** A pointer is exact to this number of pixels. */
const NEAR_PX = 4;

/** A lane: a context of a CPU. */
interface Lane {
  lane: number;
  cpu: number;
  moments: Moment[];
}

/** The lanes from above; those of the CPU that woke the thread first, its contexts in one order. */
function lanesOf(peak: PagePeak): Lane[] {
  const lanes: Lane[] = [1, 2, 3, 4, 5].map((lane) => ({ lane, cpu: peak.cpu, moments: [] }));
  for (const moment of peak.timeline) {
    let own = lanes.find(({ lane, cpu }) => lane === moment.lane && cpu === moment.cpu);
    if (!own) lanes.push(own = { lane: moment.lane, cpu: moment.cpu, moments: [] });
    own.moments.push(moment);
  }
  const other = (lane: Lane): number => Number(lane.cpu !== peak.cpu);
  return lanes.sort((a, b) => other(a) - other(b) || a.cpu - b.cpu || a.lane - b.lane);
}

const endOf = (moment: Moment): number => moment.at + (moment.ns ?? 0);

/** All of the timeline, and a little air at its ends. */
function stretchOf(peak: PagePeak): Stretch {
  let [from, to] = [0, Math.max(1, peak.latency_ns)];
  for (const moment of peak.timeline) {
    from = Math.min(from, moment.at);
    to = Math.max(to, endOf(moment));
  }
  const air = Math.max(500, (to - from) * 0.03);
  return new Stretch(from - air, to + air);
}

export function timelinePanel(run: PageRun, peak: PagePeak, rank: number, choose: (moment: Moment) => void, chosen: () => Moment | null): Panel {
  const lanes = lanesOf(peak);
  return new Panel({
    kind: 'timeline',
    run: null,
    title: 'What happened',
    count: () => `${counted(peak.timeline.length, 'entry').replace('entrys', 'entries')}${peak.left_out ? `, ${peak.left_out} more left out: the shortest` : ''}. A click, or Enter at the cursor, shows an entry and its stack.`,
    summary: () => summary(peak),
    height: () => TOP + lanes.length * LANE_PX + BOTTOM,
    stretch: stretchOf(peak),
    option: (frame) => option(peak, lanes, frame, chosen()),
    read: (x, y, frame) => reading(peak, lanes, x, y, frame),
    press: (x, y, frame) => {
      const found = at(lanes, x, y, frame);
      const best = found.find((moment) => moment.stack.length > 0 && moment.ns === null) ?? found[0];
      if (best) choose(best);
    },
    empty: () => peak.timeline.length === 0,
    file: () => fileName(run.record.name, `peak-${rank}`),
    csv: () => csv(['at_ns', 'ns', 'cpu', 'lane', 'what', 'name', 'pid', 'priority', 'detail', 'stack'],
      peak.timeline.map((m): (string | number | null)[] => [m.at, m.ns, m.cpu, LANES[m.lane], m.what, m.name, m.pid || null, m.priority, m.detail, m.stack.join(' < ')])),
  });
}

function summary(peak: PagePeak): string {
  const late = peak.timeline.filter((moment) => moment.ns !== null && endOf(moment) >= 0 && moment.at <= peak.latency_ns);
  const longest = late.sort((a, b) => (b.ns ?? 0) - (a.ns ?? 0)).slice(0, 5);
  return `From ${COURSE[peak.kind].whole} ${exactLatency(peak.latency_ns)} later. Longest: ${longest.map((m) => `${m.name || m.what} for ${latency(m.ns)} in ${LANES[m.lane]}`).join(', ')}`;
}

function option(peak: PagePeak, lanes: Lane[], frame: Frame, chosen: Moment | null): Option {
  const step = ceil125((frame.to - frame.from) / (frame.width < 520 ? 4 : 8));
  const ticks: number[] = [];
  for (let n = Math.ceil(frame.from / step - 1e-9); n * step <= frame.to + step * 1e-9; n += 1) ticks.push(n * step);
  return {
    grid: { ...grid(frame, TOP, BOTTOM), left: leftOf(frame) },
    xAxis: xAxis({ name: `time after ${COURSE[peak.kind].since}`, min: frame.from, max: frame.to, ticks, label: (x) => axisLabel(x, step), frame }),
    yAxis: laneAxis(peak, lanes, frame),
    series: [shade(peak, lanes, frame), spans(lanes, frame, chosen), marks(peak, frame)],
  };
}

const leftOf = (frame: Frame): number => (frame.small ? 78 : 108);

/** All ticks in one unit: that of the largest step that they can be counted in. */
function axisLabel(x: number, step: number): string {
  if (Math.abs(x) < step * 1e-6) return '0';
  const [unit, factor] = step >= 5e5 ? ['ms', 1e6] : step >= 500 ? ['us', 1e3] : ['ns', 1];
  return `${Number((x / (factor as number)).toFixed(3))} ${unit}`;
}

function laneAxis(peak: PagePeak, lanes: Lane[], frame: Frame): Option {
  const several = lanes.some(({ cpu }) => cpu !== peak.cpu);
  const name = ({ lane, cpu }: Lane): string => `${(frame.small ? LANES_SHORT : LANES)[lane]}${several ? `\nCPU ${cpu}` : ''}`;
  const axis = yAxis({
    name: '', min: 0, max: lanes.length, ticks: lanes.map((_, index) => index + 0.5), frame,
    label: (y) => name(lanes[lanes.length - 1 - Math.floor(y)] ?? lanes[0]),
  });
  return { ...axis, axisTick: { show: false }, splitLine: { show: false } };
}

interface Api { coord: (place: number[]) => number[] }
interface Rect { x: number; y: number; width: number; height: number }

function custom(id: string, z: number, length: number, render: (index: number, api: Api, area: Rect) => Option | null): Option {
  return {
    type: 'custom', id, z, silent: true, clip: true, encode: { x: [], y: [] },
    data: Array.from({ length }, (_, index) => [index]),
    renderItem: (params: { dataIndex: number; coordSys: Rect }, api: unknown) => render(params.dataIndex, api as Api, params.coordSys),
  };
}

/** The late interval, and a line between lanes. */
function shade(peak: PagePeak, lanes: Lane[], frame: Frame): Option {
  return custom('late', 1, 1 + lanes.length, (index, api, area) => {
    if (index > 0) {
      const y = Math.round(api.coord([0, index - 1])[1]) + 0.5;
      return { type: 'line', silent: true, shape: { x1: area.x, x2: area.x + area.width, y1: y, y2: y }, style: { stroke: frame.theme.grid } };
    }
    const from = Math.max(area.x, api.coord([0, 0])[0]);
    const to = Math.min(area.x + area.width, api.coord([peak.latency_ns, 0])[0]);
    if (to <= from) return null;
    return { type: 'rect', silent: true, shape: { x: from, y: area.y, width: to - from, height: area.height }, style: { fill: frame.theme.alarm, opacity: frame.theme.dark ? 0.15 : 0.09 } };
  });
}

function laneColour(lane: number, theme: Theme): string {
  return [theme.series[3], theme.series[1], theme.series[4], theme.series[0], theme.series[2], theme.crowd][lane];
}

function spans(lanes: Lane[], frame: Frame, chosen: Moment | null): Option {
  // Long ones first: what is within another is drawn over it.
  const all = lanes.flatMap((lane, row) => lane.moments.map((moment) => ({ moment, row: lanes.length - 1 - row, lane: lane.lane, depth: depthOf(moment, lane.moments) })));
  all.sort((a, b) => (b.moment.ns ?? -1) - (a.moment.ns ?? -1));
  return custom('spans', 3, all.length, (index, api, area) => {
    const { moment, row, lane, depth } = all[index];
    const [x0, middle] = api.coord([moment.at, row + 0.5]);
    const x1 = api.coord([endOf(moment), row])[0];
    if (x1 < area.x - 1 || x0 > area.x + area.width + 1) return null;
    const colour = laneColour(lane, frame.theme);
    return moment.ns === null
      ? point(x0, middle, moment, colour, frame, moment === chosen)
      : span({ x0: Math.max(x0, area.x), x1: Math.min(x1, area.x + area.width), middle, depth }, moment, colour, frame, moment === chosen);
  });
}

/** In how many others of its lane it lies. */
function depthOf(moment: Moment, lane: Moment[]): number {
  if (moment.ns === null) return 0;
  return lane.filter((other) => other !== moment && other.ns !== null && other.ns > (moment.ns ?? 0) && other.at <= moment.at && endOf(other) >= endOf(moment)).length;
}

function span(place: { x0: number; x1: number; middle: number; depth: number }, moment: Moment, colour: string, frame: Frame, chosen: boolean): Option {
  const { x0, middle } = place;
  const width = Math.max(1.5, place.x1 - x0);
  const half = Math.max(5, 13 - 3 * place.depth);
  const words = `${moment.name || moment.what}${width > 110 && moment.priority ? `, ${moment.priority}` : ''}`;
  const text = width > 26 ? [{
    type: 'text', silent: true,
    style: { text: words, x: x0 + 4, y: middle, verticalAlign: 'middle', fill: frame.theme.text, font: `11px ${FONT}`, width: width - 7, overflow: 'truncate', ellipsis: '\u2026', truncateMinChar: 2 },
  }] : [];
  return {
    type: 'group', silent: true, children: [
      { type: 'rect', silent: true, shape: { x: x0, y: middle - half, width, height: 2 * half }, style: { fill: frame.theme.paper } },
      { type: 'rect', silent: true, shape: { x: x0, y: middle - half, width, height: 2 * half }, style: { fill: colour, opacity: moment.lane === 5 ? 0.16 : 0.32 } },
      {
        type: 'rect', silent: true, shape: { x: x0, y: middle - half, width, height: 2 * half },
        style: { fill: null, stroke: chosen ? frame.theme.text : colour, lineWidth: chosen ? 2 : 1 },
      },
      ...text,
    ],
  };
}

const FONT = getComputedStyle(document.documentElement).fontFamily;

/** A point: a bar, or a diamond where a stack was walked. */
function point(x: number, middle: number, moment: Moment, colour: string, frame: Frame, chosen: boolean): Option {
  const style = { fill: colour, stroke: chosen ? frame.theme.text : frame.theme.paper, lineWidth: chosen ? 2 : 1 };
  if (moment.stack.length === 0) {
    return { type: 'rect', silent: true, shape: { x: x - 1, y: middle - 9, width: 2, height: 18 }, style: { fill: colour, stroke: chosen ? frame.theme.text : null, lineWidth: 2 } };
  }
  return { type: 'polygon', silent: true, shape: { points: [[x, middle - 8], [x + 7, middle], [x, middle + 8], [x - 7, middle]] }, style };
}

/** Where the timer should have fired, and where the thread ran. */
function marks(peak: PagePeak, frame: Frame): Option {
  const { begin, end, late } = COURSE[peak.kind];
  const both = [{ at: 0, text: begin }, { at: peak.latency_ns, text: `${end}${latency(peak.latency_ns)}${late}` }];
  return { ...custom('marks', 4, both.length, (index, api, area) => {
    const x = api.coord([both[index].at, 0])[0];
    if (x < area.x - 1 || x > area.x + area.width + 1) return null;
    const narrow = api.coord([peak.latency_ns, 0])[0] - api.coord([0, 0])[0] < 60;
    const align = index === 0 ? (narrow || x > area.x + area.width - 60 ? 'right' : 'left') : x > area.x + area.width / 2 && !narrow ? 'right' : 'left';
    return {
      type: 'group', silent: true, children: [
        { type: 'line', silent: true, shape: { x1: x, x2: x, y1: area.y - 4, y2: area.y + area.height }, style: { stroke: frame.theme.alarm, lineWidth: 1.2, lineDash: index === 0 ? [4, 3] : null } },
        { type: 'text', silent: true, style: { text: both[index].text, x: x + (align === 'left' ? 3 : -3), y: area.y - 5, align, verticalAlign: 'bottom', fill: frame.theme.text, font: `11px ${FONT}` } },
      ],
    };
  }), clip: false };
}

/** What is at a position, shortest first; without a height of all lanes. */
function at(lanes: Lane[], x: number, y: number | null, frame: Frame): Moment[] {
  const near = (NEAR_PX * (frame.to - frame.from)) / Math.max(1, frame.width - leftOf(frame));
  const row = y === null ? -1 : lanes.length - 1 - Math.floor(y);
  const within = y === null ? lanes : lanes.slice(Math.max(0, row), Math.max(0, row + 1));
  const found = within.flatMap((lane) => lane.moments).filter((m) => m.at - near <= x && endOf(m) + near >= x);
  return found.sort((a, b) => (a.ns ?? 0) - (b.ns ?? 0));
}

function reading(peak: PagePeak, lanes: Lane[], x: number, y: number | null, frame: Frame): Reading | null {
  const found = at(lanes, x, y, frame).slice(0, 8);
  const title = `${exactLatency(Math.abs(Math.round(x)))} ${x < 0 ? 'before' : 'after'} ${COURSE[peak.kind].after}`;
  return { title, rows: found.map((m) => ({ colour: laneColour(m.lane, frame.theme), name: momentName(m), value: when(m) })) };
}

export function momentName(moment: Moment): string {
  const name = moment.name && moment.name !== moment.what ? `${moment.what} ${moment.name}` : moment.what;
  return moment.pid && !moment.name.endsWith(`/${moment.pid}`) ? `${name}/${moment.pid}` : name;
}

/** "at 1.234 us", "from -3 us, for 2.500 us" */
export function when(moment: Moment): string {
  return moment.ns === null ? `at ${exactLatency(moment.at)}` : `from ${exactLatency(moment.at)}, for ${exactLatency(moment.ns)}`;
}
