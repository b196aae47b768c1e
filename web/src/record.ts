// The record: everything else that a run knows about itself, a column a run, so that two runs can be
// told apart. Collapsed, searchable, copyable; on paper what the reader has opened.

import { caveatList } from './caveats';
import { copyButton, csv, dataLink, fileName, h, runMark, tsv } from './dom';
import { flatten, readable, type Fact } from './flatten';
import type { Page, PageRun, RunRecord } from './model';
import { interruptTable } from './interrupts';
import { count, duration, instant, rate } from './units';

export function record(page: Page): HTMLElement {
  const { runs } = page;
  const body = h('div', { class: 'groups' },
    group('record-caveats', `Caveats (${runs.map((run) => run.record.caveats.length).join(' and ')})`, caveats(runs)),
    group('record-command', 'Command to repeat it', commands(runs)),
    group('record-setup', 'Setup: asked and found', setup(runs)),
    group('record-probe', 'Probe and run', facts(runs, runFacts, 'probe and run')),
    group('record-facts', 'Facts of the machine', facts(runs, (run) => flatten(run.record.facts), 'facts')),
    group('record-loads', `Load activity (${runs.map((run) => run.record.loads.length).join(' and ')})`, loads(runs)),
    group('record-machine', 'System activity, on average', facts(runs, (run) => flatten(run.record.machine ?? {}), 'machine')),
    group('record-conditions', 'Conditions meanwhile', facts(runs, (run) => flatten(run.record.conditions ?? {}), 'conditions')),
    group('record-interrupts', `Interrupt counts that changed (${runs.map((run) => run.interrupts.length).join(' and ')})`, interrupts(runs)),
    group('record-versions', 'Versions', facts(runs, (run) => versions(page, run), 'versions')));
  return h('section', { class: 'record', 'aria-label': 'the record' },
    h('div', { class: 'bar-line' }, h('h2', {}, 'Record'), search(body), h('span', { class: 'tools' }, openAll(body))),
    body);
}

function group(id: string, title: string, content: (HTMLElement | null)[]): HTMLDetailsElement {
  return h('details', { id }, h('summary', {}, title), ...content);
}

function openAll(body: HTMLElement): HTMLElement {
  const button = h('button', { type: 'button', class: 'quiet' }, 'open all');
  button.addEventListener('click', () => {
    const all = [...body.querySelectorAll('details')];
    const open = all.some((details) => !details.open);
    for (const details of all) details.open = open;
    button.textContent = open ? 'close all' : 'open all';
  });
  return button;
}

/** Shows only what holds the words; opens the groups that hold any. */
function search(body: HTMLElement): HTMLElement {
  const input = h('input', { type: 'search', placeholder: 'filter the record', 'aria-label': 'filter the record', autocomplete: 'off', spellcheck: 'false' });
  const found = h('span', { class: 'muted', role: 'status' });
  input.addEventListener('input', () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    for (const details of body.querySelectorAll('details')) {
      let own = 0;
      for (const item of details.querySelectorAll<HTMLElement>('tbody tr, li, .command')) {
        const text = (item.textContent ?? '').toLowerCase();
        const hit = words.every((word) => text.includes(word));
        item.hidden = !hit;
        if (hit) own += 1;
      }
      details.hidden = words.length > 0 && own === 0;
      details.open = words.length > 0 && own > 0;
      hits += own;
    }
    found.textContent = words.length ? `${hits} found` : '';
  });
  return h('span', { class: 'search' }, input, found);
}

function heading(runs: PageRun[], index: number): HTMLElement | null {
  return runs.length > 1
    ? h('h3', { class: 'run-name' }, runMark(index), runs[index].record.name) : null;
}

function caveats(runs: PageRun[]): HTMLElement[] {
  return runs.map((run, index) => h('div', {}, heading(runs, index),
    run.record.caveats.length ? caveatList(run.record.caveats) : h('p', { class: 'muted' }, 'None.')));
}

function commands(runs: PageRun[]): HTMLElement[] {
  return runs.map((run, index) => h('div', {}, heading(runs, index),
    h('div', { class: 'command' }, h('pre', { tabindex: 0 }, run.command || run.record.argv.join(' ') || 'not recorded'),
      copyButton(() => run.command, 'copy', 'the command'))));
}

/** A table of facts: a row a name, the given columns; rows that differ between runs are marked. */
function grid(head: string[], rows: string[][], marked: (row: string[]) => boolean, name: string): HTMLElement {
  const copy = copyButton(() => tsv([head, ...rows]), 'copy', name);
  return h('div', { class: 'grid' },
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': name }, h('table', { class: 'facts' },
      h('caption', { class: 'vh' }, name),
      h('thead', {}, h('tr', {}, ...head.map((title) => h('th', { scope: 'col', class: 'left' }, title)))),
      h('tbody', {}, ...rows.map((row) => {
        const differs = marked(row);
        return h('tr', { class: differs ? 'differs' : '' }, h('th', { scope: 'row', class: 'left' }, differs ? h('span', { class: 'mark', title: 'differs' }, '≠ ') : null, row[0]),
          ...row.slice(1).map((text) => h('td', { class: 'left' }, text)));
      })))), copy);
}

/** All names that any run has, in order of first appearance, with what each run says. */
function joined(parts: Fact[][]): string[][] {
  const maps = parts.map((part) => new Map(part));
  const names = [...new Set(parts.flatMap((part) => part.map(([name]) => name)))];
  return names.map((name) => [readable(name), ...maps.map((map) => map.get(name) ?? '–')]);
}

const differ = (row: string[]): boolean => row.slice(1).some((text) => text !== row[1]);

function facts(runs: PageRun[], of: (run: PageRun) => Fact[], name: string): HTMLElement[] {
  const rows = joined(runs.map(of));
  if (rows.length === 0) return [h('p', { class: 'muted' }, 'Nothing recorded.')];
  return [grid(['', ...runs.map((run) => (runs.length > 1 ? run.record.name : 'value'))], rows, differ, name)];
}

/** Asked and found beside each other; a row is marked where they are not the same. */
function setup(runs: PageRun[]): HTMLElement[] {
  return runs.map((run, index) => {
    const rows = joined(askedAndFound(run));
    const unlike = (row: string[]): boolean => row[1] !== '–' && row[2] !== '–' && !/; |, in this order\)$/.test(row[2]) && row[2].replace(/ \(all \d+\)$/, '') !== row[1];
    return h('div', {}, heading(runs, index),
      rows.length ? grid(['setting', 'asked', 'found'], rows, unlike, 'setup') : h('p', { class: 'muted' }, 'Nothing recorded.'));
  });
}

/** What a thread was asked is asked once and found per thread: the two belong in one row. */
function askedAndFound(run: PageRun): [Fact[], Fact[]] {
  const { asked: wishes, found: results } = run.record.setup;
  const wished = Object.entries(wishes ?? {}).filter(([, value]) => value !== null);
  // What nobody asked for and was not arranged is not worth a row.
  const wanted = new Set(wished.filter(([, value]) => value !== false).map(([name]) => name));
  const arranged = Object.entries(results).filter(([name, value]) => value !== null || wanted.has(name));
  const asked = flatten(Object.fromEntries(wished));
  const names = new Set(asked.map(([name]) => name));
  const found = flatten(Object.fromEntries(arranged)).map(([name, text]): Fact =>
    [names.has(name.replace(/^threads\./, '')) ? name.replace(/^threads\./, '') : name, text]);
  return [asked, found];
}

const origin = ({ origin: how, program, version }: RunRecord['provenance']): string => `${how}, ${program} ${version}`.trim();

function runFacts(run: PageRun): Fact[] {
  const { record: own } = run;
  return [
    ['probe', own.probe.name], ...flatten(own.probe.parameters, 'parameter'), ...flatten(own.parameters, 'run'),
    ['trace asked', own.trace.asked || 'unknown'], ['trace found', own.trace.found || 'unknown'],
    ['status', own.status], ['validity', own.validity], ['name', own.name], ['id', own.id],
    ['started', own.started_at ? instant(own.started_at) : 'unknown'],
    ['ended', own.ended_at ? instant(own.ended_at) : 'not recorded'],
    ['samples', origin(own.provenance)], ['duration', duration(own.duration_ns / 1e9)], ['start_monotonic_ns', `${count(own.start_monotonic_ns)} ns`],
  ];
}

function loads(runs: PageRun[]): HTMLElement[] {
  return runs.map((run, index) => h('div', {}, heading(runs, index), ...(run.record.loads.length
    ? run.record.loads.map((load) => {
      const proof: Fact[] = load.proof ? [
        ['operations', `${count(load.proof.operations)} ${load.proof.unit}`],
        ['operations per second', `${rate(load.proof.operations_per_s)} ${load.proof.unit}/s`],
        ['context switches per second', rate(load.proof.context_switches_per_s)],
        ['CPU share', `${rate(load.proof.cpu_share)} CPUs`], ['tasks', count(load.proof.tasks)],
      ] : [['proof', 'none: it never started']];
      const rows: Fact[] = [['load', load.name], ...flatten(load.parameters, 'parameter'), ...proof, ['ended', load.ended ?? 'still running']];
      return grid(['', 'value'], joined([rows]), () => false, `load ${load.name}`);
    }) : [h('p', { class: 'muted' }, 'No load: the machine was left idle.')])));
}

function interrupts(runs: PageRun[]): HTMLElement[] {
  if (runs.every((run) => run.interrupts.length === 0)) return [h('p', { class: 'muted' }, 'Nothing recorded.')];
  const data = dataLink(() => fileName('interrupts'), () => csv(
    ['run', 'kind', 'source', 'description', 'per_s', 'cpu', 'count'],
    runs.flatMap((run) => run.interrupts.flatMap((row) => row.per_cpu.map(([cpu, n]) =>
      [run.record.name, row.kind, row.source, row.description, row.per_s, cpu, n])))), 'interrupts');
  return runs.map((run, index) => h('div', {}, heading(runs, index), run.interrupts.length
    ? interruptTable(run, index === 0 ? data : null) : h('p', { class: 'muted' }, 'Nothing recorded.')));
}

function versions(page: Page, run: PageRun): Fact[] {
  const { facts: known } = run.record;
  const text = (value: string | null): string => value || 'unknown';
  return [
    ['tardy that measured', text(known.tardy_version)], ['run.json schema', String(run.record.schema_version)],
    ['kernel', text(known.kernel)], ['distribution', text(known.distribution)],
    ['tardy that made this page', page.tardy_version || 'unknown'], ['page data', String(page.page_version)],
    ['page made', page.made_at ? instant(page.made_at) : 'unknown'],
  ];
}
