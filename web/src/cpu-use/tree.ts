// A flame graph's columns as a tree: what is in it, what is shown of it, and what a search matches.
// Draws nothing.

import type { FlameGraph, FlameKind } from '../data';

export interface Place {
  name: string;
  module: string;
  kind: FlameKind;
  weight: number;
  /** What it does not spend in what it calls. */
  own: number;
  caller: Place | null;
  called: Place[];
}

/** A place as it is drawn: from where to where of the whole width, 0 to 1, and in which row. */
export interface Drawn {
  place: Place;
  from: number;
  to: number;
  row: number;
}

/** The places that nothing calls, largest first. */
export function rootsOf(graph: FlameGraph): Place[] {
  const places = graph.name.map((name, at): Place => ({
    name: graph.strings[name] ?? '', module: graph.strings[graph.module[at]] ?? '', kind: graph.kind[at],
    weight: graph.weight[at], own: graph.weight[at], caller: null, called: [],
  }));
  const roots: Place[] = [];
  places.forEach((place, at) => {
    const caller = places[graph.caller[at] - 1] ?? null;
    place.caller = caller;
    if (caller) caller.own -= place.weight;
    (caller ? caller.called : roots).push(place);
  });
  for (const place of places) place.called.sort(larger);
  return roots.sort(larger);
}

/** What is put together comes last. */
const larger = (a: Place, b: Place): number => Number(a.kind === 'smaller') - Number(b.kind === 'smaller') || b.weight - a.weight;

export const weightOf = (places: Place[]): number => places.reduce((sum, place) => sum + place.weight, 0);

/** The places below some, row by row, `rows` at most, without those of less than `least` of the width. */
export function layOut(roots: Place[], least: number, rows: number): Drawn[] {
  const whole = weightOf(roots);
  const found: Drawn[] = [];
  let open = [{ places: roots, from: 0, row: 0 }];
  while (whole > 0 && open.length > 0) {
    const next: typeof open = [];
    for (const { places, from, row } of open) {
      let at = from;
      for (const place of places) {
        const to = at + place.weight / whole;
        if (to - at >= least) {
          found.push({ place, from: at, to, row });
          if (place.called.length > 0 && row + 1 < rows) next.push({ places: place.called, from: at, row: row + 1 });
        }
        at = to;
      }
    }
    open = next;
  }
  return found;
}

/** The weight of what matches, with what it calls; a match within another counts once. */
export function matched(roots: Place[], matches: (place: Place) => boolean): number {
  return roots.reduce((sum, place) => sum + (matches(place) ? place.weight : matched(place.called, matches)), 0);
}

/** It and its callers, the outermost first. */
export function pathOf(place: Place | null): Place[] {
  const path: Place[] = [];
  for (let at = place; at; at = at.caller) path.unshift(at);
  return path;
}
