// What a page of `attach` has beside its series: rows of names and of single threads, from a fixed
// seed; and what a reader does with the table of threads.

const NS_PER_MS = 1e6;

function times(count, p50) {
  return count > 0 ? { count, mean: Math.round(p50 * 1.2), p50, p99: p50 * 4, max: p50 * 9 } : { count: 0, mean: null, p50: null, p99: null, max: null };
}

/** Every third waits for others, and every second of the rest has no period. */
function row(series, at, more) {
  const [wakeups, waits] = [4000 + 37 * at, at % 3 === 2];
  const by_own_timer = waits ? 0 : wakeups - 3;
  const period_ns = waits || at % 2 ? null : (1 + at % 5) * NS_PER_MS;
  return {
    series, tid: 2000 + at, pid: 1999, threads: null, policy: at % 4 ? 'other' : 'fifo 50', latency: waits ? 'dispatch' : 'lateness', wakeups, by_timer: by_own_timer, by_interrupt: 0, by_ipi: 1, by_task: wakeups - by_own_timer - 1,
    by_own_timer, asides: 0, in_slack: 0, slack_ns: waits ? null : 50000, period_ns, ...(period_ns ? { missed: at % 4, unsure_periods: at === 4 ? 3 : 0 } : {}), preempted: at % 7, unmatched: at === 5 ? 2 : 0,
    ...(waits ? {} : { lateness: times(by_own_timer, 6100 + (at * 977) % 5000) }), dispatch: times(wakeups, 3100 + (at * 1409) % 7000),
    run: times(wakeups, 21000 + at), ready: times(at % 7, 9000), blocked: times(wakeups, 900000 + at), ...more,
  };
}

/** The run as one of `attach`: `count` threads of one name, and one of another. */
export function attachedTo(run, count, odd) {
  const rows = [row('worker', 0, { tid: null, pid: null, threads: count }), row(odd, 1, { tid: null, pid: null, threads: 1 }),
    ...Array.from({ length: count }, (_, at) => row(`worker/${2000 + at}`, at, {})), row(`${odd}/1999`, 2, { tid: 1999 })];
  const figure = (name, at) => ({ name, unit: 'us', values: [20 + at, 22 + at], mean: 21 + at, low: 8 + at, high: 34 + at });
  rows[0].over = { cycles: 40, deadline_ns: 2 * NS_PER_MS, late_ns: 4 * NS_PER_MS, run_ns: 80 * NS_PER_MS, ready_ns: 8 * NS_PER_MS, wait_ns: 12 * NS_PER_MS, unseen_ns: 0, waits: { futex_ns: 8 * NS_PER_MS, pi_mutex_ns: null, io_ns: 0, other_ns: 4 * NS_PER_MS } };
  const deadline = (series, missed) => ({
    series, deadline_ns: 2 * NS_PER_MS, periods: 4000, missed, unseen: 0, share_met: 1 - missed / 4000, share_met_low: missed ? 0.985 : null, share_met_high: missed ? 0.993 : null,
    longest_burst: null, windows: [], worst_interval: null,
  });
  const deadlines = [deadline('worker/response', 40), deadline(odd, 0)];
  const attached = { threads: count + 1, pooled_only: 3, no_room: 0, room: 511, gave_way: 0, ended_ns: null, command: null, rows };
  const between = [{ who: 'worker', whom: odd, on: 'futex', times: 40, ns: 12 * NS_PER_MS, preempted_by: [{ task: odd, ns: NS_PER_MS, is_inversion: true }, { task: 'log (nice 0)', ns: 2000, is_inversion: false }] }];
  return { ...run, deadlines, between, record: { ...run.record, attached, figures: Array.from({ length: 70 }, (_, at) => figure(`worker${at}/run`, at)) } };
}

/** Sorts the threads, shows all of them, and gives reasons to fail. */
export async function threadsUsed(page) {
  const section = page.locator('section.threads');
  if (await section.count() === 0) return [];
  const reasons = [];
  const expect = (is, text) => { if (!is) reasons.push(text); };
  const seen = () => section.locator('tbody tr').count();
  const more = section.locator('> button.quiet');
  const column = async (title) => (await section.locator('thead th').allInnerTexts()).findIndex((text) => text.startsWith(title));
  const cells = async (title) => section.locator(`tbody tr > :nth-child(${await column(title) + 1})`).allInnerTexts();
  const all = 20 + Number((await more.innerText()).split(' ')[0]);
  expect(await seen() === 20, `${await seen()} threads are shown at first`);
  const sorted = async (title) => {
    await section.locator('thead th button').nth(await column(title)).click();
    return (await cells(title)).filter((text) => text !== '\u2013').map((text) => Number(text.replace(/,/g, '')));
  };
  const most = await sorted('wake-ups');
  expect(most[0] === 4000 + 37 * (all - 2), `sorting is of all threads, not of those shown: ${most[0]}`);
  await more.click();
  expect(await seen() === all && !await more.isVisible(), `${await seen()} of ${all} are shown`);
  const late = await sorted('late max');
  expect(late.length > 0 && late.every((value, at) => at === 0 || value <= late[at - 1]), 'they are not in the order of lateness');
  const periods = await cells('period');
  expect(periods.includes('no period') && periods.includes('\u2013') && periods.includes('3 ms'), `periods are ${[...new Set(periods)]}`);
  const unsure = await cells('unsure');
  expect(unsure.includes('3') && unsure.includes('0') && unsure.includes('\u2013'), `periods of which nothing is known are ${[...new Set(unsure)]}`);
  const met = await page.locator('section[aria-label="the deadlines"] tbody tr').allInnerTexts();
  expect(met.length === 2 && met[0].includes('99.000%') && met[1].includes('100.000%'), `deadlines are ${met}`);
  expect(met[0].split(/\s+/).includes('40'), `cycles over it are not told: ${met[0]}`);
  const heads = (await page.locator('section[aria-label="the deadlines"] thead th').allInnerTexts()).map((text) => text.replace(/[^A-Za-z/ ].*$/s, '').trim());
  expect(heads.some((text) => text.startsWith('futex')) && !heads.some((text) => text.startsWith('I/O')) && met[0].includes('not known'), `waits are ${heads}: ${met[0]}`);
  await section.locator('button', { hasText: 'all columns' }).click();
  const wakers = new Set((await cells('woken by')).map((text) => text.split(' ')[0]));
  expect(wakers.has('timer') && wakers.has('task'), `woken by ${[...wakers]}`);
  await section.locator('button', { hasText: 'fewer columns' }).click();
  expect(await column('woken by') === -1 && await column('own timer') > 0, 'fewer columns are the same');
  return reasons;
}
