// What late wake-ups were blamed on: a bar a band of latencies, and the key with the shares. Bars are
// plain boxes, so that they print and scale by themselves.

import { csv, dataLink, fileName, h } from '../dom';
import type { SampleWords } from '../data';
import type { PageRun } from '../model';
import { Table, type Column } from '../table';
import { onTheme, theme } from '../theme';
import { count, counted, exactLatency, latency } from '../units';
import type { Band, CauseInBand, PageBlame } from './model';
import { bandTitle, blamedOf } from './sentence';
import { causeColour, causeKey, causeWords, isInferred, label, letterOf, share, type CauseKeys, type Named } from './words';

/** The number of printed causes: those that have a letter, and a few more. */
const PRINTED = 12;

/** The bars of a run; null where it has none. */
export function blameBars(run: PageRun, keys: CauseKeys): HTMLElement | null {
  const { blame } = run;
  if (!blame || blame.bands.length === 0) return null;
  const bars = h('div', { class: 'bars' });
  const table = new Table(keySpec(blame, keys, run.samples.many));
  const draw = (): void => {
    bars.replaceChildren(...blame.bands.map((band) => bar(band, keys, run.samples.one)));
    table.draw();
  };
  draw();
  onTheme(draw);
  return h('figure', { class: 'blame' },
    h('figcaption', {}, h('h3', {}, `What the slowest ${run.samples.many} were spent on`),
      h('span', { class: 'tools' }, table.copy, dataLink(() => fileName(run.record.name, 'causes'), () => blameCsv(blame), `what the slowest ${run.samples.many} were spent on`)),
      h('p', { class: 'count' }, counts(blame, run.samples))),
    h('p', { class: 'vh' }, summary(blame)), bars, table.element,
    blame.responses ? h('p', {}, `${blame.responses}.${blame.responses.includes('~') ? ' ~ inferred rather than measured.' : ''}`) : null);
}

function counts(blame: PageBlame, { one, kind }: SampleWords): string {
  const also = [
    blame.passed_over ? `${counted(blame.passed_over, `late ${one}`)} skipped, as the analysis fell behind` : '',
    blame.unmatched ? `${counted(blame.unmatched, one)} ${kind === 'round_trip' ? 'with an end that had not gone to sleep' : kind === 'packet' ? 'that found a reader awake' : 'matched nothing that was traced'}` : '',
    blame.lost_events ? `${counted(blame.lost_events, 'event')} lost` : '',
  ].filter(Boolean);
  const { threshold_ns: last, lowest_threshold_ns: lowest } = blame;
  const hasRisen = lowest > 0 && lowest < last;
  const all = `${counted(blame.blamed, `late ${one}`)} above ${latency(hasRisen ? lowest : last)} analyzed`;
  const isAny = blame.bands.some((band) => band.causes.some(isInferred));
  const key = isAny ? ' Hatched, or with a corner cut off: inferred rather than measured.' : '';
  return [hasRisen ? `${all}, at the end only those above ${latency(last)}` : all, ...also].join('; ') + '.' + key;
}

function summary({ bands }: PageBlame): string {
  return bands.map((band) => `${bandTitle(band)}: ${band.causes.slice(0, 4).map((cause) => `${label(cause)} ${share(cause.ns, band.ns)}`).join(', ')}`).join('. ');
}

function bar(band: Band, keys: CauseKeys, one: string): HTMLElement {
  return h('div', { class: 'bar-row' },
    h('div', { class: 'bar-name' }, h('b', {}, bandTitle(band)),
      h('span', { class: 'muted' }, `${band.name === 'worst' ? 'from' : 'over'} ${latency(band.from)}: ${counted(band.wakeups, band.name === 'late' ? 'cycle' : one)}, ${share(blamedOf(band), band.ns)} blamed`)),
    stackBar(band, keys));
}

/** All the time of a band, a part a cause. */
export function stackBar(band: Band, keys: CauseKeys): HTMLElement {
  const own = band.causes.filter((cause) => cause.cause !== 'unexplained' && keys.slot(cause) >= 0);
  // The same order in every bar, so that bands can be compared.
  own.sort((a, b) => keys.slot(a) - keys.slot(b));
  const unknown = band.causes.filter((cause) => cause.cause === 'unexplained').reduce((sum, cause) => sum + cause.ns, 0);
  const rest = Math.max(0, blamedOf(band) - unknown - own.reduce((sum, cause) => sum + cause.ns, 0));
  const others = band.causes.filter((cause) => cause.cause !== 'unexplained' && keys.slot(cause) < 0);
  const parts = own.map((cause) => segment(cause, cause.ns, band, keys, `${label(cause)}`));
  if (rest > band.ns * 1e-4) parts.push(segment({ cause: 'others', name: '' }, rest, band, keys, `${counted(others.length, 'other cause')}`));
  if (unknown > 0) parts.push(segment({ cause: 'unexplained', name: '' }, unknown, band, keys, 'unexplained'));
  const not = Math.max(0, band.ns - blamedOf(band));
  if (not > band.ns * 1e-4) parts.push(segment({ cause: 'not analyzed', name: '' }, not, band, keys, 'not analyzed'));
  return h('div', { class: 'stack-bar' }, ...parts);
}

function segment(named: Named, ns: number, band: Band, keys: CauseKeys, words: string): HTMLElement {
  const slot = keys.slot(named);
  const unknown = named.cause === 'unexplained';
  const not = named.cause === 'not analyzed';
  const part = h('span', {
    class: unknown ? 'part unknown' : isInferred(named) ? 'part inferred' : 'part',
    title: `${words}: ${share(ns, band.ns)}, ${exactLatency(ns)} of ${exactLatency(band.ns)}${isInferred(named) ? '; most of it is an inference' : ''}`,
  }, ...[letterOf(slot), share(ns, band.ns), words].filter(Boolean).map((text, index) => h('span', index === 0 ? { class: 'first' } : {}, text)));
  part.style.flexGrow = String(ns / Math.max(1, band.ns));
  if (!unknown && !not) {
    const { fill, ink } = causeColour(slot, theme());
    part.style.backgroundColor = fill;
    part.style.color = ink;
  }
  return part;
}

interface KeyRow extends Named {
  of: (CauseInBand | undefined)[];
}

function keyRows(blame: PageBlame): KeyRow[] {
  const rows = new Map<string, KeyRow>();
  blame.bands.forEach((band, index) => band.causes.forEach((cause) => {
    const id = `${cause.cause}\n${cause.name}`;
    const row = rows.get(id) ?? { cause: cause.cause, name: cause.name, inferred: 0, of: [] };
    row.of[index] = cause;
    row.inferred = Math.max(row.inferred ?? 0, cause.inferred);
    rows.set(id, row);
  }));
  return [...rows.values()];
}

function keySpec(blame: PageBlame, keys: CauseKeys, many: string) {
  const rows = keyRows(blame);
  const rank = (row: KeyRow): number => (row.cause === 'unexplained' ? 50 : keys.slot(row) < 0 ? 99 : keys.slot(row));
  const most = (row: KeyRow): number => Math.max(...blame.bands.map((band, index) => (row.of[index]?.ns ?? 0) / Math.max(1, band.ns)));
  rows.sort((a, b) => rank(a) - rank(b) || most(b) - most(a));
  const columns: Column<KeyRow>[] = [
    {
      title: 'cause', raw: 'cause', left: true, value: (row) => causeWords(row.cause),
      cell: (row) => h('span', { class: 'cause-name' }, causeKey(row, keys, theme()), causeWords(row.cause)),
    },
    { title: 'which', raw: 'which', left: true, value: (row) => row.name, cell: (row) => h('span', { class: 'which', title: row.name }, row.name || '\u2013') },
    ...blame.bands.map((band, index): Column<KeyRow> => ({
      title: bandTitle(band), raw: `${band.name} (ns)`, hint: `Share of the ${latency(band.ns)} that these ${count(band.wakeups)} ${many} were late together, analyzed or not`,
      value: (row) => row.of[index]?.ns ?? null,
      cell: (row) => {
        const own = row.of[index];
        const how = own && own.inferred > 0 ? `, of which ${share(own.inferred, 1)} inferred` : '';
        return own ? h('span', { title: exactLatency(own.ns) + how }, share(own.ns, band.ns)) : '\u2013';
      },
    })),
  ];
  return { name: 'causes', rows, columns, printed: PRINTED };
}

function blameCsv({ bands }: PageBlame): string {
  return csv(['band', 'from_ns', 'wakeups', 'blamed_share', 'cause', 'which', 'ns', 'share', 'inferred_share'],
    bands.flatMap((band) => band.causes.map((cause): (string | number)[] => [
      band.name, band.from, band.wakeups, band.blamed_share, cause.cause, cause.name, cause.ns, Number((cause.ns / Math.max(1, band.ns)).toFixed(6)), Number(cause.inferred.toFixed(6)),
    ])));
}
