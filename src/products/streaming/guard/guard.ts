import { TrtforgeError } from '../../../errors.js';
import {
  type Assertion,
  type Contract,
  type ContractBinding,
  uncheckedSentences,
} from '../../../formats/contract/contract.js';
import { elementCount } from '../../../formats/tensor/dtype.js';
import {
  copiedTensor,
  float32Values,
  type NamedTensors,
  type Tensor,
} from '../../../formats/tensor/tensor.js';
import { checkAssertions, type Step } from '../contract/assertions.js';
import { BindingChecker } from './binding-checker.js';
import { GuardCounters } from './counters.js';
import type { GuardListener, GuardViolation } from './violation.js';

export interface GuardOptions {
  /** The effect of a violation. `throw`: TF_CONTRACT_BROKEN instead of the outputs; `warn`: a warning, once for each rule; `count`: nothing else. */
  readonly on?: 'throw' | 'warn' | 'count';
  /** Checks every element of every tensor, for NaN and infinities too. Default: values of tensors up to `valuesUpTo` only. */
  readonly scan?: boolean;
  /** Elements up to which assertions about values are checked in every step; default 256. Lengths are one or two; signals and caches are millions. */
  readonly valuesUpTo?: number;
  /** Where warnings go; default a warning of the process (`process.emitWarning`). */
  readonly warn?: (message: string, violation: GuardViolation) => void;
  /** Gets everything that the counters get: `openGuardTelemetry()`. */
  readonly listener?: GuardListener;
}

const VALUES_UP_TO = 256;

/** Contracts whose unchecked sentences were listed: a service has a guard for each size of chunk and stream. */
const warnedOf = new WeakSet<Contract>();

/** The watch over one stream: checks before and after each step, counters over all. Not shared by streams that run at the same time. */
export class GuardWatch {
  readonly counters = new GuardCounters();
  readonly #contract: Contract;
  readonly #options: GuardOptions;
  readonly #bindings = new BindingChecker();
  readonly #inputs: readonly ContractBinding[];
  readonly #outputs: readonly ContractBinding[];
  readonly #onInputs: readonly Assertion[];
  readonly #onOutputs: readonly Assertion[];
  /** Outputs whose last value an assertion about growth needs. */
  readonly #remembered: readonly string[];
  readonly #warned = new Set<string>();
  #step = 0;
  #before: Step | undefined;

  /** `visible` limits it to tensors of these names: those of a prepared call, whose state stays on the GPU. */
  constructor(contract: Contract, options: GuardOptions, visible?: ReadonlySet<string>) {
    const isVisible = (name: string) => visible === undefined || visible.has(name);
    const assertions = contract.assertions.filter(
      (each) =>
        isVisible(each.tensor) && (each.kind !== 'monotonic' || each.than === null || isVisible(each.than)),
    );
    const outputs = new Set(contract.outputs.map(({ name }) => name));
    this.#contract = contract;
    this.#options = options;
    this.#inputs = contract.inputs.filter(({ name }) => isVisible(name));
    this.#outputs = contract.outputs.filter(({ name }) => isVisible(name));
    this.#onInputs = assertions.filter(({ tensor, kind }) => !outputs.has(tensor) && kind !== 'monotonic');
    this.#onOutputs = assertions.filter((each) => !this.#onInputs.includes(each));
    this.#remembered = assertions.flatMap((each) =>
      each.kind === 'monotonic' && each.than === null ? [each.tensor] : [],
    );
    for (const sentence of warnedOf.has(contract) ? [] : uncheckedSentences(contract))
      process.emitWarning(`${sentence} (contract ${contract.name})`, 'ContractWarning');
    warnedOf.add(contract);
  }

  /** Before a step. Throws TF_CONTRACT_BROKEN with `on: 'throw'`, so that such inputs never reach the session. */
  before(inputs: NamedTensors): void {
    const violations: GuardViolation[] = [];
    this.#bindings.begin();
    this.#bindings.check(this.#inputs, inputs, this.#step, violations);
    this.#assert(this.#onInputs, { chunk: this.#step, inputs, outputs: NOTHING }, violations);
    this.#settle(violations);
  }

  /** After a step that took this many seconds. Throws likewise. */
  after(inputs: NamedTensors, outputs: NamedTensors, seconds: number): void {
    this.#countStep(seconds, false);
    const violations: GuardViolation[] = [];
    this.#bindings.check(this.#outputs, outputs, this.#step, violations);
    const step = { chunk: this.#step, inputs, outputs };
    this.#assert(this.#onOutputs, step, violations);
    if (this.#options.scan === true) this.#scan(outputs, violations);
    this.#remember(step);
    this.#step++;
    this.#settle(violations);
  }

  /** After a step in which the session threw. */
  failed(seconds: number): void {
    this.#countStep(seconds, true);
    this.#step++;
  }

  /** A reference was at hand: the largest absolute error of an output, for the counters and the listener. */
  recordError(tensor: string, maxAbs: number): void {
    this.counters.error(tensor, maxAbs);
    this.#options.listener?.error(tensor, maxAbs);
  }

  /** A new stream begins: steps count from 0, nothing is remembered of the last one, warnings are printed again. Counters go on. */
  reset(): void {
    this.#step = 0;
    this.#before = undefined;
    this.#warned.clear();
  }

  #assert(assertions: readonly Assertion[], step: Step, violations: GuardViolation[]): void {
    if (assertions.length === 0) return;
    const checked = assertions.filter((each) => this.#isChecked(each, step));
    for (const { assertion, kind, tensor, found, sentence } of checkAssertions(
      { assertions: checked },
      step,
      this.#before,
    ))
      violations.push({ rule: assertion, kind, tensor, step: this.#step, found, sentence });
  }

  /** Shapes always; values of large tensors only in a scan. A tensor that is not there was reported as missing. */
  #isChecked({ tensor: name, kind }: Assertion, { inputs, outputs }: Step): boolean {
    const tensor = outputs.get(name) ?? inputs.get(name);
    if (tensor === undefined) return false;
    return kind === 'dimension-equals' || this.#options.scan === true || this.#isSmall(tensor);
  }

  #isSmall({ shape }: Tensor): boolean {
    return elementCount(shape) <= (this.#options.valuesUpTo ?? VALUES_UP_TO);
  }

  #scan(outputs: NamedTensors, violations: GuardViolation[]): void {
    for (const [name, tensor] of outputs) {
      if (!/float/.test(tensor.dtype)) continue;
      const at = float32Values(tensor, name).findIndex((value) => !Number.isFinite(value));
      if (at < 0) continue;
      violations.push({
        rule: `not-finite:${name}`,
        kind: 'not-finite',
        tensor: name,
        step: this.#step,
        found: `element ${at} of [${tensor.shape.join(', ')}] is NaN or infinite`,
        sentence: 'Every value is a finite number.',
      });
    }
  }

  /** Copies: a prepared call writes over its own buffers. */
  #remember({ chunk, outputs }: Step): void {
    if (this.#remembered.length === 0) return;
    const kept = new Map<string, Tensor>();
    for (const name of this.#remembered) {
      const tensor = outputs.get(name);
      if (tensor !== undefined && (this.#options.scan === true || this.#isSmall(tensor)))
        kept.set(name, copiedTensor(tensor));
    }
    this.#before = { chunk, inputs: NOTHING, outputs: kept };
  }

  #countStep(seconds: number, failed: boolean): void {
    this.counters.step(seconds, failed);
    this.#options.listener?.step(seconds, failed);
  }

  #settle(violations: readonly GuardViolation[]): void {
    const [first] = violations;
    if (first === undefined) return;
    for (const violation of violations) {
      this.counters.violation(violation);
      this.#options.listener?.violation(violation);
    }
    const on = this.#options.on ?? 'throw';
    if (on === 'throw') throw broken(this.#contract, violations, first);
    if (on === 'warn') for (const violation of violations) this.#warn(violation);
  }

  /** Once for each rule: a stream that is broken stays so, fifty times a second. */
  #warn(violation: GuardViolation): void {
    if (this.#warned.has(violation.rule)) return;
    this.#warned.add(violation.rule);
    const message = `${describe(violation)} (contract ${this.#contract.name})`;
    if (this.#options.warn === undefined) process.emitWarning(message, 'ContractWarning');
    else this.#options.warn(message, violation);
  }
}

const NOTHING: NamedTensors = new Map();

const describe = ({ tensor, step, found }: GuardViolation): string =>
  `${tensor} violates its contract at step ${step}: ${found}`;

function broken(
  contract: Contract,
  violations: readonly GuardViolation[],
  first: GuardViolation,
): TrtforgeError {
  const more = violations.length === 1 ? '' : `, and ${violations.length - 1} more`;
  return new TrtforgeError('TF_CONTRACT_BROKEN', `${describe(first)}${more}.`, {
    details: { contract: contract.name, violations },
  });
}
