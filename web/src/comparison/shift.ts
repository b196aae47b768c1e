// The shift function: by which factor B differs from A, percentile by percentile, each with its
// interval. An end that the samples do not tell is drawn as a dashed line to the edge.

import { grid, xAxis, yAxis } from '../chart/axes';
import { csv, fileName } from '../dom';
import type { Option } from '../echarts';
import type { PageComparison, ShiftPoint } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import { nines, percentileAt, percentileText } from '../scale';
import { count } from '../units';
import { Stretch } from '../view';
import { seriesTitle } from '../vocabulary';
import { ratioText } from './words';

/** The axis reaches at least so far to either side. */
const LEAST_REACH = 1.05;
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

interface Shown {
  one: PageComparison;
  points: ShiftPoint[];
  /** Of the axis, as a factor above 1. */
  reach: number;
  last: number;
}

export function shiftPanel(one: PageComparison, samples: number[]): Panel {
  const points = mainPoints(one);
  const ends = points.flatMap((point) => [point.ratio, point.low, point.high].filter((ratio): ratio is number => ratio !== null));
  const reach = ends.reduce((most, ratio) => Math.max(most, ratio, 1 / ratio), LEAST_REACH);
  const last = points.reduce((most, point) => Math.max(most, place(point)), 1) + 0.3;
  const shown = { one, points, reach: Math.pow(reach, 1.08), last };
  const of = points[0]?.series ?? null;
  return new Panel({
    kind: 'shift',
    run: null,
    title: `B / A by percentile, ${of === null ? 'all series' : seriesTitle(of)}`,
    count: () => `${samples.map(count).join(' and ')} samples. Bars: 95% of each percentile by itself, by ${one.shift_meaning}.`,
    summary: () => points.map((point) => `p${point.percentile} times ${ratioText(point.ratio)}${point.low !== null && point.high !== null ? `, from ${ratioText(point.low)} to ${ratioText(point.high)}` : ''}`).join('. '),
    height: () => 300,
    stretch: new Stretch(0, last),
    option: (frame) => option(shown, frame),
    read: (x) => reading(shown, x),
    empty: () => points.length === 0,
    file: () => fileName(one.b_name, one.a_name, 'shift'),
    csv: () => csv(['series', 'percentile', 'a_ns', 'b_ns', 'ratio', 'low', 'high'],
      one.shift.map((own): (string | number | null)[] => [own.series ?? 'all', own.percentile, own.a_ns, own.b_ns, own.ratio, own.low, own.high])),
  });
}

/** All series together, or the first where they cannot be put together. */
function mainPoints(one: PageComparison): ShiftPoint[] {
  const first = one.shift[0];
  return first ? one.shift.filter((point) => point.series === first.series) : [];
}

const place = (point: ShiftPoint): number => nines(Number(point.percentile));

function ticksOf(reach: number): number[] {
  const top = Math.log10(reach);
  const found: number[] = [];
  if (reach > 3) {
    const every = Math.max(1, Math.ceil(top / 4));
    const leads = top < 1.2 ? [1, 2, 5] : [1];
    for (let decade = Math.floor(-top); decade <= top; decade += every) {
      for (const lead of leads) found.push(decade + Math.log10(lead));
    }
    found.push(0);
  } else {
    const step = STEPS.find((own) => (reach - 1 / reach) / own <= 9) ?? 0.5;
    for (let at = Math.ceil(1 / reach / step); at * step <= reach; at += 1) found.push(Math.log10(at * step));
  }
  return [...new Set(found.map((at) => Number(at.toFixed(9))))].filter((at) => Math.abs(at) <= top).sort((a, b) => a - b);
}

function option({ one, points, reach, last }: Shown, frame: Frame): Option {
  const top = Math.log10(reach);
  const colour = frame.theme.runs[(one.b[0] ?? 1) % frame.theme.runs.length];
  const at = points.map((point): [number, number] => [place(point), Math.log10(point.ratio)]);
  const ticks = points.map(place).filter((x) => x >= frame.from - 1e-9 && x <= frame.to + 1e-9);
  return {
    grid: grid(frame, 12, 44),
    xAxis: xAxis({ name: 'percentile (%)', min: frame.from, max: frame.to, ticks, label: (x) => percentileText(percentileAt(x)), frame }),
    yAxis: yAxis({ name: 'B / A', min: -top, max: top, ticks: ticksOf(reach), label: (y) => ratioText(Math.pow(10, y)), frame }),
    series: [
      line('none', [[0, 0], [last, 0]], { color: frame.theme.muted, width: 1, type: [5, 4] }),
      line('ratio', at, { color: colour, width: 1, type: 'solid' }),
      ...points.flatMap((point) => bar(point, top, colour)),
      { type: 'scatter', id: 'points', name: 'B / A', silent: true, symbolSize: 8, data: at, itemStyle: { color: colour }, z: 5 },
    ],
  };
}

function line(id: string, data: [number, number][], lineStyle: Option): Option {
  return { type: 'line', id, name: id, data, silent: true, symbol: 'none', showSymbol: false, clip: true, lineStyle, z: 3 };
}

function bar(point: ShiftPoint, top: number, colour: string): Option[] {
  const x = place(point);
  const middle = Math.log10(point.ratio);
  const half = (end: number | null, edge: number, name: string): Option[] => {
    const id = `${point.percentile}/${name}`;
    if (end === null) return [line(id, [[x, middle], [x, edge]], { color: colour, width: 1, type: [2, 3] })];
    const y = Math.log10(end);
    return [line(id, [[x, middle], [x, y]], { color: colour, width: 2, type: 'solid' }),
      line(`${id}/end`, [[x - 0.05, y], [x + 0.05, y]], { color: colour, width: 2, type: 'solid' })];
  };
  return [...half(point.low, -top, 'low'), ...half(point.high, top, 'high')];
}

function reading({ points }: Shown, x: number): Reading | null {
  if (points.length === 0) return null;
  const near = points.reduce((best, point) => (Math.abs(place(point) - x) < Math.abs(place(best) - x) ? point : best));
  const end = (ratio: number | null): string => (ratio === null ? 'not known' : ratioText(ratio));
  return {
    title: `p${near.percentile}`, at: place(near),
    rows: [{ name: 'B / A', value: ratioText(near.ratio) }, { name: 'at least', value: end(near.low) }, { name: 'at most', value: end(near.high) }],
  };
}
