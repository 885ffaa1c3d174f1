// Charts as inline SVG: a bar in parts, lines and bars over time; with legends, and tables of the same figures.

import { html, svg } from '../vendor/lit-html.js';
import { count } from './format.js';

const WIDTH = 600;
const HEIGHT = 140;

/** @typedef {{name: string, hue: string, values: (number | null)[]}} Series a value that is not known is null */

/**
 * One horizontal bar, divided in proportion to the values of its parts.
 * @param {{label: string, parts: {name: string, hue: string, value: number}[]}} options
 */
export function partsBar({ label, parts }) {
  const all = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  let x = 0;
  const rects = parts.map(({ hue, value }) => {
    const [from, width] = [x, (value / all) * WIDTH];
    x += width;
    return svg`<rect class=${`fill-${hue}`} x=${from} y="0" width=${width} height="18"></rect>`;
  });
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} 18" preserveAspectRatio="none" role="img" aria-label=${label}>${rects}</svg>`;
}

/**
 * Lines over time, scaled to the largest value of all series. A null is left out: the line joins its neighbours.
 * @param {{label: string, series: Series[], from: string, to: string, format?: (value: number) => string}} options
 */
export function lines({ label, series, from, to, format = count }) {
  const top = Math.max(...series.flatMap(({ values }) => values.map((value) => value ?? 0)), 0);
  const scale = (top || 1) / (HEIGHT - 10);
  const points = (/** @type {(number | null)[]} */ values) => values
    .map((value, index) => value === null ? '' : `${((index / Math.max(values.length - 1, 1)) * WIDTH).toFixed(1)},${(HEIGHT - value / scale).toFixed(1)}`)
    .filter((point) => point !== '').join(' ');
  return html`<figure>
    <svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT + 1}" preserveAspectRatio="none" role="img" aria-label=${label}>
      ${grid()}
      ${series.map(({ hue, values }) => svg`<polyline class=${`line line-${hue}`} points=${points(values)}></polyline>`)}
    </svg>
    <figcaption class="axis"><span>${from}</span><span>at most ${format(top)}</span><span>${to}</span></figcaption>
  </figure>`;
}

/**
 * Bars over time, each stacked of the values of all series. `titles` has one tooltip for each bar.
 * @param {{label: string, series: Series[], titles: string[], from: string, to: string}} options
 */
export function bars({ label, series, titles, from, to }) {
  const sums = titles.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const top = Math.max(...sums, 0);
  const scale = (top || 1) / (HEIGHT - 10);
  const step = WIDTH / Math.max(titles.length, 1);
  const rects = titles.map((title, index) => {
    let y = HEIGHT;
    return svg`<g><title>${title}</title>${series.map(({ hue, values }) => {
      const height = (values[index] ?? 0) / scale;
      y -= height;
      return svg`<rect class=${`fill-${hue}`} x=${index * step} y=${y} width=${Math.max(step - 1, 0.5)} height=${height}></rect>`;
    })}</g>`;
  });
  return html`<figure>
    <svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT + 1}" preserveAspectRatio="none" role="img" aria-label=${label}>${grid()}${rects}</svg>
    <figcaption class="axis"><span>${from}</span><span>at most ${count(top)} in a slot</span><span>${to}</span></figcaption>
  </figure>`;
}

/** The legend of a chart: each name with its colour, and a value if it has one. @param {{name: string, hue: string, value?: unknown}[]} entries */
export function legend(entries) {
  return html`<ul class="legend">${entries.map(({ name, hue, value }) => html`<li>
    <svg viewBox="0 0 10 10" aria-hidden="true"><rect class=${`fill-${hue}`} width="10" height="10" rx="2"></rect></svg>
    ${name}${value === undefined ? '' : html` <strong>${value}</strong>`}</li>`)}</ul>`;
}

/**
 * The figures of a chart as a table, which is folded until it is opened.
 * @param {string} caption @param {string[]} head @param {unknown[][]} rows
 */
export function figures(caption, head, rows) {
  return html`<details class="figures"><summary>As a table</summary><div class="scroll" tabindex="0" role="group" aria-label=${caption}><table>
    <caption>${caption}</caption>
    <thead><tr>${head.map((title, index) => html`<th scope="col" class=${index ? 'number' : ''}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map(([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map((value) => html`<td class="number">${value}</td>`)}</tr>`)}</tbody>
  </table></div></details>`;
}

function grid() {
  return [0.25, 0.5, 0.75, 1].map((part) => svg`<line class="grid" x1="0" x2=${WIDTH} y1=${HEIGHT * part} y2=${HEIGHT * part}></line>`);
}
