// Why wake-ups were late: the mirror of `src/report/causes.rs`, with texts and stacks put in place.
// Only types; `read.ts` beside it fills in what is missing.

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

export interface PageBlame {
  threshold_ns: number;
  blamed: number;
  passed_over: number;
  unmatched: number;
  lost_events: number;
  bands: Band[];
}

/** All wake-ups that were so late; the mirror of `src/analysis/bands.rs`. */
export interface Band {
  /** `p99`, `p99.9`, `p99.99` or `worst`. */
  name: string;
  from: number;
  wakeups: number;
  /** Their latencies together. */
  ns: number;
  /** How much of that was blamed, 0 to 1, if only on `unexplained`. */
  blamed_share: number;
  causes: CauseInBand[];
}

export interface CauseInBand {
  cause: string;
  name: string;
  ns: number;
}

export interface PagePeak {
  t_s: number;
  at_ns: number;
  series: string;
  cpu: number;
  latency_ns: number;
  /** In the order of their time; null where the kernel's record did not match. */
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
