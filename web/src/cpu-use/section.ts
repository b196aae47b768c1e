// Who used the CPUs: what a profile says by context, task and function, and its stacks as a flame
// graph; of the whole run, or of its late moments only.

import type { Context } from '../context';
import type { PageProfile, SymbolShare, TaskNameShare } from '../data';
import { h, runMark } from '../dom';
import type { PageRun } from '../model';
import { Table, type Column } from '../table';
import { count } from '../units';
import { FlameGraphView, shareText, type FlameSource } from './graph';

const CONTEXTS: { [name: string]: string } = { hardirq: 'hard interrupt', softirq: 'softirq', kernel: 'kernel', user: 'user', idle: 'idle' };
const INTERRUPTS = '[interrupts]';

/** The section; null where no run was profiled. Late moments alone are among the causes already. */
export function cpuUseSection({ page }: Context): HTMLElement | null {
  const { runs } = page;
  if (runs.every(({ cpu_use }) => !cpu_use.profile && !cpu_use.damage)) return null;
  return h('section', { class: 'shape cpu-use', 'aria-label': 'who used the CPUs' },
    h('h2', {}, 'Who used the CPUs'),
    ...runs.map((run, index) => h('div', { class: 'cpu-use-run' },
      runs.length > 1 ? h('h3', { class: 'run-name' }, runMark(index), run.record.name) : null, ...ofRun(run))));
}

function ofRun(run: PageRun): (HTMLElement | null)[] {
  const { profile, late, damage } = run.cpu_use;
  if (damage) return [h('p', { class: 'notice' }, `Damaged: ${damage}`)];
  if (!profile) return [h('p', { class: 'muted' }, run.record.parameters.profile_hz ? 'No profile: the run did not end in order.' : 'This run was not profiled.')];
  const whole: FlameSource = { graph: profile.flame, late: false };
  const view = new FlameGraphView(run.record.name, whole);
  const waits: FlameSource | null = late && { graph: late.flame, late: true };
  return [
    h('p', { class: 'count' }, came(profile)),
    contextBar(profile),
    h('div', { class: 'cpu-use-tables' }, taskTable(profile), symbolTable(profile)),
    ...notes(profile),
    h('div', { class: 'bar-line flame-title' }, h('h3', {}, 'All stacks'),
      waits && late ? switcher(`flame-of-${run.record.id}`, late.peaks, (isLate) => view.show(isLate ? waits : whole)) : null),
    view.element,
  ];
}

function came(profile: PageProfile): string {
  const samples = profile.due === null ? `${count(profile.samples)} samples` : `${count(profile.samples)} of the ${count(profile.due)} samples due`;
  return `${samples} by ${profile.event}, ${profile.hz} a second on each CPU`;
}

function notes(profile: PageProfile): HTMLElement[] {
  return [
    profile.event === 'cpu-clock' ? 'Samples come from a timer: where interrupts are disabled, and so in a hard interrupt, the sample is taken when they are enabled again, and shows what comes next.' : 'By cycles: a halted CPU has none, so that idle time is hardly seen.',
    profile.tells_interrupts ? '' : 'This kernel does not show its preempt count: interrupts are in what they interrupted.',
    profile.lost > 0 ? `${count(profile.lost)} samples were lost.` : '',
    profile.other > 0 ? `${count(profile.other)} samples had no room for their task or stack.` : '',
  ].filter(Boolean).map((text) => h('p', { class: 'note' }, text));
}

/** The whole run, or its late moments. */
function switcher(name: string, peaks: number, choose: (late: boolean) => void): HTMLElement {
  const option = (value: string, words: string, checked: boolean): HTMLElement => {
    const input = h('input', { type: 'radio', name, value, checked });
    input.addEventListener('change', () => choose(value === 'late'));
    return h('label', {}, input, words);
  };
  return h('span', { class: 'toggle', role: 'radiogroup', 'aria-label': 'stacks of' },
    option('run', 'the whole run', true), option('late', `late moments only: ${count(peaks)} ${peaks === 1 ? 'peak' : 'peaks'} by the time that each stack cost`, false));
}

function contextBar(profile: PageProfile): HTMLElement {
  const known = profile.contexts.filter(([name]) => profile.tells_interrupts || !['hardirq', 'softirq'].includes(name));
  const words = (name: string, share: number): string => `${CONTEXTS[name] ?? name} ${shareText(share / 100)}`;
  const parts = known.filter(([, share]) => share > 0).map(([name, share]) => {
    const part = h('span', { class: `context-part context-${name}`, title: words(name, share) });
    part.style.flexGrow = String(share);
    return part;
  });
  return h('div', { class: 'contexts' },
    h('div', { class: 'context-bar', role: 'img', 'aria-label': known.map(([name, share]) => words(name, share)).join(', ') }, ...parts),
    h('p', { class: 'context-keys' }, ...known.map(([name, share]) => h('span', {}, h('span', { class: `swatch context-${name}` }), words(name, share)))));
}

const share = <Row>(title: string, raw: string, value: (row: Row) => number): Column<Row> => ({ title, unit: '%', raw, value, cell: (row) => value(row).toFixed(1) });
const name = (text: string, hint = text): HTMLElement => h('span', { class: 'short', title: hint }, text);

function taskTable(profile: PageProfile): HTMLElement {
  const table = new Table<TaskNameShare>({
    name: 'tasks', rows: profile.tasks, columns: [
      { title: 'task', raw: 'task', left: true, value: (row) => row.name || '[other]', cell: (row) => name(row.name || '[other]') },
      { title: 'tasks', raw: 'tasks', value: (row) => row.tasks, cell: (row) => (row.name === INTERRUPTS ? '–' : count(row.tasks)) },
      share('share', 'share_percent', (row) => row.share), share('user', 'user_percent', (row) => row.user), share('kernel', 'kernel_percent', (row) => row.kernel),
    ],
  });
  return h('div', {}, h('div', { class: 'bar-line' }, h('h3', {}, 'By task'), h('span', { class: 'tools' }, table.copy)), table.element);
}

function symbolTable(profile: PageProfile): HTMLElement {
  const file = (row: SymbolShare): string => row.module.slice(row.module.lastIndexOf('/') + 1);
  const table = new Table<SymbolShare>({
    name: 'functions', rows: profile.symbols, columns: [
      { title: 'function', raw: 'function', left: true, value: (row) => row.name, cell: (row) => name(row.name) },
      { title: 'of', raw: 'of', left: true, value: (row) => row.module, cell: (row) => name(file(row), row.module) },
      share('itself', 'itself_percent', (row) => row.own), share('with callees', 'with_callees_percent', (row) => row.total),
    ],
  });
  return h('div', {}, h('div', { class: 'bar-line' }, h('h3', {}, 'By function'), h('span', { class: 'tools' }, table.copy)), table.element);
}
