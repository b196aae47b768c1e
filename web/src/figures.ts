// The table of series: a row a series and run, in the view per wake-up or per scheduled period.

import { Table, type Column } from './table';
import { seriesColour, seriesOf, type Context, type SeriesPair } from './context';
import { h } from './dom';
import type { PageRun, Percentiles, SeriesSummary } from './model';
import { runColumn } from './run-column';
import type { LogScale } from './scale';
import { spark } from './spark';
import { onTheme, theme } from './theme';
import { capital, columnUnit, count, latency } from './units';
import { seriesTitle } from './vocabulary';

interface Row extends SeriesPair {
  run: number;
  runName: string;
  /** Which stage of its series; null: the series itself. */
  stage: string | null;
  stages: Row[];
  /** Below a round trip, half of each of its figures: what stands for one way. */
  half: Row | null;
}

/** From the expiry to the end of the work: it holds the latency, and is not a part of it. */
const RESPONSE = 'response';

/** What lies between the two ends of each stage. */
const STAGES: { [stage: string]: string } = {
  irq: 'From the programmed expiry to the entry of the timer interrupt',
  softirq: 'From the timer interrupt to the callback in a softirq',
  handler: 'To the moment the thread was made runnable',
  dispatch: 'From runnable to switched in',
  user: 'From switched in to the clock read in user space',
  [RESPONSE]: 'From the programmed expiry to the end of the work, per wake-up',
  'there-send': 'From before the call that sends to the moment the remote endpoint was made runnable: the call, the network stack and its softirq',
  'there-dispatch': 'From runnable to switched in, at the remote endpoint',
  'there-receive': 'From switched in to the moment the remote endpoint had the message',
  'back-send': 'From there to the moment this end was made runnable',
  'back-dispatch': 'From runnable to switched in, at this end',
  'back-receive': 'From switched in to the clock read in user space',
  stack: 'From the kernel\u2019s stamp to the moment the reader was made runnable: the rest of the network stack, in a softirq',
  read: 'From switched in to the clock read in user space',
  pacing: 'From the scheduled time of a packet to the moment it was really sent',
  transit: 'From the moment a packet was really sent to the moment the receiver had it',
};

/** What the row below a round trip shows. */
const HALF = 'Half of the round trip above: one way was not measured by itself';

type View = 'wake-up' | 'scheduled';
const SHOWN = ['50', '99', '99.9', '99.99'];

/** The number of printed rows: a run of 256 series is not to fill ten pages. */
const PRINTED = 40;

/** The number of rows that are seen at first, each with what stands below it, where there are some more than that. */
const FOLD = 14;
const SOME_MORE = 6;

/** What a row shows in one of the two views. */
interface Numbers {
  count: number;
  min: number | null;
  max: number | null;
  percentiles: Percentiles;
  uncertain: string[];
}

/** Whether a series is told per wake-up in the view per period too: it has no other. */
function onlyPerWakeUp(row: Row): boolean {
  return row.summary !== null && !row.summary.scheduled && !(row.stage && row.drawn);
}

function numbers(row: Row, view: View): Numbers | null {
  const { summary } = row;
  if (!summary) return null;
  // A response is told per wake-up in both views: a missed period has no work.
  if (view === 'wake-up' || summary.stage === RESPONSE || onlyPerWakeUp(row)) return summary;
  const { scheduled } = summary;
  // The earliest period is the earliest wake-up: the view only adds later ones behind a late one.
  return scheduled && { ...scheduled, min: null };
}

/** Series side by side with the same series of the other runs: what is compared stands together. */
function rowsOf(context: Context): Row[] {
  const rows = context.page.runs.flatMap((run, index) =>
    seriesOf(run).map((pair): Row => ({
      ...pair, run: index, runName: run.record.name, stage: null, stages: stagesOf(run, pair.name, index),
      half: run.samples.kind === 'round_trip' && pair.summary ? halfOf(run, pair.summary, index) : null,
    })));
  const place = new Map(context.names.map((name, index) => [name, index]));
  return rows.sort((a, b) => (place.get(a.name) ?? 0) - (place.get(b.name) ?? 0) || a.run - b.run);
}

/** Only there and back was measured: one way is taken as half of it, figure by figure. */
function halfOf(run: PageRun, whole: SeriesSummary, index: number): Row {
  const half = (ns: number | null): number | null => (ns === null ? null : Math.floor(ns / 2));
  const percentiles = Object.fromEntries(Object.entries(whole.percentiles).map(([name, ns]) => [name, Math.floor(ns / 2)]));
  const summary = { ...whole, min: half(whole.min), mean: half(whole.mean), max: half(whole.max), percentiles };
  return { name: whole.name, summary, drawn: null, run: index, runName: run.record.name, stage: 'half of it', stages: [], half: null };
}

function stagesOf(run: PageRun, series: string, index: number): Row[] {
  return run.stages.filter((stage) => stage.of === series).map(({ stage, summary, histogram }) => ({
    name: summary.name, summary, run: index, runName: run.record.name, stage, stages: [], half: null,
    drawn: { name: summary.name, curve: [], histogram, scheduled: null, heat: null, points: { kind: 'sample', of: 0, thinned: '', t_s: [], latency_ns: [] } },
  }));
}

export function figures(context: Context): HTMLElement {
  const view = (): View => (context.counting.scheduled ? 'scheduled' : 'wake-up');
  let split = false;
  const rows = rowsOf(context);
  const below = (row: Row): Row[] => [...(row.half ? [row.half] : []), ...row.stages.filter((own) => split || own.stage === RESPONSE)];
  const spec = () => ({
    name: 'series', rows, printed: PRINTED, fold: rows.length > FOLD + SOME_MORE ? FOLD : rows.length, columns: columns(context, rows.flatMap((row) => [row, ...below(row)]), view(), split),
    rowClass: (row: Row) => (row.stage ? 'stage' : context.selection.series === row.name ? 'chosen' : ''),
    under: below,
  });
  const table = new Table(spec());
  const redraw = (): void => table.show(spec());
  context.selection.onChange(redraw);
  context.counting.onChange(redraw);
  onTheme(redraw);
  const toggle = rows.some(({ summary }) => summary?.scheduled) ? viewToggle(context) : null;
  return h('section', { class: 'figures', 'aria-label': 'the series in figures' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Series'), toggle,
      rows.some((row) => row.stages.some((own) => own.stage !== RESPONSE)) ? stageToggle((chosen) => { split = chosen; redraw(); }) : null, h('span', { class: 'tools' }, table.copy)),
    rows.length === 0 ? h('p', { class: 'muted' }, 'No series were recorded.') : table.element, table.more,
    notes(rows));
}

/** The way of counting that flatters least comes first. */
function viewToggle({ counting }: Context): HTMLElement {
  const option = (view: View, words: string, hint: string): HTMLElement => {
    const input = h('input', { type: 'radio', name: 'view', value: view, checked: counting.scheduled === (view === 'scheduled') });
    input.addEventListener('change', () => counting.set(view === 'scheduled'));
    return h('label', { title: hint }, input, words);
  };
  const options = [
    option('wake-up', 'per wake-up', 'Each wake-up counts once'),
    option('scheduled', 'per scheduled period', 'A wake-up late by L at period T counts as L, L-T, ..., L-kT: one for each period it missed'),
  ];
  return h('fieldset', { class: 'toggle' }, h('legend', { class: 'vh' }, 'what is counted'), ...(counting.scheduled ? options.reverse() : options));
}

function stageToggle(choose: (split: boolean) => void): HTMLElement {
  const input = h('input', { type: 'checkbox', name: 'stages' });
  input.addEventListener('change', () => choose(input.checked));
  return h('span', { class: 'toggle' }, h('label', { title: 'The parts of each latency, a row each below their series; they sum to it' }, input, 'show stages'));
}

function notes(rows: Row[]): HTMLElement | null {
  const uncertain = rows.some(({ summary }) => summary && summary.uncertain.some((name) => SHOWN.includes(name)));
  return uncertain ? h('p', { class: 'note' }, h('span', { class: 'doubt' }, 'Gray'),
    ': fewer than 10 samples lie beyond, so it is little more than the maximum.') : null;
}

function columns(context: Context, rows: Row[], view: View, split: boolean): Column<Row>[] {
  const several = context.page.runs.length > 1;
  const { many } = context.page.words.samples;
  const any = (pick: (row: Row) => number | undefined): boolean => rows.some((row) => (pick(row) ?? 0) > 0);
  const whole = (title: string, pick: (row: Row) => number | null, hint?: string): Column<Row> => ({
    title, raw: title, hint, value: pick,
    cell: (row) => { const n = pick(row); return n === null ? '–' : count(n); },
  });
  const found: Column<Row>[] = [nameColumn(context, view)];
  if (several) found.push(runColumn(context.page.runs, (row) => row.run));
  found.push(whole('count', (row) => numbers(row, view)?.count ?? null, view === 'wake-up' ? capital(many) : 'Periods'));
  if (rows.some(({ summary }) => summary?.missed !== null)) {
    found.push(whole('missed', ({ summary }) => summary?.missed ?? null, 'Periods without a wake-up'));
  }
  if (any(({ summary }) => summary?.early)) found.push(whole('early', ({ summary }) => summary?.early ?? null, `${capital(many)} before their time; in count and min, not in the percentiles`));
  if (any(({ summary }) => summary?.above)) found.push(whole('over 1 h', ({ summary }) => summary?.above ?? null, 'Latencies over one hour; in count and max, not in the percentiles'));
  if (view === 'wake-up') found.push(latencyColumn(rows, 'min', 'min_ns', (row) => row.summary?.min ?? null));
  for (const name of SHOWN) {
    found.push({
      ...latencyColumn(rows, `p${name}`, `p${name}_ns`, (row) => numbers(row, view)?.percentiles[name] ?? null),
      doubt: (row) => doubt(row, name, view),
    });
  }
  found.push(latencyColumn(rows, 'max', 'max_ns', (row) => numbers(row, view)?.max ?? null));
  found.push(shapeColumn(context, split ? context.stages : context.latency, view));
  return found;
}

function doubt(row: Row, name: string, view: View): string | null {
  const own = numbers(row, view);
  if (!own?.uncertain.includes(name) || own.percentiles[name] === undefined) return null;
  return `uncertain: fewer than 10 of ${count(own.count)} samples lie beyond p${name}; it is little more than the maximum`;
}

/** Beside the name of a series that shows something else than the rows around it. */
function mark(row: Row, view: View): HTMLElement | null {
  if (view === 'wake-up' || !onlyPerWakeUp(row)) return null;
  return h('span', { class: 'view-mark', title: 'It has no view per scheduled period: each wake-up counts once' }, 'per wake-up');
}

function nameColumn(context: Context, view: View): Column<Row> {
  return {
    title: 'series', raw: 'series', left: true, value: (row) => (row.stage && !row.drawn ? `${row.name} (${row.stage})` : row.name),
    cell: (row) => {
      if (row.stage) return h('span', { class: 'stage-name', title: STAGES[row.stage] ?? (row.drawn ? row.name : HALF) }, row.stage);
      const swatch = h('span', { class: 'swatch' });
      swatch.style.background = seriesColour(context, row.name, theme());
      const button = h('button', {
        type: 'button', class: 'name', 'aria-pressed': String(context.selection.series === row.name),
        title: `${seriesTitle(row.name)}: show alone in the charts; again: all`,
      }, swatch, h('span', { class: 'short' }, seriesTitle(row.name)));
      button.addEventListener('click', () => {
        context.selection.toggle(row.name);
        const again = [...document.querySelectorAll<HTMLElement>('.figures button.name')];
        again.find((other) => other.textContent === seriesTitle(row.name))?.focus();
      });
      const other = mark(row, view);
      return other ? h('span', {}, button, ' ', other) : button;
    },
  };
}

function latencyColumn(rows: Row[], title: string, raw: string, value: (row: Row) => number | null): Column<Row> {
  const { unit, write } = columnUnit(rows.flatMap((row) => value(row) ?? []));
  return {
    title, unit, raw, value,
    cell: (row) => { const ns = value(row); return ns === null ? '–' : write(ns); },
  };
}

function shapeColumn(context: Context, scale: LogScale, view: View): Column<Row> {
  const { foot, high } = scale;
  const drawn = (row: Row): Row => (view === 'scheduled' && row.drawn?.scheduled
    ? { ...row, drawn: { ...row.drawn, histogram: row.drawn.scheduled.histogram } } : row);
  return {
    title: 'distribution', raw: '', left: true, sortable: false, value: () => null,
    hint: `Counts (log) over latency (log), ${latency(Math.pow(10, foot))} to ${latency(Math.pow(10, high))} in all rows; the last tick is the maximum`,
    cell: (row) => (row.stage && !row.drawn ? '' : spark(drawn(row), context.page.latency_edges_ns, scale)),
  };
}
