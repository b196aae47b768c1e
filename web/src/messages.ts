// What came of messages: flow by flow, end by end, all runs in one table each; and how the clocks of
// two machines compare. Latencies are elsewhere, as those of every probe.

import type { Context } from './context';
import { h } from './dom';
import type { EndRecord, FlowRecord, PageRun } from './model';
import { runColumn } from './run-column';
import { Table, type Column } from './table';
import { capital, count, latency, rate } from './units';
import { seriesTitle } from './vocabulary';

interface Of<Item> {
  run: PageRun;
  index: number;
  item: Item;
}

/** The displayed name of an endpoint, which records call `near`, `far`, `far2`. */
function endpoint(name: string): string {
  return name.replace('near', 'local').replace('far', 'remote');
}

/** The section; null where no run exchanged messages. */
export function messageSection(context: Context): HTMLElement | null {
  const { runs } = context.page;
  if (runs.every((run) => !run.record.messages)) return null;
  const of = <Item>(pick: (run: PageRun) => Item[]): Of<Item>[] =>
    runs.flatMap((run, index) => pick(run).map((item) => ({ run, index, item })));
  const several = runs.length > 1;
  const flows = of((run) => run.record.messages?.flows ?? []);
  const ends = of((run) => run.record.messages?.ends ?? []);
  return h('section', { class: 'messages', 'aria-label': 'the messages' },
    part('Messages', 'messages', flows, flowColumns(flows), runs),
    part('Endpoints', 'ends', ends, endColumns(ends), runs),
    ...runs.map((run) => clockNote(run, several)));
}

function part<Item>(title: string, name: string, rows: Of<Item>[], columns: Column<Of<Item>>[], runs: PageRun[]): HTMLElement {
  const [first, ...others] = columns;
  const table = new Table<Of<Item>>({ name, rows, columns: runs.length > 1 ? [first, runColumn(runs, (row) => row.index), ...others] : columns });
  return h('div', {}, h('div', { class: 'bar-line' }, h('h2', {}, title), h('span', { class: 'tools' }, table.copy)), table.element);
}

function flowColumns(flows: Of<FlowRecord>[]): Column<Of<FlowRecord>>[] {
  const whole = (title: string, raw: string, hint: string, pick: (flow: FlowRecord) => number | null): Column<Of<FlowRecord>> => ({
    title, raw, hint, value: ({ item }) => pick(item),
    cell: ({ item }) => { const n = pick(item); return n === null ? '–' : count(n); },
  });
  const perSecond = (title: string, raw: string, hint: string, pick: (flow: FlowRecord) => number | null): Column<Of<FlowRecord>> => ({
    title, raw, hint, value: ({ item }) => pick(item), cell: ({ item }) => { const n = pick(item); return n === null ? '–' : rate(n); },
  });
  const trips = flows.every(({ run }) => run.samples.kind === 'round_trip');
  const some = (pick: (flow: FlowRecord) => number | null): boolean => flows.some(({ item }) => (pick(item) ?? 0) > 0);
  const known = (pick: (flow: FlowRecord) => number | null): boolean => flows.some(({ item }) => pick(item) !== null);
  const over = flows.map(({ item }) => item.late_over_ns).find((ns) => ns !== null);
  const found: (Column<Of<FlowRecord>> | null)[] = [
    { title: 'series', raw: 'series', left: true, value: ({ item }) => item.series, cell: ({ item }) => seriesTitle(item.series) },
    whole('sent', 'sent', 'In the measured time', (flow) => flow.sent),
    whole(trips ? 'answered' : 'received', 'received', 'Each counted once', (flow) => flow.received),
    whole('lost', 'lost', 'Sent, and never came', (flow) => flow.lost),
    known((flow) => flow.late) ? whole('late', 'late', `Came later than ${latency(over)} after their time`, (flow) => flow.late) : null,
    // What cannot happen to a ping-pong is shown only if it did.
    !trips || some((flow) => flow.duplicated) ? whole('duplicated', 'duplicated', 'Arrived more than once', (flow) => flow.duplicated) : null,
    !trips || some((flow) => flow.reordered) ? whole('reordered', 'reordered', 'Came after a later one', (flow) => flow.reordered) : null,
    !trips || some((flow) => flow.foreign) ? whole('foreign', 'foreign', 'Received, but not of this run: from other senders, or damaged', (flow) => flow.foreign) : null,
    known((flow) => flow.wanted_per_s) ? perSecond('asked/s', 'wanted_per_s', 'Per second, as asked for', (flow) => flow.wanted_per_s) : null,
    known((flow) => flow.achieved_per_s) ? perSecond('sent/s', 'achieved_per_s', 'Per second, as sent', (flow) => flow.achieved_per_s) : null,
  ];
  return found.filter((column): column is Column<Of<FlowRecord>> => column !== null);
}

function endColumns(ends: Of<EndRecord>[]): Column<Of<EndRecord>>[] {
  const words = (title: string, pick: (end: EndRecord) => string | null, hint?: string): Column<Of<EndRecord>> => ({
    title, raw: title, left: true, hint, value: ({ item }) => pick(item), cell: ({ item }) => pick(item) ?? '–',
  });
  const bytes = (title: string, raw: string, pick: (end: EndRecord) => number | null): Column<Of<EndRecord>> => ({
    title, unit: 'bytes', raw, hint: 'As the kernel granted it', value: ({ item }) => pick(item),
    cell: ({ item }) => { const n = pick(item); return n === null ? '–' : count(n); },
  });
  const columns = [
    words('endpoint', (end) => endpoint(end.name)), words('place', (end) => end.place, 'A thread or process here, an echo on another machine, or a foreign program'),
    words('CPU', (end) => (end.cpu === null ? null : String(end.cpu)), 'Placement changes the figures by a factor'),
    words('policy', (end) => end.policy), words('wait', (end) => end.wait), words('address', (end) => end.address), words('tardy', (end) => end.version),
    bytes('receive buffer', 'receive_buffer_bytes', (end) => end.receive_buffer_bytes), bytes('send buffer', 'send_buffer_bytes', (end) => end.send_buffer_bytes),
  ];
  return columns.filter((column, index) => index === 0 || ends.some((end) => column.value(end) !== null));
}

/** An offset never without its uncertainty. */
function clockNote(run: PageRun, several: boolean): HTMLElement | null {
  const clock = run.record.messages?.clock;
  if (!clock) return null;
  const side = clock.offset_ns < 0 ? 'behind' : 'ahead';
  const text = `the clock of the remote endpoint was ${latency(Math.abs(clock.offset_ns))} ${side}, with an uncertainty of ${latency(clock.uncertainty_ns)} (${count(clock.exchanges)} exchanges, `
    + `the shortest round trip ${latency(clock.shortest_round_trip_ns)}), and drifted by ${clock.drift_ppb.toFixed(0)} parts per billion. `
    + `One-way figures of ${run.samples.many} have that uncertainty, round trips have not.`;
  return h('p', { class: 'note' }, several ? `${run.record.name}: ${text}` : capital(text));
}
