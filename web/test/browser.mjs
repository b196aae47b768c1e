// One browser for the checks: no network, tabs that are used again, and a way to wait that the page's
// content policy allows.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

// A page that hangs is found; a machine with other work is not taken for one.
const PATIENCE_MS = 300000;

export function launch() {
  const known = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const executablePath = known.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error('no Chromium found; name one in CHROMIUM');
  return chromium.launch({ executablePath, args: QUIET, timeout: PATIENCE_MS });
}

/**
 * A window of one size and theme that shows page after page: processes of its own for each would take
 * more time than what is asked of it. What a page may not do is kept as reasons to fail.
 */
export class Tab {
  static async open(browser, { width = 1440, scheme = 'light' } = {}) {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme, acceptDownloads: true });
    page.setDefaultTimeout(PATIENCE_MS);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    return new Tab(page);
  }

  constructor(page) {
    this.page = page;
    this.url = '';
    this.reasons = [];
    const say = (text) => this.reasons.push(text);
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) say(`console ${message.type()}: ${message.text()}`); });
    page.on('pageerror', (error) => say(`error in the page: ${error.message}`));
    page.on('dialog', (dialog) => { say('a dialog was opened'); void dialog.dismiss(); });
    page.on('request', (request) => { if (!this.mayLoad(request.url())) say(`request to ${request.url()}`); });
  }

  /** Itself, what it made, and the viewer beside it. */
  mayLoad(url) {
    const beside = new URL('.', this.url || 'file:///').href;
    const isViewer = url.startsWith(beside) && /^tardy-viewer-[0-9a-f]{16}\.js$/.test(url.slice(beside.length));
    return url === this.url || url.startsWith('blob:') || isViewer;
  }

  /** Loads the file at `path`, with nothing left of what was shown before. */
  async load(path) {
    await this.page.mouse.move(0, 0);
    this.reasons = [];
    this.url = pathToFileURL(resolve(path)).href;
    await this.page.goto(this.url);
  }

  /** The same, and waits until all charts are drawn; gives how long that took. */
  async show(path) {
    await this.load(path);
    const failed = () => this.reasons.some((reason) => reason.startsWith('error in the page'));
    return until(this.page, () => window.tardyDrawn, 'all charts to be drawn', failed);
  }

  close() {
    return this.page.context().close();
  }
}

/**
 * Asks the page again and again: its policy refuses the strings that `waitForFunction` evaluates.
 * Gives up at once where `failed` says that there is nothing to wait for any more.
 */
export async function until(page, ask, what, failed = () => false, within_ms = PATIENCE_MS) {
  const end = Date.now() + within_ms;
  for (;;) {
    const answer = await page.evaluate(ask);
    if (answer) return answer;
    if (failed() || Date.now() > end) throw new Error(`waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
