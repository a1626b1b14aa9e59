import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { shellLine } from '../../base/process/shell-quote.js';
import { digestModelFile } from '../../engines/identity/model-digest.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents } from '../../events.js';
import { qualifiedOpType, visitMainGraphs } from '../../formats/onnx/graph.js';
import { openModel } from '../../formats/onnx/model.js';
import { convertModel } from '../../formats/precision/convert.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import { inlineFunctions } from '../../formats/precision/inline-functions.js';
import { movers, sources } from '../../formats/precision/operator-traits.js';
import type { Calibration, ConversionOptions } from '../../formats/precision/options.js';
import type { VerifyRequest } from './request.js';
import type { VerifyResult } from './result.js';

/** At most this many conversions are tried, and none is begun that would end after the limit. */
const MOST_TRIALS = 8;
const LIMIT_MS = 60_000;
/** More names are no command line that anybody reads: operators are named instead. */
const MOST_NAMES = 4;

/** Tried first, the usual suspects: what divides, normalises or averages. Last, what 16 bits are for. All others lie between. */
const FIRST =
  `ReduceSum ReduceMean Div Sqrt Reciprocal Log Softmax LogSoftmax LayerNormalization RMSNormalization InstanceNormalization
  GroupNormalization BatchNormalization GlobalAveragePool AveragePool Sub Mul Add`.split(/\s+/);
const LAST = 'Attention LSTM GRU RNN Einsum Gemm MatMul ConvTranspose Conv'.split(' ');

/** A failed comparison, as far as a repair needs it. */
export interface FailedComparison {
  readonly request: VerifyRequest;
  readonly precision: FormatId;
  /** How the candidate seems to be converted, where the request does not contain it. */
  readonly ioTypes: 'keep' | 'convert';
  readonly ms: number;
  /** Whether a model passes in the place of the candidate. */
  readonly passes: (path: string) => Promise<boolean>;
  readonly onTrial: (done: number, total: number, detail: string) => void;
  readonly signal?: AbortSignal;
}

type Repair = NonNullable<VerifyResult['next']>;

/** What stays FP32 in a trial, besides what stays FP32 anyway. */
interface Group {
  readonly keepOps: readonly string[];
  readonly keepNodes: readonly string[];
}

/**
 * Converts the reference again and again with other groups of nodes in FP32; the smallest that makes the comparison pass is the repair. Undefined where
 * the candidate is no conversion of the reference. What a trial throws ends the search, TF_CANCELLED apart.
 */
export async function findRepair(failed: FailedComparison): Promise<Repair | undefined> {
  const { request, ioTypes } = failed;
  const reference = operatorsOf(request.reference);
  if (request.conversion === undefined && reference.counts !== operatorsOf(request.candidate).counts)
    return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-repair-'));
  try {
    const trials = new Trials(failed, request.conversion ?? { ioTypes }, join(folder, 'model.onnx'));
    if (await trials.passes({ keepOps: [], keepNodes: [] })) return trials.result();
    const ops = await narrowed(trials.ops, (keepOps) => trials.passes({ keepOps, keepNodes: [] }));
    const names = ops.flatMap((op) => reference.names.get(op) ?? ['']);
    if (names.length > 1 && !names.includes('') && new Set(names).size === names.length)
      await narrowed(names, (keepNodes) => trials.passes({ keepOps: [], keepNodes }));
    return trials.result();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class Trials {
  /** The operators that a conversion without any group converts, in the order to suspect them. */
  ops: readonly string[] = [];
  readonly #failed: FailedComparison;
  readonly #options: ConversionOptions;
  readonly #output: string;
  readonly #started = performance.now();
  #longestMs: number;
  #tried = 0;
  /** Set once no trial is begun any more: why, where it is not their number. */
  #stopped: string | undefined;
  #best: { readonly group: Group; readonly kept: number; readonly nodes: number } | undefined;

  constructor(failed: FailedComparison, options: ConversionOptions, output: string) {
    this.#failed = failed;
    this.#options = { ...options, calibration: options.calibration && observedOnce(options.calibration) };
    this.#output = output;
    this.#longestMs = failed.ms / 2;
  }

  /** False where the trial fails, and where there is no room for it. */
  async passes(group: Group): Promise<boolean> {
    const begun = performance.now();
    if (this.#tried === MOST_TRIALS) this.#stopped ??= '';
    if (begun - this.#started + this.#longestMs > LIMIT_MS)
      this.#stopped ??= `another trial would end after ${LIMIT_MS / 1000} s`;
    if (this.#stopped !== undefined) return false;
    this.#failed.onTrial(this.#tried, MOST_TRIALS, `trying ${described(group)}`);
    try {
      const { nodes, convertedOps } = await this.#convert(group);
      if (group.keepOps.length + group.keepNodes.length === 0) {
        this.ops = suspicious(Object.keys(convertedOps));
        // It is the candidate itself, which failed.
        if ((await digestModelFile(this.#output)) === (await digestModelFile(this.#failed.request.candidate)))
          return false;
      }
      this.#tried++;
      const isPass = await this.#failed.passes(this.#output);
      this.#longestMs = Math.max(this.#longestMs, performance.now() - begun);
      // What converts nothing repairs nothing.
      const isSmaller = nodes.converted > 0 && nodes.kept < (this.#best?.kept ?? Number.POSITIVE_INFINITY);
      if (isPass && isSmaller && group.keepNodes.length <= MOST_NAMES)
        this.#best = { group, kept: nodes.kept, nodes: nodes.kept + nodes.converted };
      return isPass;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      this.#stopped = error.message.replace(/\.$/, '');
      return false;
    }
  }

  async #convert(group: Group): ReturnType<typeof convertModel> {
    const { request, precision, signal } = this.#failed;
    const context = { emit: ignoreEvents, signal };
    const options = { ...withGroup(this.#options, group), precision };
    return convertModel(request.reference, this.#output, options, context);
  }

  result(): Repair {
    const { request } = this.#failed;
    const tried = this.#tried;
    if (this.#best === undefined) {
      const why = !this.#stopped ? '' : ` The search ended: ${this.#stopped}.`;
      const message = `Of ${tried} conversions tried with other nodes in FP32 none passes.${why}`;
      return { passes: false, tried, keepOps: [], keepNodes: [], kept: null, command: null, message };
    }
    const { group, kept, nodes } = this.#best;
    const keep = {
      keepOps: [...group.keepOps],
      keepNodes: group.keepNodes.map((name) => exactly(name).source),
    };
    return {
      passes: true,
      tried,
      ...keep,
      kept,
      command: request.conversion === undefined ? this.#convertLine(keep) : null,
      message: `The comparison passes with ${described(group)} (${kept} of ${nodes} nodes in FP32; conversions tried: ${tried}).`,
    };
  }

  #convertLine({ keepOps, keepNodes }: Group): string {
    const { request, precision } = this.#failed;
    return shellLine([
      ...['trtforge', 'convert', request.reference, '--precision', precision],
      ...(this.#options.ioTypes === 'convert' ? ['--io-types', 'convert'] : []),
      ...(keepOps.length === 0 ? [] : ['--keep-ops', keepOps.join(',')]),
      ...keepNodes.flatMap((pattern) => ['--keep-nodes', pattern]),
      ...['-o', request.candidate],
    ]);
  }
}

/** All trials start from the same model, so it is observed once. */
function observedOnce(calibration: Calibration): Calibration {
  let ranges: ReturnType<Calibration['observe']> | undefined;
  return {
    ...calibration,
    observe: (...run) => {
      ranges ??= calibration.observe(...run);
      return ranges;
    },
  };
}

const described = ({ keepOps, keepNodes }: Group): string =>
  keepOps.length + keepNodes.length === 0
    ? 'the conversion without further nodes in FP32'
    : `${[...keepOps, ...keepNodes].join(', ')} in FP32`;

const withGroup = (options: ConversionOptions, { keepOps, keepNodes }: Group): ConversionOptions => ({
  ...options,
  keepOps: new Set([...(options.keepOps ?? []), ...keepOps]),
  keepNodes: [...(options.keepNodes ?? []), ...keepNodes.map(exactly)],
});

/** The pattern that matches one name. */
export const exactly = (name: string): RegExp =>
  new RegExp(`^${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);

/** How little an operator is suspected of failing in 16 bits: the least suspected has the highest rank. */
export function innocence(op: string): number {
  const first = FIRST.indexOf(op);
  return first >= 0 ? first : FIRST.length + 1 + LAST.indexOf(op);
}

/** What only moves values stays FP32 with its neighbours. */
const suspicious = (ops: readonly string[]): readonly string[] =>
  ops.filter((op) => !movers.has(op) && !sources.has(op)).sort((a, b) => innocence(a) - innocence(b));

/**
 * A run of neighbours that passes though it passes neither without its first nor without its last item, where all items together pass: halving, first
 * for the last one needed, then for the first, which in most cases is the same.
 */
async function narrowed<T>(
  items: readonly T[],
  passes: (group: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  let [failing, end] = [0, items.length];
  while (end - failing > 1) {
    const middle = (failing + end) >> 1;
    if (await passes(items.slice(0, middle))) end = middle;
    else failing = middle;
  }
  let [start, beyond] = [0, end];
  for (let at = end - 1; beyond - start > 1; at = (start + beyond) >> 1) {
    if (await passes(items.slice(at, end))) start = at;
    else beyond = at;
  }
  return items.slice(start, end);
}

/** What a conversion leaves as it is: how many nodes of which operator a model has; and their names, in the graph's order. */
function operatorsOf(path: string) {
  const model = openModel(path);
  try {
    inlineFunctions(model.proto);
    const names = new Map<string, string[]>();
    for (const { nodes } of visitMainGraphs(model.proto)) {
      for (const node of nodes) {
        const op = qualifiedOpType(node);
        names.set(op, [...(names.get(op) ?? []), node.name]);
      }
    }
    const counts = [...names].filter(([op]) => !/^(Cast|CastLike|Constant|Identity)$/.test(op));
    return {
      counts: counts
        .map(([op, { length }]) => `${op} ${length}`)
        .sort()
        .join(),
      names,
    };
  } finally {
    model.close();
  }
}
