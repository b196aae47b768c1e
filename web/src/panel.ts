// A chart in its frame: title, count of samples, data link, text alternative, the ECharts canvas,
// and redrawing when the theme, the width, the zoom or the paper changes. What is drawn is the
// caller's; how a reader moves in it is `pointer.ts`.

import { echarts, type Chart, type Option } from './echarts';
import { dataLink, h } from './dom';
import { Pointer } from './pointer';
import { isPaper, onTheme, theme, type Theme } from './theme';
import type { Follower, Stretch } from './view';

/** What the cursor points at. */
export interface Reading {
  title: string;
  rows: { colour?: string; name: string; value: string }[];
  /** Where on the x axis it is, if it differs from the cursor. */
  at?: number;
}

/** How a chart is drawn at this moment. */
export interface Frame {
  theme: Theme;
  width: number;
  from: number;
  to: number;
  /** Little room: fewer ticks, smaller margins. */
  small: boolean;
}

export interface PanelSpec {
  /** Kind of chart, for tests and files. */
  kind: string;
  run: number | null;
  title: string;
  /** The count of samples and how they were thinned; asked again at each drawing. */
  count: () => string;
  /** What the chart shows, for readers who cannot see it. */
  summary: () => string;
  height: (small: boolean) => number;
  /** On paper, where that is another: a page is to hold more than one chart. */
  paper?: number;
  stretch: Stretch;
  option: (frame: Frame) => Option;
  /** What is at these positions; `y` is null when the cursor is moved by keys. */
  read: (x: number, y: number | null, frame: Frame, panel: Panel) => Reading | null;
  /** What a click there (or Enter at the cursor) does, where it does anything. */
  press?: (x: number, y: number | null, frame: Frame) => void;
  file: () => string;
  csv: () => string;
  /** More controls or keys, between the head and the drawing. */
  extra?: HTMLElement | null;
  /** Whether there is nothing to draw: the chart is then low, and says so. */
  empty: () => boolean;
  /** Called at each drawing, for what the caller keeps around the canvas. */
  redrawn?: () => void;
}

/** A canvas inherits no font. */
const FONT = getComputedStyle(document.documentElement).fontFamily;

/** All panels of the page, in order: for printing, and for the tests through `window.tardyCharts`. */
export const panels: Panel[] = [];

export class Panel implements Follower {
  readonly element: HTMLElement;
  readonly plot: HTMLElement;
  chart: Chart | null = null;
  private readonly counted = h('p', { class: 'count' });
  private readonly summary = h('p', { class: 'vh' });
  private readonly canvas = h('div', { class: 'canvas' });
  private readonly resetButton: HTMLButtonElement;
  private readonly pointer: Pointer;
  private readonly nothing = h('p', { class: 'nothing', hidden: true }, 'nothing to show');
  private width = 0;
  private readonly sizes = new ResizeObserver(() => this.fit());

  constructor(readonly spec: PanelSpec) {
    this.resetButton = h('button', { type: 'button', class: 'quiet', hidden: true, title: 'Show all again (or double click, or Escape)' }, 'reset zoom');
    this.resetButton.addEventListener('click', () => { spec.stretch.reset(); this.plot.focus(); });
    this.plot = h('div', {
      class: 'plot', tabindex: 0, role: 'group', 'aria-roledescription': 'chart', 'aria-label': spec.title, 'aria-describedby': 'chart-keys',
    }, this.canvas, this.nothing);
    this.element = h('figure', { class: `chart ${spec.kind}` },
      h('figcaption', {},
        h('h3', {}, spec.title),
        h('span', { class: 'tools' }, this.resetButton, dataLink(spec.file, spec.csv, spec.title)),
        this.counted),
      spec.extra ?? null, this.plot, this.summary);
    this.pointer = new Pointer(this);
    spec.stretch.join(this);
    panels.push(this);
  }

  /** The first drawing; the panel must be in the page. */
  start(): void {
    if (this.chart) return;
    this.build(Math.min(3, Math.max(1, window.devicePixelRatio)));
    this.sizes.observe(this.plot);
  }

  /** Takes it out of the page for good. */
  dispose(): void {
    panels.splice(panels.indexOf(this), 1);
    this.sizes.disconnect();
    this.chart?.dispose();
    this.element.remove();
  }

  /** Makes the canvas, at this many dots per pixel (paper wants more than a screen). */
  build(dots: number): void {
    this.chart?.dispose();
    this.width = this.plot.clientWidth;
    const height = this.height();
    this.chart = echarts.init(this.canvas, null, {
      renderer: 'canvas', width: this.width, height, devicePixelRatio: dots,
    });
    this.redraw();
    // At once, not at the next frame: paper does not wait for one.
    this.chart.getZr().flush();
  }

  frame(): Frame {
    const { from, to } = this.spec.stretch;
    const width = this.width || this.plot.clientWidth;
    return { theme: theme(), width, from, to, small: width < 480 };
  }

  redraw(): void {
    this.counted.textContent = this.spec.count();
    this.summary.textContent = this.spec.summary();
    this.nothing.hidden = !this.spec.empty();
    this.spec.redrawn?.();
    this.resetButton.hidden = !this.spec.stretch.zoomed;
    if (!this.chart) return;
    const base: Option = { animation: false, textStyle: { fontFamily: FONT, color: theme().text } };
    this.chart.setOption({ ...base, ...this.spec.option(this.frame()) }, { notMerge: true });
  }

  cursor(position: number | null): void {
    this.pointer.mark(position);
  }

  /** The x position under a pixel, kept inside the drawing. */
  positionOf(pixel: number): number {
    const { from, to } = this.spec.stretch;
    const found = this.chart?.convertFromPixel({ gridIndex: 0 }, [pixel, 10]) as number[] | undefined;
    return Math.max(from, Math.min(to, found?.[0] ?? from));
  }

  pixelOf(position: number): number {
    return Number(this.chart?.convertToPixel({ xAxisIndex: 0 }, position) ?? 0);
  }

  private height(): number {
    const { empty, height: onScreen, paper } = this.spec;
    const height = empty() ? 130 : (isPaper() ? paper : undefined) ?? onScreen(this.frame().small);
    this.plot.style.height = `${height}px`;
    return height;
  }

  private fit(): void {
    if (!this.chart || this.plot.clientWidth === this.width || this.plot.clientWidth === 0) return;
    this.width = this.plot.clientWidth;
    const height = this.height();
    this.chart.resize({ width: this.width, height });
    this.redraw();
  }
}

onTheme(() => { for (const panel of panels) panel.redraw(); });
