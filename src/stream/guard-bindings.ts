import type { NamedTensors } from '../tensor/tensor.js';
import type { ContractBinding } from './contract.js';
import type { GuardViolation } from './guard-violation.js';

/** Holds tensors against the dtypes and shapes of a contract; one checker for inputs and outputs, so that a symbol is one number in a whole step. */
export class BindingChecker {
  readonly #symbols = new Map<string, number>();

  /** A new step: symbols may be other numbers. */
  begin(): void {
    this.#symbols.clear();
  }

  /** What is wrong, added to `violations`. */
  check(
    bindings: readonly ContractBinding[],
    tensors: NamedTensors,
    step: number,
    violations: GuardViolation[],
  ): void {
    for (const { name, dtype, shape } of bindings) {
      const tensor = tensors.get(name);
      const wrong = (kind: GuardViolation['kind'], found: string) =>
        violations.push({
          rule: `${kind}:${name}`,
          kind,
          tensor: name,
          step,
          found,
          sentence: SENTENCES[kind] ?? '',
        });
      if (tensor === undefined) {
        wrong('missing', 'it is not there');
        continue;
      }
      if (dtype !== null && tensor.dtype !== dtype)
        wrong('dtype', `${tensor.dtype} where ${dtype} was promised`);
      if (shape !== null && !this.#fits(tensor.shape, shape))
        wrong(
          'shape',
          `[${tensor.shape.join(', ')}] where [${shape.map((size) => size ?? '?').join(', ')}] was promised`,
        );
    }
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

const SENTENCES: Partial<Record<GuardViolation['kind'], string>> = {
  missing: 'Every tensor of the contract is given.',
  dtype: 'Tensors have the types of the contract.',
  shape: 'Tensors have the shapes of the contract.',
};
