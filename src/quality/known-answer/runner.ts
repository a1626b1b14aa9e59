import type { Session } from '../../engines/runtime/session.js';
import type {
  EngineBinding,
  EngineContext,
  EngineSession,
  PreparedCall,
} from '../../engines/runtime/tensorrt/engine-interface.js';
import { TrtforgeError } from '../../errors.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { inTypesOf } from './made-inputs.js';

interface Mode {
  /** null: the runner's own choice. */
  readonly profile: number | null;
  readonly graph?: boolean;
  /** Which of two contexts, which may run at the same time. */
  readonly context?: 0 | 1;
}

/** What is checked: it takes inputs in the types of the reference. */
export interface Runner {
  /** Whether it has CUDA graphs and contexts. */
  readonly isEngine: boolean;
  /** Why the last graph was none; null where it was one. */
  readonly graphFallback: string | null;
  run(inputs: NamedTensors, mode: Mode): Promise<NamedTensors>;
}

/** A session of any back end: graphs and contexts are its own matter. */
export const sessionRunner = (session: Session, signal?: AbortSignal): Runner => ({
  isEngine: false,
  graphFallback: null,
  run: (inputs) => session.run(inTypesOf(session.inputs, inputs), { signal }),
});

/** An engine that is open; calls are made once for each shape and mode, and end with the runner. */
export class EngineRunner implements Runner, AsyncDisposable {
  readonly isEngine = true;
  graphFallback: string | null = null;
  readonly #session: EngineSession;
  readonly #signal: AbortSignal | undefined;
  readonly #contexts: EngineContext[] = [];
  readonly #calls = new Map<string, PreparedCall>();

  constructor(session: EngineSession, signal?: AbortSignal) {
    this.#session = session;
    this.#signal = signal;
  }

  async run(inputs: NamedTensors, { profile, graph = false, context = 0 }: Mode): Promise<NamedTensors> {
    const tensors = inTypesOf(this.#session.inputs, inputs);
    const missing = this.#session.inputs.find(({ name }) => !tensors.has(name));
    if (missing !== undefined)
      throw new TrtforgeError('TF_SESSION_INPUT', `The known answer has no input ${missing.name}.`);
    const key = JSON.stringify([profile, graph, context, ...this.#session.inputs.map(shapeKey(tensors))]);
    let call = this.#calls.get(key);
    if (call === undefined) {
      this.#contexts[context] ??= this.#session.context();
      call = await this.#contexts[context].prepare(this.#shapes(tensors), {
        ...(profile === null ? {} : { profile }),
        cudaGraph: graph ? 'always' : 'never',
        signal: this.#signal,
      });
      this.#calls.set(key, call);
    }
    if (graph) this.graphFallback = call.cudaGraphFallback;
    for (const { name, hostValues } of this.#session.inputs)
      if (!hostValues) call.input(name).bytes.set(tensors.get(name)!.bytes);
    await call.run({ signal: this.#signal });
    return new Map(this.#session.outputs.map(({ name }) => [name, copyOf(call.output(name))]));
  }

  /** Dimensions, of inputs that are read on the host their values. */
  #shapes(tensors: NamedTensors): ReadonlyMap<string, readonly number[] | Tensor> {
    return new Map(
      this.#session.inputs.map(({ name, hostValues }) => {
        const tensor = tensors.get(name)!;
        return [name, hostValues ? tensor : tensor.shape];
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const call of this.#calls.values()) call.close();
    await Promise.all(this.#contexts.map((context) => context?.close()));
  }
}

/** Values that are read on the host are fixed in a call. */
const shapeKey =
  (tensors: NamedTensors) =>
  ({ name, hostValues }: EngineBinding): unknown => {
    const { shape, bytes } = tensors.get(name)!;
    return hostValues ? [shape, [...bytes]] : shape;
  };

const copyOf = ({ dtype, shape, bytes }: Tensor): Tensor => ({ dtype, shape, bytes: Buffer.from(bytes) });
