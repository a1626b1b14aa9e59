import { join } from 'node:path';
import { TrtforgeError } from '../errors.js';
import { type EventListener, inPhase } from '../events.js';
import { visitTensors } from '../onnx/graph.js';
import { openModel } from '../onnx/model.js';
import { FileMemo, type FileStamp, stampOf, unchanged } from '../system/file-memo.js';
import { digestModel } from './model-digest.js';
import { type ModelTensor, modelInputs, modelOutputs } from './model-inputs.js';

/** What a build must know of a model before it starts. */
export interface ModelFacts {
  /** Digest of the content (`model-digest.ts`). */
  readonly digest: string;
  /** Bytes of the model file and its external files together. */
  readonly bytes: number;
  readonly weightBytes: number;
  readonly inputs: readonly ModelTensor[];
  readonly outputs: readonly ModelTensor[];
}

export interface FactsOptions {
  /** Where digests are remembered between runs. */
  readonly cacheFolder: string;
  readonly emit: EventListener;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the facts of a model. The first time this streams every weight once (SHA-256, about 2 GB/s); while neither the model file nor an
 * external file changes, later calls cost a few `stat`s. Errors: as `openModel` and `digestModel`.
 */
export async function readModelFacts(path: string, options: FactsOptions): Promise<ModelFacts> {
  const memo = new FileMemo<ModelFacts>(join(options.cacheFolder, 'models'), isModelFacts);
  const known = memo.recall(path);
  if (known !== undefined) return known;
  const { facts, stamps } = await inPhase('identify', options.emit, () => workOut(path, options), path);
  memo.remember(path, stamps, facts);
  return facts;
}

async function workOut(
  path: string,
  options: FactsOptions,
): Promise<{ readonly facts: ModelFacts; readonly stamps: readonly FileStamp[] }> {
  const model = openModel(path);
  try {
    const [inputs, outputs] = [modelInputs(model.proto), modelOutputs(model.proto)];
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
    return { facts: { digest, bytes, weightBytes, inputs, outputs }, stamps };
  } finally {
    model.close();
  }
}

function isModelFacts(value: unknown): value is ModelFacts {
  if (typeof value !== 'object' || value === null) return false;
  const facts = value as Partial<ModelFacts>;
  return (
    typeof facts.digest === 'string' &&
    typeof facts.bytes === 'number' &&
    typeof facts.weightBytes === 'number' &&
    Array.isArray(facts.inputs) &&
    Array.isArray(facts.outputs)
  );
}
