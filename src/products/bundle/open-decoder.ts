import { dirname } from 'node:path';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { digestModelFile } from '../../engines/identity/model-digest.js';
import { openSession, openTogether } from '../../engines/runtime/open-session.js';
import type { Binding, Session } from '../../engines/runtime/session.js';
import type { EngineBinding } from '../../engines/runtime/tensorrt/engine-interface.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { readMeta } from '../../formats/contract/model-meta.js';
import { checkBundle, jointInputs, rejectMismatches } from './check-bundle.js';
import { type Component, locateComponents, readComponent } from './component.js';
import type { TokenDecoder } from './transducer-decoder.js';
import { transducerFacts } from './transducer-facts.js';

/** Opens what runs a component; the caller closes it. */
type OpenComponent = (component: Component) => Promise<Session>;

/**
 * Opens the predictor and the joint network of a bundle: `predictor.onnx` and `joint.onnx` beside its meta file, or what `open` has of them. Throws
 * TF_BUNDLE_META_INVALID, TF_BUNDLE_COMPONENT_MISSING, TF_BUNDLE_MISMATCH when they contradict the meta file or cannot be decoded with, and what opening
 * sessions throws.
 */
export async function openDecoder(
  metaPath: string,
  context: WorkContext,
  // A frame is too little work to share, and threads that spin while they wait take the cores from the encoder, whose steps are timed.
  open: OpenComponent = ({ onnx }) => openSession(onnx, { threads: 1 }, context),
): Promise<TokenDecoder> {
  const meta = readMeta(metaPath);
  const [predictor, joint] = locateComponents(metaPath, dirname(metaPath), ['predictor', 'joint']).map(
    readComponent,
  );
  if (predictor === undefined || joint === undefined)
    throw new TrtforgeError('TF_INTERNAL', `${metaPath} has two components, and they were not read.`);
  rejectMismatches(meta, checkBundle(meta, [predictor, joint]));
  const smallest = { predictor: smallestShapes(predictor), joint: smallestShapes(joint) };
  const [encoderInput] = jointInputs(joint);
  const facts =
    encoderInput === undefined
      ? 'its joint network takes nothing of an encoder'
      : transducerFacts(meta, { predictor, joint }, smallest);
  if (typeof facts === 'string' || encoderInput === undefined)
    throw new TrtforgeError('TF_BUNDLE_MISMATCH', `${metaPath} cannot be decoded with: ${facts}.`);
  const { tokenLogits, blankId, durations } = facts;
  const digest = sha256(
    canonicalJson({
      predictor: await digestModelFile(predictor.onnx, context),
      joint: await digestModelFile(joint.onnx, context),
      tokenLogits,
      blankId,
      durations,
    }),
  );
  const models = await openTogether<[Session, Session]>([open(predictor), open(joint)]);
  const [predictorSession, jointSession] = models;
  return {
    path: metaPath,
    digest,
    facts: {
      ...facts,
      smallest: { predictor: smallestShapes(predictorSession), joint: smallestShapes(jointSession) },
    },
    models: { predictor: predictorSession, joint: jointSession },
    encoderInput,
    logits: joint.outputs[0]?.name ?? '',
    close: async () => {
      await Promise.all(models.map((session) => session.close()));
    },
  };
}

/** Engines take what their first profile allows, models one of whatever is open. */
export const smallestShapes = ({
  inputs,
}: {
  readonly inputs: readonly (Pick<Binding, 'name' | 'shape'> & Partial<Pick<EngineBinding, 'profiles'>>)[];
}): ReadonlyMap<string, readonly number[]> =>
  new Map(
    inputs.map(({ name, shape, profiles }) => [
      name,
      profiles?.[0]?.min ?? (shape ?? []).map((size) => (typeof size === 'number' ? size : 1)),
    ]),
  );
