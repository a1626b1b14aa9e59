import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import { externalReference, isExternal } from '../../formats/onnx/external-data.js';
import { visitTensors } from '../../formats/onnx/graph.js';
import { type OnnxModel, viewModel } from '../../formats/onnx/model.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { interfaceOf } from '../../formats/onnx/values.js';

/** The components of a transducer, in the order of the data: what a bundle has without a profiles file. */
export const usualComponents = ['encoder', 'predictor', 'joint'] as const;

/** One model of a bundle, as its ONNX file declares it. */
export interface Component {
  readonly name: string;
  readonly onnx: string;
  readonly inputs: readonly ValueFacts[];
  readonly outputs: readonly ValueFacts[];
  /** External-data files, as the model writes their paths, each once; also those that only attributes refer to. */
  readonly externalFiles: readonly string[];
  /** Rows of the table that token ids look up; null where there is none. */
  readonly embeddingRows: number | null;
}

export interface ComponentPlace {
  readonly name: string;
  readonly onnx: string;
}

/**
 * Where the components are: `NAME.onnx` in the folder, or the file that the profiles file names. Throws TF_BUNDLE_COMPONENT_MISSING that names every one that is
 * not there.
 */
export function locateComponents(
  meta: string,
  folder: string,
  names: readonly string[],
  files: Readonly<Record<string, string | undefined>> = {},
): readonly ComponentPlace[] {
  const places = names.map((name) => ({ name, onnx: join(folder, files[name] ?? `${name}.onnx`) }));
  const missing = places.filter(({ onnx }) => !existsSync(onnx));
  if (missing.length === 0) return places;
  throw new TrtforgeError(
    'TF_BUNDLE_COMPONENT_MISSING',
    `The bundle of ${meta} lacks ${missing.map(({ name, onnx }) => `${name} (${onnx})`).join(', ')}.`,
    { details: { missing: missing.map(({ name, onnx }) => ({ component: name, path: onnx })) } },
  );
}

/**
 * Reads what a component declares, without its weights. Throws what `openModel` throws, and TF_ONNX_EXTERNAL_MISSING (every missing file in its
 * details), TF_ONNX_EXTERNAL_OUTSIDE, TF_ONNX_EXTERNAL_INVALID.
 */
export function readComponent({ name, onnx }: ComponentPlace): Component {
  return viewModel(onnx, (model) => ({
    name,
    onnx,
    ...interfaceOf(model.proto),
    externalFiles: externalFilesOf(model),
    embeddingRows: embeddingRowsOf(model),
  }));
}

function externalFilesOf(model: OnnxModel): readonly string[] {
  const locations = new Set<string>();
  for (const { tensor } of visitTensors(model.proto))
    if (isExternal(tensor)) locations.add(externalReference(tensor).location);
  const missing: string[] = [];
  for (const location of locations) {
    try {
      model.external.resolve(location);
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNX_EXTERNAL_MISSING') throw error;
      missing.push(location);
    }
  }
  if (missing.length === 0) return [...locations].sort();
  const named = missing.slice(0, 5).map((location) => `"${location}"`);
  const more = missing.length > named.length ? ` and ${missing.length - named.length} more` : '';
  throw new TrtforgeError(
    'TF_ONNX_EXTERNAL_MISSING',
    `${model.path} keeps weights in ${locations.size} external files, of which ${missing.length} cannot be read: ${named.join(', ')}${more}.`,
    { details: { missing, model: model.path } },
  );
}

/** The table of the Gather whose indices are an integer input, directly or through a Cast. */
function embeddingRowsOf({ proto }: OnnxModel): number | null {
  const graph = proto.graph!;
  const tokens = new Set(
    interfaceOf(proto).inputs.flatMap(({ name, dtype }) => (/int/.test(dtype ?? '') ? [name] : [])),
  );
  for (const { opType, input, output, attribute } of graph.node) {
    if (opType === 'Cast' && tokens.has(input[0] ?? '')) tokens.add(output[0] ?? '');
    if (opType !== 'Gather' || !tokens.has(input[1] ?? '')) continue;
    if (attribute.some(({ name, i }) => name === 'axis' && i !== 0n)) continue;
    const table = graph.initializer.find((tensor) => tensor.name === input[0]);
    if (table?.dims.length === 2) return Number(table.dims[0]);
  }
  return null;
}
