import { createHash } from 'node:crypto';
import { readWhole } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import type { Audio } from './audio.js';

/** Behind "fLaC" and the header of the first block, of 34 bytes: https://www.rfc-editor.org/rfc/rfc9639.html#section-8.2 */
interface StreamInfo {
  readonly rate: number;
  readonly channels: number;
  readonly bits: number;
  /** Samples of each channel; 0 where the encoder did not know. */
  readonly total: number;
  /** MD5 of the samples, little-endian and interleaved; zeros where the encoder did not know. */
  readonly md5: string;
}

/** 18 hours of 16 kHz in 16 bits, as for WAV. */
const LARGEST_SOUND = 2 ** 31 - 1;
const PIECE = 1 << 18;

/**
 * Reads FLAC; several channels are averaged. The decoder is libFLAC, whose samples are checked by number and MD5. Throws TF_AUDIO_INVALID for a file that is
 * damaged, cut short or of unknown length, TF_DECODER_MISSING without the package @audio/decode-flac, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export async function readFlac(path: string): Promise<Audio> {
  const { decoder: open } = await import('@audio/decode-flac').catch((cause: unknown) => {
    throw new TrtforgeError(
      'TF_DECODER_MISSING',
      'FLAC cannot be read: the package @audio/decode-flac is not installed.',
      { remedy: 'Install it: npm install @audio/decode-flac. Or convert the file to WAV.', cause },
    );
  });
  const reject = (why: string, cause?: unknown) =>
    new TrtforgeError('TF_AUDIO_INVALID', `${path} cannot be used as audio: ${why}.`, { cause });
  const bytes = readWhole(path);
  const info = streamInfo(bytes);
  if (info === undefined) throw reject('its first block is not a valid STREAMINFO');
  const { rate, channels, bits, total, md5 } = info;
  if (total === 0) throw reject('it does not state its length');
  if (total * channels * Math.ceil(bits / 8) > LARGEST_SOUND) throw reject(`it states ${total} samples`);
  const decoder = await open();
  const samples = new Float32Array(total);
  const hash = createHash('md5');
  let done = 0;
  const take = (parts: readonly Float32Array[]) => {
    const frames = parts[0]?.length ?? 0;
    if (frames === 0) return;
    if (parts.length !== channels || done + frames > total)
      throw reject(`it has more than the ${total} samples of ${channels} channels that it states`);
    hash.update(average(parts, bits, samples.subarray(done)));
    done += frames;
  };
  try {
    for (let at = 0; at < bytes.length; at += PIECE)
      take(decoder.decode(bytes.subarray(at, at + PIECE)).channelData);
    take(decoder.flush().channelData);
  } catch (cause) {
    if (cause instanceof TrtforgeError) throw cause;
    throw reject(cause instanceof Error ? cause.message : String(cause), cause);
  } finally {
    decoder.free();
  }
  if (done < total) throw reject(`it is damaged or cut short: ${done} of ${total} samples are there`);
  if (!/^0+$/.test(md5) && hash.digest('hex') !== md5)
    throw reject('it is damaged: the MD5 of its samples differs');
  return { rate, samples };
}

function streamInfo(bytes: Buffer): StreamInfo | undefined {
  if (bytes.length < 42 || (bytes[4]! & 0x7f) !== 0) return undefined;
  const packed = bytes.readUInt32BE(18);
  const info = {
    rate: packed >>> 12,
    channels: ((packed >>> 9) & 7) + 1,
    bits: ((packed >>> 4) & 31) + 1,
    total: (packed & 15) * 2 ** 32 + bytes.readUInt32BE(22),
    md5: bytes.toString('hex', 26, 42),
  };
  return info.rate === 0 || info.bits < 4 ? undefined : info;
}

/** Averages one piece into `target`, and returns its integers as the MD5 covers them. The decoder scales by the most positive value. */
function average(parts: readonly Float32Array[], bits: number, target: Float32Array): Buffer {
  const frames = parts[0]!.length;
  const width = Math.ceil(bits / 8);
  const integers = Buffer.alloc(frames * parts.length * width);
  const [top, full] = [2 ** (bits - 1) - 1, 2 ** (bits - 1)];
  for (let frame = 0, at = 0; frame < frames; frame++) {
    let sum = 0;
    for (const part of parts) {
      const value = Math.round(part[frame]! * top);
      integers.writeIntLE(value, at, width);
      at += width;
      sum += value / full;
    }
    target[frame] = sum / parts.length;
  }
  return integers;
}
