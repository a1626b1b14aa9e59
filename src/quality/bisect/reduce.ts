import { join } from 'node:path';
import { shellLine } from '../../base/process/shell-quote.js';
import { inDtype } from '../../engines/run/inputs.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { engineLoadOptionsOf } from '../../engines/runtime/tensorrt/engine-options.js';
import { type OnnxModel, openModel } from '../../formats/onnx/model.js';
import { writeModel } from '../../formats/onnx/write.js';
import { writeNpz } from '../../formats/tensor/npz.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { failedOutputs, judgeRuns } from '../verify/judge-runs.js';
import type { VerifyPrecision } from '../verify/tolerance.js';
import { type Change, whyUnresolved } from './candidates.js';
import { checkLine } from './check-line.js';
import { type Cut, type Cutting, cutOut } from './cut.js';
import type { Freedom } from './engines.js';
import type { Judge } from './judge.js';
import { partOf, partsOf, type Suspected } from './parts.js';
import type { BisectContext, BisectRequest } from './request.js';
import type { BisectResult } from './result.js';

/** What is reduced: a model that fails, and the nodes at fault. */
export interface Failing extends Cutting, Suspected {
  /** The conversion that fails. */
  readonly typed: string;
  readonly precision: VerifyPrecision;
  /** Judges parts in the place of numbers; null where numbers do. */
  readonly check: {
    readonly command: string;
    readonly judge: Judge['judge'];
    /** The model that passes, and how its engine is built. */
    readonly passing: string;
    readonly change: Change;
  } | null;
}

export interface Reduction {
  readonly reduced: BisectResult['reduced'];
  /** Why there is no part; null where there is one. */
  readonly why: string | null;
}

/** How a part fails: its reasons, and the commands that show it. Or why no part can be judged. */
type Failure =
  | { readonly reasons: readonly string[]; readonly commands: readonly string[] }
  | { readonly why: string };

/**
 * The smallest of some parts of a model that still fails by itself: first one of the nodes, then all with what lies between them, then more and
 * more around them. Its inputs are what the FP32 model computes there, side branches included. Writes `reduced.onnx`, `inputs.npz` and `expected.npz` into
 * the output folder. A command judges parts only where it passes the same part of the model that passes: it may fail for other reasons, such as other inputs.
 * Throws what opening, running and writing throw.
 */
export async function reduceFailure(
  failing: Failing,
  request: BisectRequest,
  context: BisectContext,
): Promise<Reduction> {
  const reducer = new Reducer(failing, request, context);
  const whole = openModel(failing.typed);
  whole.close();
  const tried = new Set<string>();
  for (const part of partsOf(whole.proto.graph!, failing)) {
    const key = [...part].sort().join('\n');
    if (tried.has(key)) continue;
    tried.add(key);
    const found = await reducer.tryPart(part);
    if (found !== null) return found;
  }
  return {
    reduced: null,
    why: tried.size === 0 ? null : 'No reduced model: no part around the cause fails by itself.',
  };
}

class Reducer {
  readonly #failing: Failing;
  readonly #request: BisectRequest;
  readonly #context: BisectContext;
  readonly #files: Readonly<Record<'model' | 'inputs' | 'expected', string>>;
  readonly #engine: string | null;

  constructor(failing: Failing, request: BisectRequest, context: BisectContext) {
    this.#failing = failing;
    this.#request = request;
    this.#context = context;
    const { output } = request;
    this.#files = {
      model: join(output, 'reduced.onnx'),
      inputs: join(output, 'inputs.npz'),
      expected: join(output, 'expected.npz'),
    };
    this.#engine = failing.engines === null ? null : join(output, 'reduced.engine');
  }

  /** Cuts a part out and keeps it where it fails; null where a larger one may. */
  async tryPart(names: ReadonlySet<string>): Promise<Reduction | null> {
    const { typed: path, engines, check } = this.#failing;
    const typed = openModel(path);
    try {
      const cut = await this.#cut(typed, names, 'reduced.onnx');
      const built = cut && (await this.#build(cut, {}));
      if (cut === null || built === null) return null;
      const failure = await (check === null
        ? this.#numericFailure(cut, built)
        : this.#checkFailure(check, names, cut, built));
      if (failure === null) return null;
      if ('why' in failure) return { reduced: null, why: failure.why };
      const { model, inputs, expected } = this.#files;
      await writeModel(typed, model, { signal: this.#context.signal });
      writeNpz(inputs, cut.inputs);
      writeNpz(expected, cut.expected);
      const build = this.#engine && engines!.line(model, this.#engine, {}, cut.profiles);
      const reduced = {
        ...this.#files,
        nodes: cut.nodes,
        reasons: [...failure.reasons],
        commands: [...(build === null ? [] : [build]), ...failure.commands],
      };
      return { reduced, why: null };
    } finally {
      typed.close();
    }
  }

  /** Runs a part on the values of the FP32 model, and compares; null where it passes. */
  async #numericFailure({ path, inputs, expected }: Cut, built: string): Promise<Failure | null> {
    const { engines, precision } = this.#failing;
    const { threads, device, output } = this.#request;
    const options = engines === null ? { threads } : { ...engineLoadOptionsOf(this.#request), device };
    await using session = await openSession(built, options, this.#context, this.#context.backEnds);
    const own: NamedTensors = new Map(
      session.inputs.map((input) => [input.name, inDtype(input, inputs.get(input.name)!, path)]),
    );
    const got = await session.run(own, { signal: this.#context.signal });
    const bindings = session.outputs;
    const judgement = judgeRuns(
      { ...this.#request, atol: [], rtol: [] },
      precision,
      { bindings, outputs: [expected] },
      { bindings, outputs: [got] },
    );
    if (failedOutputs(judgement).length === 0) return null;
    const mine = join(output, 'reduced-outputs.npz');
    const ran = this.#engine ?? this.#files.model;
    return {
      reasons: judgement.judged.flatMap(({ output: judged }) =>
        judged.outcome === 'fail' ? judged.reasons : [],
      ),
      commands: [
        shellLine(['trtforge', 'run', ran, '--inputs', this.#files.inputs, '-o', mine]),
        shellLine([
          ...['trtforge', 'compare', mine, this.#files.expected],
          ...['--precision', precision, '--allow-dtype-difference'],
        ]),
      ],
    };
  }

  /** What a command makes of a part; null where it passes. One that fails counts where the same part of the model that passes does pass. */
  async #checkFailure(
    { command, judge, passing, change }: NonNullable<Failing['check']>,
    names: ReadonlySet<string>,
    cut: Cut,
    built: string,
  ): Promise<Failure | null> {
    const judged = (model: string, file: string) =>
      judge({ model, engine: this.#engine === null ? null : file });
    const { outcome, reasons } = await judged(cut.path, built);
    if (outcome === 'pass') return null;
    const whole = 'No reduced model: the check command is for the whole model.';
    if (outcome === 'unresolved') return { why: [whole, 'On a part of it:', ...reasons].join(' ') };
    const good = openModel(passing);
    try {
      const part = partOf(good.proto.graph!, this.#ownNames(names));
      const control = await this.#cut(good, part, 'passing.onnx');
      const file = control && (await this.#build(control, change));
      if (control === null || file === null) return null;
      const other = await judged(control.path, file);
      if (other.outcome === 'pass')
        return {
          reasons,
          commands: [checkLine(command, { model: this.#files.model, engine: this.#engine })],
        };
      const why = 'It does not pass the same part of the model that passes:';
      return { why: [whole, why, ...other.reasons].join(' ') };
    } finally {
      good.close();
    }
  }

  /** Those of the FP32 model: a conversion adds casts. */
  #ownNames(names: ReadonlySet<string>): ReadonlySet<string> {
    const model = openModel(this.#failing.model);
    model.close();
    return new Set(model.proto.graph!.node.flatMap(({ name }) => (names.has(name) ? [name] : [])));
  }

  #cut(model: OnnxModel, names: ReadonlySet<string>, file: string): Promise<Cut | null> {
    const path = join(this.#failing.work, file);
    return cutOut(model, names, path, this.#failing, this.#request, this.#context);
  }

  /** What is judged of a part: its file, or the engine of it; null where no engine can be built. */
  async #build({ path, profiles }: Cut, freedom: Freedom): Promise<string | null> {
    const { engines } = this.#failing;
    if (engines === null) return path;
    try {
      return (await engines.build(path, path.replace(/\.onnx$/, '.engine'), freedom, profiles)).path;
    } catch (error) {
      whyUnresolved(error);
      return null;
    }
  }
}
