// The parts of ECharts that the page uses, and one shape of our own: many rectangles of one colour
// as a single path. A heat map of a day has tens of thousands of cells but only a few dozen colours;
// one element per colour draws at once what one element per cell would not.

import * as echarts from 'echarts/core';
import { CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { GridComponent, MarkLineComponent } from 'echarts/components';
import { LabelLayout } from 'echarts/features';
import { CanvasRenderer } from 'echarts/renderers';

echarts.use([CustomChart, LineChart, ScatterChart, GridComponent, MarkLineComponent, LabelLayout, CanvasRenderer]);

interface Drawing {
  rect(x: number, y: number, width: number, height: number): void;
}

const Cells = echarts.graphic.extendShape({
  shape: { rects: new Float64Array(0) },
  buildPath(path: Drawing, shape: { rects: Float64Array }) {
    const { rects } = shape;
    for (let at = 0; at < rects.length; at += 4) {
      path.rect(rects[at], rects[at + 1], rects[at + 2], rects[at + 3]);
    }
  },
} as never);
echarts.graphic.registerShape('cells', Cells as never);

export { echarts };
/** Options are plain objects: ECharts' own type would pull in every chart there is. */
export type Option = { [name: string]: unknown };
export type Chart = ReturnType<typeof echarts.init>;
