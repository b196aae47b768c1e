// Runs of messages: made of runs of a timer, with series, ends and flows of their own.

const end = (name, place, cpu, policy, more = {}) => ({
  name, place, address: null, cpu, policy, wait: null, receive_buffer_bytes: null, send_buffer_bytes: null, version: null, ...more,
});

const flow = (series, sent, more = {}) => ({
  series, sent, received: sent, lost: 0, late: null, late_over_ns: null, duplicated: 0, reordered: 0, foreign: 0,
  wanted_per_s: null, achieved_per_s: sent / 20, ...more,
});

/** The series get these names, in their order; those that no name is left for are dropped. */
function renamed(run, names, more) {
  const kept = (list) => list.slice(0, names.length).map((one, i) => ({ ...one, name: names[i] }));
  const series = kept(run.record.series).map((one) => ({ ...one, cpu: 0, period_ns: null, missed: null, scheduled: null }));
  const drawn = kept(run.series).map((one) => ({ ...one, scheduled: null }));
  return { ...run, scheduled_first: false, series: drawn, record: { ...run.record, series, ...more } };
}

export const ROUND_TRIPS = { kind: 'round_trip', one: 'round trip', many: 'round trips', measure: 'round trip' };
export const PACKETS = { kind: 'packet', one: 'packet', many: 'packets', measure: 'latency' };

/** Two ping-pongs, the second one with real-time ends. */
export function pingpong([first, second]) {
  const of = (run, policy) => {
    const [one] = run.series;
    const messages = { transport: 'zmq-tcp', size: 1, ends: [end('near', 'thread', 0, policy), end('far', 'process', 1, policy)], flows: [flow('rtt', run.record.series[0].count)], clock: null };
    const only = renamed(run, ['rtt'], { messages, probe: { name: 'pingpong', parameters: { transport: 'zmq-tcp', size: 1, cpu: 0, far_cpu: 1, far_priority: 0, to: null, foreign: false, timeout_ns: 1e9 } } });
    return { ...only, samples: ROUND_TRIPS, drawn: ROUND_TRIPS, heat: one.heat, headline: '99.9% of round trips took at most 66 us (one way 33 us, as half of it); the worst took 2.4 ms.' };
  };
  return [of(first, 'other 0'), of(second, 'fifo 90')];
}

const PARAMETERS = {
  transport: 'udp', size: 64, rate_per_s: 10000, both_ways: true, wait: 'hybrid:2ms', far_wait: null, late_over_ns: 1e6,
  cpu: 0, far_cpu: null, far_priority: null, to: '10.20.30.40:7077', group: null, receivers: null,
};

/** A stream there and back to another machine, whose clock is known to 15 us; with its stages. */
export function stream(run) {
  const lost = { late: 41, late_over_ns: 1e6, wanted_per_s: 10000, lost: 12, reordered: 3 };
  const buffers = { receive_buffer_bytes: 8388608, send_buffer_bytes: 212992, wait: 'hybrid:2ms' };
  const messages = {
    transport: 'udp', size: 64, flows: [flow('there', 200000, lost), flow('back', 200000, { ...lost, lost: 0, foreign: 2 })],
    ends: [end('near', 'thread', 0, 'fifo 90', buffers), end('far', 'machine', null, null, { ...buffers, address: '10.20.30.40:7077', version: '0.1.0' })],
    clock: { offset_ns: -1234567, uncertainty_ns: 15000, drift_ppb: 12.4, exchanges: 64, shortest_round_trip_ns: 29000 },
  };
  const both = renamed(run, ['there', 'back'], { messages, probe: { name: 'stream', parameters: PARAMETERS } });
  const stages = ['there', 'back'].flatMap((of, i) => ['pacing', 'transit'].map((stage) => ({ name: `${of}/${stage}`, from: both.record.series[i], histogram: both.series[i].histogram })));
  const summaries = stages.map(({ name, from }) => ({ ...from, name, stage_of: from.name, stage: name.split('/')[1] }));
  return {
    ...both, samples: PACKETS, drawn: PACKETS, record: { ...both.record, series: [...both.record.series, ...summaries] }, stages: stages.map(({ name, histogram }) => ({ name, histogram })),
    headline: '99.9% of packets came within 64 us of their scheduled time; the worst was 2.4 ms late there. 12 of 200,000 there were lost.',
  };
}
