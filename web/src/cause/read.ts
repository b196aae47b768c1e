// Reading what a run's page knows of causes: columns become entries, places in the tables of texts
// and stacks become those.

import { column, list, number, numberOrNull, object, pairs, text, texts, type Loose } from '../loose';
import type { SeriesSummary } from '../model';
import type { Band, Moment, PageBlame, PagePart, PagePeak, Stage } from './model';

const STAGES = ['irq', 'softirq', 'handler', 'dispatch', 'user'];

export function stages(value: unknown, summaries: SeriesSummary[]): Stage[] {
  const drawn = new Map(list(value).map((item) => [text(object(item).name), pairs(object(item).histogram)]));
  return summaries.map((summary) => {
    const slash = summary.name.indexOf('/');
    return { of: summary.name.slice(0, slash), stage: summary.name.slice(slash + 1), summary, histogram: drawn.get(summary.name) ?? [] };
  });
}

export function blame(value: unknown): PageBlame | null {
  if (value === null || value === undefined) return null;
  const loose = object(value);
  return {
    threshold_ns: number(loose.threshold_ns),
    blamed: number(loose.blamed),
    passed_over: number(loose.passed_over),
    unmatched: number(loose.unmatched),
    lost_events: number(loose.lost_events),
    bands: list(loose.bands).map(band),
  };
}

function band(value: unknown): Band {
  const loose = object(value);
  return {
    name: text(loose.name, '?'),
    from: number(loose.from),
    wakeups: number(loose.wakeups),
    ns: number(loose.ns),
    blamed_share: number(loose.blamed_share),
    causes: list(loose.causes).map((item) => {
      const own = object(item);
      return { cause: text(own.cause, 'unexplained'), name: text(own.name), ns: number(own.ns) };
    }),
  };
}

export function peaks(value: unknown): { peaks: PagePeak[]; damaged: string[] } {
  const loose = object(value);
  const strings = texts(loose.strings);
  const stacks = list(loose.stacks).map((stack) => column(stack).map((place) => strings[place] ?? '?'));
  return { peaks: list(loose.peaks).map((item) => peak(object(item), strings, stacks)), damaged: texts(loose.damaged) };
}

function peak(loose: Loose, strings: string[], stacks: string[][]): PagePeak {
  const split = loose.stages === null || loose.stages === undefined ? null : object(loose.stages);
  return {
    t_s: number(loose.t_s),
    at_ns: number(loose.at_ns),
    series: text(loose.series, '?'),
    cpu: number(loose.cpu),
    latency_ns: number(loose.latency_ns),
    stages: split && STAGES.map((stage) => ({ stage, ns: number(split[stage]) })).filter(({ stage, ns }) => stage !== 'softirq' || ns !== 0),
    blame: list(loose.blame).map((item): PagePart => {
      const own = object(item);
      return { cause: text(own.cause, 'unexplained'), name: text(own.name), task: text(own.task), ns: number(own.ns), stack: stacks[number(own.stack)] ?? [] };
    }),
    timeline: timeline(object(loose.timeline), strings, stacks),
    left_out: number(loose.left_out),
  };
}

function timeline(loose: Loose, strings: string[], stacks: string[][]): Moment[] {
  const columns = Object.fromEntries(['cpu', 'lane', 'what', 'name', 'pid', 'priority', 'detail', 'stack'].map((name) => [name, column(loose[name])]));
  const lengths = list(loose.ns).map(numberOrNull);
  const word = (name: string, index: number): string => strings[columns[name][index]] ?? '';
  return column(loose.at).flatMap((at, index): Moment[] => (Number.isFinite(at) ? [{
    at,
    ns: lengths[index] ?? null,
    cpu: number(columns.cpu[index]),
    lane: Math.max(0, Math.min(5, number(columns.lane[index], 4))),
    what: word('what', index),
    name: word('name', index),
    pid: number(columns.pid[index]),
    priority: word('priority', index),
    detail: word('detail', index),
    stack: stacks[columns.stack[index]] ?? [],
  }] : []));
}
