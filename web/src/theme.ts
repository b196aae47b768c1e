// Colours: light and dark by the reader's system, light on paper. Series colours are Okabe and Ito's
// (apart for colour-blind readers), heat is viridis. Runs over each other differ by colour, black and
// red first, and their series by dash. CSS has the page's own colours in `style.css`.

export interface Theme {
  dark: boolean;
  text: string;
  muted: string;
  line: string;
  grid: string;
  paper: string;
  series: string[];
  /** Of runs that lie over each other; the same in `style.css`. */
  runs: string[];
  crowd: string;
  alarm: string;
}

const LIGHT: Theme = {
  dark: false,
  text: '#1c2126',
  muted: '#5a636c',
  line: '#9aa3ab',
  grid: '#e6e9ec',
  paper: '#ffffff',
  series: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#333333'],
  runs: ['#000000', '#d5001c', '#0072b2', '#e69f00', '#009e73', '#cc79a7'],
  crowd: '#a9b1b8',
  alarm: '#b3261e',
};

const DARK: Theme = {
  dark: true,
  text: '#e4e8eb',
  muted: '#a0a9b1',
  line: '#66707a',
  grid: '#2b3238',
  paper: '#15191d',
  series: ['#56b4e9', '#e8743b', '#2fbf95', '#e08fbd', '#e69f00', '#f0e442', '#e4e8eb'],
  runs: ['#ffffff', '#ff5c5c', '#56b4e9', '#e69f00', '#2fbf95', '#e08fbd'],
  crowd: '#5b656e',
  alarm: '#ff8a80',
};

const darkWanted = window.matchMedia('(prefers-color-scheme: dark)');
let onPaper = false;
const listeners: (() => void)[] = [];

/** The colours of now. */
export function theme(): Theme {
  return darkWanted.matches && !onPaper ? DARK : LIGHT;
}

/** Calls back whenever the colours change. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

/** Whether the page is being printed. */
export function isPaper(): boolean {
  return onPaper;
}

/** Paper is white whatever the screen is. */
export function setPaper(paper: boolean): void {
  onPaper = paper;
  tell();
}

function tell(): void {
  for (const listener of listeners) listener();
}

darkWanted.addEventListener('change', tell);

/** How lines of one colour are dashed; the same patterns as the keys in the page. */
export const DASHES: ('solid' | number[])[] = ['solid', [6, 4], [2, 3], [10, 3, 2, 3]];

export function dashOf(place: number): 'solid' | number[] {
  return DASHES[place % DASHES.length];
}

const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];

function viridis(share: number): string {
  const place = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const index = Math.min(VIRIDIS.length - 2, Math.floor(place));
  const part = place - index;
  const mixed = VIRIDIS[index].map((c, i) => Math.round(c + (VIRIDIS[index + 1][i] - c) * part));
  return `rgb(${mixed.join(',')})`;
}

/**
 * The colour of a cell, 0 (one sample) to 1 (the fullest). The rare end is the one that stands out
 * most from the background, dark on white and bright on black: outliers are the subject.
 */
export function heatColour(share: number, dark: boolean): string {
  return dark ? viridis(1 - share * 0.8) : viridis(share * 0.95);
}
