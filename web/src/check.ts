// Holds a page's data against its structure before anything is drawn: what is missing or of another
// type is an error that names the field, never a 0 in a table.

import type { Json, JsonMap } from './data';

/** The data of a page is not what this drawing code reads. */
export class WrongData extends Error {
  constructor(place: string, what: string) {
    super(`${place} ${what}`);
    this.name = 'WrongData';
  }
}

type Schema = JsonMap;

/** Throws `WrongData` at the first member of `value` that `schema` does not allow. */
export function check(value: unknown, schema: Schema, root: Schema = schema, place = 'the data'): void {
  if (typeof schema.$ref === 'string') {
    check(value, definition(root, schema.$ref), root, place);
    return;
  }
  const any = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
  if (any) {
    checkAny(value, any, root, place);
    return;
  }
  if ('const' in schema && value !== schema.const) throw new WrongData(place, `is ${shown(value)}, not ${JSON.stringify(schema.const)}`);
  if (Array.isArray(schema.enum) && !schema.enum.includes(value as Json)) throw new WrongData(place, `is ${shown(value)}, none of ${schema.enum.join(', ')}`);
  const types = ([schema.type ?? []] as string[][]).flat();
  if (types.length > 0 && !types.some((type) => isOf(value, type))) {
    throw new WrongData(place, value === undefined ? 'is missing' : `is ${shown(value)}, not ${types.map(named).join(' or ')}`);
  }
  if (Array.isArray(value)) checkItems(value, schema, root, place);
  else if (value !== null && typeof value === 'object') checkMembers(value as JsonMap, schema, root, place);
}

function definition(root: Schema, reference: string): Schema {
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  return (root.$defs as { [name: string]: Schema })[name];
}

/** One of several: null where there is nothing, or the last, which allows the most. */
function checkAny(value: unknown, any: Schema[], root: Schema, place: string): void {
  const errors: WrongData[] = [];
  for (const one of any) {
    try {
      check(value, one, root, place);
      return;
    } catch (error) {
      if (!(error instanceof WrongData)) throw error;
      errors.push(error);
    }
  }
  throw errors.filter((_, index) => any[index].type !== 'null').pop();
}

function checkItems(value: unknown[], schema: Schema, root: Schema, place: string): void {
  const each = schema.prefixItems as Schema[] | undefined;
  if (each && each.length !== value.length) throw new WrongData(place, `has ${value.length} items, not ${each.length}`);
  const items = schema.items as Schema | undefined;
  // Columns of numbers are long, and most of a page.
  if (items?.type === 'number' || items?.type === 'integer') {
    value.forEach((item, index) => {
      if (typeof item === 'number') return;
      // JSON has no NaN: a measured column has null for it, and a hole stays a hole.
      if (item !== null || items.type === 'integer') throw new WrongData(`${place}[${index}]`, `is ${shown(item)}, not a number`);
      value[index] = NaN;
    });
    return;
  }
  value.forEach((item, index) => {
    const own = each?.[index] ?? items;
    if (own) check(item, own, root, `${place}[${index}]`);
  });
}

function checkMembers(value: JsonMap, schema: Schema, root: Schema, place: string): void {
  const under = place === 'the data' ? '' : `${place}.`;
  for (const name of (schema.required as string[] | undefined) ?? []) {
    if (!(name in value)) throw new WrongData(`${under}${name}`, 'is missing');
  }
  const members = (schema.properties ?? {}) as { [name: string]: Schema };
  for (const [name, own] of Object.entries(members)) {
    if (name in value) check(value[name], own, root, `${under}${name}`);
  }
  const others = schema.additionalProperties;
  if (others === null || typeof others !== 'object') return;
  for (const [name, item] of Object.entries(value)) {
    if (!(name in members)) check(item, others as Schema, root, `${under}${name}`);
  }
}

function isOf(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return value !== null && typeof value === 'object' && !Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

const named = (type: string): string => ({ null: 'null', integer: 'a whole number', array: 'a list', object: 'an object' })[type] ?? `a ${type}`;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing';
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}
