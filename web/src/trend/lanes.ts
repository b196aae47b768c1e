// What a chart of a trend has in its two lanes: p99 above; the usual and the largest maximum below.
// Lines join the days of one kernel, so that kernels that take turns make two lines.

import type { PageTrendFigure, PageTrendRow } from '../model';
import { ceil125, logScale, logTicks, type LogScale, type Ticks } from '../scale';
import { latency } from '../units';

export interface Lane {
  title: string;
  figure: PageTrendFigure;
  /** The figure, a value a day and kernel; null if it is missing. */
  values: (number | null)[];
  /** The largest latency of each day, where the lane has it. */
  largest: (number | null)[];
  scale: LogScale;
}

/** A stretch of days on one level. */
export interface Level {
  from: number;
  to: number;
  ns: number;
}

/** Days under one kernel, one after another. */
export interface Band {
  from: number;
  to: number;
  kernel: number;
}

/** With this number of bands a kernel, kernels take turns: stripes would say nothing. */
const MOST_BANDS = 4;

export function lanesOf(row: PageTrendRow): Lane[] {
  const { p99_ns: p99, usual_max_ns: usual, max_ns: largest } = row.days;
  const lane = (title: string, figure: PageTrendFigure, values: (number | null)[], beside: (number | null)[]): Lane => {
    const all = [...values, ...beside].filter((ns): ns is number => ns !== null && ns > 0);
    const least = all.reduce((a, b) => Math.min(a, b), Infinity);
    const most = all.reduce((a, b) => Math.max(a, b), 0);
    return { title, figure, values, largest: beside, scale: closeScale(least, most) };
  };
  return [lane('p99', row.p99, p99, []), lane('maximum', row.usual_max, usual, largest)];
}

/** No wider than its values need, so that a step of some percent is seen. */
function closeScale(least: number, most: number): LogScale {
  const whole = logScale(least, most, false);
  if (!Number.isFinite(least)) return whole;
  const [low, high] = [Math.log10(least), Math.log10(most)];
  const room = Math.max(0.12 * (high - low), 0.03);
  return { ...whole, low: low - room, foot: low - room, high: high + 1.6 * room };
}

/** 1-2-5 where two of them or more fit, else equal distances. */
export function ticksOf(scale: LogScale): Ticks {
  const ticks = logTicks(scale, 5, (ns) => latency(ns));
  if (ticks.at.length > 1) return ticks;
  const [least, most] = [Math.pow(10, scale.low), Math.pow(10, scale.high)];
  const step = ceil125((most - least) / 5);
  const at: number[] = [];
  for (let ns = Math.ceil(least / step) * step; ns <= most; ns += step) at.push(Math.log10(ns));
  return { at, label: (position) => latency(Number(Math.pow(10, position).toPrecision(6))) };
}

/** The level before the first change, between changes, and after the last one. */
export function levelsOf(row: PageTrendRow, figure: PageTrendFigure): Level[] {
  const { day } = row.days;
  if (day.length === 0 || figure.median_ns === null) return [];
  const [first, last] = [day[0], day[day.length - 1]];
  if (figure.changes.length === 0) return [{ from: first, to: last, ns: figure.median_ns }];
  const after = figure.changes.map((change, at) => ({ from: change.day, to: (figure.changes[at + 1]?.day ?? last + 1) - 1, ns: change.after_ns }));
  return [{ from: first, to: figure.changes[0].day - 1, ns: figure.changes[0].before_ns }, ...after];
}

/** Bands of kernels; none where there is one kernel, and where several take turns. */
export function bandsOf(row: PageTrendRow): Band[] {
  const { day, kernel } = row.days;
  const bands: Band[] = [];
  for (let at = 0; at < day.length; at += 1) {
    const last = bands[bands.length - 1];
    if (last?.kernel === kernel[at]) {
      last.to = day[at] + 0.5;
      continue;
    }
    if (last) last.to = day[at] - 0.5;
    bands.push({ from: day[at] - 0.5, to: day[at] + 0.5, kernel: kernel[at] });
  }
  return row.kernels.length < 2 || bands.length > MOST_BANDS * row.kernels.length ? [] : bands;
}
