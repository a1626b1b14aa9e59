import { advance, eachVector, type KernelPlan, turnsOf } from './pair-kernel-code.js';
import { STEP_PAIRS } from './pair-kernel-layout.js';
import {
  block,
  type Code,
  type FunctionSpec,
  FunctionWriter,
  i16x8,
  i32,
  i32x4,
  i64,
  v128,
} from './wasm-assembler.js';

/** Counts keys above each bracket's start and copies the values whose key is in a bracket. */
export function classify(plan: KernelPlan, name: string, brackets: number): FunctionSpec {
  const { place } = plan.layout;
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const vector = () => writer.local('v128');
  const [keys, above] = [vector(), vector()];
  const mask = writer.local('i32');
  const each = Array.from({ length: brackets }, (_, index) => ({
    index,
    after: vector(),
    last: vector(),
    count: vector(),
  }));
  const threshold = (index: number) => v128.load(i32.constant(place.thresholds + 16 * index));
  const inBrackets = each.map(
    ({ after, last, count }): Code => [
      ...above.set(i16x8.greaterThan(keys.get, after.get)),
      ...count.set(i16x8.subtract(count.get, above.get)),
      ...v128.andNot(above.get, i16x8.greaterThan(keys.get, last.get)),
    ],
  );
  const anyBracket = inBrackets.reduce((all, one) => v128.or(all, one));
  return {
    name,
    writer,
    body: [
      ...each.flatMap(({ index, after, last }) => [
        ...after.set(threshold(2 * index)),
        ...last.set(threshold(2 * index + 1)),
      ]),
      ...block.doWhile(
        [
          ...keys.set(plan.keys(at)),
          ...i32.store8(mask.get, i16x8.bitmask(anyBracket), place.masks),
          ...mask.set(i32.add(mask.get, i32.constant(1))),
          ...at.set(i32.add(at.get, i32.constant(8 * plan.bytes))),
        ],
        i32.lessThan(at.get, end.get),
      ),
      ...each.flatMap(({ index, count }) => {
        const address = i32.constant(place.counts + 16 * index);
        return v128.store(address, i32x4.add(v128.load(address), i32x4.addPairwise(count.get)));
      }),
    ],
  };
}

/** Copies the values from byte `at` on whose bit is set in the masks, 64 to a word, up to mask byte `end`; gives where the copies end. */
export function collect({ layout, bytes, copy }: KernelPlan): FunctionSpec {
  const { place } = layout;
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const [mask, out, bits] = [writer.local('i32'), writer.local('i32'), writer.local('i64')];
  const byteOfBit = i32.shiftLeft(i64.toI32(i64.trailingZeros(bits.get)), i32.constant(Math.log2(bytes)));
  const eachBit = block.doWhile(
    [
      ...copy(out.get, i32.add(at.get, byteOfBit)),
      ...out.set(i32.add(out.get, i32.constant(bytes))),
      ...bits.set(i64.and(bits.get, i64.subtract(bits.get, i64.constant(1)))),
    ],
    i32.isZero(i64.isZero(bits.get)),
  );
  return {
    name: 'collect',
    writer,
    result: 'i32',
    body: [
      ...out.set(i32.constant(place.collected)),
      ...block.doWhile(
        [
          ...bits.set(i64.load(mask.get, place.masks)),
          ...block.when(i32.isZero(i64.isZero(bits.get)), eachBit),
          ...advance(at, 64 * bytes),
          ...mask.set(i32.add(mask.get, i32.constant(8))),
        ],
        i32.lessThan(mask.get, end.get),
      ),
      ...out.get,
    ],
  };
}

/** How many of the values from byte `at` to `end` are zero; whole steps. */
export function countZeros(plan: KernelPlan): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const [zeros, none] = [writer.local('v128'), writer.local('v128')];
  const step = (offset: number): Code =>
    zeros.set(plan.subtractCounts(zeros.get, plan.float.equals(v128.load(at.get, offset), none.get)));
  const counts = i32.constant(plan.layout.place.counts);
  return {
    name: 'countZeros',
    writer,
    body: [...eachVector(plan, at, end, step), ...v128.store(counts, zeros.get)],
  };
}

/** The end of the first step from byte `at` on that has a value above `limit`, or where `end` was reached. */
export function stepAbove(plan: KernelPlan): FunctionSpec {
  const { float, scalar, bytes } = plan;
  const writer = new FunctionWriter(['i32', 'i32', scalar]);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const [limit, found] = [writer.local('v128'), writer.local('v128')];
  const above = (offset: number): Code => float.greaterThan(v128.load(at.get, offset), limit.get);
  const any = turnsOf(plan)
    .map(above)
    .reduce((all, one) => v128.or(all, one));
  return {
    name: 'stepAbove',
    writer,
    result: 'i32',
    body: [
      ...limit.set(float.splat(writer.parameter(2).get)),
      ...block.doWhile(
        [...found.set(any), ...advance(at, STEP_PAIRS * bytes)],
        i32.and(i32.isZero(v128.anyTrue(found.get)), i32.lessThan(at.get, end.get)),
      ),
      ...at.get,
    ],
  };
}

/** Adds the values from byte `at` to `end` to the counts of their keys. */
export function countKeys({ layout, bytes }: KernelPlan): FunctionSpec {
  const { keyCounts } = layout;
  const writer = new FunctionWriter(['i32', 'i32']);
  const [at, end] = [writer.parameter(0), writer.parameter(1)];
  const counter = writer.local('i32');
  const step = [
    ...counter.set(i32.shiftLeft(i32.load16(at.get, bytes - 2), i32.constant(2))),
    ...i32.store(counter.get, i32.add(i32.load(counter.get, keyCounts), i32.constant(1)), keyCounts),
  ];
  return {
    name: 'countKeys',
    writer,
    body: block.when(
      i32.lessThan(at.get, end.get),
      block.doWhile([...step, ...advance(at, bytes)], i32.lessThan(at.get, end.get)),
    ),
  };
}
