// The limits a run was held to: gates from its command line. Lines in the percentile graph; whether
// they were kept is decided elsewhere, not in the page.

import type { RunRecord } from './model';

export interface Limit {
  name: string;
  ns: number;
}

const FACTORS: { [unit: string]: number } = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
const GATE = /^(?:p\d+(?:\.\d+)?|max|min|mean)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s)$/;

export function limitsOf(record: RunRecord): Limit[] {
  const found: Limit[] = [];
  record.argv.forEach((argument, index) => {
    const gate = argument.startsWith('--gate=') ? argument.slice(7)
      : argument === '--gate' ? record.argv[index + 1] ?? '' : '';
    const parts = GATE.exec(gate);
    if (parts) found.push({ name: `gate ${gate}`, ns: Number(parts[1]) * FACTORS[parts[2]] });
  });
  return found;
}
