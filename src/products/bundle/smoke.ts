import type { ProfileRequest } from '../../engines/identity/profile.js';
import { inDtype, planInputs, sampleOf } from '../../engines/run/inputs.js';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import type { Session } from '../../engines/runtime/session.js';
import type { EngineLoadOptions } from '../../engines/runtime/tensorrt/engine-options.js';
import { openModel } from '../../formats/onnx/model.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { float32Values } from '../../formats/tensor/values.js';
import type { BundleRequest } from './bundle-request.js';
import type { Component } from './component.js';
import type { PreparedComponent } from './component-builder.js';
import type { ComponentLog } from './component-log.js';
import type { SmokeRun } from './report-schema.js';

/** What a smoke run runs: the engine where a GPU of it is here, else the model that it was built from. */
export type SmokeSubject =
  | {
      readonly kind: 'engine';
      readonly path: string;
      readonly loading: EngineLoadOptions & { readonly device: number };
    }
  | { readonly kind: 'typed model' | 'model'; readonly path: string; readonly instead: string };

export const openSubject = (subject: SmokeSubject, context: OpenContext): Promise<Session> =>
  openSession(subject.path, subject.kind === 'engine' ? subject.loading : {}, context);

/** An engine is loaded with the libraries that it was built with. */
export const builtEngine = (
  { prepared, enginePath }: Pick<PreparedComponent, 'prepared' | 'enginePath'>,
  {
    device = 0,
    allowHostCode,
    weightBudget,
  }: Pick<BundleRequest, 'device' | 'allowHostCode' | 'weightBudget'>,
): SmokeSubject => ({
  kind: 'engine',
  path: enginePath,
  loading: {
    device,
    toolchain: prepared.toolchain,
    plugins: prepared.pluginPaths,
    allowHostCode,
    weightBudget,
  },
});

/** Runs a component once at the opt shapes of its profile, with seeded inputs that suit its graph. Throws what opening and running throw. */
export async function smokeRun(
  component: Component,
  profile: ProfileRequest,
  subject: SmokeSubject,
  log: ComponentLog,
  context: OpenContext,
): Promise<SmokeRun> {
  const started = performance.now();
  log.line(`Running ${subject.path} once at its opt shapes${loadedWith(subject)}.`);
  const session = await openSubject(subject, context);
  try {
    const inputs = smokeInputs(component, profile, session);
    for (const [name, { dtype, shape }] of inputs) log.line(`input ${name} ${dtype} [${shape.join(', ')}]`);
    const given = await session.run(inputs, context.signal === undefined ? {} : { signal: context.signal });
    const outputs = [...given].map(([name, tensor]) => ({
      name,
      dtype: tensor.dtype,
      shape: [...tensor.shape],
      finite: !tensor.dtype.includes('float') || float32Values(tensor).every(Number.isFinite),
    }));
    for (const { name, dtype, shape, finite } of outputs)
      log.line(`output ${name} ${dtype} [${shape.join(', ')}]${finite ? '' : ', not all finite'}`);
    const ms = performance.now() - started;
    log.line(`${session.backend}: ran in ${ms.toFixed(0)} ms.`);
    return {
      ran: subject.kind,
      backend: session.backend,
      ms,
      instead: subject.kind === 'engine' ? null : subject.instead,
      outputs,
    };
  } finally {
    await session.close();
  }
}

function loadedWith(subject: SmokeSubject): string {
  const { plugins = [] } = subject.kind === 'engine' ? subject.loading : {};
  return plugins.length === 0 ? '' : `, with the plug-ins of ${plugins.join(' and ')}`;
}

/** Seeded inputs for the opt shapes; what they are like is read from the model as it was given. */
function smokeInputs({ onnx }: Component, profile: ProfileRequest, session: Session): NamedTensors {
  const model = openModel(onnx);
  try {
    const shapes = new Map(
      [...profile].flatMap(([name, range]) => (range.values ? [] : [[name, range.opt] as const])),
    );
    const planned = sampleOf(planInputs(model, session.inputs, { shapes }), 0, 0);
    return new Map(
      session.inputs.map((input) => [input.name, inDtype(input, planned.get(input.name)!, onnx)]),
    );
  } finally {
    model.close();
  }
}
