import { dirname } from 'node:path';
import { openSession } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import type { TransducerFacts } from '../../quality/tasks/transducer.js';
import type { DecodingModels } from '../../quality/tasks/transducer-decoder.js';
import { checkBundle, jointInputs, refuseMismatches } from './check-bundle.js';
import { type Component, locateComponents, readComponent } from './component.js';
import { readMeta } from './meta.js';
import { transducerFacts } from './transducer-facts.js';
import type { WorkContext } from './work-context.js';

/** The predictor and the joint network of a bundle, on ONNX Runtime: what makes tokens of encoder outputs. */
export interface BundleDecoder {
  /** The meta file. */
  readonly path: string;
  readonly facts: TransducerFacts;
  readonly models: DecodingModels;
  /** What the joint network takes of an encoder. */
  readonly encoderInput: { readonly name: string; readonly shape: Component['inputs'][number]['shape'] };
  /** The output of the joint network. */
  readonly logits: string;
  close(): Promise<void>;
}

/**
 * Opens `predictor.onnx` and `joint.onnx` beside a bundle's meta file. Throws TF_BUNDLE_META_INVALID, TF_BUNDLE_COMPONENT_MISSING, TF_BUNDLE_MISMATCH
 * when they contradict the meta file or cannot be decoded with, and what opening sessions throws.
 */
export async function openDecoder(
  metaPath: string,
  context: Pick<WorkContext, 'emit' | 'signal'>,
): Promise<BundleDecoder> {
  const meta = readMeta(metaPath);
  const [predictor, joint] = locateComponents(metaPath, dirname(metaPath), ['predictor', 'joint']).map(
    readComponent,
  );
  if (predictor === undefined || joint === undefined)
    throw new TrtforgeError('TF_INTERNAL', `${metaPath} has two components, and they were not read.`);
  refuseMismatches(meta, checkBundle(meta, [predictor, joint]));
  const smallest = { predictor: smallestShapes(predictor), joint: smallestShapes(joint) };
  const [encoderInput] = jointInputs(joint);
  const facts =
    encoderInput === undefined
      ? 'its joint network takes nothing of an encoder'
      : transducerFacts(meta, { predictor, joint }, smallest);
  if (typeof facts === 'string' || encoderInput === undefined)
    throw new TrtforgeError('TF_BUNDLE_MISMATCH', `${metaPath} cannot be decoded with: ${facts}.`);
  // A frame is too little work to share, and threads that spin while they wait take the cores from the encoder, whose steps are timed.
  const predictorSession = await openSession(predictor.onnx, { threads: 1 }, context);
  try {
    const jointSession = await openSession(joint.onnx, { threads: 1 }, context);
    return {
      path: metaPath,
      facts,
      models: { predictor: predictorSession, joint: jointSession },
      encoderInput,
      logits: joint.outputs[0]?.name ?? '',
      close: async () => {
        await jointSession.close();
        await predictorSession.close();
      },
    };
  } catch (error) {
    await predictorSession.close();
    throw error;
  }
}

/** Models take one of whatever is open. */
const smallestShapes = ({ inputs }: Component): ReadonlyMap<string, readonly number[]> =>
  new Map(
    inputs.map(({ name, shape }) => [
      name,
      (shape ?? []).map((size) => (typeof size === 'number' ? size : 1)),
    ]),
  );
