// Writes the fixture pages as HTML files, the way the program does: `node test/make-pages.mjs DIR`.

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
