// Writes the fixture pages as HTML files, the way the program does: `node test/make-pages.mjs DIR`.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { FIXTURES } from './fixtures.mjs';

const template = fileURLToPath(new URL('../../src/report/html/page.html', import.meta.url));

/** The data block as `docs/reference/page-data.md` describes it. */
export function inserted(html, data) {
  const json = JSON.stringify(data).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  return html.replace('<!--TARDY-DATA-->', () => `<script type="application/json" id="tardy-data">${json}</script>`)
    .replace('<!--TARDY-TITLE-->', () => 'tardy report');
}

const shared = fileURLToPath(new URL('../../src/report/html/shared-page.html', import.meta.url));

/** What stands between the first two of these marks. */
const between = (text, begin, end) => text.split(begin)[1].split(end)[0];

/** A page that shares its viewer, and the viewer beside it, as `src/report/html.rs` makes them. */
export function sharing(folder, data, command) {
  const html = readFileSync(template, 'utf8');
  const style = JSON.stringify(between(html, '<style>', '</style>'));
  const viewer = `{const style=document.createElement('style');style.textContent=${style};document.head.append(style)}\n${between(html, '<script>', '</script>')}\n`;
  const name = `tardy-viewer-${createHash('sha256').update(viewer).digest('hex').slice(0, 16)}.js`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), viewer);
  const page = readFileSync(shared, 'utf8').replaceAll('<!--TARDY-NONCE-->', '5'.repeat(32)).replaceAll('<!--TARDY-VIEWER-->', name)
    .replace('<!--TARDY-COMMAND-->', () => command).replaceAll('<!--TARDY-TITLE-->', 'tardy report');
  const path = join(folder, 'shared.html');
  writeFileSync(path, inserted(page, data));
  return { path, viewer: join(folder, name) };
}

/** Makes the pages named (all when none is) and gives their paths. */
export function makePages(folder, names = Object.keys(FIXTURES)) {
  mkdirSync(folder, { recursive: true });
  const html = readFileSync(template, 'utf8');
  return names.map((name) => {
    const path = join(folder, `${name}.html`);
    writeFileSync(path, inserted(html, FIXTURES[name]()));
    return path;
  });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const path of makePages(process.argv[2] ?? 'test-results')) console.log(path);
}
