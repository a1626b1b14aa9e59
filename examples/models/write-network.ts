import { basename } from 'node:path';
import { buildModel, GraphBuilder, writeModel } from 'trtforge/onnx';
import { Network } from './network.js';

/** What PyTorch's exporter wrote when the bundles this imitates were made. */
const OPSET = 18;

export interface WriteOptions {
  readonly seed: number;
  /** Weights in a file of their own even where one file would do. */
  readonly external: boolean;
}

/** Defines a network and writes it as ONNX; the weights are made while they are written, so memory stays small. Returns the files. */
export async function writeNetwork(
  path: string,
  define: (network: Network) => void,
  { seed, external }: WriteOptions,
): Promise<string[]> {
  const graph = new GraphBuilder(basename(path, '.onnx'));
  define(new Network(graph, seed));
  const model = buildModel(graph, { opset: OPSET, producer: 'trtforge examples' });
  const written = await writeModel(model, path, { externalData: external ? 'always' : 'auto' });
  return [written.path, ...(written.externalData === null ? [] : [written.externalData.path])];
}
