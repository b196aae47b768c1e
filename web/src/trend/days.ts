// Days as numbers since 1970-01-01 (UTC), as words, and as ticks of an axis.

const DAY_MS = 86400000;
/** Distances of ticks in days, below a month. */
const DAY_STEPS = [1, 2, 7, 14];
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120];
const MONTH_DAYS = 30.4;

/** "2026-06-15" */
export function dayText(day: number): string {
  const at = new Date(Math.round(day) * DAY_MS);
  return Number.isNaN(at.getTime()) ? '\u2013' : at.toISOString().slice(0, 10);
}

/** Ticks of a time axis of days, at most about `most`: whole days, or beginnings of months. */
export function dayTicks(from: number, to: number, most: number): { at: number[]; label: (day: number) => string } {
  const span = to - from;
  const step = DAY_STEPS.find((days) => span / days <= most);
  if (step !== undefined) {
    const at: number[] = [];
    for (let day = Math.ceil(from / step) * step; day <= to; day += step) at.push(day);
    return { at, label: dayText };
  }
  const months = MONTH_STEPS.find((own) => span / (own * MONTH_DAYS) <= most) ?? MONTH_STEPS[MONTH_STEPS.length - 1];
  const first = new Date(from * DAY_MS);
  const at: number[] = [];
  for (let month = first.getUTCFullYear() * 12; month < 12 * 10000; month += months) {
    const day = Date.UTC(Math.floor(month / 12), month % 12, 1) / DAY_MS;
    if (day > to) break;
    if (day >= from) at.push(day);
  }
  return { at, label: (day) => dayText(day).slice(0, months % 12 === 0 ? 4 : 7) };
}
