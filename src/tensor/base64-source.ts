import type { ByteSource } from '../system/byte-source.js';

/** Decoded bytes per step: a multiple of three, so that every step begins with a whole group of four characters. */
const STEP = 3 * (1 << 18);

/**
 * The bytes that base64 text within another source stands for, decoded where they are read. What is no base64 shortens what can be read,
 * as the end of a file does.
 */
export function base64Source(text: ByteSource, start: number, length: number): ByteSource {
  const tail = Buffer.alloc(Math.min(2, length));
  text.read(tail, start + length - tail.length, tail.length);
  const padding = tail.filter((byte) => byte === 0x3d).length;
  const size = Math.max(0, (length >>> 2 === 0 ? 0 : Math.floor(length / 4) * 3) - padding);
  const characters = Buffer.alloc((STEP / 3) * 4);
  const decode = (position: number, wanted: number): Buffer => {
    const group = Math.floor(position / 3);
    const end = Math.min(length, 4 * Math.ceil((position + wanted) / 3));
    const part = characters.subarray(0, Math.max(0, end - 4 * group));
    const found = text.read(part, start + 4 * group, part.length);
    const decoded = Buffer.from(part.toString('latin1', 0, found), 'base64');
    return decoded.subarray(position - 3 * group, position - 3 * group + wanted);
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
