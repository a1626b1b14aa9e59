import type { ProfileRequest } from '../../engines/profiles/profile.js';
import { planInputs, sampleOf } from '../../engines/run/drawn-inputs.js';
import { inTypesOf } from '../../engines/run/input-dtype.js';
import type { OpenOptions } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { Session } from '../../engines/runtime/session.js';
import { ignoreEvents, type WorkContext } from '../../events.js';
import { viewModel } from '../../formats/onnx/model.js';
import { float32Values, type NamedTensors, type Tensor } from '../../formats/tensor/tensor.js';
import type { Component } from './component.js';
import type { SmokeRun } from './result.js';

/** The subject of a component's smoke run: the engine where its GPU is present, else the model that it was built from. */
export interface SmokeSubject {
  readonly ran: SmokeRun['ran'];
  readonly path: string;
  /** An engine is loaded with the libraries that it was built with. */
  readonly options: OpenOptions;
  /** Why it is not the engine; null where it is. */
  readonly instead: string | null;
}

/** Runs a component once at the opt shapes of its profile, with seeded inputs that suit its graph, and logs what went in and came out. Throws what opening and running throw. */
export async function smokeRun(
  { component, profile }: { readonly component: Component; readonly profile: ProfileRequest },
  subject: SmokeSubject,
  context: WorkContext,
): Promise<SmokeRun> {
  const started = performance.now();
  const { emit = ignoreEvents, signal } = context;
  const { ran, path, options, instead } = subject;
  const { plugins = [] } = options;
  const note = (message: string) => emit({ type: 'log', source: 'trtforge', severity: 'info', message });
  note(
    `Running ${path} once at its opt shapes${plugins.length === 0 ? '' : `, with the plug-ins of ${plugins.join(' and ')}`}.`,
  );
  const session = await openSession(path, options, context);
  try {
    const inputs = smokeInputs(component, profile, session);
    for (const [name, tensor] of inputs) note(`input ${tensorText(name, tensor)}`);
    const outputs = [...(await session.run(inputs, { signal }))].map(([name, tensor]) => ({
      name,
      dtype: tensor.dtype,
      shape: [...tensor.shape],
      finite: !tensor.dtype.includes('float') || float32Values(tensor).every(Number.isFinite),
    }));
    for (const output of outputs)
      note(`output ${tensorText(output.name, output)}${output.finite ? '' : ', not all finite'}`);
    const ms = performance.now() - started;
    note(`${session.backend}: ran in ${ms.toFixed(0)} ms.`);
    return { ran, backend: session.backend, ms, instead, outputs };
  } finally {
    await session.close();
  }
}

const tensorText = (name: string, { dtype, shape }: Pick<Tensor, 'dtype' | 'shape'>): string =>
  `${name} ${dtype} [${shape.join(', ')}]`;

/** Seeded inputs for the opt shapes; their kinds are read from the original model. */
function smokeInputs({ onnx }: Component, profile: ProfileRequest, session: Session): NamedTensors {
  return viewModel(onnx, (model) => {
    const shapes = new Map(
      [...profile].flatMap(([name, range]) => (range.values ? [] : [[name, range.opt] as const])),
    );
    const planned = sampleOf(planInputs(model, session.inputs, { shapes }), 0, 0);
    return inTypesOf(session.inputs, planned, onnx);
  });
}
