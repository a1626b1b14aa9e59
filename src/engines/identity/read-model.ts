import { type FileStamp, stampOf, unchanged } from '../../base/files/file-memo.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { opsets, visitTensors } from '../../formats/onnx/graph.js';
import { parsedOperators } from '../../formats/onnx/lint/operators.js';
import { editModel, type OnnxModel } from '../../formats/onnx/model.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { interfaceOf } from '../../formats/onnx/value-facts.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import { precisionsOf } from '../../formats/precision/precisions-of-model.js';
import { digestModel } from './model-digest.js';

/** The facts of a model that a build needs before it starts. */
export interface ModelContent {
  /** Digest of the content (`model-digest.ts`). */
  readonly digest: string;
  /** Bytes of the model file and its external files together. */
  readonly bytes: number;
  readonly weightBytes: number;
  readonly inputs: readonly ValueFacts[];
  readonly outputs: readonly ValueFacts[];
  /** The formats among its types, the one with the widest tolerance first. */
  readonly precisions: readonly FormatId[];
  /** Number of uses of each operator that TensorRT's parser has to import by its name. */
  readonly operators: Readonly<Record<string, number>>;
  /** Of the ONNX domain; null where the model states none. */
  readonly opset: number | null;
}

export interface ContentOptions {
  /** Where digests are remembered between runs. */
  readonly cacheFolder: string;
  readonly emit: EventListener;
  readonly signal?: AbortSignal;
}

/** The facts that decide which TensorRT builds a model. */
export const buildFactsOf = (model: OnnxModel): Pick<ModelContent, 'precisions' | 'operators' | 'opset'> => ({
  precisions: precisionsOf(model.proto),
  operators: parsedOperators(model),
  opset: opsets(model.proto)['ai.onnx'] ?? null,
});

/** Reads a model as a whole, with the stamps of its files from before. Throws TF_FILE_UNREADABLE when one of them changes meanwhile. */
export async function readModel(
  path: string,
  options: ContentOptions,
): Promise<{ readonly content: ModelContent; readonly stamps: readonly FileStamp[] }> {
  return editModel(path, async (model) => {
    const { inputs, outputs } = interfaceOf(model.proto);
    const facts = buildFactsOf(model);
    // Finding every weight opens every external file, so that all can be stamped before the first is read.
    for (const { tensor } of visitTensors(model.proto)) model.weight(tensor);
    const stamps = model.files().flatMap((file) => stampOf(file) ?? []);
    const { digest, weightBytes } = await digestModel(model, options);
    if (!unchanged(stamps)) {
      throw new TrtforgeError('TF_FILE_UNREADABLE', `${path} was changed while it was read.`, {
        remedy: 'Run the command again once nothing writes to the model any more.',
      });
    }
    const bytes = stamps.reduce((sum, { size }) => sum + Number(size), 0);
    return { content: { digest, bytes, weightBytes, inputs, outputs, ...facts }, stamps };
  });
}
