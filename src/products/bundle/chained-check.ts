import type { Session } from '../../engines/runtime/session.js';
import type { EventListener } from '../../events.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import { randomStream } from '../../formats/tensor/random.js';
import type { Tensor } from '../../formats/tensor/tensor.js';
import { tensorFrom } from '../../formats/tensor/values.js';
import { type Encoded, encode, type Runner, type TransducerFacts } from '../../quality/tasks/transducer.js';
import { type Decision, decode } from '../../quality/tasks/transducer-decoder.js';
import type { ChainCheck } from './chain-schema.js';
import { type ChainPrecision, driftOf, judgeDecisions, mostDrifting } from './judge-chain.js';

export const chainedComponents = ['encoder', 'predictor', 'joint'] as const;
export type ChainedComponent = (typeof chainedComponents)[number];

/** Opens the session of a component; whoever opens it closes it. */
export type OpenComponent = (component: ChainedComponent) => Promise<Session>;

export interface ChainRequest {
  readonly facts: TransducerFacts;
  /** Features [batch, …] as the encoder takes them; `frames` is the size along time. */
  readonly features: { readonly shape: readonly number[]; readonly frames: number };
  readonly seed: number;
  readonly samples: number;
  readonly precision: ChainPrecision;
}

export interface ChainCandidate {
  readonly name: ChainCheck['candidate'];
  readonly open: OpenComponent;
}

/**
 * Decodes seeded features with the reference and with each candidate, encoder to predictor to joint network, and says whether they decide the same, where
 * not by how little, and which component moves the logits: each is exchanged alone. An encoder is in memory only while it runs, one at a time.
 */
export async function checkChain(
  request: ChainRequest,
  reference: OpenComponent,
  candidates: readonly ChainCandidate[],
  { emit }: { readonly emit: EventListener },
): Promise<readonly ChainCheck[]> {
  const { facts, samples } = request;
  const features = Array.from({ length: samples }, (_, sample) => featuresOf(request, sample));
  const encodeAll = async (open: OpenComponent) => {
    const session = await open('encoder');
    try {
      const encoded: Encoded[] = [];
      for (const one of features)
        encoded.push(await encode(session, one, request.features.frames, facts.timeAxis));
      return { encoded, backend: session.backend };
    } finally {
      await session.close();
    }
  };
  const base = await encodeAll(reference);
  return withSmallOnes(reference, async (own) => {
    const decisions = await each(base.encoded, (encoded) => decode(own, encoded, facts));
    const checks: ChainCheck[] = [];
    for (const candidate of candidates) {
      const started = performance.now();
      const note = (detail: string) =>
        emit({
          type: 'progress',
          phase: 'chained check',
          done: checks.length,
          total: candidates.length,
          detail,
        });
      note(`${candidate.name}: encoder`);
      const other = await encodeAll(candidate.open);
      const check = await withSmallOnes(candidate.open, async (theirs): Promise<ChainCheck> => {
        const led = (models: Small, encoded: readonly Encoded[]) =>
          each(encoded, (one, sample) => decode(models, one, facts, decisions[sample]!));
        note(`${candidate.name}: decoding`);
        const alone = await each(other.encoded, (encoded) => decode(theirs, encoded, facts));
        const all = await led(theirs, other.encoded);
        note(`${candidate.name}: one component at a time`);
        const exchanged: readonly (readonly [ChainedComponent, readonly (readonly Decision[])[]])[] = [
          ['encoder', await led(own, other.encoded)],
          ['predictor', await led({ ...own, predictor: theirs.predictor }, base.encoded)],
          ['joint', await led({ ...own, joint: theirs.joint }, base.encoded)],
        ];
        const drifts = exchanged.map(([component, decided]) =>
          driftOf(
            component,
            decisions.map((expected, sample) => ({ reference: expected, led: decided[sample]! })),
          ),
        );
        return {
          candidate: candidate.name,
          reference_backend: base.backend,
          candidate_backend: other.backend,
          seed: request.seed,
          samples,
          frames: request.features.frames,
          emitted_tokens: decisions.flat().filter(({ token }) => token !== facts.blankId).length,
          ...judgeDecisions(
            decisions.map((expected, sample) => ({
              reference: expected,
              led: all[sample]!,
              free: alone[sample]!,
            })),
            request.precision,
          ),
          components: [...drifts],
          drifts: mostDrifting(drifts),
          ms: performance.now() - started,
        };
      });
      checks.push(check);
    }
    return checks;
  });
}

interface Small {
  readonly predictor: Runner;
  readonly joint: Runner;
}

async function withSmallOnes<T>(open: OpenComponent, work: (models: Small) => Promise<T>): Promise<T> {
  const predictor = await open('predictor');
  try {
    const joint = await open('joint');
    try {
      return await work({ predictor, joint });
    } finally {
      await joint.close();
    }
  } finally {
    await predictor.close();
  }
}

async function each<T, R>(list: readonly T[], work: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const [index, item] of list.entries()) results.push(await work(item, index));
  return results;
}

/** Log-mel features are normalized per bin, so a normal distribution of deviation one is what an encoder sees. */
function featuresOf({ features: { shape }, seed }: ChainRequest, sample: number): Tensor {
  const stream = randomStream(seed, `features/${sample}`);
  const values = Float32Array.from({ length: elementCount(shape) }, () => stream.normal());
  return tensorFrom('float32', shape, values);
}
