// What readers call causes and series: the program's words, as the page's data brings them.

import type { Vocabulary } from './data';

let words: Vocabulary | null = null;

/** Before anything is drawn. */
export function learn(own: Vocabulary): void {
  words = own;
}

/** A kind of cause; what the page itself adds to them is called by its name. */
export const causeWords = (cause: string): string => words?.causes[cause] ?? cause;

/** A series as a reader calls it. */
export const seriesTitle = (name: string): string => words?.series[name] ?? name;
