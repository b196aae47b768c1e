// The page: reads the data, puts the sections in order, draws the charts one after another so that
// the first are seen at once, and gets ready for paper.

import { heatPanel } from './chart/heat';
import { histogramPanel } from './chart/histogram';
import { machinePanel } from './chart/machine';
import { percentilePanel } from './chart/percentile';
import { pointsPanel } from './chart/points';
import { causeLead } from './cause/lead';
import { causeSection } from './cause/section';
import { caveatSection } from './caveats';
import { comparisonSection } from './comparison/section';
import { cpuUseSection } from './cpu-use/section';
import { makeContext, samplesOf, type Context } from './context';
import { h, runMark } from './dom';
import { betweenSection } from './between';
import { deadlineSection } from './deadlines';
import { figureSection } from './figure-table';
import { figures } from './figures';
import { head } from './head';
import { matrixSections } from './matrix/sections';
import { messageSection } from './messages';
import { PAGE_VERSION, type Page } from './model';
import { Panel, panels } from './panel';
import { preparePrinting } from './paper';
import { readPage } from './read';
import { record } from './record';
import { seriesSelect } from './selector';
import { tailSection } from './tail';
import { threadSection } from './threads';
import { trendSections } from './trend/sections';
import { instant } from './units';

declare global {
  // For the tests: the charts, and when the first and all were drawn, ms since the page began.
  interface Window { tardyCharts?: Panel[]; tardyDrawn?: { first: number; all: number } }
}

function main(): void {
  const root = document.getElementById('page');
  if (!root) return;
  try {
    const page = readPage(document);
    root.append(...sections(page));
    window.tardyCharts = panels;
    preparePrinting();
    drawInTurn([...panels], 0);
  } catch (error) {
    root.append(h('p', { class: 'notice', role: 'alert' }, `This page cannot show its data: ${String(error)}`));
    throw error;
  }
}

function sections(page: Page): HTMLElement[] {
  return [
    ...newer(page),
    ...(page.trend ? trendSections(page.trend) : page.matrix ? matrixSections(page, page.matrix) : runSections(page)),
    h('footer', {}, `Made by tardy ${page.tardy_version}${page.made_at ? `, ${instant(page.made_at)}` : ''}. ${ofFiles()}`),
  ];
}

/** Which files the page is made of. */
function ofFiles(): string {
  const viewer = document.querySelector('script[src]')?.getAttribute('src');
  return viewer ? `This page needs the file ${viewer} beside it, and loads nothing else.` : 'This page is one file and loads nothing.';
}

function runSections(page: Page): HTMLElement[] {
  const none = h('p', { class: 'notice' }, 'This page holds no runs.');
  return [head(page), ...(page.runs.length === 0 ? [none] : body(makeContext(page)))];
}

function body(context: Context): HTMLElement[] {
  // What has no latencies has no pictures of them.
  if (context.page.runs.every((run) => run.record.series.length === 0)) {
    return [caveatSection(context.page.runs), h('div', { class: 'tables' }, figureSection(context)), machineOnly(context), cpuUseSection(context), record(context.page)]
      .filter((section): section is HTMLElement => section !== null);
  }
  return [
    // The first screen, and the first page of paper: in this order on a phone.
    h('div', { class: 'minute' }, causeLead(context), caveatSection(context.page.runs), percentilePanel(context).element,
      h('div', { class: 'tables' }, figures(context), figureSection(context), messageSection(context))),
    comparisonSection(context.page.comparisons, context.page.words.samples.many, (runs) => samplesOfAll(context, runs)),
    deadlineSection(context),
    threadSection(context),
    betweenSection(context),
    shape(context),
    tailSection(context),
    causeSection(context),
    cpuUseSection(context),
    record(context.page),
  ].filter((section): section is HTMLElement => section !== null);
}

function samplesOfAll({ page }: Context, runs: number[]): number {
  return runs.reduce((sum, run) => sum + (page.runs[run] ? samplesOf(page.runs[run], null) : 0), 0);
}

/** The shape: a column a run, all on the same scales and one time axis. */
function shape(context: Context): HTMLElement {
  const { runs } = context.page;
  const columns = runs.map((run, index) => h('div', { class: 'run-column' },
    runs.length > 1 ? h('h3', { class: 'run-name' }, runMark(index), run.record.name) : null,
    heatPanel(context, run, index).element, pointsPanel(context, run, index).element,
    machinePanel(context, run, index)?.element ?? null));
  return h('section', { class: 'shape', 'aria-label': 'the shape' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Over time'), seriesSelect(context),
      h('span', { class: 'hint', id: 'chart-keys' }, 'Drag to zoom, double click to show all. Keys: arrows read, + and - zoom, Escape resets.')),
    h('div', { class: 'columns', 'data-runs': runs.length }, ...columns),
    histogramPanel(context).element);
}

/** What the machine did meanwhile, a column a run. */
function machineOnly(context: Context): HTMLElement {
  const { runs } = context.page;
  return h('section', { class: 'shape', 'aria-label': 'the machine meanwhile' },
    h('div', { class: 'columns', 'data-runs': runs.length }, ...runs.map((run, index) => h('div', { class: 'run-column' },
      runs.length > 1 ? h('h3', { class: 'run-name' }, run.record.name) : null, machinePanel(context, run, index)?.element ?? null))));
}

function newer(page: Page): HTMLElement[] {
  return page.page_version > PAGE_VERSION
    ? [h('p', { class: 'notice', role: 'alert' }, `The data of this page has version ${page.page_version}; its drawing code knows version ${PAGE_VERSION}. Something may be missing or wrong.`)]
    : [];
}

/** One chart a turn of the event loop: the page stays alive while a day of data is drawn. */
function drawInTurn(waiting: Panel[], first: number): void {
  const next = waiting.shift();
  if (!next) {
    window.tardyDrawn = { first, all: performance.now() };
    return;
  }
  next.start();
  setTimeout(() => drawInTurn(waiting, first || performance.now()), 0);
}

main();
