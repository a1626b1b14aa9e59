import { typeAttribute } from '../onnx/attributes.js';
import { formalAt } from '../onnx/operators.js';
import { bodyInput, bodyOutput, controlInput, controlOutput, isControl, type Link } from './control-flow.js';
import {
  type Flow,
  isFloat32,
  isStored,
  type Operation,
  operatorName,
  type Scope,
  type Use,
  type Value,
} from './flow.js';
import type { FloatFormat } from './formats/format.js';
import { floatFormats } from './formats/index.js';
import { choosers, light, movers, sources } from './operator-traits.js';
import { betweenRule, type RuleFacts, rules } from './rules.js';
import { inputSlot, outputSlot, slotsOf } from './slots.js';

/** The decision on an operation. `untouched`: nothing in it is FP32. `control`: If, Loop and Scan only pass on what their bodies decide. */
type Decision =
  | { readonly kind: 'untouched' | 'control' }
  | { readonly kind: 'convert'; readonly format: FloatFormat }
  | { readonly kind: 'keep'; readonly rule: string; readonly reason: string };

/** The type in which a value arrives, or is wanted; `free` where any type is suitable. */
type Side = 'fp32' | 'free' | FloatFormat;

/** The decisions on all operations and what follows from them for values. */
export interface Decisions {
  of(operation: Operation): Decision;
  /** The format that an FP32 value of the original has in the result, undefined for FP32. Not for weights and constants, which have the types they are wanted in. */
  formatOf(value: Value): FloatFormat | undefined;
  /** The type that a use of an FP32 value needs: FP32, a format, or either. */
  wanted(use: Use): Side;
}

/** Decides every operation: first by the rules, one by one; then the operators that go with their neighbours. */
export function decide(flow: Flow, facts: RuleFacts): Decisions {
  const decided = new Map<Operation, Decision>();
  for (const operation of flow.operations) decided.set(operation, byRules(operation, facts));
  const sides = new Sides(decided, facts);
  settleNeighbours(flow, decided, sides);
  return {
    of: (operation) => decided.get(operation) ?? { kind: 'untouched' },
    formatOf: (value) => sides.settled(value),
    wanted: (use) => sides.wanted(use),
  };
}

function byRules(operation: Operation, facts: RuleFacts): Decision {
  const { format } = facts.options;
  if (isControl(operation)) return { kind: 'control' };
  const slots = slotsOf(operation, format.dtype);
  if (slots.every((slot) => slot === 'other' || slot === 'any')) return { kind: 'untouched' };
  if (operation.outputs.every((value) => value === undefined || value.origin === 'constant'))
    return { kind: 'untouched' };
  for (const rule of rules) {
    const reason = rule.decide(operation, facts, format);
    if (reason !== undefined) return { kind: 'keep', rule: rule.id, reason };
  }
  return { kind: 'convert', format };
}

/**
 * Operators without arithmetic of their own first all count as FP32; then, until nothing changes, each that lacks FP32 neighbours
 * is given back. What remains lies between nodes that stay.
 */
function settleNeighbours(flow: Flow, decided: Map<Operation, Decision>, sides: Sides): void {
  const candidates = flow.operations.filter(
    (operation) => decided.get(operation)?.kind === 'convert' && sides.traitOf(operation) !== undefined,
  );
  const byRule = new Map(decided);
  for (const operation of candidates) decided.set(operation, keptBetween(sides.traitOf(operation)));
  for (let changed = true; changed; ) {
    changed = false;
    for (const pass of [candidates, candidates.toReversed()]) {
      for (const operation of pass) {
        if (decided.get(operation)?.kind !== 'keep' || sides.staysWithNeighbours(operation)) continue;
        decided.set(operation, byRule.get(operation) ?? { kind: 'untouched' });
        changed = true;
      }
    }
  }
}

const whyBetween: Readonly<Record<Trait, string>> = {
  mover: 'it hands on values that come in FP32 and are wanted in FP32',
  chooser: 'it compares values that come in FP32',
  light: 'all it reads and all that reads it is FP32',
  state: 'it updates what a loop carries in FP32',
  source: 'what reads it is FP32',
};

const keptBetween = (trait: Trait | undefined): Decision => ({
  kind: 'keep',
  rule: betweenRule.id,
  reason: whyBetween[trait ?? 'mover'],
});

/** The kind of an operator that goes with its neighbours. */
type Trait = 'mover' | 'chooser' | 'light' | 'state' | 'source';

const isInLoop = (scope: Scope): boolean =>
  scope.owner !== undefined && (scope.owner.node.opType !== 'If' || isInLoop(scope.owner.scope));

/** The one thing that serves several places: FP32 where one needs it or two need different formats. */
function common(sides: readonly Side[]): Side {
  const [side = 'free', ...others] = new Set(sides.filter((one) => one !== 'free'));
  return others.length > 0 ? 'fp32' : side;
}

class Sides {
  readonly #decided: ReadonlyMap<Operation, Decision>;
  readonly #facts: RuleFacts;

  constructor(decided: ReadonlyMap<Operation, Decision>, facts: RuleFacts) {
    this.#decided = decided;
    this.#facts = facts;
  }

  traitOf(operation: Operation): Trait | undefined {
    const name = operatorName(operation);
    if (name === 'Cast') return isFloat32(operation.inputs[0]) ? 'mover' : 'source';
    if (sources.has(name)) return 'source';
    if (movers.has(name)) return 'mover';
    if (choosers.has(name)) return 'chooser';
    if (!light.has(name)) return undefined;
    return isInLoop(operation.scope) ? 'state' : 'light';
  }

  staysWithNeighbours(operation: Operation): boolean {
    const inputs = operation.inputs.filter((value) => value !== undefined && isFloat32(value));
    const uses = operation.outputs.flatMap((value) =>
      value !== undefined && isFloat32(value) ? value.uses : [],
    );
    const comesFp32 = () => inputs.some((value) => value !== undefined && this.arrives(value) === 'fp32');
    const wantedFp32 = () => uses.some((use) => this.wanted(use) === 'fp32');
    switch (this.traitOf(operation)) {
      case 'mover':
      case 'state':
        return comesFp32() && wantedFp32();
      case 'chooser':
        return comesFp32();
      case 'source':
        return wantedFp32();
      default:
        return (
          comesFp32() &&
          inputs.every((value) => value !== undefined && this.#comesFromInside(value)) &&
          uses.length > 0 &&
          uses.every((use) => use.kind === 'input' && this.wanted(use) === 'fp32')
        );
    }
  }

  /** FP32 because an operation made it so, or stored: the model's own inputs are FP32 only until they are cast. */
  #comesFromInside(value: Value): boolean {
    return isStored(value) || (value.producer !== undefined && this.arrives(value) === 'fp32');
  }

  /** The type a value has where it is made. */
  arrives(value: Value): Side {
    if (!isFloat32(value) || isStored(value)) return 'free';
    const { producer, scope } = value;
    if (value.origin === 'fixed') return 'fp32';
    if (producer === undefined) {
      if (scope.owner === undefined) return this.#ioSide();
      return this.#across(bodyInput(scope, scope.inputs.indexOf(value)), scope.owner);
    }
    const index = producer.outputs.indexOf(value);
    const decision = this.#decided.get(producer);
    if (decision?.kind === 'control') return this.#across(controlOutput(producer, index), producer);
    if (decision?.kind !== 'convert') return 'fp32';
    return outputSlot(producer, index, decision.format.dtype) === 'follows' ? decision.format : 'fp32';
  }

  /** Like `arrives`, with what is free decided by who reads it; undefined for FP32. */
  settled(value: Value): FloatFormat | undefined {
    if (!isFloat32(value)) return undefined;
    const side = this.arrives(value);
    const settled = side === 'free' ? common(value.uses.map((use) => this.wanted(use))) : side;
    if (settled === 'free') return this.#facts.options.format;
    return settled === 'fp32' ? undefined : settled;
  }

  /** The type of the model's own inputs and outputs. */
  #ioSide(): Side {
    const { ioTypes, format } = this.#facts.options;
    return ioTypes === 'keep' ? 'fp32' : format;
  }

  wanted(use: Use): Side {
    if (use.kind === 'output') {
      const { scope, index } = use;
      if (scope.owner === undefined) return this.#ioSide();
      if (this.#otherBranchIsFp32(scope, index)) return 'fp32';
      return this.#wantedAcross(bodyOutput(scope, index), scope.owner);
    }
    const { operation, index } = use;
    const decision = this.#decided.get(operation);
    if (decision?.kind === 'control') return this.#wantedAcross(controlInput(operation, index), operation);
    const { format } = decision?.kind === 'convert' ? decision : this.#facts.options;
    const slot = inputSlot(operation, index, format.dtype);
    if (slot === 'any') return this.#wantedByAny(operation, decision);
    if (decision?.kind === 'convert' && slot === 'follows') return format;
    return 'fp32';
  }

  /** Branches of an If end in one type. Operators that only go with their neighbours do not count, lest two hold each other. */
  #otherBranchIsFp32({ owner, graph }: Scope, index: number): boolean {
    if (owner?.node.opType !== 'If') return false;
    return owner.bodies.some((body) => {
      const producer = body.graph === graph ? undefined : body.outputs[index]?.producer;
      const decision = producer && this.#decided.get(producer);
      return decision?.kind === 'keep' && decision.rule !== betweenRule.id;
    });
  }

  /** A cast to integers or doubles reads FP32 more exactly where it can have it; nothing else that takes any type cares. */
  #wantedByAny(operation: Operation, decision: Decision | undefined): Side {
    if (operatorName(operation) !== 'Cast') return 'free';
    const target = typeAttribute(operation.node, 'to');
    if (floatFormats.some(({ dtype }) => dtype === target)) return 'free';
    return target === 'float32' && decision?.kind === 'convert' ? decision.format : 'fp32';
  }

  #across(link: Link, control: Operation): Side {
    if (link.kind !== 'same') return 'fp32';
    return this.#passable(control, common(link.values.map((value) => this.arrives(value))));
  }

  #wantedAcross(link: Link, control: Operation): Side {
    if (link.kind !== 'same') return 'fp32';
    return this.#passable(
      control,
      common(link.values.flatMap((value) => value.uses.map((use) => this.wanted(use)))),
    );
  }

  /** FP32 where this opset's If, Loop or Scan cannot pass on values of the format. */
  #passable(control: Operation, side: Side): Side {
    if (side === 'fp32') return side;
    const { dtype } = side === 'free' ? this.#facts.options.format : side;
    const formal = formalAt(control.signature?.outputs ?? [], 0);
    return formal?.allowed.has(dtype) === true ? side : 'fp32';
  }
}
