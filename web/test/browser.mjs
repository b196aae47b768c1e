// One browser for the checks: no network, and a way to wait that the page's content policy allows.

import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export function launch() {
  const known = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const executablePath = known.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error('no Chromium found; name one in CHROMIUM');
  return chromium.launch({ executablePath, args: QUIET });
}

/**
 * Asks the page again and again: its policy refuses the strings that `waitForFunction` evaluates.
 * Gives up at once where `failed` says that there is nothing to wait for any more.
 */
export async function until(page, ask, what, failed = () => false, within_ms = 300000) {
  const end = Date.now() + within_ms;
  for (;;) {
    const answer = await page.evaluate(ask);
    if (answer) return answer;
    if (failed() || Date.now() > end) throw new Error(`waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
