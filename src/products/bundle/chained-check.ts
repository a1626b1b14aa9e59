import { openTogether } from '../../engines/runtime/open-session.js';
import type { Session } from '../../engines/runtime/session.js';
import type { WorkContext } from '../../events.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import { randomStream } from '../../formats/tensor/random.js';
import { type Tensor, tensorFrom } from '../../formats/tensor/tensor.js';
import { type Decision, MIN_AGREEMENT } from '../../quality/tasks/agreement.js';
import type { ChainCheck } from './chain-schema.js';
import { type ChainedComponent, ChainJudge, type ChainPrecision } from './judge-chain.js';
import type { chainCheckOf } from './options.js';
import { type Encoded, encode, type TransducerFacts } from './transducer.js';
import { type DecodingModels, decode } from './transducer-decoder.js';

/** Opens the session of a component; the caller closes it. */
export type OpenComponent = (component: ChainedComponent) => Promise<Session>;

/** Components in a chain, and the check of it. */
export interface Chained extends NonNullable<ReturnType<typeof chainCheckOf>> {
  readonly facts: TransducerFacts;
  /** Features [batch, …] as the encoder takes them; `frames` is the size along time. */
  readonly features: { readonly shape: readonly number[]; readonly frames: number };
  readonly precision: ChainPrecision;
}

export interface ChainCandidate {
  readonly name: ChainCheck['candidate'];
  readonly open: OpenComponent;
}

/**
 * Decodes seeded features with the reference and with each candidate, encoder to predictor to joint network: whether they decide the same, where not by
 * how little, and which component moves the logits (each is exchanged alone). An encoder is in memory only while it runs, one at a time.
 */
export async function checkChain(
  request: Chained,
  reference: OpenComponent,
  candidates: readonly ChainCandidate[],
  { emit }: WorkContext,
): Promise<readonly ChainCheck[]> {
  const { facts, seed, samples, features, minAgreement = MIN_AGREEMENT } = request;
  const base = await encodeAll(request, reference);
  return withDecoder(reference, async (own) => {
    const decided: (readonly Decision[])[] = [];
    for (const encoded of base.encoded) decided.push(await decode(own, encoded, facts));
    const checks: ChainCheck[] = [];
    for (const { name, open } of candidates) {
      const started = performance.now();
      const [done, total] = [checks.length, candidates.length];
      const note = (what: string) =>
        emit?.({ type: 'progress', phase: 'chained check', done, total, detail: `${name}: ${what}` });
      note('encoder');
      const other = await encodeAll(request, open);
      note('decoding');
      const judge = new ChainJudge(request.precision, facts, minAgreement);
      await withDecoder(open, async (theirs) => {
        for (const [sample, expected] of decided.entries()) {
          const [ours, changed] = [base.encoded[sample]!, other.encoded[sample]!];
          const led = (models: DecodingModels, encoded: Encoded) => decode(models, encoded, facts, expected);
          judge.take({
            reference: expected,
            led: await led(theirs, changed),
            free: await decode(theirs, changed, facts),
            exchanged: {
              encoder: await led(own, changed),
              predictor: await led({ ...own, predictor: theirs.predictor }, ours),
              joint: await led({ ...own, joint: theirs.joint }, ours),
            },
          });
        }
      });
      checks.push({
        candidate: name,
        reference_backend: base.backend,
        candidate_backend: other.backend,
        seed,
        samples,
        frames: features.frames,
        ...judge.result(),
        ms: performance.now() - started,
      });
    }
    return checks;
  });
}

async function encodeAll(request: Chained, open: OpenComponent) {
  const { samples, features, facts } = request;
  const session = await open('encoder');
  try {
    const encoded: Encoded[] = [];
    for (let sample = 0; sample < samples; sample++)
      encoded.push(await encode(session, featuresOf(request, sample), features.frames, facts.timeAxis));
    return { encoded, backend: session.backend };
  } finally {
    await session.close();
  }
}

async function withDecoder<T>(open: OpenComponent, work: (models: DecodingModels) => Promise<T>): Promise<T> {
  const [predictor, joint] = await openTogether<[Session, Session]>([open('predictor'), open('joint')]);
  try {
    return await work({ predictor, joint });
  } finally {
    await Promise.all([joint.close(), predictor.close()]);
  }
}

/** Log-mel features are normalized per bin, so a normal distribution of deviation one is what an encoder sees. */
function featuresOf({ features: { shape }, seed }: Chained, sample: number): Tensor {
  const stream = randomStream(seed, `features/${sample}`);
  const values = Float32Array.from({ length: elementCount(shape) }, () => stream.normal());
  return tensorFrom('float32', shape, values);
}
