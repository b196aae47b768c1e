// Why wake-ups were late: as in `data.ts`, with texts and stacks put in place by `read.ts`.

import type { Basis } from '../data';
import type { SeriesSummary } from '../model';

/** One stage of a series: a part of each of its latencies. */
export interface Stage {
  /** The series whose stage it is. */
  of: string;
  /** `irq`, `softirq`, `handler`, `dispatch`, `user`. */
  stage: string;
  summary: SeriesSummary;
  /** Bin of `latency_edges_ns` and count. */
  histogram: [number, number][];
}

export type { Band, CauseInBand, PageBlame } from '../data';

export interface PagePeak {
  /** Both null where nobody knows when. */
  t_s: number | null;
  at_ns: number | null;
  series: string;
  cpu: number;
  latency_ns: number;
  /** What it is. */
  kind: 'wake-up' | 'gap' | 'round trip' | 'packet' | 'scheduled packet';
  /** In the order of their time; null where the kernel's record did not match, or the file of another program has none. */
  stages: { stage: string; ns: number }[] | null;
  blame: PagePart[];
  timeline: Moment[];
  left_out: number;
}

export interface PagePart {
  cause: string;
  name: string;
  task: string;
  ns: number;
  /** What the name rests on. */
  basis: Basis;
  /** Of an inference: what it was concluded from. */
  evidence: string;
  stack: string[];
}

/** An entry of a timeline. */
export interface Moment {
  /** ns after the programmed expiry. */
  at: number;
  /** null: a point. */
  ns: number | null;
  cpu: number;
  /** Place in `LANES`. */
  lane: number;
  what: string;
  name: string;
  pid: number;
  priority: string;
  detail: string;
  stack: string[];
}
