// Who used the CPUs: a made-up profile for the fixture pages, and what a reader does with its flame
// graph. Each act gives reasons to fail; a page without one is not asked.

/** A graph's columns from nested places: [kind, name, weight, called, module]. */
function graph(roots, merged = 0, merged_weight = 0) {
  const found = { strings: [''], caller: [], name: [], module: [], kind: [], weight: [], merged, merged_weight, least_percent: 0.1 };
  const text = (own) => { if (!found.strings.includes(own)) found.strings.push(own); return found.strings.indexOf(own); };
  const add = ([kind, name, weight, called = [], module = ''], caller) => {
    found.caller.push(caller);
    found.name.push(text(name));
    found.module.push(text(module));
    found.kind.push(kind);
    found.weight.push(weight);
    const own = found.name.length;
    for (const one of called) add(one, own);
  };
  for (const one of roots) add(one, 0);
  return found;
}

const LONG = 'std::sys::backtrace::__rust_begin_short_backtrace<alloc::boxed::Box<dyn core::ops::FnOnce<(), Output = ()>>>';

/** Half of the time idle, the rest a program, its writes to pipes and a softirq. */
const OWN_TIME = 'The CPU time of ctl in its late cycles (60 samples): 80% filter_block, 20% system call write.';

export function profiled(run, late = true) {
  const sender = ['task', 'hackbench', 400, [
    ['user', 'main', 380, [['user', LONG, 120, [], '/usr/bin/hackbench'],
      ['kernel', 'entry_SYSCALL_64', 250, [['kernel', 'do_syscall_64', 250, [['kernel', 'ksys_write', 150, [['kernel', 'pipe_write', 120]]], ['kernel', 'ksys_read', 90], ['smaller', '(smaller)', 10]]]]]], '/usr/bin/hackbench'],
  ]];
  const deep = Array.from({ length: 60 }, (_, at) => `level${at}`).reduceRight((called, name) => [['user', name, 20, called]], []);
  const flame = graph([['idle', '[idle]', 500, [['kernel', 'do_idle', 500]]], sender, ['task', 'deep', 20, deep], ['task', '<kworker>', 40, [['kernel', 'worker_thread', 40]]], ['interrupt', '[softirq]', 40, [['kernel', 'net_rx_action', 40]]]], 7, 10);
  const task = (name, tasks, share, user, kernel) => ({ name, tasks, samples: share * 10, share, user, kernel });
  const symbol = (name, module, own, total) => ({ name, module, samples: own * 10, own, total });
  const profile = {
    event: 'cpu-clock', unit: 'ns', hz: 99, samples: 1000, due: 1003, lost: 3, other: 0, tells_interrupts: true,
    contexts: [['hardirq', 0], ['softirq', 4], ['kernel', 34], ['user', 12], ['idle', 50]],
    tasks: [task('swapper', 1, 50, 0, 0), task('hackbench', 40, 40, 15, 25), task('<kworker>', 3, 6, 0, 6), task('[interrupts]', 0, 4, 0, 0)],
    symbols: [symbol('do_idle', '[kernel]', 50, 50), symbol(LONG, '/usr/bin/hackbench', 12, 12), symbol('pipe_write', '[kernel]', 12, 12)],
    flame,
  };
  const waits = graph([['cause', 'interrupts off in console_unlock', 900000, [['kernel', 'do_syscall_64', 900000, [['kernel', '_printk', 900000]]]]], ['cause', 'softirq NET_RX', 100000]]);
  return { ...run, cpu_use: { profile, late: late ? { peaks: 100, flame: waits } : null, own_time: late ? [OWN_TIME] : [], damage: '' } };
}

export async function cpuUseUsed(page) {
  if (await page.locator('.flame').count() === 0) return [];
  const reasons = [];
  for (const act of [ownTime, drawn, deep, zoomed, byKeys, searched, idle, late, pointed]) reasons.push(...(await act(page)).map((text) => `flame graph, ${act.name}: ${text}`));
  return reasons;
}

/** What threads did in their late cycles is said with the causes. */
async function ownTime(page) {
  const known = await page.evaluate(() => JSON.parse(document.getElementById('tardy-data').textContent).runs.some((run) => run.cpu_use.own_time.length));
  const cause = page.locator('#cause');
  const said = await cause.count() > 0 && (await cause.textContent()).includes(OWN_TIME);
  return said === known ? [] : [known ? 'what threads did is not said' : 'what threads did is said of others'];
}

const boxes = (page) => page.locator('.flame').first().locator('.flame-place').count();
const inData = (page, which, idleToo) => page.evaluate(([source, all]) => {
  const use = JSON.parse(document.getElementById('tardy-data').textContent).runs.find((run) => run.cpu_use.profile).cpu_use;
  const { kind, caller } = (source === 'late' ? use.late : use.profile).flame;
  const idleAt = kind.map((own, at) => { let top = at; while (caller[top] > 0) top = caller[top] - 1; return kind[top] === 'idle'; });
  const rowOf = (at) => (caller[at] > 0 ? rowOf(caller[at] - 1) + 1 : 0);
  return kind.filter((_, at) => (all || !idleAt[at]) && rowOf(at) < 40).length;
}, [which, idleToo]);

async function drawn(page) {
  const [shown, known] = [await boxes(page), await inData(page, 'run', false)];
  return shown > 0 && shown <= known && (known > 100 || shown === known) ? [] : [`${shown} boxes for ${known} places`];
}

/** A stack that continues below the last row is said to, and a zoom shows what is below. */
async function deep(page) {
  const said = async () => /The first 40 rows/.test(await page.locator('.flame-note').first().textContent());
  const last = page.locator('.flame').first().locator('.flame-place').filter({ hasText: /^level38/ });
  if (await last.count() === 0) return [];
  const reasons = await said() ? [] : ['it is not said that stacks continue'];
  await last.evaluate((own) => { const box = own.getBoundingClientRect(); own.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 })); });
  if (await page.locator('.flame').first().locator('.flame-place').filter({ hasText: /^level59/ }).count() !== 1) reasons.push('a zoom does not show what is below');
  if (await said()) reasons.push('it is said to continue where it ends');
  await page.locator('.flame').first().press('Escape');
  return reasons;
}

async function zoomed(page) {
  const before = await boxes(page);
  // The widest: others may be too narrow for a pointer.
  const widest = await page.locator('.flame').first().locator('.flame-place').evaluateAll((all) => {
    const widths = all.map((own) => (own.classList.contains('kernel') ? parseFloat(own.style.width) : 0));
    return widths.indexOf(Math.max(...widths));
  });
  const box = page.locator('.flame').first().locator('.flame-place').nth(widest);
  const name = await box.textContent();
  await box.scrollIntoViewIfNeeded();
  await box.click();
  const reasons = [];
  const first = page.locator('.flame').first().locator('.flame-place').first();
  if (await first.textContent() !== name || await first.evaluate((own) => own.style.width) !== '100%') reasons.push('a click does not zoom');
  if (!(await page.locator('.flame-path').first().textContent()).includes(name)) reasons.push('what it is zoomed to is not said');
  await page.locator('.flame-graph').first().getByRole('button', { name: 'show all' }).click();
  return await boxes(page) === before ? reasons : [...reasons, 'the button does not show all'];
}

async function byKeys(page) {
  const before = await boxes(page);
  const reasons = [];
  await page.locator('.flame').first().focus();
  for (const key of ['ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
  const name = await page.locator('.flame-place.pointed').textContent();
  if (!(await page.locator('#live').textContent()).includes('itself')) reasons.push('arrows say nothing');
  await page.keyboard.press('Enter');
  if (await page.locator('.flame').first().locator('.flame-place').first().textContent() !== name) reasons.push('Enter does not zoom');
  await page.keyboard.press('Escape');
  return await boxes(page) === before ? reasons : [...reasons, 'Escape does not show all'];
}

async function searched(page) {
  const input = page.locator('.flame-graph input[type=search]').first();
  const text = (await page.locator('.flame-place.kernel').allTextContents()).find((own) => own !== '');
  await input.fill(text);
  const said = await page.locator('.flame-graph [role=status]').first().textContent();
  const matched = await page.locator('.flame').first().locator('.matched').count();
  await input.fill('no function is called this');
  const none = await page.locator('.flame-graph [role=status]').first().textContent();
  await input.fill('');
  const reasons = matched > 0 && /\d%/.test(said) && !said.startsWith('0.0') ? [] : [`"${text}": ${matched} marked, "${said}"`];
  if (!none.startsWith('0.0%')) reasons.push(`of nothing it says "${none}"`);
  return await page.locator('.unmatched').count() === 0 ? reasons : [...reasons, 'an empty search leaves marks'];
}

async function idle(page) {
  const box = page.locator('input[name=with-idle]').first();
  const note = () => page.locator('.flame-note').first().textContent();
  if (!await box.isVisible()) return [];
  const reasons = /Idle time, [\d.]+%/.test(await note()) ? [] : ['it is not said that idle time is left out'];
  const before = await boxes(page);
  await box.check();
  if (await boxes(page) <= before || await page.locator('.flame').first().locator('.idle').count() !== 1) reasons.push('idle time does not come');
  if (/Idle/.test(await note())) reasons.push('it is said to be left out where it is shown');
  await box.uncheck();
  return await boxes(page) === before ? reasons : [...reasons, 'idle time does not go'];
}

async function late(page) {
  const radio = page.locator('.flame-title input[value=late]').first();
  if (await radio.count() === 0) return [];
  const before = await boxes(page);
  await radio.check();
  const [shown, known] = [await boxes(page), await inData(page, 'late', true)];
  const causes = await page.locator('.flame').first().locator('.cause').count();
  await page.locator('.flame-title input[value=run]').first().check();
  const reasons = causes > 0 && shown <= known && (known > 100 || shown === known) ? [] : [`${shown} boxes of ${causes} causes for ${known} places`];
  return await boxes(page) === before ? reasons : [...reasons, 'the whole run does not come back'];
}

async function pointed(page) {
  const box = page.locator('.flame').first().locator('.flame-place').first();
  await box.scrollIntoViewIfNeeded();
  await box.hover();
  const readout = page.locator('.flame-box .readout').first();
  const said = await readout.isVisible() ? await readout.textContent() : '';
  await page.mouse.move(0, 0);
  return /with callees[\d.]+%/.test(said) ? [] : [`the pointer reads "${said}"`];
}
