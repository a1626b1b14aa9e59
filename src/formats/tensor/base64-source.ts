import type { ByteSource } from '../../base/files/byte-source.js';
import { BASE64_STEP, base64Decoder } from './base64-decoder.js';

/** Decoded bytes per step: a multiple of three, so that every step begins with a whole group of four characters. */
const STEP = (BASE64_STEP / 4) * 3;

/**
 * The bytes that base64 text within another source stands for, decoded where they are read. What is no base64 shortens what can be read,
 * as the end of a file does.
 */
export function base64Source(text: ByteSource, start: number, length: number): ByteSource {
  const tail = Buffer.alloc(Math.min(2, length));
  text.read(tail, start + length - tail.length, tail.length);
  const padding = tail.filter((byte) => byte === 0x3d).length;
  const size = Math.max(0, (length >>> 2 === 0 ? 0 : Math.floor(length / 4) * 3) - padding);
  const decoder = base64Decoder();
  const decoded = Buffer.alloc(STEP);
  const decode = (position: number, wanted: number): Buffer => {
    const group = Math.floor(position / 3);
    const end = Math.min(length, 4 * Math.ceil((position + wanted) / 3));
    const found = text.read(decoder.text, start + 4 * group, Math.max(0, end - 4 * group));
    const bytes = decoder.decode(found, decoded, 0);
    const from = position - 3 * group;
    return decoded.subarray(from, Math.min(from + wanted, bytes));
  };
  return {
    path: text.path,
    size,
    read: (target, position, wanted) => {
      let done = 0;
      while (done < wanted) {
        const part = decode(position + done, Math.min(wanted - done, STEP - 3));
        if (part.length === 0) break;
        target.set(part, done);
        done += part.length;
      }
      return done;
    },
    close: () => {},
  };
}
