import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { removeIfThere } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/scratch.js';
import { type Passport, passportPath, readPassport } from '../../../engines/identity/passport.js';
import { outcomeExitCodes, TrtforgeError } from '../../../errors.js';
import { type Dtype, elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import { isSameShape, type NamedTensors, type Tensor } from '../../../formats/tensor/tensor.js';
import { float32Values, floatTensor } from '../../../formats/tensor/values.js';
import { inTypesOf, madeInputs } from '../../../quality/known-answer/made-inputs.js';
import { runChecks } from '../../../quality/known-answer/run-checks.js';
import { worst } from '../../../quality/verify/outcome.js';
import type { ModelConfig } from '../model-config.js';
import { dtypeOf, TritonClient } from './client.js';
import type { TriedModel, TritonTry } from './result-schema.js';
import { findTriton, startTriton, type TritonServer } from './server.js';
import { isEnsemble, isPlan, modelsOf, type RepositoryModel, stageForStub } from './staged.js';

export interface TryRequest {
  readonly repository: string;
  /** Of a server that is up; default: one is started here. */
  readonly url?: string | undefined;
}

interface TryContext {
  readonly environment: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
}

/**
 * Lets Triton's server serve a repository: every model has to load, warm up and answer, states have to stay with their sequence, and engines that run give their known
 * answer. Throws TF_USAGE, TF_SERVING_CONFIG, TF_TRITON_UNAVAILABLE, TF_CANCELLED.
 */
export async function tryRepository(
  { repository, url }: TryRequest,
  context: TryContext,
): Promise<TritonTry> {
  const models = modelsOf(repository);
  if (url !== undefined) return tried(repository, models, { url, answeredBy: 'server' }, context);
  const found = await findTriton(context.environment);
  const isStub = found.answeredBy === 'stub';
  const staged = isStub ? makeScratch('triton') : repository;
  try {
    if (isStub) stageForStub(models, staged);
    await using server = await startTriton(found, staged, context);
    return await tried(
      repository,
      models,
      { url: server.url, answeredBy: found.answeredBy, own: server },
      context,
    );
  } finally {
    if (isStub) removeIfThere(staged);
  }
}

interface Server {
  readonly url: string;
  readonly answeredBy: TritonTry['server']['answeredBy'];
  /** That was started here. */
  readonly own?: TritonServer;
}

async function tried(
  repository: string,
  models: readonly RepositoryModel[],
  { url, answeredBy, own }: Server,
  { signal }: TryContext,
): Promise<TritonTry> {
  const client = new TritonClient(url, signal);
  const version = await client.serverVersion();
  const results: TriedModel[] = [];
  const skipped: TritonTry['skipped'] = [];
  for (const model of models) {
    const { name, config } = model;
    if (answeredBy !== 'stub' || isPlan(config) || isEnsemble(config))
      results.push(await triedModel(client, model, { answeredBy, own }));
    else
      skipped.push({
        name,
        reason: `it runs on ${config.backend ?? config.platform ?? 'another back end'}, which is not tried here`,
      });
  }
  const outcome = worst(['pass', ...results.flatMap(outcomesOf)]);
  return {
    schema: 'trtforge.triton-try/1',
    exitCode: outcomeExitCodes[outcome],
    outcome,
    repository,
    server: { version, url: own === undefined ? url : null, answeredBy },
    models: results,
    skipped,
  };
}

const outcomesOf = ({ request, sequences, knownAnswer }: TriedModel) => [
  request === null ? ('fail' as const) : ('pass' as const),
  ...[sequences, knownAnswer].flatMap((judged) => judged?.outcome ?? []),
];

async function triedModel(
  client: TritonClient,
  model: RepositoryModel,
  { answeredBy, own }: Pick<Server, 'answeredBy' | 'own'>,
): Promise<TriedModel> {
  const { name } = model;
  const none = { name, request: null, sequences: null, knownAnswer: null };
  const reason = await client.whyNotReady(name);
  if (reason !== null)
    return { ...none, ready: false, reason: reason || (own?.saidOf(name) ?? 'the server does not tell why') };
  const config = await client.config(name);
  const answer = passportsOf(model.folder).find(({ knownAnswer }) => knownAnswer !== undefined)?.knownAnswer;
  try {
    const inputs = inputsOf(config, answer);
    const isSequence = config.sequence_batching !== undefined;
    const started = performance.now();
    const outputs = await client.infer(
      name,
      inputs,
      isSequence ? { id: FIRST_ID, start: true, end: true } : undefined,
    );
    const request = {
      ms: performance.now() - started,
      inputs: described(inputs),
      outputs: described(outputs),
    };
    const missing = (config.output ?? []).filter((output) => !outputs.has(output.name ?? ''));
    if (missing.length > 0)
      return {
        ...none,
        ready: true,
        reason: `it answers without ${missing.map((output) => output.name).join(', ')}`,
      };
    const sequences = isSequence ? await triedSequences(client, name, inputs, answeredBy === 'stub') : null;
    const knownAnswer =
      answer === undefined || answeredBy === 'stub' ? null : await givenAnswer(client, name, config, answer);
    return { name, ready: true, reason: null, request, sequences, knownAnswer };
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_RUN_FAILED') throw error;
    return { ...none, ready: true, reason: error.message };
  }
}

type Judged = NonNullable<TriedModel['sequences']>;
type Answer = NonNullable<Passport['knownAnswer']>;

/** Passports beside the plans of all versions. */
function passportsOf(folder: string): readonly Passport[] {
  const versions = readdirSync(folder).filter((name) => /^[1-9]\d*$/.test(name));
  return versions.flatMap((version) => {
    const own = join(folder, version);
    const suffix = passportPath('');
    return readdirSync(own)
      .filter((file) => file.endsWith(suffix))
      .map((file) => readPassport(join(own, file.slice(0, -suffix.length))));
  });
}

const described = (tensors: NamedTensors) =>
  [...tensors].map(([name, { dtype, shape }]) => ({ name, dtype, shape: [...shape] }));

/** One row of inputs: what the known answer makes, else sizes of the warm-up or the least ones, of ones and, where integers may be indices, zeros. */
function inputsOf(config: ModelConfig, answer: Answer | undefined): NamedTensors {
  const batched = (config.max_batch_size ?? 0) > 0;
  const warm = config.model_warmup?.[0]?.inputs ?? {};
  const fitting = answer?.cases.find(({ inputs }) => !batched || inputs.every(({ shape }) => shape[0] === 1));
  const own = answer && fitting ? madeInputs(answer, fitting.inputs) : new Map<string, Tensor>();
  const made = reshaped(own, config.input, 'triton');
  return new Map(
    (config.input ?? []).map(({ name = '', data_type, dims = [] }): [string, Tensor] => {
      const dtype = dtypeOf(data_type);
      if (dtype === undefined)
        throw new TrtforgeError('TF_RUN_FAILED', `${name} is of ${data_type}, which is not tried.`);
      const own = made.get(name);
      if (own !== undefined) return [name, converted(name, dtype, own)];
      const sizes = (warm[name]?.dims ?? dims).map((size) => Math.max(1, size));
      const shape = batched ? [1, ...sizes] : sizes;
      const count = elementCount(shape);
      return [name, { dtype, shape, bytes: filled(dtype, count) }];
    }),
  );
}

const converted = (name: string, dtype: Dtype, tensor: Tensor): Tensor =>
  inTypesOf([{ name, dtype, shape: tensor.shape }], new Map([[name, tensor]])).get(name)!;

/**
 * A tensor of rows alone has an axis more in Triton, which its configuration takes away (`reshape`): from the engine's shape to Triton's, or back.
 */
function reshaped(
  tensors: NamedTensors,
  list: ModelConfig['input'] = [],
  to: 'triton' | 'engine',
): NamedTensors {
  return new Map(
    [...tensors].map(([name, tensor]) => {
      const { dims = [], reshape } = list.find((one) => one.name === name) ?? {};
      const rest = to === 'triton' ? dims : (reshape?.shape ?? []);
      const shape = reshape === undefined ? tensor.shape : [...tensor.shape.slice(0, 1), ...rest];
      return [name, { ...tensor, shape }];
    }),
  );
}

const filled = (dtype: Dtype, count: number): Uint8Array =>
  isFloatDtype(dtype)
    ? floatTensor(dtype, [count], new Float32Array(count).fill(1)).bytes
    : new Uint8Array(packedBytes(dtype, count));

const isFloatDtype = (dtype: Dtype) => dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16';

/** Sequences of Triton have numbers; those of nobody else. */
const FIRST_ID = 0x7f_00_00_01;
const STEPS = 3;
/** What one engine may give in another batch, in shares of the largest element: other kernels may serve it. */
const APART = 0.02;

/** One sequence alone, then two in turns with the same inputs: each has to give what the first one gave, and the next start has to begin anew. */
async function triedSequences(
  client: TritonClient,
  model: string,
  inputs: NamedTensors,
  isStub: boolean,
): Promise<Judged> {
  let last = FIRST_ID;
  const sequence = () => {
    const id = ++last;
    let step = 0;
    return () => {
      step++;
      return client.infer(model, inputs, { id, start: step === 1, end: step === STEPS });
    };
  };
  const [alone, first, second] = [sequence(), sequence(), sequence()];
  const expected: NamedTensors[] = [];
  for (let step = 0; step < STEPS; step++) expected.push(await alone());
  const apart: string[] = [];
  for (const [step, outputs] of expected.entries())
    for (const [turn, next] of [first, second].entries()) {
      const largest = differenceOf(outputs, await next());
      if (largest > (isStub ? 0 : APART))
        apart.push(
          `Step ${step + 1} of sequence ${turn + 1} of two in turns is ${largest.toPrecision(3)} of its largest element apart from that of a sequence alone.`,
        );
    }
  if (apart.length > 0) return { outcome: 'fail', reasons: apart };
  const isStateless = expected.every((outputs) => differenceOf(expected[0]!, outputs) === 0);
  if (isStateless && isStub)
    return { outcome: 'fail', reasons: ['Every step gives the same: no state is fed back.'] };
  const started = await client
    .infer(model, inputs, { id: ++last, start: false, end: true })
    .catch((error: unknown) => {
      if (error instanceof TrtforgeError && error.code === 'TF_RUN_FAILED') return null;
      throw error;
    });
  if (started !== null)
    return { outcome: 'fail', reasons: ['The server takes a sequence that was never started.'] };
  return isStateless
    ? {
        outcome: 'inconclusive',
        reasons: ['Every step gives the same: these inputs do not show whether a state is fed back.'],
      }
    : { outcome: 'pass', reasons: [] };
}

/** The largest difference of two elements in shares of the largest one; infinite for another shape, and where only one is a number. */
function differenceOf(expected: NamedTensors, found: NamedTensors): number {
  const each = [...expected].map(([name, tensor]) => {
    const own = found.get(name);
    if (own === undefined || !isSameShape(own, tensor)) return Number.POSITIVE_INFINITY;
    if (Buffer.compare(own.bytes, tensor.bytes) === 0) return 0;
    const [a, b] = [float32Values(tensor), float32Values(own)];
    let [largest, apart] = [0, 0];
    for (const [at, value] of a.entries()) {
      largest = Math.max(largest, Math.abs(value));
      apart = Math.max(apart, Math.abs(value - b[at]!));
    }
    return Number.isFinite(apart) ? apart / (largest || 1) : Number.POSITIVE_INFINITY;
  });
  return Math.max(0, ...each);
}

/** The known answer of the engine, over HTTP. */
async function givenAnswer(
  client: TritonClient,
  model: string,
  config: ModelConfig,
  answer: Answer,
): Promise<Judged> {
  if (Object.keys(answer.state).length > 0)
    return {
      outcome: null,
      reasons: [
        'Not compared: the known answer begins with drawn states, and a sequence of Triton with those of its configuration.',
      ],
    };
  const types = (config.input ?? []).map(({ name = '', data_type }) => ({
    name,
    dtype: dtypeOf(data_type)!,
    shape: null,
  }));
  const { checks } = await runChecks(
    {
      isEngine: false,
      graphFallback: null,
      run: async (inputs) => {
        const own = reshaped(inTypesOf(types, inputs), config.input, 'triton');
        return reshaped(await client.infer(model, own), config.output, 'engine');
      },
    },
    answer,
  );
  return {
    outcome: worst(checks.flatMap(({ outcome }) => outcome ?? [])),
    reasons: checks.flatMap(({ reasons }) => reasons),
  };
}
