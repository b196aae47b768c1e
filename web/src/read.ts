// Reading the data block: finds it, parses it, holds it against its structure, learns its
// words, and splits series of stages from whole ones. Knows the data's shape, nothing of the page.

import { blame, peaks, stages } from './cause/read';
import { check } from './check';
import { STRUCTURE, type Page as Data, type PageRun as DataRun } from './data';
import type { Page, PageRun } from './model';
import { learn } from './vocabulary';

function run(own: DataRun): PageRun {
  const { series } = own.record;
  return {
    ...own,
    // Whoever goes through the series means those of whole latencies.
    record: { ...own.record, series: series.filter((one) => one.stage_of === null) },
    stages: stages(own.stages, series.filter((one) => one.stage_of !== null)),
    blame: blame(own.blame),
    peaks: peaks(own.peaks, own.samples.kind === 'gap'),
  };
}

/** The page's data, whole; throws where the block is absent, is not JSON, or lacks a field. */
export function readPage(source: Document): Page {
  const block = source.getElementById('tardy-data');
  if (!block) throw new Error('this page has no data block (tardy-data)');
  const data: unknown = JSON.parse(block.textContent ?? '');
  check(data, STRUCTURE);
  const page = data as Data;
  learn(page.words);
  return { ...page, runs: page.runs.map(run) };
}
