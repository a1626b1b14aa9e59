import { leadingNode } from '../../engines/layers/summary.js';
import type { ModelLayers } from './model-layers.js';
import type { Row } from './result.js';
import type { LayerRow } from './rows.js';

/** The file of one figure that Google's Model Explorer lays over a graph: by graph, then by node. https://github.com/google-ai-edge/model-explorer/wiki/2.-User-Guide#custom-node-data */
type NodeData = Readonly<
  Record<
    string,
    {
      readonly results: Readonly<Record<string, { readonly value: number | string }>>;
      readonly gradient?: readonly { readonly stop: number; readonly bgColor: string }[];
    }
  >
>;

/** From little to much; decibels the other way round. */
const MORE_IS_DARKER = [
  { stop: 0, bgColor: '#fff7ec' },
  { stop: 1, bgColor: '#d7301f' },
];
const LESS_IS_DARKER = MORE_IS_DARKER.map(({ stop, bgColor }) => ({ stop: 1 - stop, bgColor })).reverse();

/** Figures as Model Explorer shows them beside a node. Time is that of the layer, for the node that it is counted for, so that sums stay true. */
const FIGURES: Readonly<
  Record<
    string,
    {
      readonly of: (row: Row, isLeading: boolean) => number | string | null;
      readonly gradient?: typeof MORE_IS_DARKER;
    }
  >
> = {
  'time-ms': { of: ({ ms }, isLeading) => (isLeading ? ms : ms && 0), gradient: MORE_IS_DARKER },
  'error-db': { of: ({ error }) => finite(error?.sqnrDb), gradient: LESS_IS_DARKER },
  'sensitivity-db': { of: ({ sensitivityDb }) => finite(sensitivityDb), gradient: LESS_IS_DARKER },
  precision: { of: ({ precision }) => precision },
  layer: { of: ({ name }) => name },
};

const finite = (value: Row['sensitivityDb'] | undefined): number | null =>
  typeof value === 'number' ? value : null;

/** Files of node data for the ONNX model that the rows are of, by file name; a figure that no row has makes none. */
export function nodeDataFiles(rows: readonly LayerRow[], model: ModelLayers): ReadonlyMap<string, NodeData> {
  const files = new Map<string, NodeData>();
  for (const [name, { of, gradient }] of Object.entries(FIGURES)) {
    const results: Record<string, { value: number | string }> = Object.create(null);
    for (const { layer, row } of rows) {
      if (row.copies) continue;
      const leading = leadingNode(layer, model.nodes);
      for (const node of row.onnx) {
        const known = model.nodes.get(node);
        const value = of(row, node === leading);
        if (known === undefined || value === null) continue;
        // The viewer's ids of nodes are their names, or their places.
        const key = known.nameless === null ? node : `<node_${known.nameless}>`;
        const before = results[key]?.value;
        results[key] = {
          value:
            typeof value === 'number' && typeof before === 'number' && name === 'time-ms'
              ? before + value
              : value,
        };
      }
    }
    if (Object.keys(results).length === 0) continue;
    files.set(`${name}.json`, { [model.graph]: { results, ...(gradient && { gradient }) } });
  }
  return files;
}
