// Ratios and shares as words.

/** Three digits: "1.12", "0.987", "0.0053". */
export function ratioText(ratio: number): string {
  if (ratio >= 100) return ratio.toFixed(0);
  if (ratio >= 10) return ratio.toFixed(1);
  return ratio >= 0.995 ? ratio.toFixed(2) : `${Number(ratio.toPrecision(3))}`;
}

/** "5%", "0.021%". */
export function percentText(share: number): string {
  return `${Number((share * 100).toPrecision(3))}%`;
}
