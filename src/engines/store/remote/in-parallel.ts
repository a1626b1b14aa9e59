/**
 * Does `work` for every item, `width` at a time, and returns what it gives, in the items' order. The first failure stops the others through their signal, is waited for, and thrown.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  signal: AbortSignal | undefined,
  work: (item: T, index: number, stop: AbortSignal) => Promise<R>,
): Promise<R[]> {
  const stopping = new AbortController();
  const stop = signal === undefined ? stopping.signal : AbortSignal.any([signal, stopping.signal]);
  const results: R[] = [];
  let failure: { readonly error: unknown } | undefined;
  const next = items.entries();
  const worker = async () => {
    for (const [index, item] of next) {
      if (failure !== undefined) return;
      try {
        results[index] = await work(item, index, stop);
      } catch (error) {
        failure ??= { error };
        stopping.abort();
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  if (failure !== undefined) throw failure.error;
  return results;
}
