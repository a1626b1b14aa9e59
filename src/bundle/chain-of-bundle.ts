import type { PreparedBuild } from '../engine/prepare.js';
import type { ValueFacts } from '../onnx/model-facts.js';
import { openOrtSession } from '../runtime/ort-session.js';
import type { BundleRequest } from './bundle-request.js';
import type { ChainCheck } from './chain-schema.js';
import {
  type ChainCandidate,
  type ChainedComponent,
  type ChainRequest,
  chainedComponents,
  checkChain,
} from './chained-check.js';
import { featuresOf, jointInputs } from './check-bundle.js';
import { roleOfAxis } from './component-profile.js';
import type { ComponentState } from './component-state.js';
import type { BundleMeta } from './meta.js';
import { openSubject } from './smoke.js';
import type { TransducerFacts } from './transducer.js';
import { signalOf, type WorkContext } from './work-context.js';

/** What the check takes from a run over a bundle. */
interface ChainedBundle {
  readonly meta: BundleMeta | undefined;
  readonly components: readonly ComponentState[];
}

interface ChainMeans {
  typed(state: ComponentState): Promise<{ readonly path: string }>;
  whyNotRun(prepared: PreparedBuild): string | null;
  readonly context: WorkContext;
}

interface Chain {
  /** undefined where nothing can be compared. */
  readonly run: (() => Promise<readonly ChainCheck[]>) | undefined;
  readonly notChecked: readonly string[];
}

/** The chained check of a bundle as it is: which candidates there are, and why not the others. */
export function chainOf(
  bundle: ChainedBundle,
  check: NonNullable<BundleRequest['check']>,
  means: ChainMeans,
): Chain {
  const { meta } = bundle;
  const states = chainedComponents.map((name) => bundle.components.find((state) => state.name === name));
  const [encoder, predictor, joint] = states;
  if (
    meta === undefined ||
    encoder?.target === undefined ||
    predictor?.target === undefined ||
    joint?.target === undefined
  ) {
    const lacking = chainedComponents.filter((_, index) => states[index] === undefined);
    return {
      run: undefined,
      notChecked: [`The bundle was not decoded: this run has no ${lacking.join(' and no ')}.`],
    };
  }
  const by = { encoder, predictor, joint };
  const facts = transducerFacts(meta, by);
  if (typeof facts === 'string')
    return { run: undefined, notChecked: [`The bundle was not decoded: ${facts}.`] };
  const { recipe } = encoder.target.prepared.identity;
  const notChecked: string[] = [];
  const candidates: ChainCandidate[] = [];
  const { context } = means;
  const onnxRuntime = (path: string) => openOrtSession(path, { emit: context.emit, ...signalOf(context) });
  if (recipe.conversion === null)
    notChecked.push('No typed models were decoded: the builder was given the models as they are.');
  else
    candidates.push({
      name: 'typed models',
      open: async (name) => onnxRuntime((await means.typed(by[name])).path),
    });
  const why = means.whyNotRun(encoder.target.prepared);
  if (why !== null) notChecked.push(`The engines were not decoded with: ${why}.`);
  else
    candidates.push({
      name: 'engines',
      open: (name) => {
        const { enginePath, prepared } = by[name].target!;
        return openSubject({ kind: 'engine', path: enginePath, toolchain: prepared.toolchain }, context);
      },
    });
  const request: ChainRequest = {
    facts,
    features: featureShape(by.encoder),
    ...check,
    precision: recipe.precision === 'fp16' || recipe.precision === 'bf16' ? recipe.precision : 'as-is',
  };
  const reference = (name: ChainedComponent) => onnxRuntime(by[name].onnx);
  return {
    notChecked,
    run: candidates.length === 0 ? undefined : () => checkChain(request, reference, candidates, context),
  };
}

type ByName = Readonly<Record<ChainedComponent, ComponentState>>;

/** What decoding needs, or why the bundle cannot be decoded. */
function transducerFacts(meta: BundleMeta, by: ByName): TransducerFacts | string {
  const width = by.joint.target!.component.outputs[0]?.shape?.at(-1);
  const logits = typeof width === 'number' ? width : meta.jointWidth;
  if (logits === null) return 'neither the meta file nor the joint network says how many logits there are';
  const durations = meta.durations ?? guessedDurations(logits, meta);
  const tokenLogits = logits - durations.length;
  const blankId = meta.blankId ?? tokenLogits - 1;
  if (blankId >= tokenLogits) return `its blank ${blankId} is none of the ${tokenLogits} token logits`;
  const smallest = {
    encoder: smallestOf(by.encoder),
    predictor: smallestOf(by.predictor),
    joint: smallestOf(by.joint),
  };
  for (const [name, shape] of smallest.predictor) {
    const tokens = by.predictor.target!.component.inputs.find(
      (input) => input.name === name && /int/.test(input.dtype ?? ''),
    );
    if (tokens !== undefined && (shape[1] ?? 1) > 1)
      return `its predictor takes no fewer than ${shape[1]} tokens at a time, and a decoder has one`;
  }
  const [fromEncoder, fromPredictor] = jointInputs(by.joint.target!.component);
  return {
    tokenLogits,
    blankId,
    durations,
    smallest,
    timeAxis: axisAlong('time', by.joint, meta, fromEncoder),
    tokenAxis: axisAlong('tokens', by.joint, meta, fromPredictor),
  };
}

/** Logits beyond the vocabulary and its blank are durations 0, 1, 2, … */
const guessedDurations = (logits: number, { vocabulary }: BundleMeta): readonly number[] =>
  vocabulary === null
    ? []
    : Array.from({ length: Math.max(0, logits - vocabulary - 1) }, (_, duration) => duration);

const smallestOf = ({ target }: ComponentState): ReadonlyMap<string, readonly number[]> =>
  new Map(
    target!.component.inputs.map(({ name, shape }) => [
      name,
      target!.profile.get(name)?.min ?? (shape ?? []).map((size) => (typeof size === 'number' ? size : 1)),
    ]),
  );

function axisAlong(
  role: 'time' | 'tokens',
  { target }: ComponentState,
  meta: BundleMeta,
  input: ValueFacts | undefined,
): number {
  const shape = input?.shape ?? [];
  const found = shape.findIndex(
    (symbol, axis) =>
      typeof symbol !== 'number' &&
      roleOfAxis({ component: target!.component, meta, input: input!, axis, symbol }) === role,
  );
  return found >= 0 ? found : Math.max(0, shape.length - 1);
}

/** Features as long as the profile lets them be: the more encoder steps, the more decisions. */
function featureShape({ target }: ComponentState): ChainRequest['features'] {
  const { component, profile } = target!;
  const input = featuresOf(component)!;
  const shape = (input.shape ?? []).map((size, axis) => {
    if (typeof size === 'number') return size;
    const range = profile.get(input.name);
    return (axis === 0 ? range?.min[axis] : range?.max[axis]) ?? 1;
  });
  const open = (input.shape ?? []).findLastIndex((size) => typeof size !== 'number');
  return { shape, frames: shape[Math.max(open, 1)] ?? 1 };
}
