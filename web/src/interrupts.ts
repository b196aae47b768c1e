// Interrupts that moved during a run: a row a source, a column a CPU, and in the head of each column
// how late that CPU was and how busy. What is left out is said, and the data has all.

import { h } from './dom';
import type { InterruptRow, PageRun } from './model';
import { Table, type Column } from './table';
import { counted, latency, percent, rate } from './units';

/** The number of CPUs with a column: those that were latest. */
const CPUS_SHOWN = 8;
/** The number of sources that are shown at first: the busiest. */
const SOURCES_SHOWN = 15;

/** The table of one run, with its tools and what it leaves out. */
export function interruptTable(run: PageRun, data: HTMLElement | null): HTMLElement {
  const all = cpusOf(run);
  const cpus = latest(run, all);
  const table = new Table<InterruptRow>({
    name: 'interrupts that moved', rows: run.interrupts, columns: columns(run, cpus), shown: SOURCES_SHOWN,
  });
  const left = all.length - cpus.length;
  return h('div', {},
    h('div', { class: 'grid' }, table.element, h('span', { class: 'tools' }, table.copy, data)),
    table.more,
    left > 0 ? h('p', { class: 'note' }, `The ${cpus.length} CPUs that were latest have a column; ${counted(left, 'more CPU')} in the data.`) : null);
}

/** Every CPU that was measured or interrupted. */
function cpusOf(run: PageRun): number[] {
  const measured = run.record.series.flatMap(({ cpu }) => cpu ?? []);
  const moved = run.interrupts.flatMap((row) => row.per_cpu.map(([cpu]) => cpu));
  return [...new Set([...measured, ...moved])].sort((a, b) => a - b);
}

function latest(run: PageRun, all: number[]): number[] {
  const worst = (cpu: number): number => figure(run, cpu, (series) => series.max) ?? -1;
  return [...all].sort((a, b) => worst(b) - worst(a) || a - b).slice(0, CPUS_SHOWN).sort((a, b) => a - b);
}

/** The worst figure of the series that were measured on a CPU. */
function figure(run: PageRun, cpu: number, of: (series: PageRun['record']['series'][number]) => number | null | undefined): number | null {
  const own = run.record.series.filter((series) => series.cpu === cpu).flatMap((series) => of(series) ?? []);
  return own.length ? Math.max(...own) : null;
}

/** Share of time not idle, as the record has it; else the mean of the track. */
function busy(run: PageRun, cpu: number): number | null {
  const own = run.record.machine?.cpus.find((one) => one.cpu === cpu);
  if (own) return own.busy;
  const track = run.machine.cpu_busy.find((one) => one.cpu === cpu)?.busy ?? [];
  return track.length ? track.reduce((sum, one) => sum + one, 0) / track.length : null;
}

/** The time that counts of interrupts belong to; runs that do not say so counted from before the warm-up. */
function countedSeconds({ record }: PageRun): number {
  return (record.conditions?.counted_ns ?? record.duration_ns + record.parameters.warmup_ns) / 1e9;
}

function columns(run: PageRun, cpus: number[]): Column<InterruptRow>[] {
  const seconds = countedSeconds(run);
  const on = (row: InterruptRow, cpu: number): number | null => {
    const found = row.per_cpu.find(([own]) => own === cpu);
    return found && seconds > 0 ? found[1] / seconds : null;
  };
  return [{
    title: 'source', raw: 'source', left: true, under: ['p99 latency', 'max latency', 'busy'],
    value: (row) => `${row.source} ${row.kind === 'softirq' ? 'softirq' : handlers(row)}`.trim(), cell: named,
  }, {
    title: 'all', raw: 'per_s', under: ['per', 'second', ''], value: (row) => row.per_s, cell: (row) => rate(row.per_s),
  }, ...cpus.map((cpu): Column<InterruptRow> => ({
    title: `CPU ${cpu}`, raw: `cpu${cpu}_per_s`, under: facts(run, cpu),
    value: (row) => on(row, cpu), cell: (row) => short(on(row, cpu)),
  }))];
}

function facts(run: PageRun, cpu: number): string[] {
  const share = busy(run, cpu);
  return [
    latency(figure(run, cpu, (series) => series.percentiles['99'])),
    latency(figure(run, cpu, (series) => series.max)),
    share === null ? '–' : percent(share, 0),
  ];
}

function short(perSecond: number | null): string {
  if (perSecond === null) return '–';
  return perSecond >= 10 ? rate(Math.round(perSecond)) : perSecond.toFixed(perSecond >= 0.05 ? 1 : 2);
}

/** "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0": of chip, line and kind people know the rest only. */
function handlers(row: InterruptRow): string {
  const after = /^\d+$/.test(row.source) ? /(?:edge|level|fasteoi)\s+(.+)$/.exec(row.description) : null;
  return after ? after[1] : row.description;
}

function named(row: InterruptRow): HTMLElement {
  const what = row.kind === 'softirq' ? 'softirq' : handlers(row);
  return h('span', { class: 'source', title: `${row.kind} ${row.source} ${row.description}`.trim() }, row.source, ' ', h('span', { class: 'what' }, what));
}
