import { type ByteSource, closing, openFile } from '../../base/files/byte-source.js';
import { TrtforgeError } from '../../errors.js';
import { type Audio, assertBounds, LARGEST_AUDIO_FILE, Mix, type RejectAudio } from './audio.js';

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

/** The size that a writer to a pipe states, since it does not know it: the sound ends with the file. */
const UNKNOWN_SIZE = 0xffff_ffff;
/** Bytes that are read at once, about. */
const PIECE = 1 << 20;

/**
 * Reads PCM of 8 to 32 bits and floats, also as WAVE_FORMAT_EXTENSIBLE; several channels are averaged, as NeMo and librosa do. Throws TF_AUDIO_INVALID for
 * another kind of file and for one that is damaged or cut short, TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE.
 */
export function readWav(path: string): Audio {
  return closing(openFile(path), (source) => {
    const reject: RejectAudio = (why, remedy) =>
      new TrtforgeError('TF_AUDIO_INVALID', `${path} cannot be used as audio: ${why}.`, { remedy });
    if (source.size > LARGEST_AUDIO_FILE) throw reject(`it has ${source.size} bytes`);
    return soundOf(source, reject);
  });
}

function soundOf(source: ByteSource, reject: RejectAudio): Audio {
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
      const there = source.size - start;
      if (size === 0 && there > 0)
        throw reject(
          `its header states 0 bytes of sound, and ${there} bytes follow: its recorder was stopped`,
          'Read it to its end: ffmpeg -ignore_length 1 -i FILE OUT.wav.',
        );
      if (size !== UNKNOWN_SIZE && size > there)
        throw reject(`it is cut short: ${there} of ${size} bytes of sound are there`);
      return samplesOf(source, start, Math.min(size, there), format, reject);
    }
    // Chunks begin at even places.
    at = start + size + (size % 2);
  }
  throw reject('it has no sound');
}

function formatOf(view: DataView, reject: RejectAudio): Format {
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
  if (format.channels === 0) throw reject('it has no channel');
  if (readers[`${code}/${format.bits}`] === undefined)
    throw reject(
      `its format is ${code} with ${format.bits} bits`,
      'Convert it to PCM: ffmpeg -i FILE -c:a pcm_s16le FILE.wav',
    );
  return format;
}

function samplesOf(
  source: ByteSource,
  start: number,
  size: number,
  { code, channels, rate, bits }: Format,
  reject: RejectAudio,
): Audio {
  const sample = readers[`${code}/${bits}`]!;
  const bytes = bits / 8;
  const frameBytes = bytes * channels;
  const frames = Math.floor(size / frameBytes);
  if (frames === 0) throw reject('it has no sound');
  assertBounds(rate, frames, reject);
  const mix = new Mix(frames, channels);
  const atOnce = Math.ceil(PIECE / frameBytes);
  while (mix.frames < frames) {
    const count = Math.min(atOnce, frames - mix.frames);
    const view = read(source, start + mix.frames * frameBytes, count * frameBytes, reject);
    for (let at = 0; at < view.byteLength; ) {
      let [sum, squares] = [0, 0];
      for (let channel = 0; channel < channels; channel++, at += bytes) {
        const value = sample(view, at);
        sum += value;
        squares += value * value;
      }
      mix.add(sum, squares);
    }
  }
  if (!mix.samples.every(Number.isFinite)) throw reject('it has samples that are NaN or infinite');
  mix.assertSound(reject);
  return { rate, samples: mix.samples };
}

function read(source: ByteSource, offset: number, bytes: number, reject: RejectAudio): DataView {
  if (offset + bytes > source.size) throw reject('it is cut short');
  const buffer = Buffer.alloc(bytes);
  const got = source.read(buffer, offset, bytes);
  if (got < bytes) throw reject('it is cut short');
  return new DataView(buffer.buffer, buffer.byteOffset, bytes);
}

const text = (view: DataView, at: number): string =>
  String.fromCharCode(...[0, 1, 2, 3].map((byte) => view.getUint8(at + byte)));
