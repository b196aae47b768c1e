// The flame graph: callers above what they call. Boxes are elements, so that names end with an
// ellipsis at any width, on a screen and on paper, and are drawn anew only where what is shown
// changes.

import { announce, csv, dataLink, fileName, h } from '../dom';
import type { FlameGraph as Graph } from '../data';
import { exactLatency, percent } from '../units';
import { layOut, matched, pathOf, rootsOf, weightOf, type Drawn, type Place } from './tree';

const ROW_PX = 18;
/** Narrower boxes are not drawn: half a pixel of 1000. */
const LEAST = 0.0005;
/** More rows fill screens with one deep stack; a zoom shows those below. */
const MOST_ROWS = 40;
/** Narrower boxes have no room for a name. */
const NAMED_PX = 22;

export interface FlameSource {
  graph: Graph;
  /** What a weight is in: `ns` of late moments, or of samples. */
  late: boolean;
}

/** One flame graph with its search, zoom and readout. */
export class FlameGraphView {
  readonly element: HTMLElement;
  private roots: Place[] = [];
  private zoomed: Place | null = null;
  private pointed: Place | null = null;
  private boxes = new Map<Place, HTMLElement>();
  private drawn: Drawn[] = [];
  private withIdle = false;
  private readonly plot = h('div', { class: 'flame', tabindex: 0, role: 'application', 'aria-label': 'flame graph' });
  private readonly readout = h('div', { class: 'readout', hidden: true });
  private readonly path = h('p', { class: 'count flame-path' });
  private readonly said = h('p', { class: 'note flame-note' });
  private readonly found = h('span', { class: 'muted', role: 'status' });
  private readonly input = h('input', { type: 'search', placeholder: 'function or file', 'aria-label': 'search the flame graph', autocomplete: 'off', spellcheck: 'false' });
  private readonly reset = h('button', { type: 'button', class: 'quiet', disabled: true }, 'show all');
  private readonly idle = h('label', {}, h('input', { type: 'checkbox', name: 'with-idle' }), 'with idle time');

  constructor(run: string, private source: FlameSource) {
    const box = this.idle.querySelector('input') as HTMLInputElement;
    box.addEventListener('change', () => { this.withIdle = box.checked; this.zoom(null); });
    this.input.addEventListener('input', () => this.search());
    this.reset.addEventListener('click', () => { this.zoom(null); this.plot.focus({ preventScroll: true }); });
    this.plot.addEventListener('pointermove', (event) => this.hover(event));
    this.plot.addEventListener('pointerleave', () => this.point(null));
    this.plot.addEventListener('click', (event) => { const own = this.at(event); if (own) this.zoom(own); });
    this.plot.addEventListener('dblclick', () => this.zoom(null));
    this.plot.addEventListener('keydown', (event) => { if (this.key(event.key)) event.preventDefault(); });
    this.plot.addEventListener('blur', () => this.point(null));
    const data = dataLink(() => fileName(run, this.source.late ? 'late-stacks' : 'stacks'), () => this.csv(), 'the flame graph');
    this.element = h('div', { class: 'flame-graph' },
      h('div', { class: 'bar-line' }, h('span', { class: 'toggle' }, this.idle), h('span', { class: 'search' }, this.input, this.found),
        h('span', { class: 'tools' }, this.reset, data)),
      h('p', { class: 'hint' }, 'Callers are above what they call; width is time. A click zooms, a double click shows all. Keys: arrows go from box to box, Enter zooms, Escape shows all.'),
      this.path, h('div', { class: 'flame-box' }, this.plot, this.readout), this.said);
    this.show(source);
  }

  /** Another graph in its place. */
  show(source: FlameSource): void {
    this.source = source;
    this.roots = rootsOf(source.graph);
    this.idle.hidden = !this.roots.some(({ kind }) => kind === 'idle');
    this.zoom(null);
  }

  /** What there is to see without a zoom. */
  private get top(): Place[] {
    const busy = this.roots.filter(({ kind }) => kind !== 'idle');
    return this.withIdle ? this.roots : busy;
  }

  private get shown(): Place[] {
    return this.zoomed ? [this.zoomed] : this.top;
  }

  private zoom(to: Place | null): void {
    this.zoomed = to;
    this.pointed = null;
    this.reset.disabled = to === null;
    this.draw();
    this.point(null);
    this.search();
    if (to) announce(`${to.name}, ${this.share(to)}`);
  }

  private draw(): void {
    this.drawn = layOut(this.shown, LEAST, MOST_ROWS);
    const rows = this.drawn.reduce((most, { row }) => Math.max(most, row + 1), 1);
    this.boxes.clear();
    this.plot.replaceChildren(...this.drawn.map(({ place, from, to, row }) => {
      const box = h('div', { class: `flame-place ${place.kind}` }, (to - from) * window.innerWidth > NAMED_PX ? place.name : '');
      Object.assign(box.style, { left: `${from * 100}%`, width: `${(to - from) * 100}%`, top: `${row * ROW_PX}px` });
      this.boxes.set(place, box);
      return box;
    }));
    this.plot.style.height = `${rows * ROW_PX + 1}px`;
    if (this.drawn.length === 0) this.plot.append(h('p', { class: 'nothing' }, 'The CPUs were idle: there is nothing else to show.'));
    const above = pathOf(this.zoomed).slice(0, -1);
    this.path.textContent = this.zoomed ? `Zoomed to ${this.zoomed.name}, ${this.share(this.zoomed)}${above.length ? `, called by ${above.reverse().map(({ name }) => name).join(' < ')}` : ''}` : '';
    this.said.textContent = this.left();
  }

  /** What is not in the picture. */
  private left(): string {
    const { merged, merged_weight, least_percent } = this.source.graph;
    const idle = weightOf(this.roots.filter(({ kind }) => kind === 'idle'));
    const whole = Math.max(1, weightOf(this.roots));
    const goesOn = this.drawn.some(({ place, row }) => row === MOST_ROWS - 1 && place.called.length > 0);
    return [
      goesOn ? `The first ${MOST_ROWS} rows are drawn: a zoom to a box shows what is below it.` : '',
      idle > 0 && !this.withIdle ? `Idle time, ${shareText(idle / whole)} of all, is left out.` : '',
      merged > 0 ? `${merged} ${merged === 1 ? 'place' : 'places'} of less than ${least_percent}% each, ${shareText(merged_weight / whole)} of all together, ${merged === 1 ? 'is' : 'are'} in (smaller).` : '',
    ].filter(Boolean).join(' ');
  }

  private at(event: MouseEvent): Place | null {
    const box = this.plot.getBoundingClientRect();
    const [x, row] = [(event.clientX - box.left) / box.width, Math.floor((event.clientY - box.top) / ROW_PX)];
    return this.drawn.find((own) => own.row === row && own.from <= x && x < own.to)?.place ?? null;
  }

  private hover(event: MouseEvent): void {
    const box = this.plot.getBoundingClientRect();
    this.point(this.at(event), event.clientX - box.left, event.clientY - box.top);
  }

  /** Marks a place and says what it is, beside a position. */
  private point(place: Place | null, x = 0, y = 0): void {
    if (this.pointed) this.boxes.get(this.pointed)?.classList.remove('pointed');
    this.pointed = place;
    this.readout.hidden = place === null;
    if (!place) return;
    this.boxes.get(place)?.classList.add('pointed');
    const rows = this.rows(place).flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]);
    this.readout.replaceChildren(h('div', { class: 'when' }, place.name), place.module ? h('div', { class: 'muted' }, place.module) : '', h('dl', {}, ...rows));
    const width = this.plot.clientWidth;
    this.readout.style.left = `${Math.max(0, Math.min(x + 14, width - this.readout.offsetWidth))}px`;
    this.readout.style.top = `${y + 20}px`;
  }

  private rows(place: Place): [string, string][] {
    const top = weightOf(this.top);
    const whole = weightOf(this.roots);
    const rows: [string, string][] = [['with callees', shareText(place.weight / Math.max(1, top))], ['itself', shareText(place.own / Math.max(1, top))]];
    if (whole !== top) rows.push(['of all, with idle time', shareText(place.weight / Math.max(1, whole))]);
    if (this.source.late) rows.push(['cost', exactLatency(place.weight)]);
    return rows;
  }

  private share(place: Place): string {
    return `${shareText(place.weight / Math.max(1, weightOf(this.top)))} of ${this.source.late ? 'late time' : this.withIdle ? 'all' : 'what is not idle'}`;
  }

  private key(key: string): boolean {
    const current = this.pointed ?? this.drawn[0]?.place;
    const to = current ? this.next(current, key) : null;
    if (key === 'Escape') this.zoom(null);
    else if (key === 'Enter' && current) { this.zoom(current); this.step(current); }
    else if (key.startsWith('Arrow') && current) this.step(this.pointed ? to ?? current : current);
    else return false;
    return true;
  }

  private step(place: Place): void {
    const own = this.drawn.find((one) => one.place === place);
    if (!own) return;
    this.point(place, own.from * this.plot.clientWidth, own.row * ROW_PX);
    announce([place.name, ...this.rows(place).map((row) => row.join(' '))].join(', '));
  }

  private next(from: Place, key: string): Place | null {
    const visible = (places: Place[]): Place[] => places.filter((place) => this.boxes.has(place));
    const beside = visible(from === this.zoomed ? [from] : from.caller?.called ?? this.top);
    if (key === 'ArrowDown') return visible(from.called)[0] ?? null;
    if (key === 'ArrowUp') return visible(from.caller ? [from.caller] : [])[0] ?? null;
    return beside[beside.indexOf(from) + (key === 'ArrowRight' ? 1 : -1)] ?? null;
  }

  private search(): void {
    const words = this.input.value.trim().toLowerCase();
    const matches = (place: Place): boolean => words !== '' && `${place.name} ${place.module}`.toLowerCase().includes(words);
    for (const [place, box] of this.boxes) {
      box.classList.toggle('matched', matches(place));
      box.classList.toggle('unmatched', words !== '' && !matches(place));
    }
    const share = matched(this.shown, matches) / Math.max(1, weightOf(this.shown));
    this.found.textContent = words === '' ? '' : `${shareText(share)} of what is shown`;
  }

  /** A row for each place with own time. */
  private csv(): string {
    const rows: [string, number, number][] = [];
    const open = [...this.roots];
    for (let place = open.pop(); place; place = open.pop()) {
      rows.push([pathOf(place).map(({ name }) => name).join(';'), place.own, place.weight]);
      open.push(...place.called);
    }
    return csv(['stack', 'own', 'with_callees'], rows);
  }
}

/** "12.3%" */
export function shareText(share: number): string {
  return share > 0 && share < 0.001 ? '<0.1%' : percent(share, 1);
}
