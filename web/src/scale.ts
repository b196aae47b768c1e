// Positions on axes: logarithms with 1-2-5 or decade ticks, nines, time. All charts draw on linear
// axes in these positions, so that ticks carry real unit names and values <= 0 have a place.

/** Tick positions with what they say. */
export interface Ticks {
  at: number[];
  label: (position: number) => string;
}

/** A logarithmic axis over positive numbers, with a strip below for those that have no logarithm. */
export interface LogScale {
  /** Position of the lower end, the strip included. */
  low: number;
  /** Where the logarithms begin: above the strip. */
  foot: number;
  high: number;
  /** Whether there is a strip for values <= 0. */
  strip: boolean;
  /** The strip's centre. */
  stripAt: number;
  place: (value: number) => number;
  value: (position: number) => number;
}

const STEPS = [1, 2, 5];

/** The largest of 1-2-5 times a power of ten that is not above the value. */
export function floor125(value: number): number {
  const decade = Math.pow(10, Math.floor(Math.log10(value) + 1e-9));
  const step = [...STEPS].reverse().find((s) => s * decade <= value * (1 + 1e-9)) ?? 1;
  return step * decade;
}

/** The smallest of 1-2-5 times a power of ten that is not below the value. */
export function ceil125(value: number): number {
  const floor = floor125(value);
  if (floor >= value * (1 - 1e-9)) return floor;
  const decade = Math.pow(10, Math.floor(Math.log10(floor) + 1e-9));
  const lead = Math.round(floor / decade);
  return (lead === 1 ? 2 : lead === 2 ? 5 : 10) * decade;
}

/** A scale that holds every value given; a single value gets room on both sides. */
export function logScale(least: number, most: number, strip: boolean): LogScale {
  const from = least > 0 && Number.isFinite(least) ? least : 1000;
  const to = most > 0 && Number.isFinite(most) ? Math.max(most, from) : from * 10;
  const bottom = Math.log10(floor125(from * 0.97));
  const high = Math.max(Math.log10(ceil125(to * 1.06)), bottom + 0.3);
  const height = (high - bottom) * 0.13;
  const stripAt = bottom - height * 0.6;
  return {
    low: strip ? bottom - height * 1.1 : bottom,
    foot: bottom,
    high,
    strip,
    stripAt,
    place: (value) => (value > 0 ? Math.log10(value) : stripAt),
    value: (position) => Math.pow(10, position),
  };
}

/** Ticks at 1-2-5, or at decades where that would be more than `most`. */
export function logTicks(scale: LogScale, most: number, write: (value: number) => string): Ticks {
  const first = scale.foot;
  const at: number[] = [];
  for (let decade = Math.floor(first); decade <= scale.high; decade += 1) {
    for (const step of STEPS) {
      const position = decade + Math.log10(step);
      if (position >= first - 1e-9 && position <= scale.high + 1e-9) at.push(position);
    }
  }
  const decades = at.filter((position) => Math.abs(position - Math.round(position)) < 1e-9);
  let chosen = at.length <= most || decades.length < 2 ? at : decades;
  while (chosen.length > most) chosen = chosen.filter((_, index) => index % 2 === 0);
  if (scale.strip) chosen = [scale.stripAt, ...chosen];
  return {
    at: chosen,
    label: (p) => (p < first - 1e-9 ? '≤ 0' : write(Number(Math.pow(10, p).toPrecision(3)))),
  };
}

/** Ticks of a linear axis from 0. */
export function linearTicks(high: number, most: number): number[] {
  const step = ceil125(high / Math.max(1, most));
  const at: number[] = [];
  for (let index = 0; index * step <= high * (1 + 1e-9); index += 1) at.push(index * step);
  return at;
}

const TIME_STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** The distance of ticks on a time axis. */
export function timeStep(span: number, most: number): number {
  const least = span / Math.max(1, most);
  if (least <= 30) return [15, 30].find((s) => least > 10 && s >= least) ?? ceil125(least);
  return TIME_STEPS.find((step) => step >= least) ?? Math.ceil(least / 86400) * 86400;
}

/** Positions of the ticks of a time axis. */
export function timeTicks(from: number, to: number, step: number): number[] {
  const at: number[] = [];
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-9; index += 1) {
    at.push(index * step);
  }
  return at;
}

/** Where a percentile sits on the axis of nines: 90 at 1, 99 at 2, 99.9 at 3. */
export function nines(percentile: number): number {
  return -Math.log10(Math.max(1e-12, 1 - percentile / 100));
}

/** The percentile at a position of the axis of nines. */
export function percentileAt(position: number): number {
  return 100 * (1 - Math.pow(10, -position));
}

/** A percentile as people write it: "50", "99.99". */
export function percentileText(percentile: number): string {
  const digits = Math.max(0, Math.min(8, Math.ceil(nines(percentile) - 2 + 1)));
  return `${Number(percentile.toFixed(digits))}`;
}
