import type { ContractBinding } from '../../../formats/contract/contract.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { meanTheSame } from '../check/compare-bindings.js';
import type { GuardViolation } from './violation.js';

/** Checks tensors against the dtypes and shapes of a contract; one checker for inputs and outputs, so that a symbol is one number in a whole step. */
export class BindingChecker {
  readonly #symbols = new Map<string, number>();

  /** A new step: symbols may be other numbers. */
  begin(): void {
    this.#symbols.clear();
  }

  /** Adds the violations found to `violations`. */
  check(
    bindings: readonly ContractBinding[],
    tensors: NamedTensors,
    step: number,
    violations: GuardViolation[],
  ): void {
    for (const { name, dtype, shape } of bindings) {
      const tensor = tensors.get(name);
      if (tensor === undefined) {
        violations.push(violation('missing', name, step, 'it is missing'));
        continue;
      }
      if (dtype !== null && tensor.dtype !== dtype && !meanTheSame([tensor.dtype, dtype]))
        violations.push(violation('dtype', name, step, `${tensor.dtype} where ${dtype} was promised`));
      if (shape === null || this.#fits(tensor.shape, shape)) continue;
      const promised = shape.map((size) => this.#named(size)).join(', ');
      violations.push(
        violation('shape', name, step, `[${tensor.shape.join(', ')}] where [${promised}] was promised`),
      );
    }
  }

  /** A symbol with the number that an earlier tensor of this step gave it. */
  #named(size: number | string | null): number | string {
    if (typeof size !== 'string') return size ?? '?';
    const known = this.#symbols.get(size);
    return known === undefined ? size : `${size} = ${known}`;
  }

  #fits(actual: readonly number[], promised: readonly (number | string | null)[]): boolean {
    if (actual.length !== promised.length) return false;
    for (let axis = 0; axis < promised.length; axis++) {
      const size = actual[axis]!;
      const wanted = promised[axis]!;
      if (wanted === null || wanted === size) continue;
      if (typeof wanted === 'number') return false;
      const known = this.#symbols.get(wanted);
      if (known === undefined) this.#symbols.set(wanted, size);
      else if (known !== size) return false;
    }
    return true;
  }
}

const SENTENCES = {
  missing: 'Every tensor of the contract is present.',
  dtype: 'Tensors have the types of the contract.',
  shape: 'Tensors have the shapes of the contract.',
} as const;

const violation = (
  kind: keyof typeof SENTENCES,
  tensor: string,
  step: number,
  found: string,
): GuardViolation => ({
  rule: `${kind}:${tensor}`,
  kind,
  tensor,
  step,
  found,
  sentence: SENTENCES[kind],
});
