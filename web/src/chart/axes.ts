// Axes as ECharts options, all of one look: linear in the positions of `scale.ts`, with ticks and
// labels of our own.

import type { Option } from '../echarts';
import type { Frame } from '../panel';
import { timeStep, timeTicks } from '../scale';
import { axisTime } from '../units';

/** Left margin of all time charts, so that their time axes lie under each other. */
export const LEFT = 72;
export const LEFT_SMALL = 66;
export const RIGHT = 18;

interface AxisSpec {
  name: string;
  min: number;
  max: number;
  ticks: number[];
  label: (position: number) => string;
  frame: Frame;
  gridIndex?: number;
  /** Distance of the title from the axis. */
  gap?: number;
  /** No labels and no title: another chart of the same axis below has them. */
  bare?: boolean;
}

function axis(spec: AxisSpec): Option {
  const { theme, small } = spec.frame;
  return {
    type: 'value',
    gridIndex: spec.gridIndex ?? 0,
    min: spec.min,
    max: spec.max,
    name: spec.bare ? '' : spec.name,
    nameLocation: 'middle',
    nameMoveOverlap: false,
    nameGap: spec.gap,
    nameTextStyle: { color: theme.muted, fontSize: small ? 11 : 12 },
    axisLine: { show: true, onZero: false, lineStyle: { color: theme.line } },
    axisTick: { show: !spec.bare, customValues: spec.ticks, lineStyle: { color: theme.line } },
    splitLine: { show: true, lineStyle: { color: theme.grid } },
    axisLabel: {
      show: !spec.bare,
      customValues: spec.ticks,
      formatter: spec.label,
      color: theme.muted,
      fontSize: small ? 10.5 : 11.5,
      hideOverlap: true,
    },
  };
}

export function yAxis(spec: AxisSpec): Option {
  return axis({ gap: spec.frame.small ? 55 : 57, ...spec });
}

export function xAxis(spec: AxisSpec): Option {
  return axis({ gap: 26, ...spec });
}

/** The common time axis, shown from `frame.from` to `frame.to`. */
export function timeAxis(frame: Frame, longest: number, options: { gridIndex?: number; bare?: boolean } = {}): Option {
  const step = timeStep(frame.to - frame.from, frame.width < 420 ? 4 : frame.width < 800 ? 6 : 10);
  return xAxis({
    name: 'time since the start of the run',
    min: frame.from,
    max: frame.to,
    ticks: timeTicks(frame.from, frame.to, step),
    label: (t) => axisTime(Math.abs(t) < 1e-12 ? 0 : t, step, longest),
    frame,
    ...options,
  });
}

export function grid(frame: Frame, top: number, bottom: number, right = RIGHT): Option {
  return {
    left: frame.small ? LEFT_SMALL : LEFT, right, top, bottom, outerBoundsMode: 'none',
    show: true, borderWidth: 0, backgroundColor: 'transparent',
  };
}
