// Every fixture page, checked as `check-page.mjs` does; and the bundle itself.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { launch, Tab, until } from './browser.mjs';
import { Checker } from './check-page.mjs';
import { FIXTURES } from './fixtures.mjs';
import { drawnAsData, sound } from './in-page.mjs';
import { inserted, makePages, sharing } from './make-pages.mjs';

const folder = fileURLToPath(new URL('../test-results', import.meta.url));
const bundle = fileURLToPath(new URL('../../src/report/html/page.html', import.meta.url));
let browser;
let checker;
let tab;

before(async () => {
  browser = await launch();
  checker = new Checker(browser);
  tab = await Tab.open(browser);
});
after(async () => { await browser?.close(); });

for (const name of Object.keys(FIXTURES)) {
  test(`the page "${name}" shows its data at all widths and in both themes`, async () => {
    const [path] = makePages(folder, [name]);
    for (const { mode, reasons, drawn } of await checker.check(path)) {
      console.log(`  ${name}, ${mode.width} px ${mode.scheme}: first chart ${Math.round(drawn?.first)} ms, all ${Math.round(drawn?.all)} ms`);
      assert.deepEqual(reasons, [], `${name} at ${mode.width} px, ${mode.scheme}`);
    }
  });
}

test('what is copied or saved is no formula to a spreadsheet, and numbers stay numbers', async () => {
  const source = fileURLToPath(new URL('../src/dom.ts', import.meta.url));
  const { outputFiles } = await build({ entryPoints: [source], bundle: true, write: false, format: 'esm' });
  const { csv, tsv } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
  assert.equal(csv(['=a'], [['=1', -2, '-3', '+x', 'eth0', null]]), "'=a\n'=1,-2,-3,'+x,eth0,\n");
  assert.equal(tsv([['=1', '-2.5', '@x', '-x', '\ta', '1e-3']]), "'=1\t-2.5\t'@x\t'-x\t a\t1e-3\n");
});

test('the bundle has its placeholders once, names no other host and stays below 1 MB', () => {
  const html = readFileSync(bundle, 'utf8');
  assert.equal(html.split('<!--TARDY-DATA-->').length, 2);
  assert.equal(html.split('<!--TARDY-TITLE-->').length, 2);
  assert.ok(html.length < 1e6);
  assert.ok(html.includes("default-src 'none'"));
  assert.ok(existsSync(bundle.replace('page.html', 'THIRD-PARTY.txt')));
});

test('a page that shares its viewer is as one that has its own, and without it says in words what is missing', async () => {
  const command = 'tardy report /runs/a -o a.html';
  const { path, viewer } = sharing(`${folder}/shared`, FIXTURES.alone(), command);
  const shown = () => tab.page.evaluate(() => document.body.innerText);
  await tab.show(path);
  assert.deepEqual([...tab.reasons, ...await tab.page.evaluate(sound), ...await tab.page.evaluate(drawnAsData)], []);
  assert.match(await shown(), /This page needs the file tardy-viewer-\w+\.js beside it, and loads nothing else\./);
  assert.doesNotMatch(await shown(), /viewer is missing/);
  // A script that a run brought along has no nonce.
  await tab.page.evaluate(() => { const own = document.createElement('script'); own.textContent = 'window.hostile = 1'; document.body.append(own); });
  assert.equal(await tab.page.evaluate(() => window.hostile), undefined);
  renameSync(viewer, `${viewer}.moved`);
  await tab.load(path);
  const said = await shown();
  assert.match(said, /its viewer is missing/);
  assert.ok(said.includes(viewer.split('/').pop()) && said.includes(command), said);
  const width = await tab.page.evaluate(() => document.scrollingElement.scrollWidth);
  assert.ok(width <= 1440, `${width}`);
});

test('paper is light, leaves closed what is closed, and gives the screen back', async () => {
  const [path] = makePages(folder, ['comparison']);
  const { page } = tab;
  await page.emulateMedia({ colorScheme: 'dark' });
  await tab.show(path);
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const open = () => page.evaluate(() => [...document.querySelectorAll('details')].filter((d) => d.open).map((d) => d.id));
  const dark = await background();
  await page.evaluate(() => { document.getElementById('record-setup').open = true; });
  await paper(page, 'beforeprint');
  assert.equal(await background(), 'rgb(255, 255, 255)');
  assert.deepEqual(await open(), ['record-setup']);
  await paper(page, 'afterprint');
  assert.equal(await background(), dark);
  assert.deepEqual(await open(), ['record-setup']);
  await page.emulateMedia({ colorScheme: 'light' });
});

const paper = (page, event) => page.evaluate((name) => { window.dispatchEvent(new Event(name)); }, event);

/** Where the first of each kind begins and ends, px from the top of the page. */
const places = (page, wanted) => page.evaluate((selectors) => Object.fromEntries(selectors.map((selector) => {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  return [selector, box ? { top: box.top + window.scrollY, bottom: box.bottom + window.scrollY } : null];
})), wanted);

const FIRST = ['.verdict', '.headline', '.lead .cause-sentence', '.lead .stack-bar', '.caveats .caveat-list', '.chart.percentile'];

/** A4 without its margins at 96 dots an inch. */
const PAGE_PX = 1030;

test('verdict, cause with its bar, caveats and percentile graph are on the first screen and the first page of paper', async () => {
  for (const name of ['alone', 'causes']) {
    const [path] = makePages(folder, [name]);
    const { page } = tab;
    await tab.show(path);
    for (const [what, place] of Object.entries(await places(page, FIRST))) assert.ok(place && place.bottom <= 900, `${name}, ${what}: ${JSON.stringify(place)}`);
    await paper(page, 'beforeprint');
    for (const [what, place] of Object.entries(await places(page, FIRST))) assert.ok(place && place.bottom <= PAGE_PX, `${name} on paper, ${what}: ${JSON.stringify(place)}`);
    await paper(page, 'afterprint');
  }
});

test('on a phone come verdict, cause, caveats, graph and figures below each other', async () => {
  const [path] = makePages(folder, ['alone']);
  const phone = await Tab.open(browser, { width: 390 });
  await phone.show(path);
  const found = Object.values(await places(phone.page, ['.verdict', '.headline', '.lead', '.caveats', '.chart.percentile', '.tables']));
  await phone.close();
  for (let i = 1; i < found.length; i += 1) assert.ok(found[i - 1].bottom <= found[i].top + 1, JSON.stringify(found));
});

test('on a phone no line ends within a number or before its unit, and a command stays as it was typed', async () => {
  const data = FIXTURES.alone();
  const [run] = data.runs;
  const words = Array.from({ length: 40 }, (_, n) => `${'x'.repeat(n % 13)} 3,437 of 1,004,000 periods in 729 us`).join(', ');
  run.headline = words;
  run.record.caveats = [{ ...run.record.caveats[0], text: words }];
  run.command = 'tardy run timer --note "1 000 000 times"';
  const path = `${folder}/numbers.html`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, inserted(readFileSync(bundle, 'utf8'), data));
  const phone = await Tab.open(browser, { width: 390 });
  await phone.show(path);
  for (const selector of ['.headline', '.caveat-list .what']) {
    const found = await phone.page.evaluate(numbers, selector);
    assert.ok(found.length >= 120 && found.lines > 20, JSON.stringify(found));
    assert.deepEqual(found.torn, [], selector);
  }
  const moment = await phone.page.evaluate(() => document.querySelector('.line .moment').getClientRects().length);
  assert.equal(moment, 1, 'a date on two lines');
  const command = await phone.page.evaluate(() => document.querySelector('.command pre').textContent);
  await phone.close();
  assert.equal(command, run.command);
});

/** Inside the page: the numbers with groups of digits or a unit in the first of these, and which of them are on two lines. */
function numbers(selector) {
  const element = [...document.querySelectorAll(selector)].find((one) => /437 of/.test(one.textContent));
  const [text] = element.childNodes;
  const range = document.createRange();
  const linesOf = (from, to) => {
    range.setStart(text, from);
    range.setEnd(text, to);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
  };
  const all = [...text.data.matchAll(/\d+(?:,\d{3})+|\d+\sus\b/g)];
  const torn = all.filter((one) => linesOf(one.index, one.index + one[0].length) > 1);
  return { length: all.length, lines: linesOf(0, text.length), torn: torn.map(([digits]) => digits) };
}

test('what a caveat quotes as code is shown as code', async () => {
  const data = FIXTURES.alone();
  const [run] = data.runs;
  const [first] = run.record.caveats;
  run.record.caveats = [{ ...first, effect: 'weakens', text: 'Not `a b`.', remedy: 'Use `--cpus` or `x`; one ` alone.' }];
  const path = `${folder}/quoted.html`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, inserted(readFileSync(bundle, 'utf8'), data));
  await tab.load(path);
  const said = await tab.page.evaluate(() => {
    const item = document.querySelector('.caveats .caveat-list li');
    const codes = (selector) => [...item.querySelectorAll(`${selector} code`)].map((code) => code.textContent);
    return { what: item.querySelector('.what').textContent, codes: codes('.what'), remedy: item.querySelector('.remedy').textContent };
  });
  assert.deepEqual(said, { what: 'Not a b.', codes: ['a b'], remedy: 'Fix: Use `--cpus` or `x`; one ` alone.' });
});

test('the sentence of the cause is about what has the time of the slowest', async () => {
  const { sentence } = await built('cause/sentence.ts');
  const band = (name, blamed_share, ...parts) => ({
    name, from: 1, to: 2, wakeups: 10, ns: 1000, blamed_share,
    causes: parts.map(([cause, own, ns, inferred = 0]) => ({ cause, name: own, ns, share: ns / 1000 / blamed_share, inferred, series: [] })),
  });
  const said = (...of) => sentence(band(...of), 'wake-ups');
  assert.equal(said('p99.9', 1, ['irqs_off', 'a', 610], ['softirq', 'b', 390]), 'In the slowest 0.1% of wake-ups, 61% of the time went to irqs_off: a.');
  assert.equal(said('p99', 1, ['thread', 'a', 300], ['thread', 'b', 300], ['thread', 'c', 200], ['thread', 'd', 100], ['host', 'e', 100]),
    'In the slowest 1% of wake-ups, 90% of the time went to thread: a, b, c and 1 more.');
  assert.equal(said('worst', 0.3, ['host', 'e', 300, 1]), 'In the 10 worst wake-ups, only 30% of the time was analyzed, most of that probably on host: e; the rest is not known.');
  assert.equal(said('p99', 1, ['throttled', 'b', 900, 1], ['host', 'e', 100]), 'In the slowest 1% of wake-ups, 90% of the time probably went to throttled: b.');
  assert.equal(said('p99', 1, ['unexplained', '', 700], ['host', 'e', 300]), 'In the slowest 1% of wake-ups, 70% of the time is unexplained; the largest known cause is host: e (30%).');
});

test('where many periods were missed, table and graph show scheduled periods first', async () => {
  const [path] = makePages(folder, ['stalled']);
  const { page } = tab;
  await tab.show(path);
  const state = () => page.evaluate(() => {
    const panel = window.tardyCharts.find(({ spec }) => spec.kind === 'percentile');
    const rows = panel.spec.csv().trim().split('\n').map((row) => row.split(','));
    const late = rows.filter(([run, series, p]) => run === 'other' && series === 'cpu0' && Math.abs(Number(p) - 90) < 0.01);
    return { p90: Number(late[0][3]), count: document.querySelector('.figures tbody tr').children[2].textContent.replace(/\D/g, '') };
  });
  const first = await state();
  await page.locator('.figures input[value=wake-up]').check();
  const second = await state();
  assert.ok(first.p90 > 100 * second.p90, JSON.stringify([first, second]));
  assert.equal(second.count, '20000');
  assert.ok(Number(first.count) > 30000, first.count);
});

test('a printed run takes a few pages, with the worst few of its peaks', async () => {
  const [path] = makePages(folder, ['alone']);
  const { page } = tab;
  await tab.show(path);
  await paper(page, 'beforeprint');
  const rows = await page.evaluate(() => [...document.querySelectorAll('.peaks > .scroll tbody tr')].filter((row) => row.offsetParent).length);
  assert.equal(rows, 5);
  assert.match(await page.textContent('.peaks .cut'), /^The first 5 of 100 rows/);
  const torn = await page.evaluate(() => [...document.querySelectorAll('.chart')].filter((chart) => getComputedStyle(chart).display !== 'none' && chart.offsetHeight > 1030).length);
  assert.equal(torn, 0, 'a chart that no page can hold');
  await paper(page, 'afterprint');
  const pdf = (await page.pdf({ preferCSSPageSize: true, format: 'A4' })).toString('latin1');
  const sheets = pdf.match(/\/Type\s*\/Page\b(?!s)/g)?.length ?? 0;
  assert.ok(sheets > 1 && sheets <= 5, `${sheets} pages`);
});

test('a change of the theme redraws the charts', async () => {
  const [path] = makePages(folder, ['plain']);
  const { page } = tab;
  await page.emulateMedia({ colorScheme: 'light' });
  await tab.show(path);
  const coloured = (wanted) => page.evaluate((colour) => window.tardyCharts[0].chart.getOption().series[0].lineStyle.color === colour, wanted);
  assert.ok(await coloured('#0072b2'));
  await page.emulateMedia({ colorScheme: 'dark' });
  await until(page, () => window.tardyCharts[0].chart.getOption().series[0].lineStyle.color === '#56b4e9', 'the colours of the dark theme');
});

/** What the cells of a table say, row by row, the thin spaces between digits left out. */
const cells = (page, table) => page.evaluate((selector) => [...document.querySelectorAll(`${selector} tbody tr`)]
  .map((row) => [...row.children].map((cell) => cell.textContent.replace(/,/g, ''))), table);

test('a round trip has its half below it, and both ends are told with their CPUs and policies', async () => {
  const [path] = makePages(folder, ['trips']);
  const { page } = tab;
  await tab.load(path);
  const rows = await cells(page, '.figures');
  assert.deepEqual(rows.map(([name]) => name), ['round trip', 'half of it', 'round trip', 'half of it']);
  const max = rows[0].length - 2;
  assert.ok(Math.abs(Number(rows[0][max]) - 2 * Number(rows[1][max])) <= 1, `${rows[0][max]} and ${rows[1][max]}`);
  const ends = await cells(page, '[aria-label="ends"]');
  assert.deepEqual(ends.map((row) => [row[0], row[3], row[4]]), [['local', '0', 'other 0'], ['remote', '1', 'other 0'], ['local', '0', 'fifo 90'], ['remote', '1', 'fifo 90']]);
  assert.ok((await page.textContent('main, #page')).includes('Round trip by percentile'));
});

test('packets are told as sent, lost and late, and an offset of clocks with its uncertainty', async () => {
  const [path] = makePages(folder, ['packets']);
  const { page } = tab;
  await tab.load(path);
  assert.deepEqual((await cells(page, '[aria-label="messages"]'))[0], ['there', '200000', '200000', '12', '41', '0', '3', '0', '10000', '10000']);
  assert.match(await page.textContent('.messages .note'), /1\.23 ms behind, with an uncertainty of 15 us/);
});

/** What the page says where it cannot show its data; empty where it can. */
async function refusal(data) {
  mkdirSync(folder, { recursive: true });
  const path = `${folder}/refused.html`;
  writeFileSync(path, inserted(readFileSync(bundle, 'utf8'), data));
  await tab.load(path);
  return tab.page.evaluate(() => document.querySelector('[role="alert"]')?.textContent ?? '');
}

test('a field that is missing or of another type is named, and nothing is drawn in its place', async () => {
  const sound = FIXTURES.causes();
  for (const [spoil, said] of [
    [(run) => { delete run.record.series[0].count; }, 'runs[0].record.series[0].count is missing'],
    [(run) => { delete run.record.series[0].period_ns; }, 'runs[0].record.series[0].period_ns is missing'],
    [(run) => { delete run.heat.count; }, 'runs[0].heat.count is missing'],
    [(run) => { delete run.machine.cpu_busy[1].busy; }, 'runs[0].machine.cpu_busy[1].busy is missing'],
    [(run) => { run.record.series[1].max = '12 us'; }, 'runs[0].record.series[1].max is "12 us", not a whole number or null'],
    [(run) => { run.record.status = 'done'; }, 'runs[0].record.status is "done", none of running, '],
    [(run) => { delete run.record.probe.name; }, 'runs[0].record.probe.name is missing'],
    [(run) => { delete run.blame; }, 'runs[0].blame is missing'],
    [(run) => { run.peaks.peaks[2].timeline.at[1] = null; }, 'runs[0].peaks.peaks[2].timeline.at[1] is null, not a number'],
  ]) {
    const data = structuredClone(sound);
    spoil(data.runs[0]);
    const text = await refusal(data);
    assert.ok(text.startsWith('This page cannot show its data: ') && text.includes(said), `${said}: ${text}`);
  }
  assert.equal(await refusal(sound), '');
});

test('each cell of a plan says what is measured, and leads to the pages of its runs and nowhere else', async () => {
  const [path] = makePages(folder, ['plan']);
  const { page } = tab;
  await tab.load(path);
  const links = await page.evaluate(() => [...document.querySelectorAll('.matrix a[href]')].map((link) => link.getAttribute('href')));
  assert.ok(links.length > 8 && links.every((href) => /^plan\.pages\/000\d\.html$/.test(href)), links.join(' '));
  const words = await page.evaluate(() => document.querySelector('.figures.matrix tbody').textContent);
  for (const said of ['2 of 3 measured', 'not measured yet', 'failed', '1 invalid', '2 gates fail', 'repeat 1', '2,468 missed']) assert.ok(words.includes(said), `${said}: ${words}`);
  const all = await cells(page, '[aria-label="runs"]');
  assert.equal(all.length, 18);
  assert.match(all[2].join('|'), /valid.*fail.*250 us\(248 to 253 us\).*1234.*cells\/0003/);
  // The finding first, and in tables what decides.
  const said = await page.evaluate(() => [...document.querySelectorAll('.page-head > *')].slice(0, 3).map((own) => own.textContent));
  assert.match(said[1].replace(/\s/g, ' '), /^2 of 18 cells fail their gates: /);
  assert.match(said[2], /^ended early, 13 of 18/);
  // Those that sort have their name twice, once for the ear.
  const heads = await page.evaluate(() => [...document.querySelectorAll('[aria-label="runs"] thead th')].map((own) => own.textContent.trim().replace(/^(.+)\1$/, '$1')));
  assert.deepEqual(heads, ['', 'combination', 'column', 'repeat', 'state', 'gates', 'max', 'p99.9', 'p99', 'p50', 'samples', 'missed', 'page']);
});

test('the page of two suites has a table for each part, verdicts, causes and what was found before', async () => {
  const [path] = makePages(folder, ['suite']);
  const { page } = tab;
  await tab.load(path);
  const heads = await page.evaluate(() => [...document.querySelectorAll('.plan-part h2')].map((head) => head.textContent));
  assert.deepEqual([heads.length, heads.slice(0, 3)], [5, ['timer', 'bandwidth', 'irq']]);
  const figures = await cells(page, '[aria-label="figures of bandwidth"]');
  assert.deepEqual(figures.map((row) => row[3]), ['better', 'inconclusive', 'not judged']);
  assert.match(figures[0].join('|'), /5000.*10000.*\+100% \(\+80% to \+120%\)/);
  const words = await page.evaluate(() => document.body.textContent);
  for (const said of ['Nothing of it was measured.', 'kill_something_info: 91%', 'Nothing that costs latency.', 'preempt=full', 'six twelve: worse']) assert.ok(words.includes(said), said);
});

test('the page of a comparison in blocks begins with its answer, and has its figures, looks and blocks', async () => {
  const [path] = makePages(folder, ['ab']);
  const { page } = tab;
  await tab.load(path);
  const first = await page.evaluate(() => document.querySelector('.answer').textContent);
  assert.match(first, /B: --policy fifo.*against.*A: --policy other.*worse.*interrupted.*p50 \+19.6%.*NET_RX/s);
  assert.deepEqual((await cells(page, '[aria-label="looks"]')).map((row) => row[2]), ['inconclusive', 'worse', 'did not come']);
  assert.deepEqual((await cells(page, '.comparison [aria-label="figures"]')).map((row) => [row[0], row[1]]), [['p50', 'worse'], ['p99', 'inconclusive'], ['max', '']]);
  const blocks = await cells(page, '[aria-label="runs"]');
  assert.deepEqual([blocks.length, blocks.filter((row) => row.includes('cannot be read')).length], [8, 1]);
  assert.equal(await page.locator('.matrix a[href^="ab.pages/"]').count(), 6);
});

test('the page of trends begins with what changed, and draws the rows that changed first', async () => {
  const [path] = makePages(folder, ['trend']);
  const { page } = tab;
  await tab.load(path);
  const events = await page.evaluate(() => [...document.querySelectorAll('.trend-events li')].map((item) => item.textContent));
  assert.equal(events.length, 3);
  assert.match(events[1], /2027-01-02better.*cpu2: p99 52.5 us -> 36.8 us.*the kernel changed there.*share of late time/s);
  const titles = await page.evaluate(() => window.tardyCharts.map((panel) => panel.spec.title));
  assert.deepEqual(titles.slice(0, 2).map((title) => title.split(', ').pop()), ['cpu1', 'cpu2']);
  assert.equal(titles.length, 6);
  const rows = await cells(page, '[aria-label="rows"]');
  assert.deepEqual(rows.map((own) => own[own.length - 1]), ['0', '1', '1', '0', '0', 'too few days']);
  const notes = await page.evaluate(() => document.querySelector('.trends').textContent);
  for (const said of ['6.12 since 2026-09-04, 6.13 since 2026-12-03', 'They take turns', 'medians between changes', '2026-12-03: p99 52.5 us \u2192 73.5 us (x 1.40); the kernel changed there']) assert.ok(notes.includes(said), `${said}: ${notes}`);
});

/** A module of the page's sources. */
async function built(name) {
  const outfile = `${folder}/${name.replace('.ts', '.mjs')}`;
  await build({ entryPoints: [fileURLToPath(new URL(`../src/${name}`, import.meta.url))], bundle: true, outfile, format: 'esm' });
  return import(pathToFileURL(outfile).href);
}

/** What holds names that no type promises: the values of caveats, the parameters of loads and probes, and words for names. */
const isFree = (name, value) => ['percentiles', 'values'].includes(name) || (name === 'parameters' && !('warmup_ns' in value))
  || (['causes', 'series'].includes(name) && !Array.isArray(value));

test('each field that the program writes is one that the page misses', async () => {
  const { check } = await built('check.ts');
  const { STRUCTURE } = await built('data.ts');
  // Two of many alike are enough to try.
  const short = (_, value) => (Array.isArray(value) ? value.slice(0, 2) : value);
  const pages = ['causes', 'trips', 'packets', 'matrix', 'plan', 'suite', 'ab', 'trend'].map((name) => JSON.parse(JSON.stringify(FIXTURES[name]()), short));
  let tried = 0;
  const without = (data, value) => {
    if (value === null || typeof value !== 'object') return;
    for (const [name, inner] of Object.entries(value)) {
      if (Array.isArray(value)) {
        if (name === '0') without(data, inner);
        continue;
      }
      if (!isFree(name, inner)) without(data, inner);
      delete value[name];
      assert.throws(() => check(data, STRUCTURE), new RegExp(`\\b${name.replace('.', '\\.')} is missing`), name);
      value[name] = inner;
      tried += 1;
    }
  };
  for (const data of pages) {
    check(data, STRUCTURE);
    without(data, data);
  }
  assert.ok(tried > 200, `${tried} fields`);
});
