// JSON of any shape as rows of name and words, for the record: nested names joined by dots, times in
// ns with their unit, and many alike (a setting per thread) told once.

import type { Json, JsonMap } from './model';
import { count, latency } from './units';

export type Fact = [name: string, words: string];

export function flatten(map: JsonMap, prefix = ''): Fact[] {
  return Object.entries(map).flatMap(([key, value]) => entry(prefix ? `${prefix}.${key}` : key, value));
}

function entry(name: string, value: Json): Fact[] {
  if (isMap(value)) {
    const inner = Object.values(value);
    if (inner.length > 1 && inner.every(isMap)) return alike(name, Object.entries(value) as [string, JsonMap][]);
    return inner.length ? flatten(value, name) : [[name, 'none']];
  }
  if (Array.isArray(value) && value.length > 0 && value.every(isMap)) {
    return alike(name, value.map((item, index): [string, JsonMap] => labelled(item, index)));
  }
  return [[name, words(name, value)]];
}

const isMap = (value: Json): value is JsonMap => value !== null && typeof value === 'object' && !Array.isArray(value);

/** What names an item of a list: its own name or number, else its place. */
function labelled(item: JsonMap, index: number): [string, JsonMap] {
  const key = ['name', 'series', 'cpu'].find((own) => typeof item[own] === 'string' || typeof item[own] === 'number');
  if (!key) return [String(index), item];
  const { [key]: label, ...rest } = item;
  return [key === 'cpu' ? `CPU ${String(label)}` : String(label), rest];
}

/** For each field: one value for all, or each value with those that have it. */
function alike(name: string, items: [string, JsonMap][]): Fact[] {
  const fields = new Map<string, Map<string, string[]>>();
  for (const [label, item] of items) {
    for (const [field, text] of flatten(item)) {
      const values = fields.get(field) ?? new Map<string, string[]>();
      values.set(text, [...(values.get(text) ?? []), label]);
      fields.set(field, values);
    }
  }
  return [...fields].map(([field, values]): Fact => [`${name}.${field}`, told(values, items.map(([label]) => label))]);
}

/** More different values than this are listed in order, without the name before each. */
const NAMED = 8;

function told(values: Map<string, string[]>, labels: string[]): string {
  if (values.size === 1 && labels.length > 1) {
    const [[text, having]] = values;
    if (having.length === labels.length) return `${text} (all ${labels.length})`;
  }
  if (values.size > NAMED) {
    const text = new Map([...values].flatMap(([own, having]) => having.map((label): [string, string] => [label, own])));
    return `${ranges(labels.map((label) => text.get(label) ?? 'unknown'))} (${ranges(labels)}, in this order)`;
  }
  return [...values].map(([text, having]) => `${ranges(having)}: ${text}`).join('; ');
}

/** "cpu0, cpu1, cpu2" as "cpu0-2": neighbours that differ in a final number by one. */
function ranges(labels: string[]): string {
  const found: { stem: string; from: number; to: number; text: string }[] = [];
  for (const label of labels) {
    const parts = /^(.*?)(\d{1,9})$/.exec(label);
    const last = found[found.length - 1];
    if (parts && last && last.stem === parts[1] && last.to + 1 === Number(parts[2])) {
      last.to += 1;
      last.text = `${last.stem}${last.from}-${last.to}`;
    } else {
      const number = parts ? Number(parts[2]) : NaN;
      found.push({ stem: parts?.[1] ?? label, from: number, to: number, text: label });
    }
  }
  return found.map(({ text }) => text).join(', ');
}

function words(name: string, value: Json): string {
  if (value === null) return 'unknown';
  if (Array.isArray(value)) return value.length ? value.map((item) => words(name, item)).join(', ') : 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return amount(name, value);
  return typeof value === 'object' ? JSON.stringify(value) : value || 'none';
}

function bytes(value: number): string {
  const power = value > 0 ? Math.min(BYTES.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
  return `${Number((value / 1024 ** power).toPrecision(3))} ${BYTES[power]}`;
}

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** The unit is the last part of the name. */
function amount(name: string, value: number): string {
  if (name.endsWith('_ns')) return latency(value);
  if (name.endsWith('_us')) return `${value} us`;
  if (name.endsWith('_percent')) return `${value}%`;
  if (name === 'busy' || name === 'steal') return `${Number((value * 100).toFixed(1))}%`;
  if (name.endsWith('_bytes_per_s')) return `${bytes(value)}/s`;
  if (name.endsWith('_bytes') || name === 'bytes') return bytes(value);
  return Number.isInteger(value) && Math.abs(value) >= 10000 ? count(value) : String(value);
}

/** A field's name as words: the unit goes, it stands with the value. */
export function readable(name: string): string {
  return name.replace(/_(ns|us|bytes|percent|bytes_per_s)(?=$|\.)/g, '').replace(/_per_s$/, ' per second').replace(/_/g, ' ');
}
