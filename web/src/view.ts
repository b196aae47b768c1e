// What several charts share: which series is looked at, what is counted, and the stretch of an axis
// that is shown (all time charts zoom and point together). Holds state and notifies listeners; draws
// nothing.

/** One series alone, or all (null). */
export class Selection {
  private chosen: string | null = null;
  private listeners: (() => void)[] = [];

  get series(): string | null {
    return this.chosen;
  }

  set(series: string | null): void {
    if (series === this.chosen) return;
    this.chosen = series;
    for (const listener of this.listeners) listener();
  }

  /** A second choice of the same means: all again. */
  toggle(series: string): void {
    this.set(this.chosen === series ? null : series);
  }

  includes(series: string): boolean {
    return this.chosen === null || this.chosen === series;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
}

/** What counts: each wake-up once, or each scheduled period. */
export class Counting {
  private listeners: (() => void)[] = [];

  constructor(private perPeriod: boolean) {}

  get scheduled(): boolean {
    return this.perPeriod;
  }

  set(scheduled: boolean): void {
    if (scheduled === this.perPeriod) return;
    this.perPeriod = scheduled;
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
}

/** Who follows a stretch. */
export interface Follower {
  /** The stretch has changed. */
  redraw(): void;
  /** The common cursor is at this position; null: nowhere. */
  cursor(position: number | null): void;
}

/** The part of an axis that is shown, common to all charts that join. */
export class Stretch {
  from: number;
  to: number;
  private followers: Follower[] = [];

  constructor(readonly least: number, readonly most: number) {
    this.from = least;
    this.to = most;
  }

  get zoomed(): boolean {
    return this.from !== this.least || this.to !== this.most;
  }

  join(follower: Follower): void {
    this.followers.push(follower);
  }

  /** Shows a part; one too thin to mean anything is ignored. */
  show(a: number, b: number): void {
    const from = Math.max(this.least, Math.min(a, b));
    const to = Math.min(this.most, Math.max(a, b));
    if (to - from < (this.most - this.least) * 1e-6) return;
    this.from = from;
    this.to = to;
    this.tell();
  }

  reset(): void {
    if (!this.zoomed) return;
    this.from = this.least;
    this.to = this.most;
    this.tell();
  }

  /** Narrower (below 1) or wider (above 1) around a position. */
  scale(around: number, factor: number): void {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  /** Moves the stretch by a share of its width, as far as the axis goes. */
  move(share: number): void {
    const width = this.to - this.from;
    const from = Math.max(this.least, Math.min(this.most - width, this.from + width * share));
    this.show(from, from + width);
  }

  point(position: number | null): void {
    for (const follower of this.followers) follower.cursor(position);
  }

  private tell(): void {
    for (const follower of this.followers) follower.redraw();
  }
}
