// What rows, columns and repetitions of a matrix are called: of the lab, of a plan, of a comparison.

import type { MatrixKind, PageCellRun } from '../model';

interface Words {
  row: string;
  column: string;
  /** One of several runs of a cell. */
  repeat: string;
  repeats: string;
  charts: string;
  ranges: string;
}

export const WORDS: { [kind in MatrixKind]: Words } = {
  lab: {
    row: 'load', column: 'kernel', repeat: 'phase', repeats: 'phase offsets', charts: 'Latency by percentile, load by load',
    ranges: 'Percentiles: where the median of all phase offsets lies (95%), or with fewer than 6 of them their range. max: the largest over these phases. Underlined: fewer than 10 samples beyond it in a run, so it is little more than the maximum, and not judged.',
  },
  plan: {
    row: 'combination', column: 'combination', repeat: 'repeat', repeats: 'repeats', charts: 'Latency by percentile, row by row',
    ranges: 'Percentiles: from the smallest to the largest repeat, or with 6 repeats and more where their median lies (95%). max: the largest of all repeats. Underlined: fewer than 10 samples beyond it in a run, so it is little more than the maximum.',
  },
  ab: {
    row: 'blocks', column: 'side', repeat: 'block', repeats: 'blocks', charts: 'Latency by percentile, all blocks of a side together',
    ranges: 'Percentiles: where the median of the blocks lies (95%), or with fewer than 6 of them their range. max: the largest of all blocks. Underlined: fewer than 10 samples beyond it in a block, so it is little more than the maximum.',
  },
};

/** "2 of 3 measured, 1 failed"; empty where all are measured. */
export function progress(runs: PageCellRun[]): string {
  const of = (status: PageCellRun['status']): number => runs.filter((run) => run.status === status).length;
  const [measured, failed] = [of('measured'), of('failed')];
  if (measured === runs.length) return '';
  if (measured === 0 && failed === 0) return 'not measured yet';
  if (measured === 0 && failed === runs.length) return 'failed';
  return `${measured} of ${runs.length} measured${failed ? `, ${failed} failed` : ''}`;
}

/** A place of a page beside this one; null for anything that leads elsewhere. */
export function besideThis(page: string | null): string | null {
  const parts = (page ?? '').split('/');
  const good = parts.length === 2 && parts.every((part) => /^[\w%-][\w.%-]*$/.test(part));
  return good ? page : null;
}
