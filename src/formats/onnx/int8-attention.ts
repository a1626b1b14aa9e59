import { isNumber, type MaybeSize } from './shapes/size.js';

/** INT8 attention over longer sequences is not fused by TensorRT (ModelOpt's bound as well; tensorrt-rtx 1.7.1 fused 64 and did not fuse 1024). */
const LONGEST = 512;

/** tensorrt-rtx 1.7.1 fuses INT8 attention of these sizes of a head on sm_89 and sm_120, and none of 8, 24, 40, 48, 80, 96, 128 and 256. */
const HEADS: ReadonlySet<number> = new Set([16, 32, 64]);

/** Why TensorRT does not fuse INT8 attention of heads of this size over so many positions; undefined where it does, and where an open size decides. */
export function whyNotFusedInInt8(head: MaybeSize, positions: MaybeSize): string | undefined {
  if (isNumber(head) && !HEADS.has(head))
    return `TensorRT fuses attention in INT8 over heads of 16, 32 or 64, and this one has ${head}`;
  return isNumber(positions) && positions > LONGEST
    ? `TensorRT fuses attention in INT8 over at most ${LONGEST} positions, and it is over ${positions}`
    : undefined;
}
