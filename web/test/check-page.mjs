// Checks that a report page shows what its data says: `node test/check-page.mjs FILE.html...`.
// Opens each page at the widths of a phone and a laptop, light and dark; gives reasons to fail.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch, until } from './browser.mjs';
import { barsAddUp, drawnAsData, inked, reachable, sound } from './in-page.mjs';
import { interactions } from './interactions.mjs';

export const MODES = [
  { width: 1440, scheme: 'light' }, { width: 1440, scheme: 'dark' },
  { width: 390, scheme: 'light' }, { width: 390, scheme: 'dark' },
];

/** Opens a page in one mode; gives its reasons to fail and how long it took to draw. */
export async function checkPage(browser, path, mode) {
  const url = pathToFileURL(resolve(path)).href;
  const page = await browser.newPage({ viewport: { width: mode.width, height: 900 }, colorScheme: mode.scheme, acceptDownloads: true });
  const reasons = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) reasons.push(`console ${message.type()}: ${message.text()}`); });
  page.on('pageerror', (error) => reasons.push(`error in the page: ${error.message}`));
  page.on('dialog', (dialog) => { reasons.push('a dialog was opened'); void dialog.dismiss(); });
  page.on('request', (request) => { if (request.url() !== url && !request.url().startsWith('blob:')) reasons.push(`request to ${request.url()}`); });
  const failed = () => reasons.some((reason) => reason.startsWith('error in the page'));
  let drawn = null;
  try {
    await page.goto(url);
    drawn = await until(page, () => window.tardyDrawn, 'all charts to be drawn', failed);
    for (const check of [sound, inked, drawnAsData, barsAddUp, reachable]) reasons.push(...await page.evaluate(check));
    if (mode.scheme === 'light') reasons.push(...await within(600000, interactions(page)));
    reasons.push(...await page.evaluate(sound));
  } catch (error) {
    reasons.push(String(error.message ?? error));
  }
  await page.close();
  return { reasons: [...new Set(reasons)], drawn };
}

/** A page that no longer answers is a reason to fail, not to wait for ever. */
function within(ms, work) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms); });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function main(paths) {
  if (paths.length === 0) {
    console.error('usage: node test/check-page.mjs FILE.html...');
    return 2;
  }
  const browser = await launch();
  let failed = false;
  for (const path of paths) {
    for (const mode of MODES) {
      const { reasons, drawn } = await checkPage(browser, path, mode);
      const time = drawn ? `first chart ${Math.round(drawn.first)} ms, all ${Math.round(drawn.all)} ms` : 'not drawn';
      console.log(`${reasons.length ? 'FAIL' : 'ok  '} ${path} ${mode.width} px ${mode.scheme} (${time})`);
      for (const reason of reasons) console.log(`       ${reason}`);
      failed ||= reasons.length > 0;
    }
  }
  await browser.close();
  return failed ? 1 : 0;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) process.exitCode = await main(process.argv.slice(2));
