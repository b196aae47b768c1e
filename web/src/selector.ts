// Choosing one series or all: a list, and chips that are at the same time the key of colours and
// dashes. All show and set the one selection of the page. With many series only those that have a
// colour are chips, the list has all: a key of 256 entries is useless.

import { seriesColour, type Context } from './context';
import { h, runMark } from './dom';
import { seriesTitle } from './vocabulary';
import { onTheme, theme } from './theme';

export function seriesSelect(context: Context): HTMLElement | null {
  if (context.names.length < 2) return null;
  const select = h('select', { 'aria-label': 'series shown in the charts' },
    h('option', { value: '' }, `all ${context.names.length} series`),
    ...context.names.map((name, index) => h('option', { value: String(index) }, seriesTitle(name))));
  select.addEventListener('change', () => context.selection.set(select.value === '' ? null : context.names[Number(select.value)]));
  context.selection.onChange(() => {
    const chosen = context.selection.series;
    select.value = chosen === null ? '' : String(context.names.indexOf(chosen));
  });
  return h('label', { class: 'select' }, 'show ', select);
}

/** The key: a chip a series, in its colour; of several runs also its dash, and a line a run. */
export function chips(context: Context): HTMLElement {
  const { runs } = context.page;
  const box = h('div', { class: 'chips', role: 'group', 'aria-label': 'series shown' });
  const keys = h('span', { class: 'keys' });
  const many = context.slots.size < context.names.length;
  box.append(...runs.length > 1 ? runs.map((run, index) => runKey(run.record.name, index)) : [], keys);
  const select = many ? seriesSelect(context) : null;
  if (select) box.append(select);
  const draw = (): void => {
    const focused = document.activeElement;
    const again = focused && keys.contains(focused) ? focused.getAttribute('data-series') : null;
    const names = context.names.filter((name) => context.slots.has(name));
    keys.replaceChildren(...names.map((name) => chip(context, name)));
    [...keys.querySelectorAll<HTMLElement>('[data-series]')].find((own) => own.dataset.series === again)?.focus();
  };
  context.selection.onChange(draw);
  onTheme(draw);
  draw();
  return box;
}

function runKey(name: string, index: number): HTMLElement {
  return h('span', { class: 'run-key', title: name }, runMark(index), h('span', { class: 'short' }, name));
}

function chip(context: Context, name: string): HTMLElement {
  const swatch = h('span', { class: 'swatch' });
  swatch.style.background = seriesColour(context, name, theme());
  // Points have the colour; lines over each other have the run's colour, and the dash.
  const dash = context.page.runs.length > 1 ? h('span', { class: `dash dash${(context.slots.get(name) ?? 0) % 4}` }) : null;
  const pressed = context.selection.series === name;
  const button = h('button', {
    type: 'button', class: context.selection.includes(name) ? 'chip' : 'chip off', 'data-series': name,
    'aria-pressed': String(pressed), title: `${seriesTitle(name)}: ${pressed ? 'show all series again' : 'show alone'}`,
  }, swatch, dash, h('span', { class: 'short' }, seriesTitle(name)));
  button.addEventListener('click', () => context.selection.toggle(name));
  return button;
}
