/** A small generator of its own, so that a failing mutation can be named by its number. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

/** `count` damaged copies of real bytes: flipped and overwritten bytes, extreme numbers, cuts, doubled and removed pieces. Repeatable. */
export function* mutations(original: Uint8Array, count: number, seed = 1): Generator<Uint8Array> {
  const random = randomNumbers(seed);
  const pick = (limit: number) => Math.floor(random() * limit);
  for (let number = 0; number < count; number++) {
    let bytes = Buffer.from(original);
    for (let edit = pick(4); edit >= 0; edit--) bytes = mutate(bytes, pick);
    yield new Uint8Array(bytes);
  }
}

function mutate(bytes: Buffer, pick: (limit: number) => number): Buffer<ArrayBuffer> {
  const at = pick(bytes.length + 1);
  const copy = Buffer.from(bytes);
  switch (pick(6)) {
    case 0:
      if (at < copy.length) copy[at] = copy[at]! ^ (1 << pick(8));
      return copy;
    case 1:
      if (at < copy.length) copy[at] = pick(256);
      return copy;
    case 2:
      copy.fill(pick(2) * 255, at, Math.min(copy.length, at + 1 + pick(8)));
      return copy;
    case 3:
      return Buffer.from(copy.subarray(0, at));
    case 4:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.max(0, at - pick(64)))]);
    default:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.min(copy.length, at + pick(64)))]);
  }
}
