// The tiny distribution in a table row: counts (log) over latency (log) as inline SVG, all rows on
// one scale, the maximum as its own tick so that one sample in a million is seen.

import { svg } from './dom';
import type { SeriesPair } from './context';
import type { LogScale } from './scale';
import { count, latency } from './units';

const WIDTH = 96;
const HEIGHT = 18;

export function spark(pair: SeriesPair, edges: number[], scale: LogScale): Element {
  const histogram = pair.drawn?.histogram ?? [];
  const most = histogram.reduce((high, [, n]) => Math.max(high, n), 1);
  const x = (ns: number): number =>
    ((scale.place(Math.max(ns, 1)) - scale.foot) / (scale.high - scale.foot)) * WIDTH;
  const bars = histogram.map(([bin, n]) => {
    const from = Math.max(0, edges[bin] > 0 ? x(edges[bin]) : 0);
    const height = 2 + ((HEIGHT - 3) * Math.log1p(n)) / Math.log1p(most);
    const width = Math.max(1, x(edges[bin + 1] ?? edges[bin]) - from);
    return `M${from.toFixed(1)} ${HEIGHT}v${(-height).toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}z`;
  });
  const max = pair.summary?.max ?? null;
  return svg('svg', {
    class: 'spark', width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img',
    'aria-label': `distribution of ${count(pair.summary?.count ?? 0)} samples, up to ${latency(max)}`,
  },
  svg('path', { class: 'bars', d: bars.join('') }),
  max !== null && max > 0 ? svg('rect', { class: 'max', x: Math.min(WIDTH - 1.5, Math.max(0, x(max) - 0.75)).toFixed(1), y: 0, width: 1.5, height: HEIGHT }) : null);
}
