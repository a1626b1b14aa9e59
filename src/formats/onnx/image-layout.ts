/** Which axis of a batch of pictures is which. */
export interface ImageLayout {
  readonly layout: 'NCHW' | 'NHWC';
  readonly channels: number;
  readonly height: number;
  readonly width: number;
}

/** Channels that a picture has. */
const CHANNELS: ReadonlySet<unknown> = new Set([1, 3, 4]);

/** Where a batch of pictures has its channels: before its sides (NCHW) or, where only the last dimension can be channels, after them (NHWC). */
export function channelAxis(shape: Shape): 1 | 3 | undefined {
  if (shape?.length !== 4) return undefined;
  if (CHANNELS.has(shape[1])) return 1;
  return CHANNELS.has(shape[3]) ? 3 : undefined;
}

/** NHWC where only the last dimension can be channels; NCHW for any other four dimensions. null for another rank, which is no batch of pictures. */
export function imageLayout(shape: Shape): ImageLayout | null {
  if (shape?.length !== 4) return null;
  const [, second, , last] = shape;
  const axis = channelAxis(shape) ?? (typeof second === 'number' && typeof last !== 'number' ? 3 : 1);
  return axis === 3
    ? { layout: 'NHWC', channels: 3, height: 1, width: 2 }
    : { layout: 'NCHW', channels: 1, height: 2, width: 3 };
}

/** As a model declares it: numbers, symbols, null for an unnamed open dimension; null where the rank is open. */
type Shape = readonly (number | string | null)[] | null;
