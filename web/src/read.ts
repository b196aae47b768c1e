// Reading the data block: finds it, parses it, and fills in what is missing or null, so that the
// drawing code meets no holes. Knows the model's shape, nothing of the page.

import type {
  Caveat, ClockRecord, ConfigTable, CpuBusy, EndRecord, FlowRecord, Heat, InterruptRow, JsonMap, LoadRecord, LoadTrack, MachineTrack, MatrixCell,
  MessageRecord, Page, PageMatrix, PageRun, PageSeries, Points, RunRecord, Scheduled, SeriesSummary,
} from './model';
import { blame, peaks, stages } from './cause/read';
import { column, list, number, numberOrNull, object, pairs, text, texts } from './loose';

function percentiles(value: unknown): { [name: string]: number } {
  const found: { [name: string]: number } = {};
  for (const [name, latency] of Object.entries(object(value))) {
    if (typeof latency === 'number') found[name] = latency;
  }
  return found;
}

function heat(value: unknown): Heat {
  const loose = object(value);
  return { time: column(loose.time), latency: column(loose.latency), count: column(loose.count) };
}

function points(value: unknown): Points {
  const loose = object(value);
  const t_s = column(loose.t_s);
  return {
    kind: loose.kind === 'interval_max' ? 'interval_max' : 'sample',
    of: number(loose.of, t_s.length),
    thinned: text(loose.thinned),
    t_s,
    latency_ns: column(loose.latency_ns),
  };
}

function mapOrNull(value: unknown): JsonMap | null {
  return value === null || value === undefined ? null : (object(value) as JsonMap);
}

function scheduled(value: unknown): Scheduled | null {
  if (value === null || value === undefined) return null;
  const loose = object(value);
  return {
    count: number(loose.count),
    mean: numberOrNull(loose.mean),
    max: numberOrNull(loose.max),
    percentiles: percentiles(loose.percentiles),
    uncertain: texts(loose.uncertain),
  };
}

function summary(value: unknown): SeriesSummary {
  const loose = object(value);
  return {
    name: text(loose.name, '?'),
    cpu: numberOrNull(loose.cpu),
    unit: text(loose.unit, 'ns'),
    count: number(loose.count),
    missed: numberOrNull(loose.missed),
    early: number(loose.early),
    above: number(loose.above),
    min: numberOrNull(loose.min),
    mean: numberOrNull(loose.mean),
    stddev: numberOrNull(loose.stddev),
    max: numberOrNull(loose.max),
    percentiles: percentiles(loose.percentiles),
    uncertain: texts(loose.uncertain),
    scheduled: scheduled(loose.scheduled),
  };
}

function messages(value: unknown): MessageRecord | null {
  if (value === null || value === undefined) return null;
  const loose = object(value);
  return {
    transport: text(loose.transport, '?'),
    size: number(loose.size),
    ends: list(loose.ends).map(end),
    flows: list(loose.flows).map(flow),
    clock: clock(loose.clock),
  };
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);

function end(value: unknown): EndRecord {
  const loose = object(value);
  return {
    name: text(loose.name, '?'), place: text(loose.place), address: textOrNull(loose.address), cpu: numberOrNull(loose.cpu),
    policy: textOrNull(loose.policy), wait: textOrNull(loose.wait), version: textOrNull(loose.version),
    receive_buffer_bytes: numberOrNull(loose.receive_buffer_bytes), send_buffer_bytes: numberOrNull(loose.send_buffer_bytes),
  };
}

function flow(value: unknown): FlowRecord {
  const loose = object(value);
  return {
    series: text(loose.series, '?'), sent: number(loose.sent), received: number(loose.received), lost: number(loose.lost),
    late: numberOrNull(loose.late), late_over_ns: numberOrNull(loose.late_over_ns), duplicated: number(loose.duplicated),
    reordered: number(loose.reordered), foreign: number(loose.foreign), wanted_per_s: numberOrNull(loose.wanted_per_s), achieved_per_s: numberOrNull(loose.achieved_per_s),
  };
}

function clock(value: unknown): ClockRecord | null {
  if (value === null || value === undefined) return null;
  const loose = object(value);
  return {
    offset_ns: number(loose.offset_ns), uncertainty_ns: number(loose.uncertainty_ns), drift_ppb: number(loose.drift_ppb),
    exchanges: number(loose.exchanges), shortest_round_trip_ns: number(loose.shortest_round_trip_ns),
  };
}

function caveat(value: unknown): Caveat {
  const loose = object(value);
  const effect = loose.effect;
  return {
    code: text(loose.code),
    effect: effect === 'weakens' || effect === 'invalidates' ? effect : 'informs',
    text: text(loose.text),
    remedy: text(loose.remedy),
  };
}

function load(value: unknown): LoadRecord {
  const loose = object(value);
  const proof = object(loose.proof);
  return {
    name: text(loose.name, '?'),
    parameters: object(loose.parameters) as JsonMap,
    proof: loose.proof === null || loose.proof === undefined ? null : {
      unit: text(proof.unit, 'operations'),
      operations: number(proof.operations),
      operations_per_s: number(proof.operations_per_s),
      context_switches_per_s: number(proof.context_switches_per_s),
      cpu_share: number(proof.cpu_share),
      tasks: number(proof.tasks),
    },
    ended: typeof loose.ended === 'string' ? loose.ended : null,
  };
}

function record(value: unknown): RunRecord {
  const loose = object(value);
  const probe = object(loose.probe);
  const setup = object(loose.setup);
  const trace = object(loose.trace);
  return {
    schema_version: number(loose.schema_version),
    id: text(loose.id),
    name: text(loose.name) || text(loose.id) || 'unnamed run',
    argv: texts(loose.argv),
    status: text(loose.status, 'crashed') as RunRecord['status'],
    validity: text(loose.validity, 'invalid') as RunRecord['validity'],
    caveats: list(loose.caveats).map(caveat),
    probe: { name: text(probe.name, '?'), parameters: object(probe.parameters) as JsonMap },
    loads: list(loose.loads).map(load),
    setup: { asked: object(setup.asked) as JsonMap, found: object(setup.found) as JsonMap },
    trace: { asked: text(trace.asked), found: text(trace.found), why_not: text(trace.why_not) },
    facts: object(loose.facts) as JsonMap,
    started_at: text(loose.started_at),
    ended_at: typeof loose.ended_at === 'string' ? loose.ended_at : null,
    duration_ns: number(loose.duration_ns),
    start_monotonic_ns: number(loose.start_monotonic_ns),
    machine: mapOrNull(loose.machine),
    conditions: mapOrNull(loose.conditions),
    messages: messages(loose.messages),
    series: list(loose.series).map(summary),
  };
}

/** Whether a series is a stage of another one's latencies (`cpu0/irq`). */
const isStage = (series: SeriesSummary): boolean => series.name.includes('/');

function pageSeries(value: unknown): PageSeries {
  const loose = object(value);
  return {
    name: text(loose.name, '?'),
    curve: pairs(loose.curve),
    histogram: pairs(loose.histogram),
    heat: loose.heat === null || loose.heat === undefined ? null : heat(loose.heat),
    points: points(loose.points),
  };
}

function machine(value: unknown): MachineTrack {
  const loose = object(value);
  return {
    t_s: column(loose.t_s),
    interrupts_per_s: column(loose.interrupts_per_s),
    softirqs_per_s: column(loose.softirqs_per_s),
    context_switches_per_s: column(loose.context_switches_per_s),
    cpu_busy: list(loose.cpu_busy).map((item): CpuBusy => {
      const cpu = object(item);
      return { cpu: number(cpu.cpu), busy: column(cpu.busy) };
    }),
  };
}

function loadTrack(value: unknown): LoadTrack {
  const loose = object(value);
  return {
    name: text(loose.name, '?'),
    unit: text(loose.unit, 'operations'),
    t_s: column(loose.t_s),
    operations_per_s: column(loose.operations_per_s),
  };
}

function interrupt(value: unknown): InterruptRow {
  const loose = object(value);
  return {
    kind: text(loose.kind),
    source: text(loose.source),
    description: text(loose.description),
    per_s: number(loose.per_s),
    per_cpu: pairs(loose.per_cpu),
  };
}

function run(value: unknown): PageRun {
  const loose = object(value);
  const own = record(loose.record);
  return {
    headline: text(loose.headline),
    line: text(loose.line),
    // Whoever goes through the series means those of wake-ups.
    record: { ...own, series: own.series.filter((series) => !isStage(series)) },
    stages: stages(loose.stages, own.series.filter(isStage)),
    blame: blame(loose.blame),
    peaks: peaks(loose.peaks),
    command: text(loose.command),
    time_edges_s: column(loose.time_edges_s),
    heat: heat(loose.heat),
    series: list(loose.series).map(pageSeries),
    machine: machine(loose.machine),
    loads: list(loose.loads).map(loadTrack),
    interrupts: list(loose.interrupts).map(interrupt),
  };
}

function cell(value: unknown): MatrixCell | null {
  if (value === null || value === undefined) return null;
  const loose = object(value);
  return {
    phases: number(loose.phases),
    samples: number(loose.samples),
    figures: list(loose.figures).map((item) => {
      const figure = object(item);
      return { name: text(figure.name), low: number(figure.low), high: number(figure.high), uncertain: figure.uncertain === true };
    }),
    curve: pairs(loose.curve),
    caveats: texts(loose.caveats),
    causes: list(loose.causes).map((item) => {
      const own = object(item);
      return { cause: text(own.cause, 'unexplained'), name: text(own.name), share: number(own.share) };
    }),
  };
}

function config(value: unknown): ConfigTable | null {
  if (value === null || value === undefined) return null;
  const loose = object(value);
  const rows = list(loose.rows).map((item) => {
    const row = object(item);
    return { option: text(row.option), values: list(row.values).map((own) => (typeof own === 'string' ? own : null)) };
  });
  return { kernels: texts(loose.kernels), rows, others: number(loose.others) };
}

function matrix(value: unknown): PageMatrix {
  const loose = object(value);
  return {
    title: text(loose.title, 'the lab'),
    headline: text(loose.headline),
    meanings: texts(loose.meanings),
    remarks: texts(loose.remarks),
    kernels: list(loose.kernels).map((item) => {
      const own = object(item);
      return { name: text(own.name, '?'), release: text(own.release), preemption: text(own.preemption), hash: text(own.hash), mode: text(own.mode) };
    }),
    loads: list(loose.loads).map((item) => {
      const row = object(item);
      return { name: text(row.name, '?'), load: text(row.load), cells: list(row.cells).map(cell), verdicts: texts(row.verdicts) };
    }),
    config: config(loose.config),
    failed: list(loose.failed).map((item) => {
      const own = object(item);
      return { load: text(own.load), kernel: text(own.kernel), seed: number(own.seed), why: text(own.why) };
    }),
    undone: number(loose.undone),
  };
}

/** The page's data, whole; throws where the block is absent or no JSON. */
export function readPage(source: Document): Page {
  const block = source.getElementById('tardy-data');
  if (!block) throw new Error('this page has no data block (tardy-data)');
  const loose = object(JSON.parse(block.textContent ?? ''));
  return {
    page_version: number(loose.page_version),
    tardy_version: text(loose.tardy_version),
    made_at: text(loose.made_at),
    latency_edges_ns: column(loose.latency_edges_ns),
    runs: list(loose.runs).map(run),
    matrix: loose.matrix === null || loose.matrix === undefined ? null : matrix(loose.matrix),
  };
}
