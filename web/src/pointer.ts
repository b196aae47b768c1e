// Moving in a chart: the common cursor, the readout beside it, zoom by drag (or + and -), reset by
// double click (or Escape), arrow keys. Listens on the drawing's box, not on the canvas, so that
// all charts behave alike and the keys do what the mouse does.

import { announce, h } from './dom';
import type { Panel, Reading } from './panel';

/** A shorter drag is a click that trembled. */
const DRAG_LEAST_PX = 6;
/** Arrow keys cross the chart in this number of steps. */
const KEY_STEPS = 100;

export class Pointer {
  private readonly line = h('div', { class: 'cursor', hidden: true });
  private readonly band = h('div', { class: 'band', hidden: true });
  private readonly readout = h('div', { class: 'readout', hidden: true });
  private dragFrom: number | null = null;
  private lastTap = { at: 0, x: 0 };
  private at: number | null = null;

  constructor(private readonly panel: Panel) {
    const { plot } = panel;
    plot.append(this.band, this.line, this.readout);
    plot.addEventListener('pointerdown', (event) => this.down(event));
    plot.addEventListener('pointermove', (event) => this.move(event));
    plot.addEventListener('pointerup', (event) => this.up(event));
    plot.addEventListener('pointercancel', () => this.drop());
    plot.addEventListener('pointerleave', () => { if (this.dragFrom === null) this.leave(); });
    plot.addEventListener('dblclick', () => panel.spec.stretch.reset());
    plot.addEventListener('keydown', (event) => this.key(event));
    plot.addEventListener('blur', () => this.leave());
  }

  /** Shows the common cursor at this position. */
  mark(position: number | null): void {
    const { from, to } = this.panel.spec.stretch;
    const shown = position !== null && position >= from && position <= to && this.panel.chart !== null;
    this.line.hidden = !shown;
    if (shown) this.line.style.transform = `translateX(${this.panel.pixelOf(position)}px)`;
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.dragFrom = this.inside(event);
    this.panel.plot.setPointerCapture(event.pointerId);
  }

  private move(event: PointerEvent): void {
    const pixel = this.inside(event);
    if (this.dragFrom !== null && Math.abs(pixel - this.dragFrom) >= DRAG_LEAST_PX) {
      this.hideReadout();
      this.showBand(this.dragFrom, pixel);
      return;
    }
    const y = event.clientY - this.panel.plot.getBoundingClientRect().top;
    this.point(this.panel.positionOf(pixel), y, event.pointerType === 'touch');
  }

  private up(event: PointerEvent): void {
    const start = this.dragFrom;
    const end = this.inside(event);
    this.drop();
    if (start === null) return;
    if (Math.abs(end - start) >= DRAG_LEAST_PX) {
      this.panel.spec.stretch.show(this.panel.positionOf(start), this.panel.positionOf(end));
      return;
    }
    if (event.pointerType === 'touch') this.tap(event, end);
    this.press(this.panel.positionOf(end), event.clientY - this.panel.plot.getBoundingClientRect().top);
  }

  private press(position: number, yPixel: number | null): void {
    const { panel } = this;
    if (panel.chart) panel.spec.press?.(position, yPixel === null ? null : this.heightOf(position, yPixel), panel.frame());
  }

  /** The y position under a pixel. */
  private heightOf(position: number, yPixel: number): number {
    const { panel } = this;
    return (panel.chart?.convertFromPixel({ gridIndex: 0 }, [panel.pixelOf(position), yPixel]) as number[])[1];
  }

  /** A finger has no hover: a tap reads, a second one on the same spot shows all again. */
  private tap(event: PointerEvent, pixel: number): void {
    const again = event.timeStamp - this.lastTap.at < 350 && Math.abs(pixel - this.lastTap.x) < 30;
    this.lastTap = { at: event.timeStamp, x: pixel };
    if (again) this.panel.spec.stretch.reset();
    else this.point(this.panel.positionOf(pixel), event.clientY - this.panel.plot.getBoundingClientRect().top, true);
  }

  private drop(): void {
    this.dragFrom = null;
    this.band.hidden = true;
  }

  private leave(): void {
    this.hideReadout();
    this.panel.spec.stretch.point(null);
  }

  private hideReadout(): void {
    this.readout.hidden = true;
  }

  private key(event: KeyboardEvent): void {
    const { stretch } = this.panel.spec;
    const here = this.at !== null && this.at >= stretch.from && this.at <= stretch.to
      ? this.at : (stretch.from + stretch.to) / 2;
    const step = ((stretch.to - stretch.from) / KEY_STEPS) * (event.shiftKey ? 10 : 1);
    const acts: { [key: string]: () => void } = {
      ArrowLeft: () => this.step(here - step),
      ArrowRight: () => this.step(here + step),
      Home: () => this.step(stretch.from),
      End: () => this.step(stretch.to),
      PageUp: () => stretch.move(-0.5),
      PageDown: () => stretch.move(0.5),
      '+': () => { stretch.scale(here, 0.5); this.step(here); },
      '=': () => { stretch.scale(here, 0.5); this.step(here); },
      '-': () => { stretch.scale(here, 2); this.step(here); },
      Escape: () => { stretch.reset(); this.leave(); },
      ...(this.panel.spec.press ? { Enter: () => this.press(here, null) } : {}),
    };
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private step(to: number): void {
    const { from, to: end } = this.panel.spec.stretch;
    const reading = this.point(Math.max(from, Math.min(end, to)), null, false);
    if (reading) announce([reading.title, ...reading.rows.map((row) => `${row.name} ${row.value}`)].join(', '));
  }

  private point(position: number, yPixel: number | null, touch: boolean): Reading | null {
    const { panel } = this;
    if (!panel.chart) return null;
    this.at = position;
    const y = yPixel === null ? null : this.heightOf(position, yPixel);
    const reading = panel.spec.read(position, y, panel.frame(), panel);
    panel.spec.stretch.point(reading?.at ?? position);
    if (!reading) this.hideReadout();
    else this.show(reading, panel.pixelOf(reading.at ?? position), touch ? 0 : yPixel ?? 0);
    return reading;
  }

  private show(reading: Reading, x: number, y: number): void {
    this.readout.replaceChildren(h('div', { class: 'when' }, reading.title), h('dl', {},
      ...reading.rows.flatMap((row) => {
        const swatch = h('span', { class: 'swatch' });
        if (row.colour) swatch.style.background = row.colour;
        return [h('dt', {}, row.colour ? swatch : null, row.name), h('dd', {}, row.value)];
      })));
    this.readout.hidden = false;
    const room = this.panel.plot.clientWidth;
    const width = this.readout.offsetWidth;
    const right = x + 14 + width <= room;
    const left = right ? x + 14 : Math.max(0, x - 14 - width);
    const top = Math.max(0, Math.min(y - 20, this.panel.plot.clientHeight - this.readout.offsetHeight));
    this.readout.style.transform = `translate(${Math.min(left, Math.max(0, room - width))}px, ${top}px)`;
  }

  private showBand(a: number, b: number): void {
    this.band.hidden = false;
    this.band.style.left = `${Math.min(a, b)}px`;
    this.band.style.width = `${Math.abs(b - a)}px`;
  }

  /** The pixel in the drawing, kept between the ends of the axis. */
  private inside(event: PointerEvent): number {
    const { stretch } = this.panel.spec;
    const x = event.clientX - this.panel.plot.getBoundingClientRect().left;
    return Math.max(this.panel.pixelOf(stretch.from), Math.min(this.panel.pixelOf(stretch.to), x));
  }
}
