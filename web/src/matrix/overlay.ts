// One load: the percentile curves of all kernels over each other. All loads have the same scales, so
// that charts can be compared with each other too. A kernel has a colour and a dash everywhere.

import { grid, xAxis, yAxis } from '../chart/axes';
import { csv, fileName } from '../dom';
import type { Option } from '../echarts';
import type { MatrixCell, MatrixRow, PageMatrix } from '../model';
import { Panel, type Frame, type Reading } from '../panel';
import { logScale, logTicks, nines, percentileAt, percentileText, type LogScale } from '../scale';
import { dashOf, type Theme } from '../theme';
import { count, exactLatency, latency } from '../units';
import { Stretch } from '../view';

const FIRST = nines(50);
/** With fewer samples beyond it a percentile is little more than the maximum (as in `run.json`). */
const ENOUGH_BEYOND = 10;

const TOP = 12;
const BOTTOM = 44;
const heightOf = (small: boolean): number => (small ? 230 : 250);

/** What all charts of a matrix share. */
export interface Scales {
  latency: LogScale;
  /** Last percentile of the axis. */
  last: number;
  /** Where the maxima are. */
  end: number;
  /** What is shown: all charts zoom and point together. */
  stretch: Stretch;
}

export function scalesOf(matrix: PageMatrix): Scales {
  let least = Infinity;
  let most = 0;
  let reach = 0;
  let early = false;
  for (const cell of matrix.loads.flatMap((row) => row.cells)) {
    for (const [p, ns] of cell?.curve ?? []) {
      if (nines(p) < FIRST - 0.01) continue;
      if (ns > 0) least = Math.min(least, ns);
      else early = true;
      most = Math.max(most, ns);
      if (p < 100) reach = Math.max(reach, nines(p));
    }
  }
  const last = Math.max(3, Math.ceil(reach - 0.05));
  return { latency: logScale(least, most, early), last, end: last + 0.5, stretch: new Stretch(FIRST, last + 0.5) };
}

interface Line {
  kernel: number;
  name: string;
  cell: MatrixCell;
  points: [number, number][];
  max: number;
}

function linesOf(matrix: PageMatrix, row: MatrixRow): Line[] {
  return row.cells.flatMap((cell, kernel) => {
    if (!cell || cell.curve.length === 0) return [];
    const points = cell.curve.filter(([p]) => p < 100).map(([p, ns]): [number, number] => [nines(p), ns]);
    return [{ kernel, name: matrix.kernels[kernel]?.name ?? '?', cell, points, max: cell.curve[cell.curve.length - 1][1] }];
  });
}

export function kernelColour(kernel: number, colours: Theme): string {
  return colours.series[kernel % colours.series.length];
}

export function overlayPanel(matrix: PageMatrix, row: MatrixRow, scales: Scales): Panel {
  const lines = linesOf(matrix, row);
  return new Panel({
    kind: 'overlay',
    run: null,
    title: row.name,
    count: () => (lines.length ? `${lines.map((line) => count(line.cell.samples)).join(' and ')} samples.` : '0 samples.'),
    summary: () => lines.map((line) => `${line.name}: ${['50', '99', '99.9'].map((p) => `${p}% within ${latency(at(line, nines(Number(p)))?.[1] ?? line.max)}`).join(', ')}, maximum ${latency(line.max)}`).join('. '),
    height: heightOf,
    stretch: scales.stretch,
    option: (frame) => option(lines, scales, frame),
    read: (x, _y, frame) => reading(lines, scales, x, frame),
    empty: () => lines.length === 0,
    file: () => fileName(matrix.title, row.name),
    csv: () => csv(['kernel', 'percentile', 'latency_ns'], lines.flatMap((line) => line.cell.curve.map(([p, ns]): (string | number)[] => [line.name, p, ns]))),
  });
}

function option(lines: Line[], scales: Scales, frame: Frame): Option {
  const { latency: scale, last, end } = scales;
  const y = logTicks(scale, 7, latency);
  const whole = Array.from({ length: last }, (_, n) => n + 1);
  const ticks = [FIRST, ...whole, end].filter((x) => x >= frame.from - 1e-9 && x <= frame.to + 1e-9);
  return {
    grid: grid(frame, TOP, BOTTOM, 64),
    xAxis: xAxis({
      name: 'percentile (%)', min: frame.from, max: frame.to, ticks,
      label: (x) => (x > last + 0.2 ? 'max' : percentileText(percentileAt(x))), frame,
    }),
    yAxis: yAxis({ name: 'latency', min: scale.low, max: scale.high, ticks: y.at, label: y.label, frame }),
    series: [...lines.flatMap((line) => curve(line, scales, frame)), maxima(lines, scales, frame)],
  };
}

/** Faint where so few samples lie beyond that the next run would say something else. */
function curve(line: Line, { latency: scale, end }: Scales, frame: Frame): Option[] {
  const place = ([x, ns]: [number, number]): [number, number] => [x, scale.place(ns)];
  const enough = line.points.filter(([x]) => line.cell.samples * Math.pow(10, -x) >= ENOUGH_BEYOND);
  const few = [...line.points.slice(Math.max(0, enough.length - 1)), [end, line.max] as [number, number]];
  const part = (data: [number, number][], opacity: number, name: string): Option => ({
    type: 'line', name: line.name, id: `${line.kernel}/${name}`, data, silent: true, symbol: 'none', showSymbol: false, clip: true,
    lineStyle: { color: kernelColour(line.kernel, frame.theme), width: 1.8, type: dashOf(line.kernel), opacity },
  });
  return [part(enough.map(place), 1, 'enough'), part(few.map(place), 0.5, 'few')];
}

/** Height of a label, px. */
const LABEL = 13;

/** How far each label must move up (negative) or down so that none lies on another, px. */
function shifts(lines: Line[], scale: LogScale, frame: Frame): number[] {
  const perUnit = (heightOf(frame.small) - TOP - BOTTOM) / (scale.high - scale.low);
  const places = lines.map((line, index) => ({ index, at: (scale.high - scale.place(line.max)) * perUnit, to: 0 }));
  places.sort((a, b) => a.at - b.at);
  let free = -Infinity;
  for (const place of places) {
    place.to = Math.max(place.at, free);
    free = place.to + LABEL;
  }
  // What was pushed below the axis goes up again, and those above it with it.
  let floor = (scale.high - scale.low) * perUnit;
  for (const place of places.reverse()) {
    place.to = Math.min(place.to, floor);
    floor = place.to - LABEL;
  }
  const found = lines.map(() => 0);
  for (const place of places) found[place.index] = place.to - place.at;
  return found;
}

function maxima(lines: Line[], { latency: scale, end }: Scales, frame: Frame): Option {
  const moved = shifts(lines, scale, frame);
  return {
    type: 'scatter', name: 'maximum', id: 'max', silent: true, clip: false, z: 5, symbolSize: 6,
    data: frame.to < end - 1e-9 ? [] : lines.map((line, index) => ({
      value: [end, scale.place(line.max)],
      itemStyle: { color: kernelColour(line.kernel, frame.theme) },
      label: { show: true, position: 'right', offset: [0, moved[index]], formatter: () => latency(line.max), color: frame.theme.text, fontSize: 11 },
    })),
  };
}

function at(line: Line, x: number): [number, number] | undefined {
  return line.points.find(([place]) => place >= x - 1e-9);
}

function reading(lines: Line[], { last }: Scales, x: number, frame: Frame): Reading | null {
  if (lines.length === 0) return null;
  const rows = lines.map((line) => {
    const found = x > last ? undefined : at(line, x)?.[1];
    return { colour: kernelColour(line.kernel, frame.theme), name: line.name, value: exactLatency(found ?? line.max) + (found === undefined && x <= last ? ' (max)' : '') };
  });
  return { title: x > last ? 'maximum' : `${percentileText(percentileAt(x))}% at most`, rows };
}
