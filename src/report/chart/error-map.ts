import { plural } from '../../base/text/quantity.js';
import type { ErrorMap } from '../../quality/verify/result.js';
import type { Chart } from './frame.js';
import { heatMapChart } from './heat-map.js';

/** Where in a tensor the error is. */
export function errorMapChart({ tensor, rows, columns, cells }: ErrorMap): Chart {
  const axisName = ({ axis, size }: ErrorMap['rows']) => (axis === null ? 'all' : `axis ${axis} (${size})`);
  const bad = cells.flat().filter((cell) => cell === null).length;
  return heatMapChart({
    title: `Error of ${tensor}`,
    description: `${axisName(rows)} by ${axisName(columns)}, ${plural(cells.flat().length, 'cell')}, ${bad} of them with values that are not finite.`,
    rows: axisName(rows),
    columns: axisName(columns),
    cells,
  });
}
