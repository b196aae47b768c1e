// What is asked inside the page: functions that the browser runs. Each gives reasons to fail, as text.

/** Compares what every chart drew with the data block: nothing may be lost on the way. */
export function drawnAsData() {
  const data = JSON.parse(document.getElementById('tardy-data').textContent);
  const reasons = [];
  const say = (panel, text) => reasons.push(`${panel.spec.kind}${panel.spec.run === null ? '' : ` of run ${panel.spec.run}`}: ${text}`);
  const seriesOf = (panel) => panel.chart.getModel().getSeries();
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  // As things are counted now: where many periods were missed, that is per scheduled period.
  const perPeriod = document.querySelector('.figures input[value=scheduled]')?.checked ?? false;
  const counted = (series) => (perPeriod ? series.scheduled ?? series : series);
  const equal = (panel, what, drawn, known) => { if (drawn !== known) say(panel, `${drawn} ${what} drawn, ${known} in the data`); };
  const checks = {
    heat(panel, run) {
      const cells = panel.chart.getOption().series[0].data;
      equal(panel, 'cells', sum(cells.map((item) => item[1])), run.heat.count.length);
      equal(panel, 'samples', sum(cells.map((item) => item[2])), sum(run.heat.count));
    },
    points(panel, run) {
      const clouds = panel.chart.getOption().series.filter((series) => series.id.startsWith('points/'));
      equal(panel, 'points', sum(clouds.map((series) => series.data[0][0])), sum(run.series.map((series) => series.points.t_s.length)));
      const worst = seriesOf(panel).find((series) => series.id === 'worst').getData().count();
      equal(panel, 'largest', worst, run.series.some((series) => series.points.t_s.length) ? 1 : 0);
    },
    percentile(panel) {
      const curves = sum(data.runs.map((run) => run.series.filter((series) => counted(series).curve.length).length));
      equal(panel, 'lines', seriesOf(panel).filter((series) => series.id.endsWith('/enough')).length, curves);
      const rows = panel.spec.csv().trim().split('\n').length - 1;
      equal(panel, 'rows of data', rows, sum(data.runs.flatMap((run) => run.series.map((series) => counted(series).curve.length))));
      const maxima = seriesOf(panel).filter((series) => series.id.startsWith('max/'));
      equal(panel, 'maxima', sum(maxima.map((series) => series.getData().count())), curves);
    },
    shift(panel) {
      // Whichever comparison of the page it is of: every row of its data is one of theirs.
      const rows = panel.spec.csv().trim().split('\n').slice(1);
      const known = data.comparisons.map((one) => one.shift.length);
      if (!known.includes(rows.length)) say(panel, `${rows.length} rows of data, ${known.join(', ')} in the comparisons`);
      const drawn = seriesOf(panel).find((series) => series.id === 'points').getData().count();
      if (drawn < 1 || drawn > rows.length) say(panel, `${drawn} points drawn of ${rows.length}`);
    },
    histogram(panel) {
      const counts = data.runs.flatMap((run) => run.series.flatMap((series) => counted(series).histogram.map(([, n]) => n)));
      const csv = panel.spec.csv().trim().split('\n').slice(1);
      equal(panel, 'rows of data', csv.length, counts.length);
      equal(panel, 'samples of data', sum(csv.map((row) => Number(row.split(',').pop()))), sum(counts));
    },
    overlay(panel) {
      const row = data.matrix.loads[window.tardyCharts.filter((own) => own.spec.kind === 'overlay').indexOf(panel)];
      const curves = row.cells.filter((cell) => cell?.curve.length);
      equal(panel, 'lines', seriesOf(panel).filter((series) => series.id.endsWith('/enough')).length, curves.length);
      const maxima = panel.chart.getOption().series.find((series) => series.id === 'max').data;
      equal(panel, 'maxima', maxima.length, curves.length);
      const scale = panel.chart.getOption().yAxis[0];
      const places = maxima.map((item) => item.value[1]);
      if (places.some((place) => place > scale.max || place < scale.min)) say(panel, 'a maximum is outside of the chart');
      curves.forEach((cell, at) => equal(panel, 'largest', Math.round(10 ** places[at]), cell.curve[cell.curve.length - 1][1]));
    },
    trend(panel) {
      const row = data.trend.rows.find((own) => `${own.title}, ${own.series}` === panel.spec.title);
      const known = (values) => values.filter((ns) => ns !== null).length;
      const drawn = (id) => seriesOf(panel).find((series) => series.id === id).getData().count();
      equal(panel, 'days of p99', drawn('0/values'), known(row.days.p99_ns));
      equal(panel, 'days of usual maxima', drawn('1/values'), known(row.days.usual_max_ns));
      equal(panel, 'largest latencies', drawn('1/largest'), known(row.days.max_ns));
      equal(panel, 'rows of data', panel.spec.csv().trim().split('\n').length - 1, row.days.day.length);
      const scale = panel.chart.getOption().yAxis[1];
      const highest = Math.log10(row.days.max_ns.reduce((a, b) => Math.max(a, b ?? 0), 0));
      if (highest > scale.max || highest < scale.min) say(panel, 'the largest latency is outside of the chart');
      const lines = panel.chart.getOption().series.find((series) => series.id === '0/crossings').markLine.data.length;
      equal(panel, 'changes and alarms', lines, row.p99.changes.length + row.p99.alarms.length);
    },
    machine(panel, run) {
      const lines = seriesOf(panel).filter((series) => series.type === 'series.line').length;
      if (lines === 0 && run.machine.t_s.length) say(panel, 'no lines');
    },
  };
  checks.timeline = (panel) => {
    const peaks = data.runs.flatMap((run) => run.peaks?.peaks ?? []).sort((a, b) => b.latency_ns - a.latency_ns);
    const own = peaks[Number(document.querySelector('.peaks tr.chosen button').textContent) - 1];
    equal(panel, 'entries', seriesOf(panel).find((series) => series.id === 'spans').getData().count(), own.timeline.at.length);
    equal(panel, 'rows of data', panel.spec.csv().trim().split('\n').length - 1, own.timeline.at.length);
    equal(panel, 'peaks in the list', document.querySelectorAll('.peaks > .scroll tbody tr').length, peaks.length);
  };
  for (const panel of window.tardyCharts) {
    if (!panel.chart) say(panel, 'not drawn');
    else checks[panel.spec.kind](panel, data.runs[panel.spec.run ?? 0]);
  }
  return reasons;
}

/** Blame bars add up: what is drawn is the whole of each band, and each says its share. */
export function barsAddUp() {
  const reasons = [];
  const data = JSON.parse(document.getElementById('tardy-data').textContent);
  const bands = data.runs.flatMap((run) => run.blame?.bands ?? []);
  const rows = [...document.querySelectorAll('.bar-row')];
  if (rows.length !== bands.length) reasons.push(`${rows.length} bars for ${bands.length} bands`);
  rows.forEach((row, index) => {
    const parts = [...row.querySelectorAll('.part')];
    const whole = parts.reduce((sum, part) => sum + Number(part.style.flexGrow), 0);
    if (Math.abs(whole - 1) > 0.01) reasons.push(`the parts of bar ${index} are ${whole} of it`);
    if (!parts.every((part) => /\d%/.test(part.title))) reasons.push(`a part of bar ${index} does not say its share`);
  });
  return reasons;
}

/** Every chart has ink on its canvas, and words for who cannot see it. */
export function inked() {
  const reasons = [];
  for (const panel of window.tardyCharts) {
    const canvas = panel.element.querySelector('canvas');
    const context = canvas?.getContext('2d');
    const dots = context ? context.getImageData(0, 0, canvas.width, canvas.height).data : [];
    let ink = 0;
    for (let at = 3; at < dots.length; at += 4) if (dots[at] > 0) ink += 1;
    if (ink < 200) reasons.push(`${panel.spec.kind}: blank canvas (${ink} dots)`);
    if (!panel.element.querySelector('.count').textContent.match(/\d/)) reasons.push(`${panel.spec.kind}: no count of samples`);
    if (!panel.plot.getAttribute('aria-label')) reasons.push(`${panel.spec.kind}: no name`);
    if (!panel.element.querySelector('p.vh').textContent && !panel.spec.empty()) reasons.push(`${panel.spec.kind}: no text alternative`);
  }
  return reasons;
}

/** Nothing of a run became markup, and nothing scrolls sideways but what has its own box. */
export function sound() {
  const reasons = [];
  const { scrollWidth } = document.scrollingElement;
  if (scrollWidth > window.innerWidth) reasons.push(`the page scrolls sideways: ${scrollWidth} of ${window.innerWidth} px`);
  const foreign = document.querySelectorAll('img, iframe, object, embed, link, form, video, audio').length;
  if (foreign) reasons.push(`${foreign} elements that the page never makes`);
  const scripts = document.querySelectorAll('script').length;
  if (scripts !== 2) reasons.push(`${scripts} script elements instead of 2`);
  if (window.hostile) reasons.push('text of the run was executed');
  for (const link of document.querySelectorAll('a')) {
    // The pages of single runs lie beside that of their matrix.
    if (!/^(#|blob:|$|[\w%-][\w.%-]*\.pages\/[\w%-][\w.%-]*\.html$)/.test(link.getAttribute('href') ?? '')) reasons.push(`a link leads away: ${link.getAttribute('href')}`);
  }
  return reasons;
}

/** All that can be used can be reached by keyboard and has a name. */
export function reachable() {
  const reasons = [];
  const all = document.querySelectorAll('button:not([disabled]), a[href], select, input, summary, .plot, .scroll');
  for (const element of all) {
    // Rows that are folded away are reached by the button that shows them.
    if (element.closest('tr.beyond')?.offsetParent === null && element.closest('section').querySelector('button.quiet:not([hidden])')) continue;
    if (element.closest('[hidden]') || element.closest('details:not([open])') && element.tagName !== 'SUMMARY') continue;
    element.focus({ preventScroll: true });
    const name = `${element.tagName.toLowerCase()}.${element.className} "${(element.textContent ?? '').slice(0, 30)}"`;
    if (document.activeElement !== element) reasons.push(`cannot be focused: ${name}`);
    if (!element.textContent?.trim() && !element.getAttribute('aria-label') && !element.labels?.length) reasons.push(`has no name: ${name}`);
  }
  document.activeElement?.blur();
  return reasons;
}
