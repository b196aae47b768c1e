// Makes src/report/html/page.html from src/: one document with style and script inlined and two
// placeholders for the program, and the notices of what is bundled beside it. The same sources give
// the same bytes, so that a check can compare.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, '..', 'src', 'report', 'html');

async function bundle(entry, options) {
  const result = await build({
    entryPoints: [join(here, 'src', entry)], absWorkingDir: here, bundle: true, minify: true,
    write: false, charset: 'ascii', legalComments: 'none', target: ['es2020', 'chrome100', 'firefox100', 'safari15'],
    logLevel: 'warning', ...options,
  });
  return result.outputFiles[0].text.trim();
}

const script = (await bundle('main.ts', { format: 'iife', define: { 'process.env.NODE_ENV': '"production"', __DEV__: 'false' } }))
  // Nothing in a script may end it, or open a comment that hides its end.
  .replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--');
const style = await bundle('style.css', {});
const hash = createHash('sha256').update(script, 'utf8').digest('base64');

const template = readFileSync(join(here, 'src', 'page.html'), 'utf8');
const parts = { NOTICES: inPage(), 'SCRIPT-HASH': `sha256-${hash}`, STYLE: style, SCRIPT: script };
const page = template.replace(/\{\{([A-Z-]+)\}\}/g, (_, name) => parts[name]);
for (const mark of ['<!--TARDY-DATA-->', '<!--TARDY-TITLE-->']) {
  if (page.split(mark).length !== 2) throw new Error(`${mark} must be in the page exactly once`);
}

/** What is as it was keeps its time, or cargo would compile the program again. */
function write(name, text) {
  const file = join(target, name);
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
}

function of(name, file) {
  return readFileSync(join(here, 'node_modules', name, file), 'utf8').replace(/\r\n/g, '\n').trim();
}

function version(name) {
  return JSON.parse(of(name, 'package.json')).version;
}

/** A page travels alone, by mail: what the licences want said goes with it. */
function inPage() {
  const text = [
    `This page contains Apache ECharts ${version('echarts')}, licensed under the Apache License 2.0,\nhttps://www.apache.org/licenses/LICENSE-2.0`,
    of('echarts', 'NOTICE'),
    `It contains code of d3.js:\n${of('echarts', 'licenses/LICENSE-d3')}`,
    `It contains zrender ${version('zrender')}:\n${of('zrender', 'LICENSE')}`,
  ].join('\n\n');
  if (text.includes('--')) throw new Error('a notice would end its comment');
  return text;
}

function notices() {
  const rule = `\n\n${'='.repeat(78)}\n\n`;
  return [
    'page.html contains, in minified form, the following software.\nIt is made from the sources in web/ and from nothing else.',
    `Apache ECharts ${version('echarts')} (https://echarts.apache.org), Apache License 2.0\n\n${of('echarts', 'NOTICE')}\n\n${of('echarts', 'LICENSE')}`,
    `Code of d3.js within Apache ECharts (https://github.com/d3/d3), BSD 3-Clause\n\n${of('echarts', 'licenses/LICENSE-d3')}`,
    `zrender ${version('zrender')} (https://github.com/ecomfe/zrender), BSD 3-Clause\n\n${of('zrender', 'LICENSE')}`,
    `tslib ${version('tslib')} (https://github.com/microsoft/tslib), 0BSD\n\n${of('tslib', 'LICENSE.txt')}`,
  ].join(rule) + '\n';
}

mkdirSync(target, { recursive: true });
write('page.html', page);
write('THIRD-PARTY.txt', notices());
console.log(`page.html: ${Math.round(Buffer.byteLength(page) / 1024)} KiB`);
