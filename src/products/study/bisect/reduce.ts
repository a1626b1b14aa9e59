import { join } from 'node:path';
import { valuesOf } from '../../../base/options/option.js';
import { shellLine } from '../../../base/text/shell-line.js';
import { inTypesOf } from '../../../engines/run/input-dtype.js';
import { openSession } from '../../../engines/runtime/open-session.js';
import { engineOptions } from '../../../engines/runtime/tensorrt/options.js';
import { editModel, type OnnxModel, viewModel } from '../../../formats/onnx/model.js';
import type { NodeProto } from '../../../formats/onnx/onnx_pb.js';
import { closedPart, nodesNamed, partsOf } from '../../../formats/onnx/subgraph.js';
import { writeModel } from '../../../formats/onnx/write.js';
import { writeNpz } from '../../../formats/tensor/npz.js';
import type { Freedom } from '../../../quality/known-answer/candidate-engines.js';
import { failedOutputs, judgeRuns } from '../../../quality/verify/judge-runs.js';
import type { VerifyPrecision } from '../../../quality/verify/result.js';
import type { Change } from '../conversion.js';
import { whyUnresolved } from './candidates.js';
import { checkLine } from './check-line.js';
import { type Cut, type Cutting, cutOut } from './cut.js';
import type { Judge } from './judge.js';
import type { BisectContext, BisectRequest } from './options.js';
import type { BisectResult } from './result.js';

/** Names of nodes at fault in a model that fails. */
export interface Suspected {
  /** Of which one may fail alone, the likeliest first. */
  readonly single: readonly string[];
  /** That may fail with what lies between and around them. */
  readonly together: readonly string[];
}

/** The case that is reduced: a model that fails, and the nodes at fault. */
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

/** The failure of a part: its reasons, and the commands that show it. */
interface Failure {
  readonly reasons: readonly string[];
  readonly commands: readonly string[];
}

/** The doubts that keep the failure of a part from counting; none where it passes. */
interface Unproven {
  readonly doubts: readonly string[];
}

const passes: Unproven = { doubts: [] };

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
  const whole = viewModel(failing.typed, ({ proto }) => proto.graph!);
  const tried = new Set<string>();
  let judged = 0;
  let doubts: readonly string[] = [];
  const [single, together] = [nodesNamed(whole, failing.single), nodesNamed(whole, failing.together)];
  for (const nodes of partsOf(whole, { single, together })) {
    const part = namesIn(nodes);
    const key = [...part].sort().join('\n');
    if (tried.has(key)) continue;
    tried.add(key);
    const found = await reducer.tryPart(part);
    if (found === null) continue;
    if (!('doubts' in found)) return { reduced: found, why: null };
    judged++;
    if (found.doubts.length > 0) doubts = found.doubts;
  }
  if (tried.size === 0) return { reduced: null, why: null };
  const why =
    judged === 0
      ? 'no part around the cause could be cut out of the model.'
      : doubts.length === 0
        ? 'no part around the cause fails by itself.'
        : `the check command decides about no part around the cause. ${doubts.join(' ')}`;
  return { reduced: null, why: `No reduced model: ${why}` };
}

const namesIn = (nodes: ReadonlySet<NodeProto>): ReadonlySet<string> =>
  new Set([...nodes].map(({ name }) => name));

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

  /** Cuts a part out and keeps it where it fails; null where it cannot be cut out, or built. */
  async tryPart(names: ReadonlySet<string>): Promise<NonNullable<Reduction['reduced']> | Unproven | null> {
    const { typed: path, engines, check } = this.#failing;
    return editModel(path, async (typed) => {
      const cut = await this.#cut(typed, names, 'reduced.onnx');
      const built = cut && (await this.#build(cut, {}));
      if (cut === null || built === null) return null;
      const judged = await (check === null
        ? this.#byNumbers(cut, built)
        : this.#byCheck(check, names, cut, built));
      if ('doubts' in judged) return judged;
      const { model, inputs, expected } = this.#files;
      await writeModel(typed, model, { signal: this.#context.signal });
      writeNpz(inputs, cut.inputs);
      writeNpz(expected, cut.expected);
      const build = this.#engine && engines!.line(model, this.#engine, {}, cut.profiles);
      return {
        ...this.#files,
        nodes: cut.nodes,
        reasons: [...judged.reasons],
        commands: [...(build === null ? [] : [build]), ...judged.commands],
      };
    });
  }

  /** Runs a part on the values of the FP32 model, and compares. */
  async #byNumbers({ path, inputs, expected }: Cut, built: string): Promise<Failure | Unproven> {
    const { engines, precision } = this.#failing;
    const { threads, device, output } = this.#request;
    const options = engines === null ? { threads } : { ...valuesOf(engineOptions, this.#request), device };
    await using session = await openSession(built, options, this.#context, this.#context.backEnds);
    const own = inTypesOf(session.inputs, inputs, path);
    const got = await session.run(own, { signal: this.#context.signal });
    const bindings = session.outputs;
    const judgement = judgeRuns(
      { ...this.#request, atol: [], rtol: [] },
      precision,
      { bindings, outputs: [expected] },
      { bindings, outputs: [got] },
    );
    if (failedOutputs(judgement).length === 0) return passes;
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

  /** A command's verdict on a part. Its failure counts where it passes the same part of the model that passes. */
  async #byCheck(
    { command, judge, passing, change }: NonNullable<Failing['check']>,
    names: ReadonlySet<string>,
    cut: Cut,
    built: string,
  ): Promise<Failure | Unproven> {
    const judged = (model: string, file: string) =>
      judge({ model, engine: this.#engine === null ? null : file });
    const { outcome, reasons } = await judged(cut.path, built);
    if (outcome === 'pass') return passes;
    if (outcome === 'unresolved') return { doubts: ['On a part of the model:', ...reasons] };
    return editModel(passing, async (good) => {
      const { graph } = good.proto;
      const own = this.#ownNames(names);
      const part = namesIn(
        closedPart(
          graph!,
          graph!.node.filter(({ name }) => own.has(name)),
        ),
      );
      const control = await this.#cut(good, part, 'passing.onnx');
      const file = control && (await this.#build(control, change));
      if (control === null || file === null)
        return { doubts: ['A part fails, and the same part of the work-around cannot be built.'] };
      const other = await judged(control.path, file);
      if (other.outcome === 'pass')
        return {
          reasons,
          commands: [checkLine(command, { model: this.#files.model, engine: this.#engine })],
        };
      return { doubts: ['On a part of the work-around:', ...other.reasons] };
    });
  }

  /** Those of the FP32 model: a conversion adds casts. */
  #ownNames(names: ReadonlySet<string>): ReadonlySet<string> {
    const { node } = viewModel(this.#failing.model, ({ proto }) => proto.graph!);
    return new Set(node.flatMap(({ name }) => (names.has(name) ? [name] : [])));
  }

  #cut(model: OnnxModel, names: ReadonlySet<string>, file: string): Promise<Cut | null> {
    const path = join(this.#failing.work, file);
    return cutOut(model, names, path, this.#failing, this.#request, this.#context);
  }

  /** The judged file of a part: its own, or the engine of it; null where no engine can be built. */
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
