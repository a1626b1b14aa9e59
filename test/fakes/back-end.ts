import type { BackEnd, OpenedModel, OpenOptions } from '../../src/engines/runtime/back-end.js';
import { mapOf } from '../../src/engines/runtime/check-inputs.js';
import type { Binding } from '../../src/engines/runtime/session.js';
import type { WorkContext } from '../../src/events.js';
import type { NamedTensors } from '../../src/formats/tensor/tensor.js';

export interface FakeBackEnd extends BackEnd {
  /** What each session was opened with. */
  readonly opened: { readonly path: string; readonly options: OpenOptions; readonly context: WorkContext }[];
  /** Sessions that are open now. */
  readonly sessions: () => number;
}

export interface FakeBehaviour extends Partial<Pick<BackEnd, 'id' | 'provider' | 'honours'>> {
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  readonly run: (inputs: NamedTensors) => NamedTensors;
  readonly warnings?: readonly string[];
}

/** A back end for models that computes with a function of the test, in this process. */
export function fakeBackEnd({ inputs, outputs, run, warnings = [], ...more }: FakeBehaviour): FakeBackEnd {
  const opened: FakeBackEnd['opened'] = [];
  let open = 0;
  const { id = 'fake', provider = null, honours = new Set() } = more;
  return {
    id,
    name: 'the fake back end',
    takes: 'model',
    provider,
    honours,
    opened,
    sessions: () => open,
    open: async (path, options, context): Promise<OpenedModel> => {
      opened.push({ path, options, context });
      open++;
      const close = async () => {
        open--;
      };
      const none = new Float64Array(0);
      return {
        kind: 'model',
        backEnd: id,
        backend: 'Fake 1.0',
        arithmetic: 'fp32',
        seedsRepeat: true,
        inputs,
        outputs,
        run: async (tensors) => run(mapOf('inputs', tensors)),
        runRepeatedly: async (tensors, { iterations }) => ({
          outputs: run(tensors),
          ms: new Array<number>(iterations).fill(1),
        }),
        measure: async () => ({ startMs: none, ms: none, wallMs: 0, warmUpRuns: 0 }),
        facts: async () => ({
          roundedValues: 0,
          cudaGraphFallbacks: null,
          weightBudgetBytes: null,
          peakHostBytes: 100e6,
          gpuBytes: null,
          warnings,
          onnxRuntime: null,
        }),
        close,
        [Symbol.asyncDispose]: close,
      };
    },
  };
}
