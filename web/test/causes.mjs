// Synthetic causes: the stages, the blame and the peaks of a traced run, for the fixture pages.

const LANES = { host: 0, hardirq: 1, softirq: 2, thread: 3, others: 4, idle: 5 };
const KINDS = [
  ['irqs_off', 'console_unlock', ['console_unlock+0x1c5', 'vprintk_emit+0x2a1', '_printk+0x5e', 'do_syscall_64+0x82'], 'others'],
  ['nonpreemptible', 'kill_something_info', ['_raw_read_lock+0x27', 'kill_something_info+0x91', 'do_syscall_64+0x82'], 'others'],
  ['softirq', 'NET_RX', [], 'softirq'],
  ['host', 'steal (probable)', [], 'host'],
  ['thread', 'hog', [], 'others'],
  ['hardirq', '29 virtio1-req.0', [], 'hardirq'],
  ['unexplained', '', [], 'others'],
];

/** What a page calls them. */
export const CAUSES = {
  irqs_off: 'interrupts off', nonpreemptible: 'non-preemptible', softirq: 'softirq', host: 'host', thread: 'thread', hardirq: 'hard interrupt',
  unexplained: 'unexplained',
};

class Texts {
  strings = [''];
  stacks = [[]];

  text(text) {
    if (!this.strings.includes(text)) this.strings.push(text);
    return this.strings.indexOf(text);
  }

  stack(names) {
    if (names.length === 0) return 0;
    this.stacks.push(names.map((name) => this.text(name)));
    return this.stacks.length - 1;
  }
}

/** A timeline of `entries` entries around one long delay. */
function timeline(texts, [, name, stack, lane], latency, cpu, entries, moved) {
  const rows = [];
  const add = (at, ns, where, what, own, more = {}) => rows.push({ at, ns, where, what, own, cpu, ...more });
  const before = entries - 6;
  for (let i = before; i > 0; i -= 1) add(-i * 900, 880, i % 7 ? 'others' : 'softirq', i % 7 ? 'task' : 'softirq', i % 7 ? `hackbench-${i % 5}` : 'SCHED', { pid: 9000 + (i % 5), priority: 'nice 0' });
  add(0, null, 'thread', 'expiry', 'expiry');
  add(100, latency - 3000, lane, lane === 'softirq' ? 'softirq' : 'task', name, { pid: lane === 'others' ? 4711 : 0, priority: lane === 'others' ? 'fifo 95' : '', detail: 'ran on', stack });
  if (stack.length) add(latency - 2900, null, 'others', 'stack', stack[0], { pid: 4711, stack });
  add(latency - 2800, 900, 'hardirq', 'timer', 'local_timer');
  add(latency - 2300, null, 'thread', 'waking', 'tardy', { detail: 'by local_timer' });
  if (moved) add(latency - 2000, 1500, 'idle', 'idle', 'C2', { cpu: cpu + 1 });
  add(latency - 300, 600, 'thread', 'woke', 'tardy', { pid: 77, priority: 'fifo 90' });
  const column = (pick) => rows.map(pick);
  return {
    at: column((m) => m.at), ns: column((m) => m.ns), cpu: column((m) => m.cpu), lane: column((m) => LANES[m.where]),
    what: column((m) => texts.text(m.what)), name: column((m) => texts.text(m.own)), pid: column((m) => m.pid ?? 0),
    priority: column((m) => texts.text(m.priority ?? '')), detail: column((m) => texts.text(m.detail ?? '')), stack: column((m) => texts.stack(m.stack ?? [])),
  };
}

function basis(cause) {
  if (cause === 'unexplained') return { basis: 'none', evidence: '' };
  const inferred = ['host', 'hardware', 'idle_exit', 'throttled'].includes(cause);
  return { basis: inferred ? 'inferred' : 'measured', evidence: inferred ? 'a made-up sign' : '' };
}

function peaks(next, cpus, seconds, worst) {
  const texts = new Texts();
  const parts = [];
  const part = (ns, own) => [parts.push(own) - 1, ns];
  const all = Array.from({ length: 100 }, (_, i) => {
    const latency_ns = Math.round(worst * (1 - i / 130));
    const cpu = Math.floor(next() * cpus);
    const kind = KINDS[Math.floor(next() ** 2 * KINDS.length)];
    const rest = 2900;
    return {
      // Some are of a program that does not say when.
      ...(i % 10 === 7 ? { t_s: null, at_ns: null } : { t_s: Number((seconds * next()).toFixed(6)), at_ns: 81234567890123 + i }),
      series: `cpu${cpu}`, cpu, latency_ns,
      ways: [],
      stages: i % 9 === 4 ? null : { irq: latency_ns - 5000, softirq: i % 5 ? 0 : 1500, handler: i % 5 ? 2000 : 500, dispatch: 2200, user: 800 },
      blame: [
        part(latency_ns - rest, { cause: kind[0], name: kind[1], task: kind[3] === 'others' ? 'logger/4711' : '', ...basis(kind[0]), stack: texts.stack(kind[2]) }),
        part(rest, { cause: 'nonpreemptible', name: 'the wake-up itself', task: '', ...basis('nonpreemptible'), stack: 0 }),
      ],
      timeline: timeline(texts, kind, latency_ns, cpu, i % 10 === 3 ? 300 : 40, i % 6 === 2), left_out: i % 10 === 3 ? 57 : 0,
    };
  });
  return { damaged: [], strings: texts.strings, stacks: texts.stacks, parts, peaks: all };
}

function bands(worst, count) {
  return [['p99', 100, 0.02], ['p99.9', 1000, 0.2], ['p99.99', 10000, 0.5]].map(([name, share, from], band) => {
    const wakeups = Math.round(count / share);
    const ns = Math.round(wakeups * worst * 0.6);
    const causes = KINDS.map(([cause, own], i) => ({ cause, name: own, ns: Math.round(ns * (0.98 - 0.1 * band) * [0.5, 0.2, 0.12, 0.08, 0.05, 0.03, 0.02][(i + band) % 7]) }));
    const whole = causes.reduce((sum, cause) => sum + cause.ns, 0);
    causes.forEach((cause) => { Object.assign(cause, { share: cause.ns / whole, inferred: basis(cause.cause).basis === 'inferred' ? 1 : 0, series: [{ series: 'cpu0', ns: cause.ns }] }); });
    causes.sort((a, b) => b.ns - a.ns);
    return { name, from: Math.round(worst * from), to: worst, wakeups, ns, blamed_share: 0.98 - 0.1 * band, causes };
  });
}

/** Makes a run of the fixtures one that was traced. */
export function traced(next, run, seconds) {
  const { record } = run;
  const worst = Math.max(...record.series.map((series) => series.max));
  const stages = record.series.flatMap((series) => ['irq', 'handler', 'dispatch', 'user'].map((stage, i) => ({
    ...series, name: `${series.name}/${stage}`, period_ns: null, stage_of: series.name, stage, missed: null, scheduled: null, early: 0, min: 120 * (i + 1), max: Math.round(series.max / (i + 1)),
    percentiles: Object.fromEntries(Object.entries(series.percentiles).map(([name, ns]) => [name, Math.round(ns / (i + 2))])),
  })));
  const count = record.series.reduce((sum, series) => sum + series.count, 0);
  return {
    ...run,
    record: { ...record, series: [...record.series, ...stages], trace: { ...record.trace, found: 'peaks', why_not: null } },
    stages: stages.map((stage) => ({ name: stage.name, histogram: run.series[0].histogram.map(([bin, n]) => [Math.max(0, bin - 6), n]) })),
    blame: { threshold_ns: 40000, lowest_threshold_ns: 30000, blamed: Math.round(count / 100), passed_over: 12, unmatched: 3, lost_events: 0, bands: bands(worst, count), responses: null },
    peaks: peaks(next, record.series.length, seconds, worst),
  };
}
