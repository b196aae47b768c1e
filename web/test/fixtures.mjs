// Synthetic pages, made by code from a fixed seed: what the drawing must cope with, from a plain run
// of 20 s to a day on 64 CPUs, a crash, nothing at all, and text that would like to be markup.

import { attachedTo } from './attached.mjs';
import { trend } from './trends.mjs';
import { CAUSES, traced } from './causes.mjs';
import { profiled } from './cpu-use.mjs';
import { PACKETS, ROUND_TRIPS, pingpong, stream } from './messages.mjs';

const NS_PER_S = 1e9;
export const HOSTILE = `</script><img src=x onerror="window.hostile=1"><b>&amp;{{}}'"\u2028`;

/** A small generator of reproducible numbers in [0, 1). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

function normal(next) {
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

/** 16 bins an octave from 128 ns on, below that one. */
export function edges(most_ns) {
  const found = [0];
  for (let i = 0; found[found.length - 1] <= most_ns; i += 1) {
    const edge = Math.round(128 * 2 ** (i / 8));
    if (edge > found[found.length - 1]) found.push(edge);
  }
  return found;
}

function binOf(bounds, ns) {
  let [low, high] = [0, bounds.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (bounds[middle] <= ns) low = middle;
    else high = middle;
  }
  return low;
}

/** A wake-up latency: a body, a shoulder under load, now and then a peak. */
function wakeUp(next, { base, spread, shoulder, peak, peakShare }) {
  const dice = next();
  if (dice < peakShare) return Math.round(peak * (0.15 + 0.85 * next() ** 3));
  if (dice < shoulder) return Math.round(base * (4 + 9 * next() ** 2));
  return Math.max(400, Math.round(base * Math.exp(spread * normal(next))));
}

const NAMES = [['50', 50], ['90', 90], ['99', 99], ['99.9', 99.9], ['99.99', 99.99], ['99.999', 99.999]];

function ranks(sorted) {
  const at = (p) => sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)];
  const percentiles = {};
  const uncertain = [];
  for (const [name, p] of NAMES) {
    percentiles[name] = at(p);
    if (sorted.length * (1 - p / 100) < 10) uncertain.push(name);
  }
  return { percentiles, uncertain };
}

function curve(sorted) {
  const found = [];
  for (let n = 0; 10 ** n <= sorted.length; n += 0.05) {
    const p = 100 * (1 - 10 ** -n);
    found.push([p, sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)]]);
  }
  found.push([100, sorted[sorted.length - 1]]);
  return found;
}

export function columns(cells) {
  const heat = { time: [], latency: [], count: [] };
  for (const [key, count] of [...cells].sort((a, b) => a[0] - b[0])) {
    heat.time.push(Math.floor(key / 4096));
    heat.latency.push(key % 4096);
    heat.count.push(count);
  }
  return heat;
}

const bump = (map, key, by = 1) => map.set(key, (map.get(key) ?? 0) + by);

/** Samples of one series turned into its summary and its pictures. */
function series(name, cpu, samples, bounds, timeEdges, options = {}) {
  const good = samples.map(([, ns]) => ns).filter((ns) => ns >= 0).sort((a, b) => a - b);
  const early = samples.length - good.length;
  const least = samples.reduce((a, [, ns]) => Math.min(a, ns), Infinity);
  const [histogram, cells] = [new Map(), new Map()];
  const width = timeEdges[1] - timeEdges[0];
  for (const [t, ns] of samples) {
    if (ns < 0) continue;
    bump(histogram, binOf(bounds, ns));
    bump(cells, Math.min(timeEdges.length - 1, Math.floor(t / width)) * 4096 + binOf(bounds, ns));
  }
  const missed = samples.reduce((sum, [, ns]) => sum + Math.floor(Math.max(0, ns) / 1e6), 0);
  const mean = good.length ? Math.round(good.reduce((a, b) => a + b, 0) / good.length) : null;
  const some = good.length > 0;
  const figures = some ? ranks(good) : { percentiles: {}, uncertain: [] };
  const max = some ? good[good.length - 1] : null;
  const summary = {
    name, cpu, period_ns: 1000000, stage_of: null, stage: null, unit: 'ns', count: samples.length, missed, early, above: 0,
    min: some ? least : null, mean, stddev: some ? 4200 : null, max, ...figures,
    scheduled: some ? { count: samples.length + missed, mean, max, ...(missed ? ranks(perPeriod(good)) : figures) } : null,
  };
  return {
    summary, cells,
    drawn: {
      name, curve: some ? curve(good) : [], histogram: [...histogram].sort((a, b) => a[0] - b[0]),
      scheduled: missed ? inPeriods(perPeriod(good), bounds) : null,
      heat: options.noHeat ? null : columns(cells), points: options.points ?? points(samples),
    },
  };
}

/** What is late by L counts as L, L-T, ..., L-kT: a period of 1 ms. */
function perPeriod(sorted) {
  const all = sorted.flatMap((ns) => Array.from({ length: Math.floor(ns / 1e6) + 1 }, (_, k) => ns - k * 1e6));
  return all.sort((a, b) => a - b);
}

function inPeriods(sorted, bounds) {
  const histogram = new Map();
  for (const ns of sorted) bump(histogram, binOf(bounds, ns));
  return { curve: curve(sorted), histogram: [...histogram].sort((a, b) => a[0] - b[0]) };
}

/** Whether a period in a hundred was missed. */
function isMaterial(summaries) {
  const sum = (pick) => summaries.reduce((all, one) => all + (pick(one) ?? 0), 0);
  const periods = sum((one) => one.scheduled?.count);
  return periods > 0 && sum((one) => one.missed) * 100 >= periods;
}

/** The largest stay, of the crowd every so-manieth. */
function points(samples, most = 6000) {
  const step = Math.ceil(samples.length / most);
  const late = new Set([...samples].sort((a, b) => b[1] - a[1]).slice(0, 500));
  const kept = samples.filter((sample, i) => i % step === 0 || late.has(sample) || sample[1] < 0);
  return {
    kind: 'sample', of: samples.length,
    thinned: step > 1 ? `of the crowd every ${step}th, of the 500 largest every one` : '',
    t_s: kept.map(([t]) => t), latency_ns: kept.map(([, ns]) => ns),
  };
}

function machine(next, seconds, cpus, busy, loads = []) {
  const step = Math.max(1, seconds / 720);
  const t_s = Array.from({ length: Math.floor(seconds / step) }, (_, i) => (i + 1) * step);
  const about = (value, share = 0.08) => t_s.map(() => Math.round(value * (1 + share * normal(next))));
  return {
    machine: {
      t_s, interrupts_per_s: about(2300 * cpus), softirqs_per_s: about(900 * cpus), context_switches_per_s: about(210000 * cpus * busy),
      cpu_busy: Array.from({ length: cpus }, (_, cpu) => ({ cpu, busy: t_s.map(() => Math.min(1, Math.max(0, busy - (cpu % 5) * 0.05 + 0.03 * normal(next)))) })),
    },
    loads: loads.map(([name, unit, per_s]) => ({ name, unit, t_s, operations_per_s: about(per_s) })),
  };
}

function interrupts(next, cpus, seconds) {
  const row = (kind, source, description, per_cpu_s) => {
    const per_cpu = Array.from({ length: cpus }, (_, cpu) => [cpu, Math.round(per_cpu_s * seconds * (0.8 + 0.4 * next()))]).filter(([, n]) => n > 0);
    return { kind, source, description, per_s: per_cpu.reduce((sum, [, n]) => sum + n, 0) / seconds, per_cpu };
  };
  return [
    row('irq', 'LOC', 'Local timer interrupts', 1800), row('irq', 'RES', 'Rescheduling interrupts', 420),
    row('softirq', 'SCHED', '', 300), row('softirq', 'TIMER', '', 250), row('irq', 'CAL', 'Function call interrupts', 40),
    { ...row('irq', '29', 'PCI-MSIX-0000:00:04.0 virtio1-req.0', 12), per_cpu: [[1 % cpus, Math.round(12 * seconds)]] },
  ];
}

const FACTS = {
  hostname: 'rack3-node7', kernel: '6.12.57+deb13-rt-amd64', kernel_version: '#1 SMP PREEMPT_RT Debian 6.12.57-1 (2025-11-05)', architecture: 'x86_64',
  distribution: 'Debian GNU/Linux 13 (trixie)', kernel_cmdline: 'BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 processor.max_cstate=1',
  preemption: { model: 'rt', source: '/sys/kernel/realtime' }, cpu_model: 'AMD Ryzen Embedded V1605B with Radeon Vega Gfx', microcode: '0x810100b', cpus_online: '0-1', cpus_allowed: '0-1',
  topology: [{ cpu: 0, package: 0, core: 0 }, { cpu: 1, package: 0, core: 1 }], clock_source: 'tsc', virtualisation: null, governors: ['performance: 0-1'],
  idle_states: [{ name: 'POLL', exit_latency_us: 0 }, { name: 'C1', exit_latency_us: 1 }, { name: 'C2', exit_latency_us: 400 }],
  memory_bytes: 8243200000, load_average: [0.42, 0.3, 0.18], rt_throttling_percent: 95, boot_id: '0d6b4f0e-77a4-4e1c-b4a8-7a6d0a2b9c11', tardy_version: '0.1.0',
};

/** Facts of a machine that says nothing of itself. */
const NOTHING_FOUND = { policy: null, cpus: null, memory_lock: null, dma_latency_us: null, shield: null, governor: null, siblings_offline: null, settings: [], threads: [] };
const NO_FACTS = Object.fromEntries(Object.entries(FACTS).map(([name, value]) => [name, Array.isArray(value) && name !== 'load_average' ? [] : name === 'preemption' ? { model: 'unknown', source: '' } : ['hostname', 'kernel', 'kernel_version', 'architecture', 'cpus_online', 'cpus_allowed', 'tardy_version'].includes(name) ? '' : null]));

const CAVEATS = {
  idle: { code: 'deep-idle', effect: 'weakens', text: 'CPU 0 may enter C2, which takes 400 us to leave.', remedy: 'Hold /dev/cpu_dma_latency at 0 (--power hold), or boot with processor.max_cstate=1.', values: { cpu: 0, exit_latency_us: 400 } },
  throttle: { code: 'rt-throttling', effect: 'informs', text: 'Real-time tasks may take 95% of the time only.', remedy: 'sysctl kernel.sched_rt_runtime_us=-1', values: {} },
  drain: { code: 'samples-lost', effect: 'invalidates', text: '1,204 samples were overwritten before they were read: the drain came 6.1 s late.', remedy: 'Give tardy a housekeeping CPU (--cpus without CPU 0), or lengthen the interval.', values: { lost: 1204 } },
};

const UNTRACED = { asked: 'off', found: 'off', why_not: null, missing: [], unmatched: 0, lost_events: 0, blamed: 0, passed_over: 0, threshold_ns: 0, cost: null };
const NO_PEAKS = { damaged: [], strings: [''], stacks: [[]], parts: [], peaks: [] };
const UNSEEN = { stages: [], blame: null, peaks: NO_PEAKS };

function record(name, seconds, summaries, more = {}) {
  return {
    schema_version: 2, id: `20261121-203055-${name.length.toString(16).padStart(4, '0')}`, name, argv: ['tardy', 'run', 'timer', '--load', 'hackbench', '--gate', 'max<1ms'],
    provenance: { origin: 'measured', program: 'tardy', version: '0.1.0' }, status: 'complete', validity: 'valid', caveats: [],
    probe: { name: 'timer', parameters: { interval_ns: 1000000, wake: 'nanosleep', distance_ns: 0, cpus: '0-1', threads_per_cpu: 1, priority_step: 0 } },
    parameters: { duration_ns: Math.round(seconds * NS_PER_S), samples: null, warmup_ns: NS_PER_S, stop_over_ns: null, raw: true, peaks: 100, peak_over_ns: null },
    loads: [{ name: 'hackbench', parameters: { groups: 4, fds: 20 }, proof: { unit: 'messages', operations: Math.round(161000 * seconds), operations_per_s: 161000, context_switches_per_s: 412345.6, cpu_share: 1.93, tasks: 160, tasks_idle: 0 }, ended: 'stopped' }],
    setup: {
      asked: { policy: 'fifo', policy_explicit: false, priority: 90, priority_explicit: false, cpus: '0-1', timer_slack_ns: 1, memory_lock: true, dma_latency_us: 0, shield: false, governor: null, max_idle_latency_us: null, no_smt_sibling: false, housekeeping: null, settings: [] },
      found: { ...NOTHING_FOUND, policy: 'fifo 90', cpus: '0-1', memory_lock: { locked: 'all', bytes: 8388608 }, dma_latency_us: 0, threads: summaries.map((s, index) => ({ series: s.name, tid: 4711 + index, policy: 'fifo', priority: 90, nice: 0, cpus: String(s.cpu), timer_slack_ns: 0 })) },
    },
    trace: { ...UNTRACED, asked: 'auto', why_not: 'no BTF in this kernel' }, facts: FACTS, machine: null, conditions: null, messages: null,
    log_interval_ns: Math.max(1e8, Math.round(seconds * 1e6)), started_at: '2026-11-21T20:30:55.120Z',
    ended_at: new Date(Date.parse('2026-11-21T20:30:55.120Z') + seconds * 1000).toISOString(), duration_ns: Math.round(seconds * NS_PER_S), start_monotonic_ns: 81234567890123, series: summaries, figures: [], ...more,
  };
}

const WAKE_UPS = { kind: 'wake_up', one: 'wake-up', many: 'wake-ups', measure: 'latency' };

/** The words of the program, as far as these pages use them. */
const words = (samples) => ({ samples, causes: CAUSES, series: { rtt: 'round trip' } });

function page(runs, bounds) {
  return {
    page_version: 3, tardy_version: '0.1.0', made_at: '2026-11-21T20:40:00Z', words: words(WAKE_UPS), latency_edges_ns: bounds,
    runs: runs.map((run) => ({ ...UNSEEN, without_host: [], deadlines: [], cpu_use: { profile: null, late: null, own_time: [], damage: '' }, tail: tail(run.record), samples: WAKE_UPS, drawn: WAKE_UPS, between: [], scheduled_first: isMaterial(run.record.series), ...run })), comparisons: [], matrix: null, ab: null, trend: null,
  };
}

/** What the tails say: of each second series that there is a model, of the others why there is none. */
function tail({ duration_ns, series: all }) {
  const observed_s = duration_ns / NS_PER_S;
  const level = (max, period_s, factor) => ({ period_s, level_ns: Math.round(max * factor), low_ns: Math.round(max * factor * 0.8), high_ns: period_s > 86400 ? null : Math.round(max * factor * 1.7), is_extrapolation: period_s > 10 * observed_s });
  const model = (max) => ({ threshold_ns: Math.round(max / 4), clusters: 63, shape: 0.08, shape_low: -0.14, shape_high: 0.31, fit_probability: 0.41, levels: [level(max, 3600, 1.1), level(max, 86400, 1.4), level(max, 31557600, 1.9)] });
  const own = (summary, index) => ({
    name: summary.name, max_ns: summary.max, rarer_than_s: observed_s / 3, pieces: index % 2 ? 'interval_maxima' : 'samples',
    ...(index % 2 ? { model: null, refusal: 'high latencies are periodic, every 100 ms' } : { model: model(summary.max), refusal: null }),
  });
  return { observed_s, series: all.filter((summary) => summary.max > 0 && !summary.stage_of).map(own) };
}

const timeEdges = (seconds, bins) => Array.from({ length: bins }, (_, i) => (i * seconds) / bins);

function merged(parts) {
  const all = new Map();
  for (const { cells } of parts) for (const [key, n] of cells) bump(all, key, n);
  return columns(all);
}

/** A run of some CPUs at 1 kHz. */
function run(name, { seed, seconds, cpus, shape, early = 0, more = {}, headline, loads = [['hackbench', 'messages', 161000]], most_ns = 8e6 }) {
  const next = random(seed);
  const bounds = edges(most_ns);
  const times = timeEdges(seconds, Math.min(1000, seconds * 10));
  const parts = Array.from({ length: cpus }, (_, cpu) => {
    const samples = Array.from({ length: seconds * 1000 }, (_, i) => [i / 1000, wakeUp(next, shape)]);
    for (let i = 0; i < early; i += 1) samples[100 + i * 37] = [samples[100 + i * 37][0], -Math.round(200 + 900 * next())];
    return series(`cpu${cpu}`, cpu, samples, bounds, times);
  });
  return {
    headline, line: `rack3-node7 · Linux 6.12.57 PREEMPT_RT · AMD Ryzen Embedded V1605B · hackbench (4 groups) · ${seconds} s`,
    record: record(name, seconds, parts.map((part) => part.summary), more), command: `tardy run timer --load hackbench --cpus 0-${cpus - 1} --gate 'max<1ms' --name ${name}`,
    time_edges_s: times, heat: merged(parts), series: parts.map((part) => part.drawn), ...machine(next, seconds, cpus, 0.95, loads), interrupts: interrupts(next, cpus, seconds),
  };
}

const RT = { base: 3400, spread: 0.25, shoulder: 0.03, peak: 120000, peakShare: 0.00012 };
const STOCK = { base: 5200, spread: 0.45, shoulder: 0.08, peak: 2400000, peakShare: 0.0006 };

export function plain() {
  return page([run('hackbench-stock', {
    seed: 1, seconds: 20, cpus: 2, shape: STOCK, early: 5,
    headline: '99.9% of wake-ups were at most 64 us late; the worst took 2.4 ms, on CPU 1, 14.2 s after the start.',
    more: { caveats: [CAVEATS.idle, CAVEATS.throttle], validity: 'weakened' },
  })], edges(8e6));
}

export function comparison() {
  return page([
    run('stock', { seed: 2, seconds: 30, cpus: 2, shape: STOCK, headline: '99.9% of wake-ups were at most 66 us late; the worst took 2.4 ms, on CPU 0.', more: { facts: { ...FACTS, kernel: '6.12.57+deb13-amd64', preemption: { model: 'voluntary', source: '/sys/kernel/debug/sched/preempt' } } } }),
    run('rt', { seed: 3, seconds: 20, cpus: 2, shape: RT, headline: '99.9% of wake-ups were at most 42 us late; the worst took 118 us, on CPU 1.', more: { caveats: [CAVEATS.throttle] } }),
  ], edges(8e6));
}

export function four() {
  const of = (name, seed, status, validity, caveats) => run(name, { seed, seconds: 8, cpus: 4, shape: seed % 2 ? RT : STOCK, headline: `A run called ${name}.`, more: { status, validity, caveats } });
  return page([of('first', 4, 'complete', 'valid', []), of('second', 5, 'interrupted', 'weakened', [CAVEATS.idle]),
    of('third', 6, 'stopped_over', 'valid', []), of('fourth with a rather long name that someone typed in a hurry', 7, 'running', 'invalid', [CAVEATS.drain])], edges(8e6));
}

/** A crash without raw samples: interval maxima only, no end, a machine that was not recorded. */
export function crashed() {
  const data = plain();
  const [only] = data.runs;
  Object.assign(only.record, { status: 'crashed', validity: 'invalid', ended_at: null, caveats: [CAVEATS.drain, CAVEATS.idle] });
  only.record.loads = [{ name: 'hackbench', parameters: { groups: 4 }, proof: null, ended: null }];
  for (const series of only.series) series.points = intervalMaxima(series.points, 0.1);
  only.machine = { t_s: [], interrupts_per_s: [], softirqs_per_s: [], context_switches_per_s: [], cpu_busy: [] };
  only.loads = [{ name: 'hackbench', unit: 'messages', t_s: [], operations_per_s: [] }];
  only.interrupts = [];
  return data;
}

function intervalMaxima({ t_s, latency_ns }, width) {
  const best = new Map();
  t_s.forEach((t, i) => {
    const bin = Math.floor(t / width);
    if ((best.get(bin) ?? -Infinity) < latency_ns[i]) best.set(bin, latency_ns[i]);
  });
  return { kind: 'interval_max', of: best.size, thinned: '', t_s: [...best.keys()].map((bin) => (bin + 1) * width), latency_ns: [...best.values()] };
}

/** A day on 64 CPUs at 1 kHz, as histograms: counts are made directly, no sample is. */
export function day() {
  const next = random(8);
  const [seconds, cpus, bins] = [86400, 64, 1000];
  const bounds = edges(8e6);
  const times = timeEdges(seconds, bins);
  const all = new Map();
  const parts = Array.from({ length: cpus }, (_, cpu) => daySeries(cpu, { next, seconds, bins, bounds, all }));
  return page([{
    headline: '99.999% of wake-ups were at most 48 us late; the worst of 5.5 billion took 3.1 ms, on CPU 41, 11 h 20 min after the start.',
    line: 'rack3-node7 · Linux 6.12.57 PREEMPT_RT · 64 CPUs · hackbench (64 groups) and disk · 24 h',
    record: record('day-64', seconds, parts.map((part) => part.summary), { facts: { ...FACTS, cpus_online: '0-63', cpus_allowed: '0-63', topology: Array.from({ length: 64 }, (_, cpu) => ({ cpu, package: cpu >> 5, core: cpu & 31 })) } }),
    command: 'tardy run timer --duration 24h --load hackbench:groups=64 --load disk', time_edges_s: times, heat: columns(all), series: parts.map((part) => part.drawn),
    ...machine(next, seconds, cpus, 0.8, [['hackbench', 'messages', 4100000], ['disk', 'operations', 5200]]), interrupts: interrupts(next, cpus, seconds),
  }], bounds);
}

function daySeries(cpu, { next, seconds, bins, bounds, all }) {
  const histogram = new Map();
  const points = { kind: 'interval_max', of: bins, thinned: '', t_s: [], latency_ns: [] };
  const perBin = (seconds / bins) * 1000;
  const base = 3200 * (1 + 0.15 * normal(next));
  for (let t = 0; t < bins; t += 1) {
    let max = 0;
    for (let k = -10; k <= 10; k += 1) {
      const ns = base * Math.exp(k * 0.08);
      const count = Math.round(perBin * 0.032 * Math.exp(-(k * k) / 22) * 1.2) + 1;
      max = Math.max(max, ns);
      bump(histogram, binOf(bounds, ns), count);
      bump(all, t * 4096 + binOf(bounds, ns), count);
    }
    for (let k = 0; k < 6; k += 1) {
      const ns = base * (2 + 11 * next() ** 2) * (next() < 0.002 ? 1 + 60 * next() ** 3 : 1);
      max = Math.max(max, ns);
      bump(histogram, binOf(bounds, ns));
      bump(all, t * 4096 + binOf(bounds, ns));
    }
    points.t_s.push(((t + 1) * seconds) / bins);
    points.latency_ns.push(Math.round(max));
  }
  return fromHistogram(`cpu${cpu}`, cpu, histogram, points, bounds);
}

/** A series known by its histogram alone. */
function fromHistogram(name, cpu, histogram, points, bounds) {
  const bins = [...histogram].sort((a, b) => a[0] - b[0]);
  const total = bins.reduce((sum, [, n]) => sum + n, 0);
  const max = points.latency_ns.reduce((a, b) => Math.max(a, b), 0);
  const at = (p) => {
    let sum = 0;
    for (const [bin, n] of bins) {
      sum += n;
      if (sum >= (p / 100) * total) return Math.min(max, bounds[bin + 1] - 1);
    }
    return max;
  };
  const line = [];
  for (let n = 0; 10 ** n <= total; n += 0.1) line.push([100 * (1 - 10 ** -n), at(100 * (1 - 10 ** -n))]);
  line.push([100, max]);
  const percentiles = Object.fromEntries(NAMES.map(([key, p]) => [key, at(p)]));
  const figures = { mean: 4100, max, percentiles, uncertain: [] };
  return {
    summary: { name, cpu, period_ns: 1000000, stage_of: null, stage: null, unit: 'ns', count: total, missed: 0, early: 0, above: 0, min: bounds[bins[0][0]], stddev: 900, ...figures, scheduled: { count: total, ...figures } },
    drawn: { name, curve: line, histogram: bins, scheduled: null, heat: null, points },
  };
}

/** Every text of a run tries to become markup. */
export function hostile() {
  return spoiled(comparison());
}

function spoiled(data) {
  const keep = new Set(['page_version', 'kind', 'status', 'validity', 'effect', 'started_at', 'ended_at', 'made_at', 'origin', 'cause', 'basis', 'asked', 'found', 'locked', 'stage']);
  const spoil = (value, key) => {
    if (typeof value === 'string') return keep.has(key) ? value : `${value}${HOSTILE}`;
    if (Array.isArray(value)) return value.map((item) => spoil(item, key));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [(key === 'parameters' && !('warmup_ns' in value)) ? name + HOSTILE : name, key === 'percentiles' ? inner : spoil(inner, name === 'uncertain' ? 'kind' : name)]));
  };
  return { ...data, runs: data.runs.map((one) => spoil(one, '')) };
}

/** No samples, and nothing where a record may have that. */
export function empty() {
  const none = series('cpu0', 0, [], edges(1e6), [0, 1]);
  return page([{
    headline: '', line: '', record: { ...record('empty', 0, [none.summary]), started_at: '', ended_at: null, facts: NO_FACTS, setup: { asked: null, found: NOTHING_FOUND }, loads: [], status: 'crashed', validity: 'invalid' }, command: '',
    time_edges_s: [], heat: { time: [], latency: [], count: [] }, series: [none.drawn], machine: { t_s: [], interrupts_per_s: [], softirqs_per_s: [], context_switches_per_s: [], cpu_busy: [] }, loads: [], interrupts: [],
  }], edges(1e6));
}

/** All samples alike, all of them early, and data of a later version. */
export function odd() {
  const bounds = edges(1e6);
  const times = timeEdges(1, 10);
  const alike = series('alike', 0, Array.from({ length: 100 }, (_, i) => [i / 100, 5000]), bounds, times);
  const early = series('early', 1, Array.from({ length: 100 }, (_, i) => [i / 100, -300 - i]), bounds, times);
  Object.assign(early.summary, { min: -399, mean: -350, max: -300 });
  const one = series('one', null, [[0.5, 40000]], bounds, times);
  const parts = [alike, early, one];
  for (const { summary } of parts) Object.assign(summary, { period_ns: null, missed: null, scheduled: null });
  return { ...page([{
    headline: 'Odd series.', line: '', record: record('odd', 1, parts.map((part) => part.summary)), command: 'tardy run', time_edges_s: times,
    heat: merged(parts), series: parts.map((part) => part.drawn), ...machine(random(9), 1, 2, 0), interrupts: [],
  }], bounds), page_version: 99 };
}

/** 256 series of two runs. */
export function many() {
  const make = (name, seed) => {
    const next = random(seed);
    const bounds = edges(8e6);
    const times = timeEdges(2, 20);
    const parts = Array.from({ length: 256 }, (_, cpu) => series(`cpu${cpu}`, cpu, Array.from({ length: 200 }, (_, i) => [i / 100, wakeUp(next, STOCK)]), bounds, times, { noHeat: true }));
    return {
      headline: `256 series: ${name}.`, line: '', record: record(name, 2, parts.map((part) => part.summary)), command: 'tardy run', time_edges_s: times,
      heat: merged(parts), series: parts.map((part) => part.drawn), ...machine(next, 2, 256, 0.4), interrupts: interrupts(next, 256, 2),
    };
  };
  return page([make('before', 10), make('after', 11)], edges(8e6));
}

/** A traced run with its 100 worst wake-ups, and one beside it that could not be traced. */
export function causes() {
  const data = comparison();
  const seen = traced(random(12), data.runs[0], 20);
  const blind = { ...data.runs[1], record: { ...data.runs[1].record, trace: { ...UNTRACED, asked: 'auto', why_not: 'this kernel has no BTF.' } }, peaks: { damaged: ['peaks.jsonl: line 3 is damaged'], strings: [''], stacks: [[]], parts: [], peaks: [] } };
  return { ...data, runs: [profiled(seen), blind] };
}

/** One traced run with reasons to doubt it: what a reader opens most. */
function alone() {
  const data = plain();
  return { ...data, runs: [traced(random(15), data.runs[0], 20)] };
}

/** The same, and what the CPUs did meanwhile. */
function used() {
  const data = alone();
  return { ...data, runs: data.runs.map((run) => profiled(run)) };
}

/** A run that came so late that it missed more than half of its periods, beside one that did not. */
function stalled() {
  const late = { base: 5200, spread: 0.45, shoulder: 0.08, peak: 60e6, peakShare: 0.05 };
  return page([
    run('other', { most_ns: 70e6, seed: 16, seconds: 20, cpus: 2, shape: late, headline: '99.9% of scheduled periods had their wake-up within 56 ms; the worst was 60 ms late, on CPU 1.' }),
    run('fifo', { seed: 17, seconds: 20, cpus: 2, shape: RT, headline: '99.9% of wake-ups were at most 42 us late; the worst was 118 us late, on CPU 0.' }),
  ], edges(70e6));
}

/** Both runs traced, and every text of them wants to be markup. */
export function hostileCauses() {
  const data = comparison();
  return spoiled({ ...data, runs: data.runs.map((one, index) => profiled(traced(random(13 + index), one, 20))) });
}

/** Round trips under two policies; and packets to another machine. */
function trips() {
  const data = comparison();
  return { ...data, words: words(ROUND_TRIPS), runs: pingpong(data.runs) };
}

function packets() {
  const data = plain();
  return { ...data, words: words(PACKETS), runs: data.runs.map(stream) };
}

/** A program of 500 threads, one of which has a hostile name. */
function attached() {
  const data = plain();
  return { ...data, runs: data.runs.map((run) => attachedTo(run, 500, HOSTILE)) };
}

/** Two runs whose results are no latencies; one figure of the first has no value. */
function measures() {
  const data = comparison();
  const figure = (name, unit, values) => {
    const mean = values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
    return { name, unit, mean, low: values.length > 1 ? mean * 0.98 : null, high: values.length > 1 ? mean * 1.02 : null, values };
  };
  const probe = { name: 'bandwidth', parameters: { figures: ['pipe/64KiB', 'fork', 'exec', HOSTILE], cpu: 0, far_cpu: 1, directory: null } };
  const of = (run, scale) => ({
    ...run, headline: 'pipe/64KiB 5050 MB/s, fork 81.2 us.', series: [], stages: [], scheduled_first: false, blame: null, peaks: NO_PEAKS,
    heat: { time: [], latency: [], count: [] },
    record: { ...run.record, probe, series: [], figures: [
      figure('pipe/64KiB', 'MB/s', [5000 * scale, 5100 * scale, 5050 * scale]), figure('fork', 'us', [81.2 / scale]),
      figure('exec', 'us', scale === 1 ? [] : [0.0123, 12345.6]), figure(HOSTILE, HOSTILE, [1, 2])] },
  });
  return { ...data, latency_edges_ns: [1, 10], runs: data.runs.map((run, index) => of(run, 1 / (1 + index))) };
}

/** Kernels of the lab beside each other: one that failed, one load that nobody measured, a hostile name. */
function matrix() {
  const kernels = ['standard', 'standard+preempt=full', 'rt'].map((name, index) => ({
    name, release: `6.1.0-${index}-amd64`, preemption: ['voluntary', 'full', 'rt'][index], hash: `${index}`.repeat(64), mode: 'deterministic', is_control: false,
  }));
  const row = (name, load, worst, verdicts) => ({ name, load, verdicts, cells: worst.map((ns, index) => (ns === null ? null : matrixCell(100 * index + name.length, ns))) });
  const against = (name, text) => `${name} against standard: ${text}`;
  return {
    page_version: 3, tardy_version: '0.1.0', made_at: '2026-01-01T00:00:00Z', words: words(WAKE_UPS), latency_edges_ns: [], runs: [], comparisons: [], ab: null, trend: null,
    matrix: {
      kind: 'lab', state: '', runs: [], suite: null, title: 'founding', finding: 'Against standard, p99 of rt is lower in 4 of 5 loads, inconclusive in 1.', headline: 'founding: 3 kernels, 5 loads, 60 runs',
      meanings: ['Times are executed instructions times 2 ns on one emulated CPU: lengths of paths, not times of a machine.'],
      remarks: ['Made with different versions of QEMU: 7.2.0, 9.0.0.'], kernels,
      loads: [
        row('kill(0) to 300 processes', 'signals (processes=300)', [1.6e6, 1.5e6, 16000], [against('standard+preempt=full', 'no difference beyond that of phase offsets'), against('rt', 'p99 at least 98.1 times lower, p99.9 at least 102 times lower, max at least 99.5 times lower')]),
        row('ext4 on a RAM disk', 'ext4', [441000, 477000, 10800], [against('rt', 'not judged: 3 of 5 phase offsets')]),
        row('idle', 'idle', [17100, 12000, 9300], []),
        row('console messages', 'printk', [19.7e6, null, 29800], []),
        row(HOSTILE, HOSTILE, [null, null, null], [HOSTILE]),
      ],
      config: { kernels: ['standard', 'rt'], others: 41, rows: [{ option: 'CONFIG_PREEMPT_RT', values: [null, 'y'] }, { option: 'CONFIG_HZ', values: ['250', HOSTILE] }] },
      failed: [{ load: 'console messages', kernel: 'standard+preempt=full', seed: 0, why: `the kernel panicked; its console's last lines:\n${HOSTILE}` }],
      undone: 2,
    },
  };
}

/** A plan of this machine: one cell failed, one is not measured yet, one was measured in part; gates, a hostile name. */
function plan() {
  const columns = ['other', 'fifo 90'];
  const rows = ['idle', 'hackbench (groups=4), shielded', HOSTILE];
  const figure = (name, value_ns, width) => ({ name, value_ns, low_ns: name === 'max' ? null : Math.round(value_ns * (1 - width)), high_ns: width > 0.3 || name === 'max' ? null : Math.round(value_ns * (1 + width)), uncertain: width > 0.3 });
  const measured = (base, repeat) => ({
    status: 'measured', validity: ['valid', 'weakened', 'invalid'][repeat - 1], samples: 60000, missed: base > 1e5 ? 1234 : 0, error: null,
    figures: [figure('50', base, 0.01), figure('99', base * 4, 0.05), figure('99.9', base * 9, repeat === 2 ? 0.5 : 0.2), figure('max', base * 20, 0)],
    gates: [{ gate: 'p99.9<=80us', series: 'cpu0', verdict: base < 1e4 ? 'pass' : 'fail', reason: 'its interval lies above the limit' }, { gate: 'missed=0', series: null, verdict: 'inconclusive', reason: HOSTILE }],
  });
  const none = (status, error) => ({ status, validity: null, samples: 0, missed: null, figures: [], gates: [], error, page: null, path: null });
  const runs = [1, 2, 3].flatMap((repeat) => rows.flatMap((row, at) => columns.map((column, side) => {
    const path = `cells/000${repeat * 2 + at + side}`;
    const own = at === 2 ? none(side ? 'failed' : 'pending', side ? `error: ${HOSTILE}` : null)
      : at === 1 && side === 0 && repeat === 3 ? none('pending', null)
        : { ...measured(at === 1 && side === 0 ? 250000 : 5200, repeat), path, page: repeat === 3 ? null : `plan.pages/000${repeat * 2 + at + side}.html` };
    return { row, column, repeat, ...own };
  })));
  runs[0].page = 'javascript:alert(1)';
  const data = matrix();
  const cells = (at) => columns.map((_, side) => (at === 2 ? null : { ...matrixCell(50 * at + side, at === 1 && side === 0 ? 1.6e6 : 16000), phases: 3 }));
  return { ...data, matrix: {
    ...data.matrix, kind: 'plan', title: 'shield', finding: '2 of 18 cells fail their gates: hackbench, other, 2 of 3 repeats; p99<=100us at hackbench, other, cpu1: at least 812 us; 4 of 18 cells not measured yet.', headline: 'plan-shield-20260101', state: 'ended early, 13 of 18 cells measured', undone: 4, runs,
    meanings: ['Each cell is a combination of the plan on this machine.'], remarks: ['A remark.'], config: null,
    kernels: columns.map((name) => ({ name, release: '', preemption: '', hash: '', mode: '', is_control: false })),
    loads: rows.map((name, at) => ({ name, load: name, verdicts: [], cells: cells(at) })),
    failed: runs.filter((run) => run.status === 'failed').map((run) => ({ load: run.row, kernel: run.column, seed: run.repeat, why: run.error })),
  } };
}

/** Two suites beside each other: latencies, other figures that are judged, some that are not, a part of which nothing was measured, a hostile name. */
function suite() {
  const data = plan();
  const parts = ['timer', 'bandwidth', 'irq', HOSTILE];
  const rows = ['timer: idle', 'timer: hackbench', 'bandwidth', 'irq', `${HOSTILE}: ${HOSTILE}`];
  const columns = ['six one', 'six twelve'];
  const range = (median) => ({ median, low: median * 0.9, high: median * 1.1, values: [median * 0.9, median, median * 1.1] });
  const change = (ratio, verdict) => ({ ratio, low: ratio * 0.9, high: ratio * 1.1, verdict, needed: verdict === 'inconclusive' ? 40 : null });
  const figure = (name, unit, cells, own) => ({ name, unit, row: 'bandwidth', cells, change: own });
  const of = (row) => (row.startsWith('timer') ? [0, 1].map((side) => ({ ...matrixCell(50 + side + row.length, 16000), phases: 3 })) : [null, null]);
  const one = (row, column, repeat, page) => ({ ...data.matrix.runs[2], row, column, repeat, page, path: 'cells/0001', status: 'measured', gates: [], missed: 0 });
  const finding = (severity, status) => ({ code: 'preemption', status, severity, evidence: HOSTILE, remedy: 'Boot with `preempt=full`.' });
  const planOf = (name, findings) => ({ name, machine: 'CPU, Linux 6.1 (preemption full)', answers: ['12 of 12 runs measured: 12 valid, 0 weakened, 0 invalid.', HOSTILE], findings });
  return { ...data, matrix: {
    ...data.matrix, finding: 'Against quick, later is worse in 1 of 4 rows (timer), the same in 3.', headline: columns.join(' and '), state: 'complete', undone: 0, failed: [],
    kernels: columns.map((name) => ({ name, release: '', preemption: '', hash: '', mode: '', is_control: false })),
    loads: rows.map((name) => ({ name, load: '', verdicts: name.startsWith('timer') ? [`six twelve: worse: ${HOSTILE}`] : [], cells: of(name) })),
    runs: ['timer: idle', 'bandwidth'].flatMap((row) => columns.flatMap((column, side) => [1, 2, 3].map((repeat) => one(row, column, repeat, `suite.pages/${side + 1}-000${repeat}.html`)))),
    suite: {
      plans: [planOf(columns[0], [finding('serious', 'costs'), finding(null, 'unknown')]), planOf(columns[1], [])],
      parts: parts.map((name, at) => ({ name, rows: rows.filter((row) => row === name || row.startsWith(`${name}: `)), figures: at === 1 ? [
        figure('pipe/64KiB', 'MB/s', [range(5000), range(10000)], change(2, 'better')), figure('fork', 'us', [range(80), range(81)], change(1.01, 'inconclusive')),
        figure(HOSTILE, HOSTILE, [null, range(0.01)], null)] : [] })),
      causes: [{ cause: 'nonpreemptible', name: 'kill_something_info', share: 0.914 }, { cause: 'unexplained', name: '', share: 0.06 }],
    },
  } };
}

/** A comparison in blocks: worse at one figure, undecided at another, one look that did not come, a block that cannot be read. */
function ab() {
  const row = (figure, ratio, verdict) => ({ series: null, figure, unit: 'ns', above_ns: null, lower_is_better: true, a: 55200, b: 55200 * ratio, ratio, low: ratio * 0.95, high: ratio * 1.04, margin: 0.05, floor: 0.02, pairs: 16, pairs_needed: verdict === 'inconclusive' ? 120 : null, verdict });
  const shift = ['50', '90', '99', '99.9'].map((percentile, at) => ({ series: null, percentile, a_ns: 55200, b_ns: 55200 * (1 + at / 10), ratio: 1 + at / 10, low: 0.9 + at / 10, high: 1.2 + at / 10, basis: 'runs' }));
  const names = ['--policy other', `--policy fifo, after \`${HOSTILE}\``];
  const columns = names.map((name, at) => `${'AB'[at]}: ${name}`);
  const data = plan();
  const [measured] = data.matrix.runs.slice(2);
  const block = (at) => {
    const side = [0, 1, 0, 1, 1, 0, 1, 0][at];
    return { ...measured, row: at < 2 ? 'trial' : 'compared', column: columns[side], repeat: at < 2 ? 1 : at >> 1, path: `blocks/000${at + 1}-${'ab'[side]}`, page: at < 6 ? `ab.pages/000${at + 1}-${'ab'[side]}.html` : null, gates: [], missed: 0 };
  };
  const blocks = Array.from({ length: 8 }, (_, at) => block(at));
  Object.assign(blocks[7], { status: 'measured', validity: null, samples: 0, missed: null, figures: [], error: HOSTILE });
  const caveat = (code, effect) => ({ code, effect, blocks_a: 1, blocks_b: 0, text: `It was late: ${HOSTILE}`, remedy: 'Be `early`.' });
  return { ...data,
    comparisons: [{ a: [], b: [], a_name: names[0], b_name: names[1], verdict: 'worse', judged: true, sentence: 'worse: p50 +19.6%; inconclusive: p99 (-4.1% to +5.0%)', cause: 'Of the difference above p99, 35% are softirq: NET_RX.',
      figures: [row('p50', 1.196, 'worse'), row('p99', 1.01, 'inconclusive')], described: [{ ...row('max', 1.4, 'inconclusive'), low: null, high: null }], shift, shift_meaning: 'how much the runs of a side differ among themselves',
      facts: [{ fact: 'policy', a: ['other'], b: ['fifo 90', HOSTILE] }], causes: [{ band: 'p99', a_ns: 60000, b_ns: 90000, blamed_a: 0.9, blamed_b: 0.8, causes: [{ cause: 'softirq', name: 'NET_RX', a_ns: 10000, b_ns: 30000 }] }], remarks: [] }],
    ab: { status: 'interrupted', a: { options: names[0], prepare: null }, b: { options: '--policy fifo', prepare: HOSTILE }, how: ['6 blocks of 1 s in 1 min, of 80 planned; order by --seed 7.', 'p99: about 120 pairs would decide it, if they scatter as these do: --budget 11m.'],
      looks: [{ pairs: 8, verdict: 'inconclusive' }, { pairs: 16, verdict: 'worse' }, { pairs: 40, verdict: null }], caveats: [caveat('late', 'weakens'), caveat('vm', 'informs')], error: HOSTILE },
    matrix: { ...data.matrix, kind: 'ab', title: 'x', finding: '', headline: 'x', state: '', meanings: [], remarks: ['A remark.'], failed: [], undone: 0, runs: blocks,
      kernels: columns.map((name) => ({ name, release: '', preemption: '', hash: '', mode: '', is_control: false })),
      loads: [{ name: 'compared', load: 'hackbench (groups=4)', verdicts: [], cells: [0, 1].map((side) => ({ ...matrixCell(70 + side, side ? 30000 : 16000), phases: 3 })) }] },
  };
}

function matrixCell(seed, worst) {
  const next = random(seed + 1);
  const sorted = Array.from({ length: 5000 }, () => wakeUp(next, { base: 8000, spread: 0.05, shoulder: 0, peak: worst, peakShare: worst > 50000 ? 0.02 : 0.001 })).sort((a, b) => a - b);
  sorted[sorted.length - 1] = Math.max(worst, sorted[sorted.length - 1]);
  const { percentiles, uncertain } = ranks(sorted);
  const figure = (name) => ({ name, low: Math.round(percentiles[name] * 0.97), high: percentiles[name], median: Math.round(percentiles[name] * 0.98), median_low: Math.round(percentiles[name] * 0.97), median_high: percentiles[name], uncertain: uncertain.includes(name) });
  const max = { name: 'max', low: Math.round(sorted[sorted.length - 1] * 0.9), high: sorted[sorted.length - 1], median: Math.round(sorted[sorted.length - 1] * 0.95), median_low: null, median_high: null, uncertain: false };
  return { phases: 5, samples: sorted.length, figures: [...['50', '99', '99.9'].map(figure), max], curve: curve(sorted), caveats: seed === 3 ? ['A caveat of a run.'] : [],
    causes: worst > 400000 ? [{ cause: 'nonpreemptible', name: 'kill_something_info', share: 0.914 }, { cause: 'unexplained', name: '', share: 0.06 }] : [] };
}

export const FIXTURES = { plain, comparison, four, crashed, day, hostile, empty, odd, many, matrix, plan, suite, ab, causes, alone, used, stalled, hostileCauses, trips, packets, measures, attached, trend: () => trend(matrix(), HOSTILE) };
