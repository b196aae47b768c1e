// Making elements, copying, saving. Every string becomes a text node or an attribute, never HTML:
// what a run says cannot become part of the page's structure.

import { unbroken } from './units';

type Child = Node | string | number | null | undefined | false;
type Props = { [name: string]: string | number | boolean | null | undefined | EventListener };

/** An element with attributes, `on...` listeners and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  return element;
}

/** The same for SVG. */
export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  apply(element, props);
  append(element, children);
  return element;
}

function apply(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) element.append(child);
    else element.append(String(child));
  }
}

/** Where a page has several runs: a piece of the line of one of them, in its colour. */
export function runMark(run: number): HTMLElement {
  return h('span', { class: `dash run${run % 6}`, title: 'the color of the lines of this run' });
}

/** A sentence whose parts between backticks are code, unless a backtick has no partner. */
export function withCode(text: string): (Node | string)[] {
  const parts = text.split('`');
  return parts.length % 2 === 0 ? [unbroken(text)] : parts.map((part, at) => (at % 2 ? h('code', {}, part) : unbroken(part)));
}

/** Puts text on the clipboard; the old way where the new one is refused (a page from a file). */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'vh', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** A button that copies what `text` gives, and says so. */
export function copyButton(text: () => string, label = 'copy', what = ''): HTMLButtonElement {
  const button = h('button', { type: 'button', class: 'quiet', 'aria-label': `${label} ${what}`.trim() }, label);
  button.addEventListener('click', async () => {
    const done = await copyText(text());
    button.textContent = done ? 'copied' : 'not allowed';
    announce(done ? 'copied' : 'the browser did not allow to copy');
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

/** A link that saves a file made at the moment of the click. */
export function dataLink(name: () => string, content: () => string, what: string): HTMLAnchorElement {
  const link = h('a', { class: 'data', href: '#', 'aria-label': `data of ${what} as CSV`, title: 'Save what this shows as CSV' }, 'data');
  link.addEventListener('click', () => {
    const url = URL.createObjectURL(new Blob([content()], { type: 'text/csv' }));
    link.href = url;
    link.download = name();
    setTimeout(() => { URL.revokeObjectURL(url); link.href = '#'; link.removeAttribute('download'); }, 10000);
  });
  link.addEventListener('keydown', (event) => { if (event.key === ' ') { event.preventDefault(); link.click(); } });
  return link;
}

/** A file name that every system takes. */
export function fileName(...parts: string[]): string {
  const clean = parts.map((part) => part.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[-.]+|-+$/g, ''));
  return `${clean.filter(Boolean).join('-').slice(0, 120) || 'tardy'}.csv`;
}

/** Rows as CSV; text is quoted where it must be, and never begins a formula. */
export function csv(header: string[], rows: Iterable<(string | number | null)[]>): string {
  const lines = [header.map(cell).join(',')];
  for (const row of rows) lines.push(row.map(cell).join(','));
  return `${lines.join('\n')}\n`;
}

function cell(value: string | number | null): string {
  if (value === null || (typeof value === 'number' && !Number.isFinite(value))) return '';
  if (typeof value === 'number') return String(value);
  const safe = noFormula(value);
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** Text that no spreadsheet takes for a formula; a number stays one, also a negative one. */
function noFormula(text: string): string {
  const isNumber = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text);
  return !isNumber && /^[=+@\-\t\r]/.test(text) ? `'${text}` : text;
}

/** Rows as TSV for a spreadsheet or a mail; text is never a formula. */
export function tsv(rows: string[][]): string {
  return `${rows.map((row) => row.map((text) => noFormula(text.replace(/[\t\r\n]+/g, ' '))).join('\t')).join('\n')}\n`;
}

/** Says something to a screen reader. */
export function announce(text: string): void {
  const live = document.getElementById('live');
  if (live) live.textContent = text;
}
