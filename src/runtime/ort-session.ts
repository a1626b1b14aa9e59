import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TrtforgeError } from '../errors.js';
import { type EventListener, ignoreEvents } from '../events.js';
import { type OnnxModel, openModel } from '../onnx/model.js';
import { feedInputs, valueFacts } from '../onnx/value-facts.js';
import { writeModel } from '../onnx/write.js';
import { type SupervisedSession, startSupervised } from '../system/supervised-session.js';
import { type Dtype, dtypes } from '../tensor/dtype.js';
import type { NamedTensors, Tensor } from '../tensor/tensor.js';
import { float32Values, floatTensor, isArrayDtype, tensorFrom } from '../tensor/values.js';
import type { OrtAnswer, OrtMeasured, OrtOpened, OrtPace, OrtRequest } from './ort-protocol.js';
import { type Rounding, roundInFloat32 } from './rounded-model.js';
import type { Binding, RunOptions, Session } from './session.js';
import { checkInputs } from './session-inputs.js';

/** Larger files ONNX Runtime refuses, as protobuf does; the same model with its weights in a file of their own it takes. */
const LARGEST_PROTOBUF = 2 ** 31 - 1;

const CHILD = new URL('../../dist/runtime/ort-child.js', import.meta.url);

export interface OrtSessionOptions {
  /** Threads within one operator; default one a processor core. */
  readonly threads?: number;
  readonly emit?: EventListener;
  readonly signal?: AbortSignal;
}

/** A session on ONNX Runtime, in a process of its own: what crashes there is an error here, and its memory comes back when it is closed. */
export interface OrtSession extends Session {
  /** Set when the model has 16-bit values, which are computed in float32 and rounded (see rounded-model.ts). */
  readonly rounding: Rounding | undefined;
  /** Runs the same inputs again and again and times each run in the process it happens in: tensors cross once, and no time of theirs is in it. */
  measure(inputs: NamedTensors, pace: OrtPace, options?: RunOptions): Promise<OrtMeasured>;
}

/**
 * Loads an ONNX model, by path, into ONNX Runtime on the CPU. Throws TF_ONNXRUNTIME_MISSING, TF_ONNXRUNTIME_FAILED, TF_SESSION_BINDING
 * (an input or output of a type that cannot cross: int4, float8, sequences), TF_CHILD_DIED, and what opening a model throws.
 */
export async function openOrtSession(path: string, options: OrtSessionOptions = {}): Promise<OrtSession> {
  const prepared = await prepare(path, options);
  const child = startSupervised(CHILD, {
    emit: options.emit ?? ignoreEvents,
    doing: `running ${path} on ONNX Runtime`,
    // A run cannot be interrupted, so there is nothing to wait for.
    graceMs: 200,
  });
  try {
    const request: OrtRequest = { kind: 'open', modelPath: prepared.path, threads: options.threads ?? null };
    const { version } = (await child.request(request, options.signal)) as OrtOpened;
    return sessionOver(child, prepared, `ONNX Runtime ${version} (CPU)`);
  } catch (error) {
    await child.close();
    throw error;
  } finally {
    prepared.discard();
  }
}

interface Prepared {
  /** The model file to load: the user's own, or a copy that is rounded, or has its weights beside it. */
  readonly path: string;
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  readonly rounding: Rounding | undefined;
  discard(): void;
}

async function prepare(path: string, options: OrtSessionOptions): Promise<Prepared> {
  const model = openModel(path);
  try {
    const { inputs, outputs } = bindingsOf(path, model);
    const rounding = roundInFloat32(model.proto);
    const isTooLarge = statSync(path).size > LARGEST_PROTOBUF;
    if (rounding === undefined && !isTooLarge) return { path, inputs, outputs, rounding, discard: () => {} };
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-model-'));
    const discard = () => rmSync(folder, { recursive: true, force: true });
    const copy = join(folder, 'model.onnx');
    try {
      await writeModel(
        model,
        copy,
        {
          externalData: isTooLarge ? 'always' : 'auto',
          ...(options.signal === undefined ? {} : { signal: options.signal }),
        },
        options.emit,
      );
    } catch (error) {
      discard();
      throw error;
    }
    return { path: copy, inputs, outputs, rounding, discard };
  } finally {
    model.close();
  }
}

function bindingsOf(path: string, model: OnnxModel): Pick<Prepared, 'inputs' | 'outputs'> {
  const graph = model.proto.graph;
  const binding =
    (what: string) =>
    (value: Parameters<typeof valueFacts>[0]): Binding => {
      const { name, dtype, shape } = valueFacts(value);
      if (dtype === null || !(dtype in dtypes) || !isArrayDtype(dtype as Dtype)) {
        throw new TrtforgeError(
          'TF_SESSION_BINDING',
          `The ${what} ${name} of ${path} is ${dtype ?? 'of no declared type'}, which cannot be passed to ONNX Runtime.`,
        );
      }
      return { name, dtype: dtype as Dtype, shape };
    };
  return {
    inputs: graph === undefined ? [] : feedInputs(graph).map(binding('input')),
    outputs: (graph?.output ?? []).map(binding('output')),
  };
}

function sessionOver(child: SupervisedSession, prepared: Prepared, backend: string): OrtSession {
  const { inputs, outputs, rounding } = prepared;
  const widened = rounding !== undefined;
  const feedsOf = (tensors: NamedTensors) => {
    checkInputs(inputs, tensors);
    return [...tensors].map(([name, tensor]): [string, Tensor] => [name, widened ? widen(tensor) : tensor]);
  };
  return {
    backend,
    inputs,
    outputs,
    rounding,
    run: async (tensors, options = {}) => {
      const request: OrtRequest = { kind: 'run', inputs: feedsOf(tensors) };
      const answer = (await child.request(request, options.signal)) as OrtAnswer;
      return inDeclaredTypes(answer, outputs);
    },
    measure: async (tensors, pace, options = {}) => {
      const request: OrtRequest = { kind: 'measure', inputs: feedsOf(tensors), pace };
      return (await child.request(request, options.signal)) as OrtMeasured;
    },
    close: () => child.close(),
    [Symbol.asyncDispose]: () => child.close(),
  };
}

const isHalf = (dtype: Dtype): dtype is 'float16' | 'bfloat16' => dtype === 'float16' || dtype === 'bfloat16';

const widen = (tensor: Tensor): Tensor =>
  isHalf(tensor.dtype) ? tensorFrom('float32', tensor.shape, float32Values(tensor)) : tensor;

/** Outputs that were computed in float32 go back to the type the model declares; the values are representable, so nothing is lost. */
function inDeclaredTypes(answer: OrtAnswer, outputs: readonly Binding[]): NamedTensors {
  const answered = new Map(answer);
  const typed = new Map<string, Tensor>();
  for (const { name, dtype } of outputs) {
    const tensor = answered.get(name);
    if (tensor === undefined) throw new TrtforgeError('TF_INTERNAL', `ONNX Runtime gave no output ${name}.`);
    const rounded = isHalf(dtype) && tensor.dtype === 'float32';
    typed.set(name, rounded ? floatTensor(dtype, tensor.shape, float32Values(tensor)) : tensor);
  }
  return typed;
}
