// Checks that a report page shows what its data says: `node test/check-page.mjs FILE.html...`.
// Opens each page at the widths of a phone and a laptop, light and dark; gives reasons to fail.

import { pathToFileURL } from 'node:url';
import { launch, Tab } from './browser.mjs';
import { barsAddUp, drawnAsData, inked, reachable, sound } from './in-page.mjs';
import { interactions } from './interactions.mjs';

export const MODES = [
  { width: 1440, scheme: 'light' }, { width: 1440, scheme: 'dark' },
  { width: 390, scheme: 'light' }, { width: 390, scheme: 'dark' },
];

/** A tab a mode, side by side: a page mostly waits for frames. */
export class Checker {
  tabs = new Map();

  constructor(browser) {
    this.browser = browser;
  }

  /** What each mode says of a page: the mode, its reasons to fail, and how long it took to draw. */
  check(path) {
    return Promise.all(MODES.map(async (mode) => ({ mode, ...await this.checkIn(mode, path) })));
  }

  async checkIn(mode, path) {
    const tab = this.tabs.get(mode) ?? await Tab.open(this.browser, mode);
    this.tabs.set(mode, tab);
    try {
      const drawn = await tab.show(path);
      return { drawn, reasons: [...new Set([...await asked(tab.page, mode), ...tab.reasons])] };
    } catch (error) {
      // It may hang, or be half way through something.
      this.tabs.delete(mode);
      await tab.close();
      return { drawn: null, reasons: [...tab.reasons, String(error.message ?? error)] };
    }
  }
}

async function asked(page, { scheme }) {
  const reasons = [];
  for (const check of [sound, inked, drawnAsData, barsAddUp, reachable]) reasons.push(...await page.evaluate(check));
  if (scheme === 'light') reasons.push(...await within(600000, interactions(page)));
  return [...reasons, ...await page.evaluate(sound)];
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
  const checker = new Checker(browser);
  let failed = false;
  for (const path of paths) {
    for (const { mode, reasons, drawn } of await checker.check(path)) {
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
