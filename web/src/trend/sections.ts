// The page of trends: the answer, what changed, a table of the rows, and a chart a row, those that
// changed first. Of many rows the rest is drawn when it is chosen in the table.

import { h } from '../dom';
import type { PageTrend, TrendEvent, PageTrendRow } from '../model';
import type { Panel } from '../panel';
import { Table, type Column } from '../table';
import { latency, unbroken } from '../units';
import { Stretch } from '../view';
import { changeNotes, kernelNote, trendPanel } from './chart';

/** Charts that are drawn without being asked for: each takes memory, and time on paper. */
const MOST_CHARTS = 40;

export function trendSections(trend: PageTrend): HTMLElement[] {
  const charts = new Charts(trend);
  return [head(trend), changes(trend.events), table(trend, charts), charts.element].filter((own): own is HTMLElement => own !== null);
}

function head(trend: PageTrend): HTMLElement {
  return h('header', { class: 'page-head' },
    h('h1', {}, trend.title),
    h('p', { class: 'headline' }, ...withDates(unbroken(trend.headline))),
    ...trend.meanings.map((text) => h('p', { class: 'line' }, text)),
    trend.remarks.length ? h('ul', { class: 'caveat-list' }, ...trend.remarks.map((text) => h('li', {}, text))) : null);
}

/** No line ends within a date. */
function withDates(text: string): (HTMLElement | string)[] {
  return text.split(/(\d{4}-\d\d-\d\d)/).map((part, at) => (at % 2 ? h('span', { class: 'moment' }, part) : part));
}

/** What changed, the latest first, as it is looked for first. */
function changes(events: TrendEvent[]): HTMLElement | null {
  if (events.length === 0) return null;
  return h('section', { class: 'trend-events', 'aria-label': 'what changed' },
    h('h2', {}, 'What changed, the latest first'),
    h('ul', { class: 'caveat-list' }, ...[...events].reverse().map((event) => h('li', { class: event.is_worse ? 'invalidates' : 'improves' },
      h('div', { class: 'title-line' }, h('b', {}, event.day),
        h('span', { class: `verdict ${event.is_worse ? 'worse' : 'better'}` }, event.is_worse ? 'worse' : 'better'), event.title),
      ...event.lines.map((text) => h('div', {}, text)),
      h('div', { class: 'remedy' }, `${event.kernel}; ${event.cause}`)))));
}

const found = (row: PageTrendRow): number => row.p99.changes.length + row.usual_max.changes.length;
const isShort = (row: PageTrendRow): boolean => row.p99.is_too_short && row.usual_max.is_too_short;

function last(values: (number | null)[]): number | null {
  return [...values].reverse().find((ns): ns is number => ns !== null) ?? null;
}

function largest(row: PageTrendRow): number | null {
  return row.days.max_ns.reduce((most, ns) => (ns !== null && (most === null || ns > most) ? ns : most), null);
}

function table(trend: PageTrend, charts: Charts): HTMLElement {
  const text = (title: string, of: (row: PageTrendRow) => string): Column<PageTrendRow> => ({ title, raw: title, left: true, value: of, cell: (row) => h('span', { class: 'wraps' }, of(row)) });
  const time = (title: string, of: (row: PageTrendRow) => number | null): Column<PageTrendRow> => ({ title, raw: `${title} (ns)`, value: of, cell: (row) => latency(of(row)) });
  const number = (title: string, of: (row: PageTrendRow) => number): Column<PageTrendRow> => ({ title, raw: title, value: of, cell: (row) => String(of(row)) });
  const columns: Column<PageTrendRow>[] = [
    {
      title: 'series', raw: 'series', left: true, value: (row) => row.series,
      // The row's click goes there too, for those who have a mouse.
      cell: (row) => h('button', { type: 'button', class: 'name', title: `Show the chart of ${row.series}` }, h('span', { class: 'short' }, row.series)),
    },
    text('machine', (row) => row.machine), text('measured', (row) => row.measured), text('policy', (row) => row.policy),
    number('runs', (row) => row.runs), number('days', (row) => new Set(row.days.day).size),
    time('p99, median', (row) => row.p99.median_ns), time('last', (row) => last(row.days.p99_ns)),
    time('usual max, median', (row) => row.usual_max.median_ns), time('last', (row) => last(row.days.usual_max_ns)),
    time('largest', largest),
  ];
  // What no row has recorded has no column.
  const known = columns.filter(({ value }) => trend.rows.some((row) => (value(row) ?? '') !== ''));
  known.push({ title: 'changes', raw: 'changes', value: (row) => (isShort(row) ? null : found(row)), cell: (row) => (isShort(row) ? 'too few days' : String(found(row))) });
  const shown = new Table<PageTrendRow>({ name: 'rows', rows: trend.rows, press: (row) => charts.show(row), columns: known });
  return h('section', { class: 'figures matrix trend-rows', 'aria-label': 'rows' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Rows'), h('span', { class: 'tools' }, shown.copy)), shown.element);
}

class Charts {
  readonly element: HTMLElement;
  private readonly box = h('div', { class: 'multiples trends' });
  private readonly drawn = new Map<PageTrendRow, Panel>();
  private readonly stretch: Stretch;

  constructor(trend: PageTrend) {
    const days = trend.rows.flatMap(({ days: { day } }) => (day.length ? [day[0], day[day.length - 1]] : []));
    const least = days.reduce((a, b) => Math.min(a, b), Infinity);
    const most = days.reduce((a, b) => Math.max(a, b), -Infinity);
    this.stretch = new Stretch(Number.isFinite(least) ? least - 1 : 0, Number.isFinite(most) ? most + 1 : 1);
    const isFound = (row: PageTrendRow): boolean => found(row) > 0;
    const ordered = [...trend.rows.filter(isFound), ...trend.rows.filter((row) => !isFound(row))];
    for (const row of ordered.slice(0, MOST_CHARTS)) this.add(row);
    const rest = ordered.length - MOST_CHARTS;
    this.element = h('section', { class: 'shape', 'aria-label': 'over time' },
      h('div', { class: 'bar-line' }, h('h2', {}, 'Day by day'),
        h('span', { class: 'hint', id: 'chart-keys' }, 'Drag to zoom, double click to show all. Keys: arrows read, + and - zoom, Escape resets.')),
      h('p', { class: 'note' }, `Rows that changed come first. Solid lines across: changes, by their first day; dotted: alarms. Shaded: every second kernel.${rest > 0 ? ` ${rest} more rows: choose them in the table.` : ''}`),
      this.box);
  }

  /** Draws the row where it is not drawn yet, and goes there. */
  show(row: PageTrendRow): void {
    const panel = this.drawn.get(row) ?? this.add(row);
    panel.start();
    panel.element.scrollIntoView({ block: 'center' });
    panel.plot.focus({ preventScroll: true });
  }

  private add(row: PageTrendRow): Panel {
    const panel = trendPanel(row, this.stretch);
    this.drawn.set(row, panel);
    this.box.append(h('div', { class: 'multiple' }, panel.element, ...changeNotes(row), kernelNote(row)));
    return panel;
  }
}
