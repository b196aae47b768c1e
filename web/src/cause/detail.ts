// One late wake-up opened: its stages, its timeline, what it was blamed on, the stack of what was
// chosen, and the timeline as a table for who cannot see it.

import type { Context } from '../context';
import { copyButton, h } from '../dom';
import type { Panel } from '../panel';
import { Table, type Column } from '../table';
import { theme } from '../theme';
import { exactLatency, exactTime, latency, moment as momentOf } from '../units';
import type { Ranked } from './list';
import type { Moment, PagePart } from './model';
import { momentName, timelinePanel, when } from './timeline';
import { COURSE, LANES, STAGES, causeKey, isInferred, label, share, type CauseKeys } from './words';

/** The stack of a smaller share of a peak is not shown without being asked for. */
const TELLING = 0.1;

export class PeakDetail {
  readonly element = h('div', { class: 'peak' });
  panel: Panel | null = null;
  private chosen: Moment | null = null;
  private readonly shown = h('div', { class: 'shown', 'aria-live': 'polite' });

  constructor(private readonly context: Context, private readonly keys: CauseKeys) {}

  /** Shows another peak. */
  show(own: Ranked, steps: HTMLElement): void {
    const { peak } = own;
    this.panel?.dispose();
    this.chosen = null;
    this.panel = timelinePanel(own.runOf, peak, own.rank, (moment) => this.choose(moment), () => this.chosen);
    const blamed = h('div', { class: 'aside' }, this.blame(own), this.shown);
    this.element.replaceChildren(
      h('div', { class: 'bar-line' }, h('h3', {}, this.title(own)), steps),
      h('p', { class: 'count' }, dueWords(own)),
      stageBar(own),
      h('div', { class: 'peak-body' }, h('div', { class: 'peak-time' }, this.panel.element, asTable(own, (moment) => this.choose(moment))), blamed));
    this.first(own);
  }

  private title(own: Ranked): string {
    const { peak } = own;
    const run = this.context.page.runs.length > 1 ? ` of ${own.runOf.record.name}` : '';
    return `Peak ${own.rank}${run}: ${peak.kind === 'round trip' ? `round trip of ${latency(peak.latency_ns)}` : `${peak.series}, ${latency(peak.latency_ns)}${COURSE[peak.kind].late || ' long'}`}`;
  }

  private choose(moment: Moment): void {
    this.chosen = moment;
    const facts = [LANES[moment.lane], `CPU ${moment.cpu}`, when(moment), moment.priority, moment.detail].filter(Boolean);
    this.tell(momentName(moment), facts.join(', '), moment.stack);
    this.panel?.redraw();
  }

  /** Before anything is chosen: the stack of the largest part that has one. */
  private first(own: Ranked): void {
    const { blame, timeline, latency_ns } = own.peak;
    const part = blame.find(({ stack, ns }) => stack.length > 0 && ns > latency_ns * TELLING);
    const other = blame.some(({ stack }) => stack.length > 0) || timeline.some(({ stack }) => stack.length > 0);
    if (part) this.tell(label(part), part.task, part.stack);
    else this.tell('Stack', other ? 'No stack was walked for what took the time; smaller parts have theirs.' : 'No stack was walked for this peak.', []);
  }

  private tell(title: string, facts: string, stack: string[]): void {
    this.shown.replaceChildren(
      h('h4', {}, title, stack.length ? h('span', { class: 'tools' }, copyButton(() => `${stack.join('\n')}\n`, 'copy', 'the stack')) : null),
      facts ? h('p', { class: 'count' }, facts) : h('p', { hidden: true }),
      stack.length
        ? h('ol', { class: 'functions', tabindex: 0, 'aria-label': 'stack, innermost function first' }, ...stack.map((name) => h('li', {}, name)))
        : h('p', { class: 'note' }, facts.startsWith('No stack') ? '' : 'No stack.'));
  }

  private blame(own: Ranked): HTMLElement {
    const { blame, latency_ns } = own.peak;
    if (blame.length === 0) return h('p', { class: 'muted' }, 'This peak was not analyzed.');
    return h('div', {}, h('h4', {}, 'What the time went to'),
      h('ul', { class: 'parts' }, ...blame.map((part) => h('li', {},
        causeKey(part, this.keys, theme()),
        h('span', { class: 'what' }, isInferred(part) ? 'probably ' : '', label(part), part.task && part.task !== part.name ? h('span', { class: 'muted' }, ` ${part.task}`) : null,
          part.stack.length ? h('span', {}, ' ', this.stackButton(part)) : null,
          part.evidence ? h('span', { class: 'evidence' }, `inferred: ${part.evidence}`) : null),
        h('span', { class: 'amount' }, exactLatency(part.ns)), h('span', { class: 'amount muted' }, share(part.ns, latency_ns))))));
  }

  private stackButton(part: PagePart): HTMLElement {
    const button = h('button', { type: 'button', class: 'quiet', 'aria-label': `stack of ${label(part)}` }, 'stack');
    button.addEventListener('click', () => { this.chosen = null; this.tell(label(part), part.task, part.stack); this.panel?.redraw(); });
    return button;
  }
}

/** When it was due. */
function dueWords({ peak, runOf }: Ranked): string {
  if (peak.t_s === null) return 'When it was due is not in the file.';
  const moment = momentOf(runOf.record.started_at, peak.t_s);
  return `${COURSE[peak.kind].due} ${exactTime(peak.t_s)} after the start${moment ? `, ${moment}` : ''}; CLOCK_MONOTONIC ${peak.at_ns} ns.`;
}

/** How the latency divides into stages. */
function stageBar({ peak, runOf }: Ranked): HTMLElement {
  if (peak.kind === 'gap') return h('p', { class: 'note' }, 'A gap has no stages: its thread never sleeps.');
  if (peak.series.endsWith('/response')) return h('p', { class: 'note' }, 'From the expiry of the timer to the end of the work.');
  if (!peak.stages && runOf.record.status === 'imported') return h('p', { class: 'note' }, 'Its stages are not in the file.');
  if (!peak.stages) return h('p', { class: 'note' }, 'Its stages are not known: the kernel\u2019s record of this wake-up did not match.');
  const bar = h('div', { class: 'stage-bar', role: 'img', 'aria-label': peak.stages.map(({ stage, ns }) => `${STAGES[stage]} ${exactLatency(ns)}`).join(', ') });
  peak.stages.forEach(({ stage, ns }, index) => {
    const part = h('span', { class: `part stage${index % 2}`, title: `${STAGES[stage]}: ${exactLatency(ns)}, ${share(ns, peak.latency_ns)}` }, h('span', {}, `${STAGES[stage]} ${latency(ns)}`));
    part.style.flexGrow = String(Math.max(0, ns) / Math.max(1, peak.latency_ns));
    bar.append(part);
  });
  return h('div', { class: 'stages' }, bar,
    h('p', { class: 'note' }, `Stages: ${peak.stages.map(({ stage, ns }) => `${STAGES[stage]} ${latency(ns)}`).join(' + ')} = ${latency(peak.latency_ns)}`));
}

/** Every entry in words; made when it is asked for. */
function asTable({ peak }: Ranked, choose: (moment: Moment) => void): HTMLElement {
  const button = h('button', { type: 'button', class: 'quiet', 'aria-expanded': 'false' }, 'show as a table');
  const box = h('div', { hidden: true });
  button.addEventListener('click', () => {
    box.hidden = !box.hidden;
    button.setAttribute('aria-expanded', String(!box.hidden));
    button.textContent = box.hidden ? 'show as a table' : 'hide the table';
    if (!box.firstChild) {
      const table = new Table<Moment>({ name: 'timeline', rows: peak.timeline, columns: momentColumns(choose) });
      box.append(table.element, h('p', { class: 'note' }, table.copy));
    }
  });
  return h('div', { class: 'as-table' }, button, box);
}

function momentColumns(choose: (moment: Moment) => void): Column<Moment>[] {
  const plain = (title: string, value: (moment: Moment) => string): Column<Moment> => ({
    title, raw: title, left: true, value, cell: (moment) => h('span', { class: 'short wide', title: value(moment) }, value(moment)),
  });
  return [
    { title: 'at', raw: 'at_ns', hint: 'After the programmed expiry, the scheduled time, the sending or the stamp', value: (moment) => moment.at, cell: (moment) => exactLatency(moment.at) },
    { title: 'for', raw: 'ns', value: (moment) => moment.ns, cell: (moment) => (moment.ns === null ? '\u2013' : exactLatency(moment.ns)) },
    plain('lane', (moment) => LANES[moment.lane]),
    { title: 'CPU', raw: 'cpu', value: (moment) => moment.cpu, cell: (moment) => `${moment.cpu}` },
    {
      ...plain('what', momentName),
      cell: (moment) => {
        if (moment.stack.length === 0) return h('span', { class: 'short wide', title: momentName(moment) }, momentName(moment));
        const button = h('button', { type: 'button', class: 'quiet' }, `${momentName(moment)}: stack`);
        button.addEventListener('click', () => choose(moment));
        return button;
      },
    },
    plain('priority', (moment) => moment.priority),
    plain('detail', (moment) => moment.detail),
  ];
}
