// Paper: white, one column of paper's width, charts drawn anew for it, of long tables the head; what
// is collapsed stays so. And all as it was when the printing is over.

import { panels } from './panel';
import { setPaper } from './theme';

/** A printer has about three dots where a screen has one. */
const DOTS = 3;

export function preparePrinting(): void {
  let printing = false;
  const redraw = (dots: number): void => { for (const panel of panels) panel.build(dots); };
  const before = (): void => {
    if (printing) return;
    printing = true;
    document.documentElement.classList.add('paper');
    setPaper(true);
    redraw(DOTS);
  };
  const after = (): void => {
    if (!printing) return;
    printing = false;
    document.documentElement.classList.remove('paper');
    setPaper(false);
    redraw(Math.min(3, Math.max(1, window.devicePixelRatio)));
  };
  window.addEventListener('beforeprint', before);
  window.addEventListener('afterprint', after);
}
