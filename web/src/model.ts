// What the drawing code calls the page's data. The data is as `data.ts` says, which is derived from
// the program's types; here stand shorter names, and what `read.ts` puts in place.

import type * as data from './data';
import type { PagePeak, Stage } from './cause/model';

/** The newest `page_version` that this code understands. */
export const PAGE_VERSION = 3;

export type Page = Omit<data.Page, 'runs'> & { runs: PageRun[] };

export type PageRun = Omit<data.PageRun, 'stages' | 'peaks'> & {
  stages: Stage[];
  /** Worst first. */
  peaks: { peaks: PagePeak[]; damaged: string[] };
};

export type RunRecord = data.RunRecord;

export type {
  Json, JsonMap, PageMatrix, PageScheduled, PageSeries, Heat, Points, PointKind, MachineTrack, CpuBusy, LoadTrack, InterruptRow, Status, Validity, Effect,
  FigureRecord, MessageRecord, EndRecord, FlowRecord, ClockRecord, Caveat, LoadRecord, LoadProof, Scheduled, SeriesSummary, ConfigTable,
  AttachedRow, AttachedTimes, BetweenThreads, SeriesTail, PageComparison, ShiftPoint, FactDifference, BandDifference, ComparedFigureRow,
  Column as MatrixKernel, PageRow as MatrixRow, PageCell as MatrixCell, Figure as MatrixFigure, LabFailure as MatrixFailure, PageCellRun, PageGate, PageRunFigure, MatrixKind, PageAb, AbCaveat, AbLook,
  PageTrend, TrendEvent, PageTrendRow, PageTrendFigure,
  PageSuite, PagePlan, PlanPart, PartFigure, FigureRange, PageFinding, CellCause,
} from './data';

export type Percentiles = data.SeriesSummary['percentiles'];
