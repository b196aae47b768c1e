// What one sample of a run is called, and its series: the mirror of `src/report/sample_name.rs`.

import type { Page, PageRun } from './model';

export interface Noun {
  one: string;
  many: string;
  /** What axes and titles call its length. */
  measure: string;
}

const WAKE_UP: Noun = { one: 'wake-up', many: 'wake-ups', measure: 'latency' };
const ROUND_TRIP: Noun = { one: 'round trip', many: 'round trips', measure: 'round trip' };
const PACKET: Noun = { one: 'packet', many: 'packets', measure: 'latency' };
const SAMPLE: Noun = { one: 'sample', many: 'samples', measure: 'latency' };

const NOUNS: { [probe: string]: Noun } = { pingpong: ROUND_TRIP, stream: PACKET, receive: PACKET };

export const nounOf = (run: PageRun): Noun => NOUNS[run.record.probe.name] ?? WAKE_UP;

/** What the samples of all runs are; "samples" where they are not the same. */
export function nounOfAll(page: Page): Noun {
  const nouns = new Set(page.runs.map(nounOf));
  return nouns.size === 1 ? [...nouns][0] : SAMPLE;
}

export const isRoundTrip = (run: PageRun): boolean => nounOf(run) === ROUND_TRIP;

/** As a sentence or a title begins. */
export const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** A series as a reader calls it. */
export const seriesTitle = (name: string): string => (name === 'rtt' ? 'round trip' : name);
