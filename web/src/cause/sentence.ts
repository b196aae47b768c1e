// What a band of latencies was spent on, in one sentence.

import { count } from '../units';
import type { Band, CauseInBand } from './model';
import { causeWords, isInferred, label, share } from './words';

const BANDS: { [name: string]: string } = {
  'p99': 'slowest 1%', 'p99.9': 'slowest 0.1%', 'p99.99': 'slowest 0.01%', 'worst': 'worst peaks', 'late': 'cycles over the deadline',
};

export const bandTitle = ({ name, wakeups }: Band): string => (name === 'worst' ? `the ${count(wakeups)} worst` : BANDS[name] ?? name);

/** The time that was blamed. */
export const blamedOf = (band: Band): number => band.ns * Math.min(1, band.blamed_share);

/** Below this share of blamed time, the sentence is about that. */
const LITTLE = 0.5;
/** A name stands for all of its kind where it has this much of it. */
const MOST = 0.6;
/** The number of names of one kind. */
const NAMES = 3;

/** "In the slowest 0.1% of wake-ups, 61% of the time went to interrupts off: console_unlock." */
export function sentence(band: Band, many: string): string {
  const place = band.name === 'worst' ? `In ${bandTitle(band)} ${many}` : band.name === 'late' ? `In the ${bandTitle(band)}` : `In the ${bandTitle(band)} of ${many}`;
  const unknown = band.causes.filter(({ cause }) => cause === 'unexplained').reduce((sum, { ns }) => sum + ns, 0);
  const [first] = kindsOf(band).map(told);
  if (blamedOf(band) < LITTLE * band.ns) {
    const known = first ? `, most of that ${first.probably}on ${first.words}` : '';
    return `${place}, only ${share(blamedOf(band), band.ns)} of the time was analyzed${known}; the rest is not known.`;
  }
  if (!first) return `${place}, nothing that was recorded explains where the time went.`;
  const part = share(first.ns, band.ns);
  if (unknown > first.ns) return `${place}, ${share(unknown, band.ns)} of the time is unexplained; the largest known cause is ${first.probably}${first.words} (${part}).`;
  return `${place}, ${part} of the time ${first.probably}went to ${first.words}.`;
}

interface Kind {
  ns: number;
  causes: CauseInBand[];
}

/** The known kinds of causes, largest first. */
function kindsOf(band: Band): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const own of band.causes) {
    if (own.cause === 'unexplained') continue;
    const kind = kinds.get(own.cause) ?? { ns: 0, causes: [] };
    kind.ns += own.ns;
    kind.causes.push(own);
    kinds.set(own.cause, kind);
  }
  return [...kinds.values()].sort((a, b) => b.ns - a.ns);
}

interface Told {
  ns: number;
  words: string;
  /** Before its verb, where it is inferred. */
  probably: string;
}

/** A kind by its one name where that is most of it, else with several; and the time that is meant. */
function told({ ns, causes }: Kind): Told {
  const sorted = [...causes].sort((a, b) => b.ns - a.ns);
  const [first] = sorted;
  const probably = isInferred(first) ? 'probably ' : '';
  if (first.ns >= MOST * ns) return { ns: first.ns, words: label(first), probably };
  const names = sorted.slice(0, NAMES).map((own) => own.name || '\u2013').join(', ');
  const rest = sorted.length - NAMES;
  return { ns, words: `${causeWords(first.cause)}: ${names}${rest > 0 ? ` and ${rest} more` : ''}`, probably };
}
