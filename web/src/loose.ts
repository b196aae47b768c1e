// Taking values of any shape apart: what is missing or of another kind becomes nothing, so that the
// drawing code meets no holes.

export type Loose = { [key: string]: unknown };

export const object = (value: unknown): Loose =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Loose) : {};
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const text = (value: unknown, otherwise = ''): string =>
  typeof value === 'string' ? value : otherwise;
export const number = (value: unknown, otherwise = 0): number =>
  typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
export const numberOrNull = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
/** A hole in a column stays a hole (NaN): dropping it would shift all that follows. */
export const column = (value: unknown): number[] => list(value).map((cell) => number(cell, NaN));
export const texts = (value: unknown): string[] => list(value).map((item) => text(item, String(item)));

export function pairs(value: unknown): [number, number][] {
  const found: [number, number][] = [];
  for (const item of list(value)) {
    const [a, b] = list(item);
    if (typeof a === 'number' && typeof b === 'number') found.push([a, b]);
  }
  return found;
}
