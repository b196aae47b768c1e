// Which run a row of a table is of, where the page has several.

import { h, runMark } from './dom';
import type { PageRun } from './model';
import type { Column } from './table';

/** The column of the run that `indexOf` says: the dash of its lines, and what its name alone has. */
export function runColumn<Row>(runs: PageRun[], indexOf: (row: Row) => number): Column<Row> {
  const names = runs.map((run) => run.record.name);
  const parts = distinctParts(names);
  return {
    title: 'run', raw: 'run', left: true, value: (row) => names[indexOf(row)],
    cell: (row) => h('span', { class: 'run-name', title: names[indexOf(row)] },
      runMark(indexOf(row)), h('span', { class: 'short' }, parts[indexOf(row)])),
  };
}

/** Long names without the words that all of them begin with: ids of one day differ at their end. */
function distinctParts(names: string[]): string[] {
  const [first = '', ...others] = names;
  let same = 0;
  while (same < first.length && others.every((name) => name[same] === first[same])) same += 1;
  const cut = Math.max(...'-_. /'.split('').map((mark) => first.lastIndexOf(mark, same - 1))) + 1;
  return names.map((name) => (cut > 3 && cut < name.length && name.length > 16 ? `…${name.slice(cut)}` : name));
}
