// What a reader does with a page: zoom and reset, keys, sorting, choosing a series, filtering the
// record, saving data. Each gives reasons to fail; what a page does not have is not asked for.

import { readFileSync } from 'node:fs';
import { threadsUsed } from './attached.mjs';
import { cpuUseUsed } from './cpu-use.mjs';
import { peaksUsed, stagesUsed } from './peaks.mjs';

export async function interactions(page) {
  const reasons = [];
  for (const act of [zoomByDrag, keys, readout, sorting, choosing, views, filtering, saving, copying, peaksUsed, stagesUsed, cpuUseUsed, threadsUsed]) {
    const found = await act(page);
    reasons.push(...found.map((text) => `${act.name}: ${text}`));
  }
  return reasons;
}

/** The stretches of all charts, from their models: `getOption` would copy all of the data. */
const stretches = (page) => page.evaluate(() => window.tardyCharts.map((panel) => {
  const axis = panel.chart.getModel().getComponent('xAxis').option;
  return { kind: panel.spec.kind, from: axis.min, to: axis.max, zoomed: panel.spec.stretch.zoomed };
}));

/** Brings a chart into sight and gives the box of its plot; null where the page has none to draw on. */
async function plotOf(page, kind) {
  const plot = page.locator(`.chart.${kind} .plot`).first();
  if (await plot.count() === 0) return null;
  await plot.scrollIntoViewIfNeeded();
  return plot.boundingBox();
}

async function drag(page, box, from, to) {
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, y, { steps: 4 });
  await page.mouse.up();
}

async function zoomByDrag(page) {
  const reasons = [];
  for (const kind of ['heat', 'percentile', 'histogram', 'overlay']) {
    const box = await plotOf(page, kind);
    if (!box) continue;
    await drag(page, box, 0.4, 0.6);
    const zoomed = await stretches(page);
    const linked = kind === 'heat' ? zoomed.filter((chart) => ['heat', 'points', 'machine'].includes(chart.kind)) : zoomed.filter((chart) => chart.kind === kind);
    if (!linked.every((chart) => chart.zoomed)) reasons.push(`${kind} is not zoomed by a drag`);
    if (new Set(linked.map((chart) => `${chart.from} ${chart.to}`)).size > 1) reasons.push(`the charts linked with ${kind} show different stretches`);
    await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
    if ((await stretches(page)).some((chart) => chart.zoomed)) reasons.push(`${kind} is not reset by a double click`);
  }
  return reasons;
}

async function keys(page) {
  const reasons = [];
  if (!await plotOf(page, 'points')) return reasons;
  await page.locator('.chart.points .plot').first().focus();
  await page.keyboard.press('ArrowRight');
  const said = await page.locator('#live').textContent();
  if (!said) reasons.push('an arrow key reads nothing');
  await page.keyboard.press('+');
  if (!(await stretches(page)).some((chart) => chart.kind === 'points' && chart.zoomed)) reasons.push('+ does not zoom');
  await page.keyboard.press('Escape');
  if ((await stretches(page)).some((chart) => chart.zoomed)) reasons.push('Escape does not reset');
  return reasons;
}

/** Pointing shows a readout, and the common cursor in every chart over time. */
async function readout(page) {
  const reasons = [];
  const box = await plotOf(page, 'heat');
  if (!box || await page.evaluate(() => window.tardyCharts.find((panel) => panel.spec.kind === 'heat').spec.empty())) return reasons;
  const data = await page.evaluate(() => window.tardyCharts.find((panel) => panel.spec.kind === 'heat').pixelOf(
    JSON.parse(document.getElementById('tardy-data').textContent).runs[0].time_edges_s[1] * 0.5));
  await page.mouse.move(box.x + Math.max(data, 1) + 0.5, box.y + box.height / 2);
  const shown = await page.evaluate(() => ({
    readout: document.querySelector('.chart.heat .readout:not([hidden])')?.textContent ?? '',
    cursors: document.querySelectorAll('.cursor:not([hidden])').length,
    charts: window.tardyCharts.filter((panel) => ['heat', 'points', 'machine'].includes(panel.spec.kind)).length,
  }));
  if (!shown.readout.includes('sample')) reasons.push(`no readout: "${shown.readout}"`);
  if (shown.cursors !== shown.charts) reasons.push(`${shown.cursors} cursors in ${shown.charts} charts`);
  await page.mouse.move(0, 0);
  return reasons;
}

async function sorting(page) {
  const reasons = [];
  const head = page.locator('.figures thead button', { hasText: 'count' });
  if (await head.count() === 0) return reasons;
  await head.focus();
  await page.keyboard.press('Enter');
  const state = () => page.evaluate(() => {
    const heads = [...document.querySelectorAll('.figures thead th')];
    const column = heads.findIndex((th) => th.textContent.startsWith('count'));
    const values = [...document.querySelectorAll('.figures tbody tr')].map((row) => Number(row.children[column].textContent.replace(/\D/g, '')));
    return { sort: heads[column].getAttribute('aria-sort'), down: values.every((v, i) => i === 0 || values[i - 1] >= v), up: values.every((v, i) => i === 0 || values[i - 1] <= v) };
  });
  let now = await state();
  if (now.sort !== 'descending' || !now.down) reasons.push('the count is not sorted, largest first');
  await page.keyboard.press('Enter');
  now = await state();
  if (now.sort !== 'ascending' || !now.up) reasons.push('the count is not sorted, smallest first');
  await page.keyboard.press('Enter');
  if ((await state()).sort !== null) reasons.push('the order is not given back');
  return reasons;
}

/** One series alone, and all again. */
async function choosing(page) {
  const name = page.locator('.figures button.name').first();
  if (await name.count() === 0) return [];
  const shown = () => page.evaluate(() => window.tardyCharts.filter((panel) => panel.spec.kind === 'points').map((panel) => panel.chart.getModel().getSeries().filter((s) => s.id.startsWith('points/')).length));
  const all = await shown();
  await name.click();
  const one = await shown();
  await page.locator('.figures button.name').first().click();
  const again = await shown();
  const reasons = [];
  if (one.some((clouds) => clouds > 1)) reasons.push('more than one series is drawn');
  if (String(all) !== String(again)) reasons.push('all series do not come back');
  return reasons;
}

/** Both ways of counting have the same rows, and the graph follows where they differ. */
async function views(page) {
  const at = (value) => page.locator(`.figures input[value=${value}]`);
  if (await at('scheduled').count() === 0) return [];
  const reasons = [];
  const [first, wanted] = await page.evaluate(() => {
    const { runs } = JSON.parse(document.getElementById('tardy-data').textContent);
    return [document.querySelector('.figures input[name=view]').value, runs.some((run) => run.scheduled_first) ? 'scheduled' : 'wake-up'];
  });
  if (first !== wanted || !await at(wanted).isChecked()) reasons.push(`first is the view ${first}, not ${wanted}`);
  const seen = [];
  for (const value of ['scheduled', 'wake-up']) {
    await at(value).check();
    seen.push(await page.evaluate(() => ({
      rows: document.querySelectorAll('.figures tbody tr').length,
      words: ['percentile', 'histogram'].map((kind) => document.querySelector(`.chart.${kind} .count`).textContent),
    })));
  }
  await at(wanted).check();
  if (seen[0].rows !== seen[1].rows) reasons.push('the two views have different rows');
  if (!seen[0].words.every((text) => text.includes('scheduled period')) || !seen[1].words.every((text) => text.includes('sample'))) reasons.push(`the charts do not follow: ${JSON.stringify(seen)}`);
  return reasons;
}

async function filtering(page) {
  const field = page.locator('.record input[type=search]');
  if (await field.count() === 0) return [];
  await field.fill('duration');
  const found = await page.evaluate(() => [...document.querySelectorAll('.record tbody tr')].filter((row) => row.offsetParent).map((row) => row.textContent.toLowerCase()));
  await field.fill('');
  if (found.length === 0) return ['the filter finds nothing'];
  return found.every((text) => text.includes('duration')) ? [] : ['the filter shows what does not match'];
}

/** The first few charts: a browser asks before it saves many files in a row. */
async function saving(page) {
  const reasons = [];
  const links = page.locator('.chart a.data, .blame a.data');
  for (let index = 0; index < Math.min(8, await links.count()); index += 1) {
    const [download] = await Promise.all([page.waitForEvent('download'), links.nth(index).click()]);
    const [header] = readFileSync(await download.path(), 'utf8').split('\n');
    if (!/^[a-z0-9_]+(,[a-z0-9_]+)+$/.test(header)) reasons.push(`no header in ${download.suggestedFilename()}: ${header.slice(0, 60)}`);
    if (!/^[A-Za-z0-9._-]+\.csv$/.test(download.suggestedFilename())) reasons.push(`odd file name ${download.suggestedFilename()}`);
  }
  return reasons;
}

async function copying(page) {
  const button = page.locator('.figures .tools button');
  if (await button.count() === 0) return [];
  await button.click();
  const text = await page.evaluate(() => Promise.race([
    navigator.clipboard.readText().catch(() => null),
    new Promise((resolve) => { setTimeout(() => resolve(null), 2000); }),
  ]));
  return text === null || /^(series|load|combination|blocks)\t/.test(text) ? [] : [`the copy begins with "${text.slice(0, 30)}"`];
}
