import { createHash } from 'node:crypto';
import { readWhole } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { type Audio, assertBounds, LARGEST_AUDIO_FILE, Mix, type RejectAudio } from './audio.js';

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
  const reject: RejectAudio = (why, remedy, cause) =>
    new TrtforgeError('TF_AUDIO_INVALID', `${path} cannot be used as audio: ${why}.`, { remedy, cause });
  const bytes = readWhole(path, LARGEST_AUDIO_FILE, 'TF_AUDIO_INVALID');
  const info = streamInfo(bytes);
  if (info === undefined) throw reject('its first block is not a valid STREAMINFO');
  const { rate, channels, bits, total, md5 } = info;
  if (total === 0) throw reject('it does not state its length');
  assertBounds(rate, total, reject);
  const decoder = await open();
  const mix = new Mix(total, channels);
  const hash = createHash('md5');
  const take = (parts: readonly Float32Array[]) => {
    const frames = parts[0]?.length ?? 0;
    if (frames === 0) return;
    if (parts.length !== channels || mix.frames + frames > total)
      throw reject(`it has more than the ${total} samples of ${channels} channels that it states`);
    hash.update(integersOf(parts, bits, mix));
  };
  try {
    for (let at = 0; at < bytes.length; at += PIECE)
      take(decoder.decode(bytes.subarray(at, at + PIECE)).channelData);
    take(decoder.flush().channelData);
  } catch (cause) {
    if (cause instanceof TrtforgeError) throw cause;
    throw reject(cause instanceof Error ? cause.message : String(cause), undefined, cause);
  } finally {
    decoder.free();
  }
  if (mix.frames < total)
    throw reject(`it is damaged or cut short: ${mix.frames} of ${total} samples are there`);
  if (!/^0+$/.test(md5) && hash.digest('hex') !== md5)
    throw reject('it is damaged: the MD5 of its samples differs');
  mix.assertSound(reject);
  return { rate, samples: mix.samples };
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
  return info.bits < 4 ? undefined : info;
}

/** Adds one piece to `mix`, and returns its integers as the MD5 covers them. The decoder scales by the most positive value. */
function integersOf(parts: readonly Float32Array[], bits: number, mix: Mix): Buffer {
  const frames = parts[0]!.length;
  const width = Math.ceil(bits / 8);
  const integers = Buffer.alloc(frames * parts.length * width);
  const [top, full] = [2 ** (bits - 1) - 1, 2 ** (bits - 1)];
  for (let frame = 0, at = 0; frame < frames; frame++) {
    let [sum, squares] = [0, 0];
    for (const part of parts) {
      const integer = Math.round(part[frame]! * top);
      integers.writeIntLE(integer, at, width);
      at += width;
      const value = integer / full;
      sum += value;
      squares += value * value;
    }
    mix.add(sum, squares);
  }
  return integers;
}
