// The page's data as the Rust side writes it: the mirror of `src/report/page.rs` and of the run
// record in `src/run/`. Names are those of the JSON. Latencies are integers in ns, `t_s` is seconds
// since the run's `started_at`. Only types live here; `read.ts` fills in what is missing.

import type { PageBlame, PagePeak, Stage } from './cause/model';

/** The newest `page_version` that this code understands. */
export const PAGE_VERSION = 1;

export interface Page {
  page_version: number;
  tardy_version: string;
  made_at: string;
  latency_edges_ns: number[];
  runs: PageRun[];
  /** Kernels of the lab beside each other, instead of runs. */
  matrix: PageMatrix | null;
}

/** The mirror of `src/report/matrix_page.rs`. */
export interface PageMatrix {
  title: string;
  headline: string;
  meanings: string[];
  remarks: string[];
  kernels: MatrixKernel[];
  loads: MatrixRow[];
  config: ConfigTable | null;
  failed: MatrixFailure[];
  undone: number;
}

export interface MatrixKernel {
  name: string;
  release: string;
  preemption: string;
  hash: string;
  mode: string;
}

export interface MatrixRow {
  name: string;
  load: string;
  /** One place a kernel; null where nothing was measured. */
  cells: (MatrixCell | null)[];
  verdicts: string[];
}

export interface MatrixCell {
  phases: number;
  samples: number;
  figures: MatrixFigure[];
  /** Of all start phases together: percentile and latency in ns, the last one the maximum. */
  curve: [number, number][];
  caveats: string[];
  /** What the worst wake-ups were spent on, largest first. */
  causes: { cause: string; name: string; share: number }[];
}

/** A range over start phases, ns; `name` is a percentile or `max`. */
export interface MatrixFigure {
  name: string;
  low: number;
  high: number;
  uncertain: boolean;
}

export interface ConfigTable {
  kernels: string[];
  rows: { option: string; values: (string | null)[] }[];
  others: number;
}

export interface MatrixFailure {
  load: string;
  kernel: string;
  seed: number;
  why: string;
}

export interface PageRun {
  headline: string;
  line: string;
  record: RunRecord;
  command: string;
  time_edges_s: number[];
  heat: Heat;
  series: PageSeries[];
  machine: MachineTrack;
  loads: LoadTrack[];
  interrupts: InterruptRow[];
  stages: Stage[];
  /** null: not recorded. */
  blame: PageBlame | null;
  /** Worst first. */
  peaks: { peaks: PagePeak[]; damaged: string[] };
}

export interface PageSeries {
  name: string;
  /** Percentile (0 to 100) and latency in ns, ascending, the last one the maximum. */
  curve: [number, number][];
  /** Bin of `latency_edges_ns` and count. */
  histogram: [number, number][];
  heat: Heat | null;
  points: Points;
}

/** Three columns of one length. */
export interface Heat {
  time: number[];
  latency: number[];
  count: number[];
}

export type PointKind = 'sample' | 'interval_max';

export interface Points {
  kind: PointKind;
  of: number;
  thinned: string;
  t_s: number[];
  latency_ns: number[];
}

export interface MachineTrack {
  t_s: number[];
  interrupts_per_s: number[];
  softirqs_per_s: number[];
  context_switches_per_s: number[];
  cpu_busy: CpuBusy[];
}

export interface CpuBusy {
  cpu: number;
  busy: number[];
}

export interface LoadTrack {
  name: string;
  unit: string;
  t_s: number[];
  operations_per_s: number[];
}

export interface InterruptRow {
  kind: string;
  source: string;
  description: string;
  per_s: number;
  per_cpu: [number, number][];
}

export type Status = 'running' | 'complete' | 'interrupted' | 'stopped_over' | 'crashed';
export type Validity = 'valid' | 'weakened' | 'invalid';
export type Effect = 'informs' | 'weakens' | 'invalidates';
/** JSON of any shape: parameters and settings have no fixed one. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonMap = { [key: string]: Json };

export interface RunRecord {
  schema_version: number;
  id: string;
  name: string;
  argv: string[];
  status: Status;
  validity: Validity;
  caveats: Caveat[];
  probe: { name: string; parameters: JsonMap };
  loads: LoadRecord[];
  setup: { asked: JsonMap; found: JsonMap };
  trace: { asked: string; found: string; why_not: string };
  /** Shown as it is: a fact that this code does not know is still a fact. */
  facts: JsonMap;
  started_at: string;
  ended_at: string | null;
  duration_ns: number;
  start_monotonic_ns: number;
  /** What the machine did on average, and under which conditions: shown as they are. */
  machine: JsonMap | null;
  conditions: JsonMap | null;
  /** What came of messages; null where none were exchanged. */
  messages: MessageRecord | null;
  series: SeriesSummary[];
}

/** The mirror of `src/run/messages.rs`. */
export interface MessageRecord {
  transport: string;
  size: number;
  ends: EndRecord[];
  flows: FlowRecord[];
  clock: ClockRecord | null;
}

export interface EndRecord {
  name: string;
  place: string;
  address: string | null;
  cpu: number | null;
  policy: string | null;
  wait: string | null;
  receive_buffer_bytes: number | null;
  send_buffer_bytes: number | null;
  version: string | null;
}

export interface FlowRecord {
  series: string;
  sent: number;
  received: number;
  lost: number;
  late: number | null;
  late_over_ns: number | null;
  duplicated: number;
  reordered: number;
  foreign: number;
  wanted_per_s: number | null;
  achieved_per_s: number | null;
}

export interface ClockRecord {
  offset_ns: number;
  uncertainty_ns: number;
  drift_ppb: number;
  exchanges: number;
  shortest_round_trip_ns: number;
}

export interface Caveat {
  code: string;
  effect: Effect;
  text: string;
  remedy: string;
}

export interface LoadRecord {
  name: string;
  parameters: JsonMap;
  proof: LoadProof | null;
  ended: string | null;
}

export interface LoadProof {
  unit: string;
  operations: number;
  operations_per_s: number;
  context_switches_per_s: number;
  cpu_share: number;
  tasks: number;
}

export type Percentiles = { [name: string]: number };

export interface Scheduled {
  count: number;
  mean: number | null;
  max: number | null;
  percentiles: Percentiles;
  uncertain: string[];
}

export interface SeriesSummary {
  name: string;
  cpu: number | null;
  unit: string;
  count: number;
  missed: number | null;
  early: number;
  above: number;
  min: number | null;
  mean: number | null;
  stddev: number | null;
  max: number | null;
  percentiles: Percentiles;
  uncertain: string[];
  scheduled: Scheduled | null;
}
