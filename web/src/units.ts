// Numbers as words: latencies, counts, moments. Units are written as the command line writes them
// ("us", not the micro sign). Knows no page and no chart.

const UNITS: [string, number][] = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]];

/** The largest unit in which the value is at least 1. */
function unitOf(ns: number): [string, number] {
  const size = Math.abs(ns);
  return UNITS.find(([, factor]) => size >= factor) ?? ['ns', 1];
}

/** Three significant digits and the unit: "38.4 us". */
export function latency(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return '–';
  const [unit, factor] = unitOf(ns);
  const value = Math.abs(ns) / factor;
  const digits = factor === 1 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const shown = value.toFixed(digits).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
  return `${ns < 0 ? '-' : ''}${shown} ${unit}`;
}

/** To the nanosecond: "38.412 us", "1.000250000 s". */
export function exactLatency(ns: number): string {
  if (!Number.isFinite(ns)) return '–';
  const [unit, factor] = unitOf(ns);
  const digits = Math.round(Math.log10(factor));
  return `${grouped((ns / factor).toFixed(digits))} ${unit}`;
}

/** A decimal number with its whole part in groups of three digits: "-12,345.6". */
export function grouped(number: string): string {
  const [whole, ...part] = number.split('.');
  return [whole.replace(/\B(?=(\d{3})+(?!\d))/g, ','), ...part].join('.');
}

/** The same sentence, in which no line ends between a number and its unit. */
export function unbroken(sentence: string): string {
  return sentence.replace(/(\d) (?=(?:[num]?s|min|h|d|[kKMG]i?B|B|[kMG]?Hz)(?:[^\w]|$))/g, '$1\u00a0');
}

/** A share as a percentage: "61%". */
export function percent(share: number, decimals: number): string {
  return `${(share * 100).toFixed(decimals)}%`;
}

/** Whole numbers in groups of three digits: "86,400,000". */
export function count(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return grouped(Math.round(value).toString());
}

/** A count on an axis: "1", "500", "20k", "3M". */
export function shortCount(value: number): string {
  const size = Math.abs(value);
  for (const [suffix, factor] of [['G', 1e9], ['M', 1e6], ['k', 1e3]] as const) {
    if (size >= factor) return `${Number((value / factor).toPrecision(3))}${suffix}`;
  }
  return `${Number(value.toPrecision(3))}`;
}

/** A rate in full: "12,345", "0.25". */
export function rate(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return Math.abs(value) >= 100 ? count(value) : `${Number(value.toPrecision(3))}`;
}

/** "3 samples", "1 sample". */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Seconds as a duration: "20 s", "1 h 30 min". */
export function duration(seconds: number): string {
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), 'd'], [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'], [whole % 60, 's'],
  ];
  return parts.filter(([value]) => value > 0).map(([value, unit]) => `${value} ${unit}`).join(' ');
}

/** Seconds since the start on an axis whose ticks are `step` apart: "5 s", "10 min", "6 h", "1:30". */
export function axisTime(seconds: number, step: number, longest: number): string {
  const decimals = step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step) - 1e-9));
  if (longest <= 120) return `${seconds.toFixed(decimals)} s`;
  if (seconds === 0) return '0';
  if (step % 3600 === 0) return `${seconds / 3600} h`;
  if (step % 60 === 0 && longest <= 7200) return `${seconds / 60} min`;
  return clock(seconds, decimals, step % 60 !== 0);
}

/** "h:mm", "h:mm:ss" or "m:ss", without a date. */
function clock(seconds: number, decimals: number, withSeconds: boolean): string {
  const rounded = Number(seconds.toFixed(decimals));
  const hours = Math.floor(rounded / 3600);
  const minutes = Math.floor(rounded / 60) % 60;
  const rest = (rounded % 60).toFixed(decimals).padStart(decimals ? decimals + 3 : 2, '0');
  if (!withSeconds) return `${hours}:${String(minutes).padStart(2, '0')} h`;
  return hours ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/** Seconds since the start, exactly: "12.345678 s". */
export function exactTime(seconds: number): string {
  const digits = seconds >= 3600 ? 3 : 6;
  return `${grouped(seconds.toFixed(digits))} s`;
}

/** As a sentence or a title begins. */
export const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** The absolute moment, UTC to the millisecond; empty where the start is unknown. */
export function moment(startedAt: string, seconds: number): string {
  const start = Date.parse(startedAt);
  if (Number.isNaN(start) || !Number.isFinite(seconds)) return '';
  const at = new Date(start + seconds * 1000);
  if (Number.isNaN(at.getTime())) return '';
  return at.toISOString().replace('T', ' ').replace('Z', ' UTC');
}

/** An RFC 3339 time as people read it: "2026-11-21 20:30:55 UTC"; unchanged if it is not a time. */
export function instant(rfc3339: string): string {
  const at = Date.parse(rfc3339);
  if (Number.isNaN(at)) return rfc3339;
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** How one column of a table writes its latencies: one unit, one number of decimals. */
export interface ColumnUnit {
  unit: string;
  write: (ns: number) => string;
}

/** The unit in which most of the column's values are readable, fixed for the whole column. */
export function columnUnit(values: number[]): ColumnUnit {
  const sizes = values.map(Math.abs).filter((size) => size > 0).sort((a, b) => a - b);
  const middle = sizes[Math.floor(sizes.length / 2)] ?? 1000;
  // The smallest must keep two digits: one unit down where it would not.
  const [unit, factor] = unitOf((sizes[0] ?? 1000) * 10 < unitOf(middle)[1] ? middle / 1000 : middle);
  const least = (sizes[0] ?? factor) / factor;
  const most = (sizes[sizes.length - 1] ?? factor) / factor;
  const wanted = (most >= 100 ? 1 : 2) - Math.floor(Math.log10(least));
  const decimals = factor === 1 ? 0 : Math.max(0, Math.min(2, wanted));
  return { unit, write: (ns) => grouped((ns / factor).toFixed(decimals)) };
}

/** A metric other than a latency, with three digits that count, as the tables of a terminal have them. */
export function threeDigits(value: number | null): string {
  if (value === null) return '\u2013';
  const size = Math.abs(value);
  if (size >= 99.95) return grouped(value.toFixed(0));
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995 || size === 0) return value.toFixed(2);
  return value.toFixed(size >= 0.0999 ? 3 : 4);
}
