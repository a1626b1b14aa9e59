import type { ValueFacts } from './model-facts.js';

type Dim = NonNullable<ValueFacts['shape']>[number] | undefined;

/** Which axis of a batch of pictures is which. */
export interface ImageLayout {
  readonly layout: 'NCHW' | 'NHWC';
  readonly channels: number;
  readonly height: number;
  readonly width: number;
}

/** Channels that a picture has. */
const CHANNELS = [1, 3, 4];

/** NHWC where only the last dimension can be channels; NCHW for any other four dimensions. null for another rank, which is no batch of pictures. */
export function imageLayout(shape: ValueFacts['shape']): ImageLayout | null {
  if (shape?.length !== 4) return null;
  return isChannels(shape[3]) && !isChannels(shape[1])
    ? { layout: 'NHWC', channels: 3, height: 1, width: 2 }
    : { layout: 'NCHW', channels: 1, height: 2, width: 3 };
}

const isChannels = (dim: Dim): boolean => typeof dim === 'number' && CHANNELS.includes(dim);
