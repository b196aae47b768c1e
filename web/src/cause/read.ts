// Reading what a run's page knows of causes: columns become entries, places in the tables of texts
// and stacks become those.

import type { PageBlame as DataBlame, PagePart as DataPart, PagePeak as DataPeak, PagePeaks, PageStage, PageTimeline, WayOf } from '../data';
import type { SeriesSummary } from '../model';
import type { Moment, PageBlame, PagePart, PagePeak, Stage } from './model';

const STAGES = ['irq', 'softirq', 'handler', 'dispatch', 'user'] as const;

export function stages(drawn: PageStage[], summaries: SeriesSummary[]): Stage[] {
  const histograms = new Map(drawn.map((stage) => [stage.name, stage.histogram]));
  return summaries.map((summary) => ({
    of: summary.stage_of ?? '', stage: summary.stage ?? '', summary, histogram: histograms.get(summary.name) ?? [],
  }));
}

export const blame = (own: DataBlame | null): PageBlame | null => own;

/** `areGaps` is whether the samples are gaps of threads that never sleep. */
export function peaks({ strings, stacks, parts, peaks: all, damaged }: PagePeaks, areGaps: boolean): { peaks: PagePeak[]; damaged: string[] } {
  const named = stacks.map((stack) => stack.map((place) => strings[place] ?? '?'));
  return { peaks: all.map((own) => peak(own, areGaps, parts, strings, named)), damaged };
}

const OF_MESSAGE = ['send', 'stack', 'wake_up', 'dispatch', 'receive'] as const;

/** The stages of one way of a message; the way itself where it was not split. */
function ofWay({ way, ns, stages: split }: WayOf): { stage: string; ns: number }[] {
  if (!split) return [{ stage: way, ns }];
  return OF_MESSAGE.map((stage) => ({ stage: `${way}-${stage}`, ns: split[stage] })).filter(({ ns: own }) => own !== 0);
}

/** What it is, by its ways. */
function kindOf(ways: WayOf[], areGaps: boolean): PagePeak['kind'] {
  if (ways.length === 0) return areGaps ? 'gap' : 'wake-up';
  if (ways[0].way === 'pacing') return 'scheduled packet';
  return ways.length === 1 ? 'packet' : 'round trip';
}

function peak(own: DataPeak, areGaps: boolean, parts: DataPart[], strings: string[], stacks: string[][]): PagePeak {
  const split = own.stages;
  const ways = own.ways ?? [];
  const stages = split && STAGES.map((stage) => ({ stage, ns: split[stage] })).filter(({ stage, ns }) => stage !== 'softirq' || ns !== 0);
  return {
    ...own,
    kind: kindOf(ways, areGaps),
    stages: ways.length > 0 ? ways.flatMap(ofWay) : stages,
    blame: own.blame.map(([place, ns]): PagePart => ({ ...parts[place], ns, stack: stacks[parts[place].stack] ?? [] })),
    timeline: timeline(own.timeline, strings, stacks),
  };
}

function timeline(own: PageTimeline, strings: string[], stacks: string[][]): Moment[] {
  const word = (column: number[], index: number): string => strings[column[index]] ?? '';
  return own.at.map((at, index): Moment => ({
    at,
    ns: own.ns[index],
    cpu: own.cpu[index],
    lane: Math.min(5, own.lane[index]),
    what: word(own.what, index),
    name: word(own.name, index),
    pid: own.pid[index],
    priority: word(own.priority, index),
    detail: word(own.detail, index),
    stack: stacks[own.stack[index]] ?? [],
  }));
}
