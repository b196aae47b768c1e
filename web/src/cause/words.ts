// Labels of causes, stages and lanes, and which cause has which letter and colour. The letter stands
// in every swatch, so that grey paper and every eye can tell them apart.

import { h } from '../dom';
import type { Basis } from '../data';
import type { Page } from '../model';
import type { Theme } from '../theme';
import { percent } from '../units';
import { causeWords } from '../vocabulary';

export { causeWords };

export const LANES = ['host', 'hard interrupts', 'softirqs', 'this thread', 'other tasks', 'idle'];
export const LANES_SHORT = ['host', 'interrupts', 'softirqs', 'this thread', 'others', 'idle'];

const OF_WAY: { [stage: string]: string } = { send: 'send', stack: 'stack', wake_up: 'wake-up', dispatch: 'dispatch', receive: 'receive' };

const ofWay = (way: string): [string, string][] => Object.entries(OF_WAY).map(([stage, words]) => [`${way}-${stage}`, `${way}: ${words}`]);

export const STAGES: { [stage: string]: string } = {
  irq: 'interrupt', softirq: 'softirq', handler: 'handler', dispatch: 'dispatch', user: 'to user',
  there: 'there, not split', back: 'back, not split', packet: 'not split', pacing: 'until it was sent',
  ...Object.fromEntries([...ofWay('there'), ...ofWay('back'), ...Object.entries(OF_WAY).map(([stage, words]) => [`packet-${stage}`, words])]),
};

/** How a peak begins and ends: at its marks, on its axis, in sentences. */
export const COURSE = {
  'wake-up': { due: 'Due', begin: 'expiry', end: 'awake, ', late: ' late', since: 'the programmed expiry', after: 'the expiry', whole: 'the expiry to the wake-up' },
  gap: { due: 'Began', begin: 'gap', end: 'over after ', late: '', since: 'the clock read before the gap', after: 'the gap began', whole: 'one clock read to the next' },
  'round trip': { due: 'Sent', begin: 'sent', end: 'answer after ', late: '', since: 'the message was sent', after: 'sending', whole: 'sending to the answer' },
  packet: { due: 'Stamped', begin: 'stamp', end: 'read, ', late: ' late', since: 'the kernel\u2019s stamp', after: 'the stamp', whole: 'the stamp to the reader' },
  'scheduled packet': { due: 'Due', begin: 'due', end: 'received, ', late: ' late', since: 'its scheduled time', after: 'its time', whole: 'its scheduled time to the receiver' },
};

export interface Named {
  cause: string;
  name: string;
  /** Of a part of one latency: what its name rests on. */
  basis?: Basis;
  /** Of a sum: how much of it is an inference, 0 to 1. */
  inferred?: number;
}

/** An inference is hatched wherever its cause is shown. */
export const isInferred = ({ basis, inferred = 0 }: Named): boolean => basis === 'inferred' || inferred > 0.5;

/** "interrupts off: ext4_sync_file"; the words are those of `tardy why`. */
export function label({ cause, name }: Named): string {
  // Records call own CPU time "own work".
  const added = cause === 'own_work' ? name.replace(/^own work(, )?/, '') : name;
  return added && added !== causeWords(cause) ? `${causeWords(cause)}: ${added}` : causeWords(cause);
}

export const share = (part: number, whole: number): string => {
  const own = whole > 0 ? part / whole : 0;
  if (own > 0 && own < 0.001) return '<0.1%';
  // What is not all is not called all.
  if (own > 0.99 && own < 1) return percent(Math.floor(own * 1000) / 1000, 1);
  return percent(own, own >= 0.0995 ? 0 : 1);
};

/** The number of causes with a letter and a color, the same everywhere in the page. */
const LETTERS = 'ABCDEFG';

export interface CauseKeys {
  /** Place among the lettered; -1 for all others. */
  slot: (cause: Named) => number;
}

const key = ({ cause, name }: Named): string => `${cause}\n${name}`;

/** The causes that weigh most over all bands of all runs get the letters. */
export function causeKeys(page: Page): CauseKeys {
  const weights = new Map<string, number>();
  const add = (named: Named, weight: number): void => {
    if (named.cause === 'unexplained') return;
    weights.set(key(named), (weights.get(key(named)) ?? 0) + weight);
  };
  for (const run of page.runs) {
    for (const band of run.blame?.bands ?? []) {
      for (const cause of band.causes) add(cause, cause.ns / Math.max(1, band.ns));
    }
    for (const peak of run.peaks.peaks) {
      for (const part of peak.blame) add(part, (1e-3 * part.ns) / Math.max(1, peak.latency_ns));
    }
  }
  const ranked = [...weights].sort((a, b) => b[1] - a[1]).slice(0, LETTERS.length);
  const slots = new Map(ranked.map(([name], index) => [name, index]));
  return { slot: (named) => slots.get(key(named)) ?? -1 };
}

/** The colour of a cause, and black or white on it, whichever can be read. */
export function causeColour(slot: number, theme: Theme): { fill: string; ink: string } {
  const fill = slot < 0 ? theme.crowd : theme.series[slot % theme.series.length];
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16));
  return { fill, ink: 0.299 * r + 0.587 * g + 0.114 * b > 125 ? '#000000' : '#ffffff' };
}

export function letterOf(slot: number): string {
  return LETTERS[slot] ?? '';
}

/** The lettered square of a cause; hatched where it is inferred, or nobody knows. */
export function causeKey(named: Named, keys: CauseKeys, theme: Theme): HTMLElement {
  const slot = keys.slot(named);
  const kind = named.cause === 'unexplained' ? ' unknown' : isInferred(named) ? ' inferred' : '';
  const square = h('span', { class: `cause-key${kind}`, 'aria-hidden': 'true' }, letterOf(slot));
  if (named.cause !== 'unexplained') {
    const { fill, ink } = causeColour(slot, theme);
    square.style.backgroundColor = fill;
    square.style.color = ink;
  }
  return square;
}
