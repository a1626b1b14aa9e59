import { join } from 'node:path';
import { listFolder, removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { passportPath } from '../../../engines/identity/engine-name.js';
import { readPassport } from '../../../engines/identity/passport.js';
import { inTypesOf } from '../../../engines/run/input-dtype.js';
import { outcomeExitCodes, TrtforgeError } from '../../../errors.js';
import { type Work, type WorkContext, workOf } from '../../../events.js';
import { float32Values, isSameShape, type NamedTensors } from '../../../formats/tensor/tensor.js';
import { uncovered } from '../../../quality/known-answer/answer.js';
import { ofEngine } from '../../../quality/known-answer/made-inputs.js';
import { runChecks } from '../../../quality/known-answer/run-checks.js';
import { type VerifyOutcome, worst } from '../../../quality/verify/outcome.js';
import { checkRepository } from '../check/check.js';
import { type ModelFolder, readRepository } from '../check/repository.js';
import { backendOf, type ModelConfig } from '../model-config.js';
import { TritonClient } from './client.js';
import { type Answer, bindingsOf, inputsOf, reshaped } from './inputs.js';
import type { TritonTryRequest } from './options.js';
import type { TriedModel, TritonTry } from './result.js';
import { findTriton, startTriton, type TritonServer } from './server.js';
import { stageForStub } from './staged.js';

/**
 * Lets Triton's server serve a repository: every model has to load, warm up and answer, states have to stay with their sequence, and engines that run give their known
 * answer. Throws TF_FILE_NOT_FOUND, TF_USAGE, TF_TRITON_UNAVAILABLE, TF_CANCELLED.
 *
 * ```ts
 * const tried = await tryRepository({ repository: 'models' });
 * use([tried.outcome, tried.models]);
 * ```
 */
export async function tryRepository(request: TritonTryRequest, context?: WorkContext): Promise<TritonTry> {
  const { repository, url } = request;
  const work = workOf(context);
  // Faults of the files are reported by the server itself.
  const others: ModelFolder[] = [];
  const models = readRepository(repository, (code, name) => {
    if (code === 'not-a-model')
      others.push({ name, path: join(repository, name), config: null, versions: [], states: [] });
  });
  if (models.length === 0)
    throw new TrtforgeError('TF_USAGE', `${repository} has no model folder.`, {
      remedy: `Write one: trtforge triton export model.engine -o ${repository}`,
    });
  if (url !== undefined)
    return tried(repository, models, { url, answeredBy: 'server', saidOf: () => null }, work);
  const found = await findTriton(work);
  const isStub = found.answeredBy === 'stub';
  const staged = isStub ? makeScratch('triton') : repository;
  try {
    // The server takes every folder for a model, and does not start with one that it cannot load.
    const all = [...models, ...others];
    if (isStub) stageForStub(all.filter(runsOnStub), staged);
    await using server = await startTriton(found, staged, work).catch(async (error: unknown) => {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_TRITON_UNAVAILABLE') throw error;
      const { findings } = await checkRepository({ repository }, work);
      const faults = findings.filter(
        ({ severity, where }) => severity === 'error' && where.includes('.pbtxt'),
      );
      const [first] = faults;
      if (first === undefined) throw error;
      const named = faults.map(({ where, message }) => `${where}: ${message}`).join(' ');
      throw new TrtforgeError(error.code, `${error.message} ${named}`, {
        remedy: first.remedy,
        cause: error,
      });
    });
    return await tried(repository, all, server, work);
  } finally {
    if (isStub) removeIfAllowed(staged);
  }
}

/** A model whose configuration cannot be read as well: the server reports why. */
const runsOnStub = ({ config }: ModelFolder): boolean =>
  config === null || ['tensorrt', 'ensemble'].includes(backendOf(config));

async function tried(
  repository: string,
  models: readonly ModelFolder[],
  server: TritonServer,
  { signal }: Work,
): Promise<TritonTry> {
  const { url, answeredBy } = server;
  const client = new TritonClient(url, signal);
  const version = await client.serverVersion();
  const results: TriedModel[] = [];
  const skipped: TritonTry['skipped'] = [];
  for (const model of models) {
    if (answeredBy !== 'stub' || runsOnStub(model)) results.push(await triedModel(client, model, server));
    else {
      const backend = backendOf(model.config ?? {}) || 'another back end';
      skipped.push({ name: model.name, reason: `it runs on ${backend}, which is not tried here` });
    }
  }
  const outcome = worst([results.length === 0 ? 'inconclusive' : 'pass', ...results.flatMap(outcomesOf)]);
  return {
    schema: 'trtforge.triton-try/1',
    exitCode: outcomeExitCodes[outcome],
    outcome,
    repository,
    server: { version, url: answeredBy === 'server' ? url : null, answeredBy },
    models: results,
    skipped,
  };
}

/** A request that shows nothing has a reason. */
const outcomesOf = ({ request, reason, sequences, knownAnswer }: TriedModel): readonly VerifyOutcome[] => [
  request === null ? 'fail' : reason === null ? 'pass' : 'inconclusive',
  ...[sequences, knownAnswer].flatMap((judged) => judged?.outcome ?? []),
];

async function triedModel(
  client: TritonClient,
  model: ModelFolder,
  { answeredBy, saidOf }: TritonServer,
): Promise<TriedModel> {
  const { name } = model;
  const none = { name, request: null, sequences: null, knownAnswer: null };
  const reason = await client.whyNotReady(name);
  if (reason !== null)
    return { ...none, ready: false, reason: reason || (saidOf(name) ?? 'the server does not tell why') };
  const config = await client.config(name);
  const known = answerOf(model);
  const named = (config.input ?? []).map(({ name: input = '' }) => ({ name: input }));
  const answer = known && ofEngine(known, { inputs: named });
  try {
    const inputs = inputsOf(config, answer);
    const isSequence = config.sequence_batching !== undefined;
    const started = performance.now();
    const sequence = isSequence ? { id: FIRST_ID, start: true, end: true } : undefined;
    const outputs = await client.infer(name, inputs, sequence);
    const request = {
      ms: performance.now() - started,
      inputs: described(inputs),
      outputs: described(outputs),
    };
    const missing = (config.output ?? []).filter((output) => !outputs.has(output.name ?? ''));
    if (missing.length > 0) {
      const names = missing.map((output) => output.name).join(', ');
      return { ...none, ready: true, reason: `it answers without ${names}` };
    }
    if (outputs.size === 0)
      return {
        ...none,
        ready: true,
        reason: 'neither its configuration nor its answer has outputs',
        request,
      };
    const sequences = isSequence
      ? await triedSequences(client, config, { name, inputs }, answeredBy === 'stub')
      : null;
    const knownAnswer =
      answer === undefined || answeredBy === 'stub' ? null : await givenAnswer(client, name, config, answer);
    return { name, ready: true, reason: null, request, sequences, knownAnswer };
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_RUN_FAILED') throw error;
    return { ...none, ready: true, reason: error.message };
  }
}

type Judged = NonNullable<TriedModel['sequences']>;

/** The known answer in a passport of any version. */
function answerOf({ path, versions }: ModelFolder): Answer | undefined {
  const files = versions.flatMap((version) =>
    listFolder(join(path, version)).map((name) => join(path, version, name)),
  );
  const plans = files.filter((file) => files.includes(passportPath(file)));
  return plans.map((plan) => readPassport(plan)).find(({ knownAnswer }) => knownAnswer !== undefined)
    ?.knownAnswer;
}

const described = (tensors: NamedTensors) =>
  [...tensors].map(([name, { dtype, shape }]) => ({ name, dtype, shape: [...shape] }));

/** Sequences of Triton have numbers; those of nobody else. */
const FIRST_ID = 0x7f_00_00_01;
const STEPS = 3;
/** The largest difference of one engine in another batch, as a share of the largest element: other kernels may serve it. */
const APART = 0.02;

/** One sequence alone, then two in turns with the same inputs: each has to give what the first one gave, and the next start has to begin anew. */
async function triedSequences(
  client: TritonClient,
  { sequence_batching: { state: states = [] } = {} }: ModelConfig,
  { name: model, inputs }: { readonly name: string; readonly inputs: NamedTensors },
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
  if (isStateless && isStub && states.length > 0)
    return { outcome: 'fail', reasons: ['Every step gives the same: no state is fed back.'] };
  const started = await client
    .infer(model, inputs, { id: ++last, start: false, end: true })
    .catch((error: unknown) => {
      if (error instanceof TrtforgeError && error.code === 'TF_RUN_FAILED') return null;
      throw error;
    });
  if (started !== null)
    return { outcome: 'fail', reasons: ['The server takes a sequence that was never started.'] };
  if (!isStateless) return { outcome: 'pass', reasons: [] };
  return states.length > 0
    ? {
        outcome: 'inconclusive',
        reasons: ['Every step gives the same: these inputs do not show whether a state is fed back.'],
      }
    : {
        outcome: null,
        reasons: ['Every step gives the same, and the configuration has no state: the client may keep them.'],
      };
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
  const { checks } = await runChecks(
    {
      isEngine: false,
      graphFallback: null,
      run: async (inputs) => {
        const own = reshaped(
          inTypesOf(bindingsOf(config), inputs, 'the known answer'),
          config.input,
          'triton',
        );
        return reshaped(await client.infer(model, own), config.output, 'engine');
      },
    },
    answer,
  );
  return {
    outcome: worst(checks.flatMap(({ outcome }) => outcome ?? [])),
    reasons: [
      ...checks.flatMap(({ reasons }) => reasons),
      ...uncovered(answer).map((each) => `Not covered: ${each}`),
    ],
  };
}
