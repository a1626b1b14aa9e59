import { type ByteSource, openFile } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import type { Audio } from './audio.js';

/** Codes of `wFormatTag`. */
const PCM = 1;
const FLOAT = 3;
const EXTENSIBLE = 0xfffe;
/** A chunk of the format is 16 to 40 bytes. */
const LARGEST_FORMAT = 64;

interface Format {
  readonly code: number;
  readonly channels: number;
  readonly rate: number;
  readonly bits: number;
}

/** Reads one sample; integers are divided by the magnitude of their most negative value, as libsndfile does. */
const readers: Readonly<Record<string, (view: DataView, at: number) => number>> = {
  [`${PCM}/8`]: (view, at) => (view.getUint8(at) - 128) / 128,
  [`${PCM}/16`]: (view, at) => view.getInt16(at, true) / 2 ** 15,
  [`${PCM}/24`]: (view, at) => (view.getUint16(at, true) + view.getInt8(at + 2) * 2 ** 16) / 2 ** 23,
  [`${PCM}/32`]: (view, at) => view.getInt32(at, true) / 2 ** 31,
  [`${FLOAT}/32`]: (view, at) => view.getFloat32(at, true),
  [`${FLOAT}/64`]: (view, at) => view.getFloat64(at, true),
};

type Reject = (why: string, remedy?: string) => Error;

/** 18 hours of 16 kHz in 16 bits. */
const LARGEST_WAV = 2 ** 31 - 1;

/**
 * Reads PCM of 8 to 32 bits and floats, also as WAVE_FORMAT_EXTENSIBLE; several channels are averaged, as NeMo and librosa do. Throws TF_AUDIO_INVALID for
 * another kind of file and for one that is damaged or cut short, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export function readWav(path: string): Audio {
  const source = openFile(path);
  try {
    const reject = (why: string, remedy?: string) =>
      new TrtforgeError('TF_AUDIO_INVALID', `${path} cannot be used as audio: ${why}.`, { remedy });
    if (source.size > LARGEST_WAV) throw reject(`it has ${source.size} bytes`);
    return soundOf(source, reject);
  } finally {
    source.close();
  }
}

function soundOf(source: ByteSource, reject: Reject): Audio {
  const head = read(source, 0, 12, reject);
  if (text(head, 0) !== 'RIFF' || text(head, 8) !== 'WAVE')
    throw reject('it is not a WAV or FLAC file', 'Convert it: ffmpeg -i FILE -ac 1 -ar 16000 FILE.wav');
  let format: Format | undefined;
  for (let at = 12; at + 8 <= source.size; ) {
    const chunk = read(source, at, 8, reject);
    const [id, size] = [text(chunk, 0), chunk.getUint32(4, true)];
    const start = at + 8;
    if (id === 'fmt ') format = formatOf(read(source, start, Math.min(size, LARGEST_FORMAT), reject), reject);
    if (id === 'data') {
      if (format === undefined) throw reject('its data stands before its format');
      if (start + size > source.size)
        throw reject(`it is cut short: ${source.size - start} of ${size} bytes of sound are there`);
      return samplesOf(read(source, start, size, reject), format, reject);
    }
    // Chunks begin at even places.
    at = start + size + (size % 2);
  }
  throw reject('it has no sound');
}

function formatOf(view: DataView, reject: Reject): Format {
  if (view.byteLength < 16) throw reject('its format is cut short');
  const tag = view.getUint16(0, true);
  if (tag === EXTENSIBLE && view.byteLength < 26) throw reject('its format is cut short');
  // The extension begins with its code in the first two bytes of a GUID.
  const code = tag === EXTENSIBLE ? view.getUint16(24, true) : tag;
  const format = {
    code,
    channels: view.getUint16(2, true),
    rate: view.getUint32(4, true),
    bits: view.getUint16(14, true),
  };
  if (format.channels === 0 || format.rate === 0) throw reject('it has no channel or no sample rate');
  if (readers[`${code}/${format.bits}`] === undefined)
    throw reject(
      `its format is ${code} with ${format.bits} bits`,
      'Convert it to PCM: ffmpeg -i FILE -c:a pcm_s16le FILE.wav',
    );
  return format;
}

function samplesOf(view: DataView, { code, channels, rate, bits }: Format, reject: Reject): Audio {
  const sample = readers[`${code}/${bits}`]!;
  const bytes = bits / 8;
  const frames = Math.floor(view.byteLength / (bytes * channels));
  const samples = new Float32Array(frames);
  for (let frame = 0, at = 0; frame < frames; frame++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++, at += bytes) sum += sample(view, at);
    samples[frame] = sum / channels;
  }
  if (!samples.every(Number.isFinite)) throw reject('it has samples that are NaN or infinite');
  return { rate, samples };
}

function read(source: ByteSource, offset: number, bytes: number, reject: Reject): DataView {
  if (offset + bytes > source.size) throw reject('it is cut short');
  const buffer = Buffer.alloc(bytes);
  const got = source.read(buffer, offset, bytes);
  if (got < bytes) throw reject('it is cut short');
  return new DataView(buffer.buffer, buffer.byteOffset, bytes);
}

const text = (view: DataView, at: number): string =>
  String.fromCharCode(...[0, 1, 2, 3].map((byte) => view.getUint8(at + byte)));
