// Runs of many nights: a step that came with a kernel, one that did not, a row without p99, kernels in
// turns, a row of one day, and names that a hostile machine could have.

const DAY = 20700;

/** Numbers that look drawn, the same each time. */
const noise = (at) => 1 + ((at * 37) % 11) / 100;

function row(hostile, own) {
  const { title, series, nights = 170, from = DAY, step = null, factor = 1, kernels = ['6.12'], kernelOf = () => 0, without = false } = own;
  const days = { day: [], kernel: [], runs: [], p99_ns: [], usual_max_ns: [], max_ns: [] };
  for (let night = 0; night < nights; night += 1) {
    const later = step !== null && night >= step ? factor : 1;
    days.day.push(from + night);
    days.kernel.push(kernelOf(night));
    days.runs.push(1 + (night % 3 === 0 ? 1 : 0));
    days.p99_ns.push(without || night === 3 ? null : Math.round(50000 * noise(night) * later));
    days.usual_max_ns.push(night % 40 === 7 ? null : Math.round(90000 * noise(night + 5)));
    days.max_ns.push(Math.round(400000 * noise(night + 2) * (night % 19 === 0 ? 12 : 1)));
  }
  const figure = (median, changes = [], alarms = []) => ({ median_ns: median, is_too_short: nights < 20, changes, alarms });
  const change = { day: from + step, before_ns: 52500, after_ns: Math.round(52500 * factor), ratio: factor, kernel: 'the kernel changed there: 6.12 -> 6.13', cause: `share of late time: softirq ${hostile} 10% -> 70%` };
  const p99 = step === null ? figure(without ? null : 52500) : figure(52500, [change], [{ day: from + step + 9, since: from + step, is_worse: factor > 1 }]);
  return { title, machine: 'vm', measured: 'timer idle, 60 s', policy: 'fifo 90', series, runs: days.runs.reduce((a, b) => a + b, 0), kernels, days, p99, usual_max: figure(95000) };
}

/** A page with `words` and without runs is made of this. */
export function trend(base, hostile) {
  const title = 'vm, timer idle, 60 s, fifo 90';
  const rows = [
    row(hostile, { title, series: 'cpu0' }),
    row(hostile, { title, series: 'cpu1', step: 90, factor: 1.4, kernels: ['6.12', '6.13'], kernelOf: (night) => (night < 90 ? 0 : 1) }),
    row(hostile, { title, series: 'cpu2', step: 120, factor: 0.7 }),
    row(hostile, { title: `${title}, not traced`, series: 'cpu0', kernels: ['a', 'b'], kernelOf: (night) => night % 2 }),
    row(hostile, { title: hostile, series: hostile, kernels: [hostile], without: true }),
    row(hostile, { title: 'other, audio idle, 60 s', series: 'callback', nights: 1, from: DAY + 9 }),
  ];
  const event = (day, is_worse, series, size) => ({
    day, is_worse, title, lines: [`${series}: p99 52.5 us -> ${is_worse ? 73.5 : 36.8} us (x ${size})`], kernel: 'the kernel changed there: 6.12 -> 6.13', cause: `share of late time: softirq ${hostile} 10% -> 70%`, size,
  });
  return {
    ...base, runs: [], matrix: null,
    trend: {
      title: 'Trends of kernel=6*', headline: `6 rows in up to 170 days: 2 changes, 1 for the worse. The latest is of 2027-01-02: better on ${title}, cpu2: p99 52.5 us -> 36.8 us (x 0.70).`,
      meanings: ['A value for each day and kernel.'], remarks: ['left out: 2 invalid runs'],
      events: [event('2026-12-03', true, 'cpu1', 1.4), event('2027-01-02', false, 'cpu2', 0.7), event(hostile, true, hostile, 2)], rows,
    },
  };
}
