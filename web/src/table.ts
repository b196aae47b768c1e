// A table that can be sorted (click or keyboard on a header) and copied as TSV, in its own scroll
// box. Knows columns and rows, not what they mean.

import { copyButton, h, tsv } from './dom';

export interface Column<Row> {
  title: string;
  /** Beside the title, smaller: a unit. */
  unit?: string;
  /** The title in a copy: names the raw unit. */
  raw: string;
  /** What sorts and what is copied; null: nothing there. */
  value: (row: Row) => number | string | null;
  cell: (row: Row) => Node | string;
  /** Text reads from the left; numbers are set right. */
  left?: boolean;
  sortable?: boolean;
  /** Marks a cell, with the reason. */
  doubt?: (row: Row) => string | null;
  hint?: string;
  /** Said below the title, a line each. */
  under?: string[];
  /** Seen only once all columns are asked for; always in a copy. */
  extra?: boolean;
}

interface Order {
  column: number;
  down: boolean;
}

export interface TableSpec<Row> {
  name: string;
  columns: Column<Row>[];
  rows: Row[];
  /** Row attributes, for a selected or a first row. */
  rowClass?: (row: Row) => string;
  /** Rows that stay right below theirs, however the table is sorted. */
  under?: (row: Row) => Row[];
  /** The number of rows on paper, which says of how many. */
  printed?: number;
  /** The number of rows that are seen at first; `more` has the others. */
  shown?: number;
  /** The same of rows with those right below theirs, on a screen alone: paper has what it has. */
  fold?: number;
  /** What a click on a row does; a button in it does the same by keyboard. */
  press?: (row: Row) => void;
}

/** A table whose columns and rows can be replaced while its order stays. */
export class Table<Row> {
  readonly element: HTMLElement;
  readonly copy: HTMLButtonElement;
  /** Shows the rows beyond the first; hidden without any, or if all are shown. */
  readonly more: HTMLButtonElement;
  /** Shows the columns that are `extra`, and hides them again; hidden without any. */
  readonly wider: HTMLButtonElement;
  private unfolded = false;
  private wide = false;
  private order: Order | null = null;
  private readonly table = h('table', {});
  private readonly cut = h('p', { class: 'cut on-paper' });

  constructor(private spec: TableSpec<Row>) {
    this.element = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': spec.name }, this.table, this.cut);
    this.copy = copyButton(() => this.text(), 'copy', `the table ${spec.name}`);
    this.more = h('button', { type: 'button', class: 'quiet' });
    this.more.addEventListener('click', () => {
      this.unfolded = true;
      this.draw();
      this.element.focus();
    });
    this.wider = h('button', { type: 'button', class: 'quiet' });
    this.wider.addEventListener('click', () => {
      this.wide = !this.wide;
      this.draw();
    });
    this.draw();
  }

  show(spec: TableSpec<Row>): void {
    this.spec = spec;
    this.draw();
  }

  draw(): void {
    const all = this.sorted();
    const rows = this.unfolded ? all : all.slice(0, this.spec.shown ?? all.length);
    const fold = this.unfolded ? rows.length : this.spec.fold ?? rows.length;
    const left = this.spec.fold === undefined ? all.length - rows.length : Math.max(this.spec.rows.length - fold, 0);
    this.more.hidden = this.unfolded || left === 0;
    this.more.textContent = `${left} more`;
    this.wider.hidden = !this.spec.columns.some((column) => column.extra);
    this.wider.textContent = this.wide ? 'fewer columns' : 'all columns';
    const printed = this.spec.printed ?? rows.length;
    this.cut.textContent = rows.length > printed ? `The first ${printed} of ${rows.length} rows; the page on a screen has all.` : '';
    this.table.replaceChildren(
      h('caption', { class: 'vh' }, this.spec.name),
      h('thead', {}, h('tr', {}, ...this.seen().map(([column, index]) => this.header(column, index)))),
      h('tbody', {}, ...rows.map(([row, main], place) => this.row(row, [place >= printed ? 'off-paper' : '', main >= fold ? 'beyond' : '']))),
    );
  }

  /** The columns that are seen, with their numbers. */
  private seen(): [Column<Row>, number][] {
    return this.spec.columns.map((column, index): [Column<Row>, number] => [column, index]).filter(([column]) => this.wide || !column.extra);
  }

  private header(column: Column<Row>, index: number): HTMLElement {
    const own = this.order?.column === index ? this.order : null;
    const unit = column.unit ? h('span', { class: 'unit' }, ` ${column.unit}`) : null;
    const under = (column.under ?? []).map((line) => h('span', { class: 'under' }, line));
    const props = {
      scope: 'col', class: column.left ? 'left' : '', title: column.hint ?? null,
      'aria-sort': own ? (own.down ? 'descending' : 'ascending') : null,
    };
    if (column.sortable === false) return h('th', props, column.title, unit, ...under);
    const button = h('button', { type: 'button' }, column.title, unit,
      h('span', { class: 'arrow', 'aria-hidden': 'true' }, own ? (own.down ? '▼' : '▲') : ''));
    button.addEventListener('click', () => this.sort(index));
    // A printed table repeats its head on each page, but not the buttons in it.
    return h('th', props, button, h('span', { class: 'on-paper' }, column.title, unit?.cloneNode(true)), ...under);
  }

  /** First the interesting end (largest numbers, first names), then the other, then as it came. */
  private sort(index: number): void {
    const first = !this.spec.columns[index].left;
    if (this.order?.column !== index) this.order = { column: index, down: first };
    else if (this.order.down === first) this.order = { column: index, down: !first };
    else this.order = null;
    this.draw();
    const place = this.seen().findIndex(([, own]) => own === index);
    this.table.querySelectorAll<HTMLElement>('thead th')[place]?.querySelector('button')?.focus();
  }

  /** Each row with the place of the one that it is or stands below. */
  private sorted(): [Row, number][] {
    const { rows, under } = this.spec;
    const sorted = this.order ? this.inOrder(rows, this.order) : rows;
    return sorted.flatMap((row, place) => [row, ...(under?.(row) ?? [])].map((own): [Row, number] => [own, place]));
  }

  private inOrder(rows: Row[], order: Order): Row[] {
    const { value } = this.spec.columns[order.column];
    const sign = order.down ? -1 : 1;
    return [...rows].sort((a, b) => compare(value(a), value(b), sign));
  }

  /** Of a row that only a screen has, or only paper, the classes say so. */
  private row(row: Row, classes: string[]): HTMLElement {
    const cells = this.seen().map(([column], index) => {
      const doubt = column.doubt?.(row) ?? null;
      const tag = index === 0 ? 'th' : 'td';
      return h(tag, {
        class: [column.left ? 'left' : '', doubt ? 'doubt' : ''].filter(Boolean).join(' '),
        scope: index === 0 ? 'row' : null, title: doubt,
      }, column.cell(row), doubt ? h('span', { class: 'vh' }, ` (${doubt})`) : null);
    });
    const { press } = this.spec;
    return h('tr', {
      class: [this.spec.rowClass?.(row) ?? '', press ? 'can-press' : '', ...classes].filter(Boolean).join(' '),
      onclick: press ? () => press(row) : null,
    }, ...cells);
  }

  private text(): string {
    const columns = this.spec.columns.filter((column) => column.raw);
    return tsv([columns.map((column) => column.raw),
      ...this.sorted().map(([row]) => columns.map((column) => String(column.value(row) ?? '')))]);
  }
}

/** Absent values last, whichever way; names with numbers in them in the numbers' order. */
function compare(a: number | string | null, b: number | string | null, sign: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === 'number' && typeof b === 'number') return (a - b) * sign;
  return String(a).localeCompare(String(b), 'en', { numeric: true }) * sign;
}
