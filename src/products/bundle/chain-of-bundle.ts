import type { OpenContext } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { EventListener } from '../../events.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import type { BundleRequest } from './bundle-request.js';
import type { ChainCheck } from './chain-schema.js';
import {
  type ChainCandidate,
  type ChainedComponent,
  type ChainRequest,
  chainedComponents,
  checkChain,
} from './chained-check.js';
import { featuresOf } from './check-bundle.js';
import type { ComponentRun } from './component-run.js';
import type { BundleMeta } from './meta.js';
import { builtEngine, openSubject } from './smoke.js';
import { transducerFacts } from './transducer-facts.js';

/** What the check takes from a run over a bundle. */
interface ChainedBundle {
  readonly meta: BundleMeta | undefined;
  readonly components: readonly ComponentRun[];
  readonly request: BundleRequest;
}

export interface Chain {
  /** undefined where nothing can be compared. */
  readonly run: ((emit: EventListener) => Promise<readonly ChainCheck[]>) | undefined;
  readonly notChecked: readonly string[];
}

/** The chained check of a bundle as it is: which candidates there are, and why not the others. */
export function chainOf(
  bundle: ChainedBundle,
  check: NonNullable<BundleRequest['check']>,
  context: OpenContext,
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
  const facts = transducerFacts(
    meta,
    { predictor: by.predictor.target!.component, joint: by.joint.target!.component },
    { predictor: smallestOf(by.predictor), joint: smallestOf(by.joint) },
  );
  if (typeof facts === 'string')
    return { run: undefined, notChecked: [`The bundle was not decoded: ${facts}.`] };
  const { recipe } = encoder.target.prepared.identity;
  const notChecked: string[] = [];
  const candidates: ChainCandidate[] = [];
  const onnxRuntime = (path: string) => openSession(path, {}, context);
  if (recipe.conversion === null)
    notChecked.push('No typed models were decoded: the builder was given the models as they are.');
  else
    candidates.push({
      name: 'typed models',
      open: (name) => onnxRuntime(by[name].typedModel!),
    });
  const why = encoder.whyNotRun();
  if (why !== null) notChecked.push(`The engines were not decoded with: ${why}.`);
  else
    candidates.push({
      name: 'engines',
      open: (name) => openSubject(builtEngine(by[name].target!, bundle.request), context),
    });
  const request: ChainRequest = {
    facts,
    features: featureShape(by.encoder),
    ...check,
    precision: formatNamed(recipe.precision)?.id ?? 'as-is',
  };
  const reference = (name: ChainedComponent) => onnxRuntime(by[name].onnx);
  return {
    notChecked,
    run: candidates.length === 0 ? undefined : (emit) => checkChain(request, reference, candidates, { emit }),
  };
}

const smallestOf = ({ target }: ComponentRun): ReadonlyMap<string, readonly number[]> =>
  new Map(
    target!.component.inputs.map(({ name, shape }) => [
      name,
      target!.profile.get(name)?.min ?? (shape ?? []).map((size) => (typeof size === 'number' ? size : 1)),
    ]),
  );

/** Features as long as the profile lets them be: the more encoder steps, the more decisions. */
function featureShape({ target }: ComponentRun): ChainRequest['features'] {
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
