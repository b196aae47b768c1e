// What a reader does with the peaks of a page: opens one by keyboard, looks for a stack, zooms, sorts.
// Each gives reasons to fail; a page without peaks is not asked.

export async function peaksUsed(page) {
  if (await page.locator('.peaks').count() === 0) return [];
  const reasons = [];
  for (const act of [opening, steps, stack, zoom, sorting, table]) reasons.push(...(await act(page)).map((text) => `peaks, ${act.name}: ${text}`));
  return reasons;
}

const title = (page) => page.locator('.peak h3').first().textContent();
const opened = (page) => page.locator('.peaks > .scroll tr.chosen button').textContent();
const rows = (page) => page.locator('.peaks > .scroll tbody button');

/** By keyboard, the last of the list: it is opened, in sight of the list, and keeps the focus. */
async function opening(page) {
  const reasons = [];
  const last = await rows(page).count() - 1;
  await rows(page).nth(last).focus();
  await page.keyboard.press('Enter');
  if (await opened(page) !== String(last + 1)) reasons.push('Enter does not open the peak');
  if (!(await title(page)).startsWith(`Peak ${last + 1}`)) reasons.push(`the title is "${await title(page)}"`);
  const state = await page.evaluate(() => {
    const [row, box] = [document.querySelector('.peaks tr.chosen').getBoundingClientRect(), document.querySelector('.peaks > .scroll').getBoundingClientRect()];
    return { focused: document.activeElement.closest('tr')?.className, inSight: row.top >= box.top - 1 && row.bottom <= box.bottom + 1, charts: window.tardyCharts.filter((panel) => panel.spec.kind === 'timeline').length };
  });
  if (!state.focused?.includes('chosen')) reasons.push('the focus is lost');
  if (!state.inSight) reasons.push('the opened row is out of sight');
  if (state.charts !== 1) reasons.push(`${state.charts} timelines instead of one`);
  return reasons;
}

async function steps(page) {
  const reasons = [];
  const before = Number(await opened(page));
  if (before > 1) {
    await page.locator('.peak [data-by="-1"]').focus();
    await page.keyboard.press('Enter');
    if (Number(await opened(page)) !== before - 1) reasons.push('"worse" does not step');
  }
  await rows(page).first().click();
  return await opened(page) === '1' ? reasons : [...reasons, 'a click does not open the first'];
}

/** A peak whose blame has a stack shows its functions; Enter in the timeline shows an entry. */
async function stack(page) {
  const reasons = [];
  const known = await page.evaluate(() => JSON.parse(document.getElementById('tardy-data').textContent).runs
    .flatMap((run) => (run.peaks?.peaks ?? []).map((peak) => ({ ...peak, parts: run.peaks.parts })))
    .sort((a, b) => b.latency_ns - a.latency_ns).findIndex((peak) => peak.blame.some(([place, ns]) => peak.parts[place].stack > 0 && ns > peak.latency_ns * 0.1)));
  if (known >= 0) {
    await rows(page).nth(known).click();
    if (await page.locator('.aside .functions li').count() === 0) reasons.push(`peak ${known + 1} shows no functions of its stack`);
  }
  const before = await page.locator('.shown').textContent();
  await page.locator('.chart.timeline .plot').focus();
  await page.keyboard.press('Home');
  for (let i = 0; i < 100 && await page.locator('.shown').textContent() === before; i += 1) {
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
  }
  if (await page.locator('.shown').textContent() === before) reasons.push('no entry can be chosen by keyboard');
  await page.keyboard.press('Escape');
  return reasons;
}

async function zoom(page) {
  const plot = page.locator('.chart.timeline .plot');
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const zoomed = () => page.evaluate(() => window.tardyCharts.find((panel) => panel.spec.kind === 'timeline').spec.stretch.zoomed);
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 60, { steps: 4 });
  await page.mouse.up();
  const reasons = await zoomed() ? [] : ['a drag does not zoom'];
  await page.mouse.dblclick(box.x + box.width * 0.6, box.y + 60);
  return await zoomed() ? [...reasons, 'a double click does not reset'] : reasons;
}

async function sorting(page) {
  const head = page.locator('.peaks > .scroll thead button', { hasText: 'when' });
  await head.focus();
  await page.keyboard.press('Enter');
  const values = await page.evaluate(() => [...document.querySelectorAll('.peaks > .scroll tbody tr')].map((row) => parseFloat(row.lastElementChild.textContent.replace(/,/g, ''))));
  // Those of which nobody knows when have a dash, and are last.
  const known = values.map((value) => (Number.isNaN(value) ? -Infinity : value));
  const sorted = known.every((value, i) => i === 0 || known[i - 1] >= value);
  for (let i = 0; i < 2; i += 1) await page.locator('.peaks > .scroll thead button', { hasText: 'when' }).press('Enter');
  return sorted ? [] : ['the list is not sorted by time'];
}

async function table(page) {
  const button = page.locator('.as-table > button');
  await button.press('Enter');
  const shown = await page.locator('.as-table tbody tr').count();
  const known = await page.evaluate(() => window.tardyCharts.find((panel) => panel.spec.kind === 'timeline').spec.csv().trim().split('\n').length - 1);
  await button.press('Enter');
  return shown === known ? [] : [`${shown} rows for ${known} entries`];
}

/** Stages come and go below their series. */
export async function stagesUsed(page) {
  const toggle = page.locator('.figures input[name=stages]');
  if (await toggle.count() === 0) return [];
  const all = () => page.locator('.figures tbody tr').count();
  const before = await all();
  await toggle.focus();
  await page.keyboard.press('Space');
  const split = await all();
  const known = await page.evaluate(() => JSON.parse(document.getElementById('tardy-data').textContent).runs.reduce((sum, run) => sum + (run.stages?.length ?? 0), 0));
  const sound = await page.evaluate(() => document.scrollingElement.scrollWidth <= window.innerWidth);
  await page.keyboard.press('Space');
  const reasons = split === before + known ? [] : [`${split - before} rows of stages for ${known}`];
  if (!sound) reasons.push('with stages the page scrolls sideways');
  return await all() === before ? reasons : [...reasons, 'stages do not go again'];
}
