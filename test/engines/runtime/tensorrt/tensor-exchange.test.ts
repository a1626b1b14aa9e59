import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Exchange,
  filesOf,
  openExchange,
  TensorReceiver,
  TensorSender,
} from '../../../../src/engines/runtime/tensorrt/tensor-exchange.js';

const LARGE = 70_000;
const tensors = (fill: number, length = LARGE) =>
  new Map([
    ['large', { dtype: 'uint8' as const, shape: [length], bytes: new Uint8Array(length).fill(fill) }],
    ['small', { dtype: 'uint8' as const, shape: [3], bytes: Uint8Array.of(fill, fill, fill) }],
  ]);

let exchange: Exchange;
beforeAll(() => {
  exchange = openExchange();
});
afterAll(() => exchange.remove());

describe('tensors for another process', () => {
  it('arrive, and a file is used again once it has been read', () => {
    const sender = new TensorSender(exchange.folders);
    const receiver = new TensorReceiver({ reuse: false });
    const files = new Set<string>();
    for (const [fill, length] of [
      [1, LARGE],
      [2, 2 * LARGE],
      [3, LARGE],
    ] as const) {
      const sent = sender.send(tensors(fill, length));
      expect(receiver.receive(sent)).toEqual(tensors(fill, length));
      for (const file of filesOf(sent)) files.add(file);
      sender.release(filesOf(sent));
    }
    expect(files.size).toBe(1);
    sender.close();
    receiver.close();
  });

  it('that have not been read are not overwritten', () => {
    const sender = new TensorSender(exchange.folders);
    const receiver = new TensorReceiver({ reuse: true });
    const [first, second] = [sender.send(tensors(1)), sender.send(tensors(2))];
    expect(filesOf(first)).not.toEqual(filesOf(second));
    expect([first, second].map((sent) => receiver.receive(sent))).toEqual([tensors(1), tensors(2)]);
    sender.close();
    receiver.close();
  });

  it('without a folder are an error', () => {
    expect(() => new TensorSender([]).send(tensors(1))).toThrow(
      expect.objectContaining({ code: 'TF_WRITE_FAILED' }),
    );
    expect(() => new TensorSender(['/dev/null/no-folder']).send(tensors(1))).toThrow(
      expect.objectContaining({ code: 'TF_WRITE_FAILED' }),
    );
  });
});
