// The parts of a plan: what each comes to, its latencies and its other figures in their own tables,
// the causes over all of it, and what was found on the machine before.

import { label as causeLabel, share } from '../cause/words';
import { h, withCode } from '../dom';
import type { CellCause, FigureRange, PageFinding, PageMatrix, PlanPart, PagePlan, PageSuite, PartFigure } from '../model';
import { Table, type Column } from '../table';
import { count, threeDigits } from '../units';
import { WHAT_IS_BETTER } from '../figure-table';
import { partTable, withoutPart } from './table';

export function suiteSections(matrix: PageMatrix, suite: PageSuite): (HTMLElement | null)[] {
  return [answers(suite.plans), ...suite.parts.map((part, index) => partSection(matrix, part, index === 0)), causes(suite.causes), findings(suite.plans)];
}

function answers(plans: PagePlan[]): HTMLElement {
  return h('section', { class: 'suite-answers', 'aria-label': 'what it comes to' },
    ...plans.map((plan) => h('div', {},
      plans.length > 1 ? h('h2', {}, plan.name) : null,
      plan.machine ? h('p', { class: 'line' }, plan.machine) : null,
      h('ul', { class: 'answers' }, ...plan.answers.map((text) => h('li', {}, text))))));
}

/** Its latencies, where it has some, and its other figures. */
function partSection(matrix: PageMatrix, part: PlanPart, isFirst: boolean): HTMLElement {
  const rows = matrix.loads.filter((row) => part.rows.includes(row.name));
  const hasLatencies = rows.some((row) => row.cells.some((cell) => cell?.figures.length));
  const nothing = !hasLatencies && part.figures.length === 0;
  return h('section', { class: 'plan-part', 'aria-label': part.name },
    // The table of latencies brings the heading along.
    hasLatencies ? partTable(matrix, part.name, rows, isFirst) : h('h2', {}, part.name),
    nothing ? h('p', { class: 'muted' }, 'Nothing of it was measured.') : null,
    part.figures.length ? figuresOf(matrix, part) : null);
}

function figuresOf(matrix: PageMatrix, part: PlanPart): HTMLElement {
  const beside = part.figures.some((figure) => figure.change) || (matrix.suite?.plans.length ?? 1) > 1;
  const table = beside ? besideTable(matrix, part) : byRow(matrix, part);
  return h('div', { class: 'part-figures' },
    h('div', { class: 'bar-line' }, h('span', { class: 'hint' }, 'Metrics other than latencies'), h('span', { class: 'tools' }, table.copy)),
    table.element,
    h('p', { class: 'note' }, 'The median of the means of the runs, and below it from the smallest to the largest. ', WHAT_IS_BETTER,
      beside ? ' Verdicts: Welch\u2019s test of the logarithms of the runs\u2019 means; all figures of this page share an error probability of 5% (Holm), and in brackets is the interval at which each was judged. The same: within 5%. A change is of the geometric means of the runs, beside which the medians may point elsewhere; over an inconclusive one stands how many repeats would decide it.' : ''));
}

interface Line {
  name: string;
  unit: string;
  own: PartFigure[];
}

const NAME: Column<{ name: string }> = { title: 'metric', raw: 'figure', left: true, value: (line) => line.name, cell: (line) => h('span', { class: 'wraps' }, line.name) };
const UNIT: Column<{ unit: string }> = { title: 'unit', raw: 'unit', left: true, value: (line) => line.unit, cell: (line) => line.unit };

/** A line a figure, a column a row of the plan. */
function byRow(matrix: PageMatrix, part: PlanPart): Table<Line> {
  const lines: Line[] = [];
  for (const figure of part.figures) {
    const known = lines.find((line) => line.name === figure.name && line.unit === figure.unit);
    if (known) known.own.push(figure);
    else lines.push({ name: figure.name, unit: figure.unit, own: [figure] });
  }
  const columns = part.rows.flatMap((row) => matrix.kernels.map((kernel, at) => ({ row, at, title: [shorter(row, part.name), kernel.name].filter(Boolean).join(', ') || 'value' })));
  const found = columns.map(({ row, at, title }) => ({ title, of: (line: Line): FigureRange | null => line.own.find((figure) => figure.row === row)?.cells[at] ?? null }));
  const used = found.filter(({ of }) => lines.some((line) => of(line)));
  return new Table<Line>({
    name: `figures of ${part.name}`, rows: lines,
    columns: [NAME, UNIT, ...used.map(({ title, of }) => rangeColumn<Line>(title, of))],
  });
}

/** A line a figure and row, a column a plan; what the second is against the first. */
function besideTable(matrix: PageMatrix, part: PlanPart): Table<PartFigure> {
  const used = matrix.kernels.map((kernel, at) => ({ title: kernel.name, of: (figure: PartFigure): FigureRange | null => figure.cells[at] })).filter(({ of }) => part.figures.some((figure) => of(figure)));
  const row: Column<PartFigure> = { title: 'combination', raw: 'combination', left: true, value: (figure) => figure.row, cell: (figure) => h('span', { class: 'wraps' }, shorter(figure.row, part.name) || figure.row) };
  const change: Column<PartFigure> = {
    title: 'change', raw: 'ratio', value: ({ change: own }) => own?.ratio ?? null,
    cell: ({ change: own }) => (own ? `${percent(own.ratio)} (${percent(own.low)} to ${percent(own.high)})` : '\u2013'),
  };
  const verdict: Column<PartFigure> = {
    title: 'verdict', raw: 'verdict', left: true, value: ({ change: own }) => own?.verdict ?? null,
    cell: ({ change: own }) => (own ? h('span', { class: `verdict ${own.verdict}`, title: own.needed === null ? null : `About ${count(own.needed)} repeats of each plan would decide it, if they scatter as these do` }, own.verdict) : h('span', { class: 'muted' }, 'not judged')),
  };
  const judged = part.figures.some((figure) => figure.change);
  return new Table<PartFigure>({
    name: `figures of ${part.name}`, rows: part.figures,
    columns: [NAME, UNIT, row, ...(judged ? [verdict] : []), ...used.map(({ title, of }) => rangeColumn<PartFigure>(title, of)), ...(judged ? [change] : [])],
  });
}

function rangeColumn<Row>(title: string, of: (row: Row) => FigureRange | null): Column<Row> {
  return {
    title, raw: title, value: (row) => of(row)?.median ?? null,
    cell: (row) => {
      const own = of(row);
      if (!own) return '\u2013';
      const [low, high] = [threeDigits(own.low), threeDigits(own.high)];
      return h('span', {}, h('span', {}, threeDigits(own.median)), own.values.length > 1 && low !== high ? h('span', { class: 'worst' }, `${low} \u2013 ${high}`) : null);
    },
  };
}

const shorter = (row: string, part: string): string => (row === part ? '' : withoutPart(row, part));

function percent(ratio: number): string {
  const change = (ratio - 1) * 100;
  if (Math.abs(change) >= 1000) return `\u00d7${ratio.toPrecision(3)}`;
  return `${change < 0 ? '\u2212' : '+'}${Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)}%`;
}

function causes(all: CellCause[]): HTMLElement | null {
  if (all.length === 0) return null;
  return h('section', { class: 'plan-part', 'aria-label': 'the causes over all runs' },
    h('h2', {}, 'What the worst samples of all runs were spent on'),
    h('ol', { class: 'answers' }, ...all.map((own) => h('li', {}, `${causeLabel(own)}: ${share(own.share, 1)}`))),
    h('p', { class: 'note' }, 'Of the time of the slowest band of each run that was traced; which run had what is in the tables above and on the pages of the runs.'));
}

function findings(plans: PagePlan[]): HTMLElement | null {
  const known = plans.filter((plan) => plan.findings);
  if (known.length === 0) return null;
  return h('section', { class: 'caveats', 'aria-label': 'what was found on the machine' },
    h('h2', {}, 'What tardy check found before'),
    ...known.flatMap((plan) => [
      plans.length > 1 ? h('h3', {}, plan.name) : null,
      plan.findings?.length ? h('ul', { class: 'caveat-list' }, ...plan.findings.map(finding)) : h('p', { class: 'muted' }, 'Nothing that costs latency.')]));
}

const WEIGHT: { [severity: string]: string } = { serious: 'invalidates', matters: 'weakens' };

function finding(one: PageFinding): HTMLElement {
  return h('li', { class: WEIGHT[one.severity ?? ''] ?? 'informs' },
    h('span', { class: 'effect' }, one.severity ?? one.status), ' ', h('span', { class: 'what' }, one.evidence), h('code', { class: 'code' }, one.code),
    one.remedy ? h('div', { class: 'remedy' }, h('b', {}, 'Fix: '), ...withCode(one.remedy)) : null);
}
